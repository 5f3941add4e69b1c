//! What the programs log, when they were built to (feature `log`).

use std::{convert::Infallible, time::Duration};

use aya_log::EbpfLogger;

/// How often the ring buffer is emptied.
const PERIOD: Duration = Duration::from_millis(50);

/// The program is gone, or it does not log.
#[derive(Debug, thiserror::Error)]
#[error("program {program_id} has no log")]
pub struct LogError {
    program_id: u32,
    source: aya_log::Error,
}

/// Hands the messages of an attached program to the `log` crate's logger, which is `tracing`'s once
/// a subscriber is installed. Ends only with an error.
///
/// # Errors
/// Where the program has no log.
pub async fn drain(program_id: u32) -> Result<Infallible, LogError> {
    let mut logger =
        EbpfLogger::init_from_id(program_id).map_err(|source| LogError { program_id, source })?;
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        logger.flush();
    }
}
