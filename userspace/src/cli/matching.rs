//! The flags that say by what frames are steered.

use crate::plan::{SteeringMark, SteeringMatch};

/// By what frames are steered.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Steering")]
pub struct MatchArgs {
    /// By what an uplink's flows know frames to steer. A mark takes the kernel's datapath (not
    /// netdev) without hardware offload, and `--datapath tc`
    #[arg(
        long = "match",
        env = "NEIGHSTEER_MATCH",
        value_enum,
        value_name = "WHAT",
        default_value_t
    )]
    pub steering_match: SteeringMatch,
    /// The mark, with `--match mark`: none that others use on this node
    #[arg(
        long,
        env = "NEIGHSTEER_STEERING_MARK",
        value_name = "MARK",
        default_value_t
    )]
    pub steering_mark: SteeringMark,
}

impl MatchArgs {
    /// The mark by which frames are steered; `None` = by their headers.
    #[must_use]
    pub const fn mark(&self) -> Option<SteeringMark> {
        match self.steering_match {
            SteeringMatch::Header => None,
            SteeringMatch::Mark => Some(self.steering_mark),
        }
    }
}
