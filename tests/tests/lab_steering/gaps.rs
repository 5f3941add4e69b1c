//! For how long flows of ours were away, as the bridge itself tells.

use std::{
    collections::HashMap,
    sync::mpsc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use neighsteer::{
    openflow::{FlowEvent, FlowKey, NativeSwitch, PortEvent},
    plan::COOKIE,
};
use neighsteer_tests::lab::Lab;

/// A watch of its own beside the agent's.
pub struct Gaps {
    stop: tokio::sync::oneshot::Sender<()>,
    thread: JoinHandle<Report>,
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
    pub fn part(&self, share: f64) -> Duration {
        let last = self.gaps.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let index = (last as f64 * share) as usize;
        self.gaps.get(index).copied().unwrap_or_default()
    }

    pub fn print(&self, what: &str) {
        let share = 100.0 * self.absent.as_secs_f64() / self.watched.as_secs_f64();
        println!(
            "{what}: {} gaps, median {:?}, p99 {:?}, longest {:?}, absent {share:.3} % of {:?}",
            self.gaps.len(),
            self.part(0.5),
            self.part(0.99),
            self.part(1.0),
            self.watched
        );
    }
}

impl Gaps {
    /// Watches a bridge from now on.
    pub fn watch(lab: &Lab, bridge: &'static str) -> Self {
        let directory = lab.directory().to_owned();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let switch = NativeSwitch::new(directory);
                let (_, mut watch) = switch.watch_flows(bridge, &[]).await.unwrap();
                let (_, mut ports) = switch.watch_ports(bridge).await.unwrap();
                ready.send(()).unwrap();
                let mut report = Report::default();
                let mut lost: HashMap<FlowKey, Instant> = HashMap::new();
                let mut first = None;
                let start = Instant::now();
                tokio::pin!(stopped);
                loop {
                    let event = tokio::select! {
                        _ = &mut stopped => break,
                        event = watch.next() => event.unwrap(),
                        event = ports.next() => {
                            if let PortEvent::Deleted(_) = event.unwrap() {
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
                            if let Some(since) = lost.remove(&flow.key()) {
                                report.gaps.push(now - since);
                            } else {
                                // A flow that takes another's place is told as an added one.
                                report.replaced.push(now);
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
                report.gaps.sort();
                report.missing = lost.len();
                report.watched = start.elapsed();
                report
            })
        });
        wait.recv().unwrap();
        Self { stop, thread }
    }

    pub fn finish(self) -> Report {
        let _ = self.stop.send(());
        self.thread.join().unwrap()
    }
}
