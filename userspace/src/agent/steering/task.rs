//! One bridge, kept as it is wanted.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    BridgeSteering, DesiredBridge, Statuses,
    contention::{Contention, Pace},
    news::{self, News},
    watches::{Event, Watches},
};
use crate::{
    agent::{
        converge::{Bridge, Changes, SteeringError},
        state::StateFile,
    },
    openflow::{Flow, FlowEvent, FlowKey, NativeSwitch, Switch as _, unixctl::UnixCtl},
    ovsdb::Backoff,
    plan::COOKIE,
};

/// How long after a quick repair the bridge is compared as a whole: repairs in between share one
/// comparison.
const VERIFY_AFTER: Duration = Duration::from_millis(250);
/// News that are taken in before they are acted upon.
const NEWS_AT_ONCE: usize = 4096;

/// What a bridge's task works with.
#[derive(Debug)]
pub(super) struct BridgeTask {
    pub(super) bridge: Arc<str>,
    pub(super) switch: NativeSwitch,
    pub(super) ovs_run_directory: PathBuf,
    pub(super) state: StateFile,
    pub(super) check_interval: Duration,
    pub(super) desired: watch::Receiver<DesiredBridge>,
    pub(super) statuses: Arc<watch::Sender<Statuses>>,
}

/// What is wanted now, and how it stands.
struct Situation {
    desired: DesiredBridge,
    wanted: BTreeMap<FlowKey, Flow>,
    record: BridgeSteering,
    contention: Contention,
    /// Passes that failed in a row.
    failures: u32,
    /// Whether the last pass took ours off in favour of others, so that nobody else has.
    withdrawn: bool,
    /// When the bridge is next compared as a whole; `None` = it wants nothing and has nothing.
    due: Option<Instant>,
}

enum Woken {
    Desired,
    News(Event),
    Due,
    Quiet,
}

impl BridgeTask {
    /// Compares the bridge whenever what is wanted changes, it tells of something that is not as it
    /// should be, a pass has failed, or the check interval is over. Ends when the sender of
    /// `desired` is gone.
    pub(super) async fn run(mut self) {
        let mut watches = Watches::new(&self.switch, &self.bridge);
        let mut now = Situation::new(&self.bridge, self.check_interval);
        self.take_desired(&mut now, &mut watches);
        loop {
            let woken = tokio::select! {
                biased;
                changed = self.desired.changed() => match changed {
                    Ok(()) => Woken::Desired,
                    Err(_) => return,
                },
                event = watches.next() => Woken::News(event),
                () = at(now.due) => Woken::Due,
                () = at(now.contention.quiet_at().map(Instant::from_std)) => Woken::Quiet,
            };
            match woken {
                Woken::Desired => self.take_desired(&mut now, &mut watches),
                Woken::News(event) => {
                    let news = now.take_in(event, &mut watches).await;
                    self.answer(&mut now, news).await;
                }
                Woken::Due => self.pass(&mut now).await,
                Woken::Quiet => {}
            }
            let contended = now.contention.contended(Instant::now().into_std());
            now.record.set_contended(contended);
            now.record.watched = watches.is_watching();
            self.publish(&now.record);
        }
    }

    fn take_desired(&mut self, now: &mut Situation, watches: &mut Watches) {
        now.desired = self.desired.borrow_and_update().clone();
        let flows = &now.desired.plan.flows;
        now.wanted = flows.iter().map(|it| (it.key(), it.clone())).collect();
        watches.want((!flows.is_empty()).then(|| news::cover(flows)));
        now.due = Some(Instant::now());
    }

    fn publish(&self, record: &BridgeSteering) {
        self.statuses.send_if_modified(|statuses| {
            let changed = statuses.get(&self.bridge) != Some(record);
            if changed {
                statuses.insert(Arc::clone(&self.bridge), record.clone());
            }
            changed
        });
    }

