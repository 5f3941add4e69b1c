//! The flag that says what becomes of invalid frames.

use neighsteer_common::Validate;

/// What becomes of NDP that every receiver must discard by the standards: hop limit other than 255,
/// code other than 0, shorter than its type, multicast target, fragmented (RFC 4861, RFC 6980).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ValidateArg {
    /// It is passed on, and failed checks are not counted
    Off,
    /// It is counted and passed on
    #[default]
    Count,
    /// It is counted and dropped, and nothing else is
    Drop,
}

impl From<ValidateArg> for Validate {
    fn from(argument: ValidateArg) -> Self {
        match argument {
            ValidateArg::Off => Self::Off,
            ValidateArg::Count => Self::Count,
            ValidateArg::Drop => Self::Drop,
        }
    }
}
