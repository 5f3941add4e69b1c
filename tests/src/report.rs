//! What programs that measure have in common.

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// A table
    Text,
    /// One object
    Json,
}
