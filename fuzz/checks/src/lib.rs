//! What the fuzz targets do with arbitrary bytes. Each body panics where something does not hold; the
//! targets in `fuzz/fuzz_targets` and the replay of their corpus (`fuzz_corpus`) call the same ones.

mod flow_text;
mod framing;
mod openflow;
mod rows;
mod schema;
mod updates;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Panics where something that should hold does not.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 6] = [
    Target {
        name: "framing",
        run: framing::run,
    },
    Target {
        name: "schema",
        run: schema::run,
    },
    Target {
        name: "updates",
        run: updates::run,
    },
    Target {
        name: "rows",
        run: rows::run,
    },
    Target {
        name: "openflow",
        run: openflow::run,
    },
    Target {
        name: "flow_text",
        run: flow_text::run,
    },
];

/// Runs the target of this name.
///
/// # Panics
/// Where something does not hold, or there is no such target.
pub fn run(name: &str, data: &[u8]) {
    let mut targets = TARGETS.iter();
    let target = targets.find(|target| target.name == name);
    (target.expect("a target of this name").run)(data);
}

/// The lines of an input.
fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    data.split(|byte| *byte == b'\n')
}
