//! Which test belongs to which tier: by what cargo lists, and the file's prefix.

use std::fmt;

use crate::workspace::Target;

/// Tests that need the same things, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Tier {
    /// The tests inside the crates: nothing but the compiler
    Unit,
    /// The examples in the documentation
    Doc,
    /// Integration tests without daemons or privilege
    Pure,
    /// Integration tests against this machine's kernel (kernel_*)
    Kernel,
    /// Integration tests against real OVS and OVN (lab_*, ovs_*, ovsdb_*, openflow_*)
    Lab,
    /// The kernel tier again, and tests of the kernel's own Open vSwitch datapath (vm_*), in virtual
    /// machines with other kernels
    Vm,
}

/// Prefixes of the files whose tests start real daemons.
const LAB_PREFIXES: [&str; 4] = ["lab_", "ovs_", "ovsdb_", "openflow_"];

impl Tier {
    const ALL: [Self; 6] = [
        Self::Unit,
        Self::Doc,
        Self::Pure,
        Self::Kernel,
        Self::Lab,
        Self::Vm,
    ];

    /// How many tests of the tier may run at once on a machine of two cores: each lab is a handful
    /// of busy daemons.
    pub(crate) fn threads(self) -> usize {
        match self {
            Self::Unit | Self::Doc | Self::Pure | Self::Kernel | Self::Vm => 2,
            Self::Lab => 1,
        }
    }

    /// The tier of an integration test's file.
    fn of(test: &str) -> Self {
        if test.starts_with("kernel_") {
            Self::Kernel
        } else if test.starts_with("vm_") {
            Self::Vm
        } else if LAB_PREFIXES.iter().any(|prefix| test.starts_with(prefix)) {
            Self::Lab
        } else {
            Self::Pure
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unit => "unit",
            Self::Doc => "doc",
            Self::Pure => "pure",
            Self::Kernel => "kernel",
            Self::Lab => "lab",
            Self::Vm => "vm",
        })
    }
}

/// One call of `cargo test`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The tier that it runs.
    pub(crate) tier: Tier,
    /// The arguments that select its tests.
    pub(crate) selection: Vec<String>,
}

/// The calls for the tiers asked for (all, if none is), those without a test left out.
pub(crate) fn plan(targets: &[Target], asked: &[Tier]) -> Vec<Run> {
    Tier::ALL
        .into_iter()
        .filter(|tier| asked.is_empty() || asked.contains(tier))
        .map(|tier| Run {
            tier,
            selection: match tier {
                Tier::Unit => vec!["--lib".to_owned(), "--bins".to_owned()],
                Tier::Doc => vec!["--doc".to_owned()],
                Tier::Pure | Tier::Kernel | Tier::Lab => integration_tests(targets, tier),
                // Those of the other tier run there as well.
                Tier::Vm => [Tier::Kernel, Tier::Vm]
                    .into_iter()
                    .flat_map(|tier| integration_tests(targets, tier))
                    .collect(),
            },
        })
        .filter(|run| !run.selection.is_empty())
        .collect()
}

fn integration_tests(targets: &[Target], tier: Tier) -> Vec<String> {
    targets
        .iter()
        .filter(|target| target.kind == "test" && Tier::of(&target.name) == tier)
        .map(|target| format!("--test={}", target.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_file(name: &str) -> Target {
        Target {
            package: "neighsteer-tests".to_owned(),
            name: name.to_owned(),
            kind: "test".to_owned(),
            required_features: Vec::new(),
        }
    }

    #[test]
    fn a_test_file_is_taken_up_by_its_prefix_alone() {
        let targets = ["cli", "kernel_verdicts", "lab_fan_out", "ovsdb_client"].map(test_file);
        let selections: Vec<_> = plan(&targets, &[Tier::Lab, Tier::Pure])
            .into_iter()
            .map(|run| (run.tier, run.selection.join(" ")))
            .collect();
        assert_eq!(
            selections,
            [
                (Tier::Pure, "--test=cli".to_owned()),
                (
                    Tier::Lab,
                    "--test=lab_fan_out --test=ovsdb_client".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_tier_without_a_test_file_is_left_out() {
        let tiers: Vec<_> = plan(&[], &[]).into_iter().map(|run| run.tier).collect();
        assert_eq!(tiers, [Tier::Unit, Tier::Doc]);
    }
}