    /// Puts back exactly what was lost, or has the bridge compared as a whole.
    async fn answer(&self, now: &mut Situation, news: News) {
        now.record.flows_lost += news.losses;
        if news.is_empty() && news.losses == 0 {
            return;
        }
        let time = Instant::now();
        if let Pace::At(later) = now.contention.disturbed(time.into_std()) {
            // An earlier pass, such as the one for a new plan, may go on.
            now.due_at(Instant::from_std(later).max(time));
            return;
        }
        if news.look || !now.record.converged || now.record.standing_down {
            now.due_at(time);
            return;
        }
        if news.lost.is_empty() {
            return;
        }
        let lost: Vec<Flow> = news.lost.into_values().collect();
        match self.switch.add_flows(&self.bridge, &lost).await {
            Ok(()) => {
                now.record.flows_added += lost.len() as u64;
                now.due_at(time + VERIFY_AFTER);
                tracing::debug!(bridge = %self.bridge, flows = lost.len(), "flows put back");
            }
            Err(error) => {
                tracing::debug!(bridge = %self.bridge, %error, "flows not put back");
                now.due_at(time);
            }
        }
    }

    async fn pass(&self, now: &mut Situation) {
        let result = self.converge(&now.desired).await;
        let time = Instant::now();
        // A pass that failed may have done something, and is not to be repeated at once either.
        let has_repaired = !result.as_ref().is_ok_and(Changes::is_empty);
        now.contention.passed(time.into_std(), has_repaired);
        now.withdrawn = match &result {
            Ok(changes) => changes.stands_down,
            Err(SteeringError::Managed { .. }) => true,
            Err(_) => now.withdrawn,
        };
        now.failures = if result.is_err() { now.failures + 1 } else { 0 };
        now.due = match (&result, now.desired.plan.is_empty()) {
            // Nobody puts anything of ours there; to look at br-int costs more than all the rest.
            (Ok(_), true) => None,
            (Ok(_), false) => Some(time + self.check_interval),
            (Err(_), _) => {
                let backoff = Backoff {
                    first: Duration::from_millis(100),
                    longest: self.check_interval,
                };
                Some(time + backoff.wait(now.failures, fastrand::f64()))
            }
        };
        now.record.note(&now.desired, result);
    }

    async fn converge(&self, desired: &DesiredBridge) -> Result<Changes, SteeringError> {
        let unixctl = UnixCtl::of_vswitchd(&self.ovs_run_directory).map_err(|source| {
            SteeringError::Control {
                bridge: self.bridge.to_string(),
                source,
            }
        })?;
        Bridge {
            name: &self.bridge,
            ports: &desired.ports,
            switch: &self.switch,
            unixctl: &unixctl,
            state: &self.state,
            alone: desired.alone,
        }
        .converge(&desired.plan)
        .await
    }
}

impl Situation {
    fn new(bridge: &str, check_interval: Duration) -> Self {
        Self {
            desired: DesiredBridge::default(),
            wanted: BTreeMap::new(),
            record: BridgeSteering::new(bridge),
            contention: Contention::new(check_interval),
            failures: 0,
            withdrawn: false,
            due: None,
        }
    }

    fn due_at(&mut self, time: Instant) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// Takes in an event and all that came with it.
    async fn take_in(&mut self, first: Event, watches: &mut Watches) -> News {
        let mut news = News::default();
        let mut next = Some(first);
        for _ in 0..NEWS_AT_ONCE {
            let Some(event) = next else { break };
            match event {
                Event::Flow(FlowEvent::Deleted(flow))
                    if self.withdrawn && flow.cookie == COOKIE => {}
                Event::Flow(event) => news.flow(&self.wanted, &event),
                Event::Port(event) => news.port(&self.desired.plan, &event),
                // Nobody has disturbed anything, but nothing is known either.
                Event::Connected => self.due_at(Instant::now()),
                Event::Ended(error) => {
                    let error = crate::agent::chain(&error);
                    if self.record.watched {
                        tracing::warn!(bridge = self.record.bridge, %error, "bridge is not watched any more; connecting again");
                    } else {
                        tracing::debug!(bridge = self.record.bridge, %error, "bridge is not watched yet");
                    }
                }
            }
            next = watches.try_next().await;
        }
        news
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
