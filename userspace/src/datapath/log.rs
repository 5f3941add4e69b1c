//! What the programs log, when they were built to (feature `log`).

use aya_log::EbpfLogger;
use tokio::io::{Interest, unix::AsyncFd};

/// Why the programs' messages cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The program is gone, or it does not log.
    #[error("program {program_id} has no log")]
    NoLog {
        /// The program.
        program_id: u32,
        /// What is missing.
        source: aya_log::Error,
    },
    /// The ring buffer cannot be watched.
    #[error("cannot watch the log of program {program_id}")]
    Watch {
        /// The program.
        program_id: u32,
        /// The system's answer.
        source: std::io::Error,
    },
}

/// Hands the messages of an attached program to the `log` crate's logger, which is `tracing`'s once
/// a subscriber is installed. Ends only with an error.
///
/// # Errors
/// Where the program has no log or the ring buffer cannot be watched.
pub async fn drain(program_id: u32) -> Result<(), LogError> {
    let logger = EbpfLogger::init_from_id(program_id)
        .map_err(|source| LogError::NoLog { program_id, source })?;
    let watch = |source| LogError::Watch { program_id, source };
    let mut logger = AsyncFd::with_interest(logger, Interest::READABLE).map_err(watch)?;
    loop {
        let mut ready = logger.readable_mut().await.map_err(watch)?;
        ready.get_inner_mut().flush();
        ready.clear_ready();
    }
}
