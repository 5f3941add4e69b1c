//! For how long flows of ours were away, as the bridge itself tells.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::mpsc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use neighsteer::{
    openflow::{FlowEvent, FlowKey, FlowWatch, NativeSwitch, PortEvent, PortWatch, SwitchError},
    plan::COOKIE,
};
use tokio::sync::oneshot;

use crate::lab::Lab;

/// Why gaps could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum GapsError {
    /// The system gave no runtime for the watch.
    #[error("cannot start the watch's runtime")]
    Runtime(#[from] io::Error),
    /// The bridge could not be watched, or not any more.
    #[error("cannot watch the bridge")]
    Switch(#[from] SwitchError),
    /// The thread of the watch panicked.
    #[error("the watch ended before it told anything")]
    Ended,
}

/// A watch of its own beside the agent's.
#[derive(Debug)]
pub struct Gaps {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<Report, GapsError>>,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Report {
    /// Sorted.
    pub gaps: Vec<Duration>,
    /// Flows that were away at the end.
    pub missing: usize,
    /// How long was watched.
    pub watched: Duration,
    /// For how long at least one was away.
    pub absent: Duration,
    /// When ports went.
    pub ports_gone: Vec<Instant>,
    /// When flows of ours took the place of others of ours.
    pub replaced: Vec<Instant>,
}

impl Report {
    /// The gap that `share` of all are not longer than; zero where there was none.
    #[must_use]
    pub fn part(&self, share: f64) -> Duration {
        let last = self.gaps.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let index = (last as f64 * share) as usize;
        self.gaps.get(index).copied().unwrap_or_default()
    }

    /// The share of the time that at least one flow was away.
    #[must_use]
    pub fn absent_share(&self) -> f64 {
        self.absent.as_secs_f64() / self.watched.as_secs_f64()
    }

    /// One line of it all.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{} gaps, median {:?}, p99 {:?}, longest {:?}, absent {:.3} % of {:?}",
            self.gaps.len(),
            self.part(0.5),
            self.part(0.99),
            self.part(1.0),
            100.0 * self.absent_share(),
            self.watched
        )
    }
}

impl Gaps {
    /// Watches a bridge of a lab from now on, in a thread of its own.
    ///
    /// # Errors
    /// Where the bridge cannot be watched.
    pub fn watch(lab: &Lab, bridge: &'static str) -> Result<Self, GapsError> {
        let directory = lab.directory().to_owned();
        let (stop, stopped) = oneshot::channel();
        let (ready, wait) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let (flows, ports) = watches(directory, bridge).await?;
                // Nobody waits where the test has failed meanwhile.
                let _ = ready.send(());
                Ok(collect(flows, ports, stopped).await?)
            })
        });
        let gaps = Self { stop, thread };
        match wait.recv() {
            Ok(()) => Ok(gaps),
            Err(_) => gaps.finish().and(Err(GapsError::Ended)),
        }
    }

    /// Ends the watch.
    ///
    /// # Errors
    /// Where it ended before.
    pub fn finish(self) -> Result<Report, GapsError> {
        // It may have ended by itself: its result says why.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or(Err(GapsError::Ended))
    }
}

async fn watches(directory: PathBuf, bridge: &str) -> Result<(FlowWatch, PortWatch), SwitchError> {
    let switch = NativeSwitch::new(directory);
    let (_, flows) = switch.watch_flows(bridge, &[]).await?;
    let (_, ports) = switch.watch_ports(bridge).await?;
    Ok((flows, ports))
}

async fn collect(
    mut flows: FlowWatch,
    mut ports: PortWatch,
    mut stopped: oneshot::Receiver<()>,
) -> Result<Report, SwitchError> {
    let mut report = Report::default();
    let mut lost: HashMap<FlowKey, Instant> = HashMap::new();
    let mut first = None;
    let start = Instant::now();
    loop {
        let event = tokio::select! {
            _ = &mut stopped => break,
            event = flows.next() => event?,
            event = ports.next() => {
                if let PortEvent::Deleted(_) = event? {
                    report.ports_gone.push(Instant::now());
                }
                continue;
            }
        };
        let now = Instant::now();
        match event {
            FlowEvent::Deleted(flow) if flow.cookie == COOKIE => {
                first.get_or_insert(now);
                lost.insert(flow.key(), now);
            }
            FlowEvent::Added(flow) if flow.cookie == COOKIE => {
                match lost.remove(&flow.key()) {
                    Some(since) => report.gaps.push(now - since),
                    // A flow that takes another's place is told as an added one.
                    None => report.replaced.push(now),
                }
                if lost.is_empty()
                    && let Some(since) = first.take()
                {
                    report.absent += now - since;
                }
            }
            _ => {}
        }
    }
    report.absent += first.map_or(Duration::ZERO, |since: Instant| since.elapsed());
    report.gaps.sort_unstable();
    report.missing = lost.len();
    report.watched = start.elapsed();
    Ok(report)
}
