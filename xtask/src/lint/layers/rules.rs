//! The rules, read from the page that states them: what is checked cannot differ from what is
//! written.

use anyhow::ensure;

/// The rules of every part of userspace.
#[derive(Debug)]
pub(super) struct Rules {
    parts: Vec<Part>,
}

/// What holds for one module.
#[derive(Debug)]
pub(super) struct Part {
    /// The module's name.
    name: String,
    /// Which others it may use.
    pub(super) may_use: MayUse,
    /// Whether it is free of input, output, clock and randomness.
    pub(super) pure: bool,
    /// Whether it is a protocol client, to which OVN must be unknown.
    pub(super) knows_no_ovn: bool,
}

/// The modules that one may use, as paths such as `ovsdb::value`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MayUse {
    /// These, what is in them, and no others.
    Only(Vec<String>),
    /// Every one but these.
    AllBut(Vec<String>),
}

impl MayUse {
    /// Whether what a path leads to is among them.
    pub(super) fn allows(&self, path: &str) -> bool {
        let within = |module: &String| {
            path.strip_prefix(module.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        match self {
            Self::Only(modules) => modules.iter().any(within),
            Self::AllBut(modules) => !modules.iter().any(within),
        }
    }

    /// The third cell of a row: "nothing", "all", "all but `a`", "`a`, `b::c` (why)".
    fn parse(cell: &str) -> Self {
        let modules = quoted(cell);
        if cell.trim_start().starts_with("all") {
            Self::AllBut(modules)
        } else {
            Self::Only(modules)
        }
    }
}

impl Rules {
    /// Reads the table whose rows begin with `` `userspace::NAME` ``, and the paragraph that begins by
    /// saying which modules "are pure".
    ///
    /// # Errors
    /// When the page has no such table or no such sentence.
    pub(super) fn parse(page: &str) -> anyhow::Result<Self> {
        let pure: Vec<String> = page
            .split("\n\n")
            .find_map(|paragraph| paragraph.split_once(" are pure"))
            .map(|(modules, _)| quoted(modules))
            .unwrap_or_default();
        let parts: Vec<Part> = page
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix('|')?.split('|');
                let name = cells
                    .next()?
                    .trim()
                    .strip_prefix("`userspace::")?
                    .strip_suffix('`')?;
                let what = cells.next()?;
                Some(Part {
                    name: name.to_owned(),
                    may_use: MayUse::parse(cells.next()?),
                    pure: pure.iter().any(|module| module == name),
                    knows_no_ovn: what.contains("knows nothing of OVN"),
                })
            })
            .collect();
        ensure!(
            !parts.is_empty(),
            "docs/architecture.md has no table of `userspace::…` modules"
        );
        for module in &pure {
            ensure!(
                parts.iter().any(|part| part.name == *module),
                "docs/architecture.md calls `{module}` pure, but its table has no such module"
            );
        }
        ensure!(
            !pure.is_empty(),
            "docs/architecture.md does not say which modules \"are pure\""
        );
        Ok(Self { parts })
    }

    /// The rules of a module.
    pub(super) fn part(&self, module: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == module)
    }
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}
