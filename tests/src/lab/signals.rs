//! ^C while labs are up.

use std::{io, thread};

use tokio::signal::unix::{SignalKind, signal};

/// Turns ^C and SIGTERM into the end of every wait, so that labs are dropped and not left behind.
///
/// # Errors
/// When the signals cannot be caught.
pub fn end_labs_on_signals() -> io::Result<()> {
    // Handlers and not a blocked mask, which daemons that are started would inherit.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    drop(entered);
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        super::interrupt();
    });
    Ok(())
}
