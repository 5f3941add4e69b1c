//! The watches of one bridge: its flows and its ports, connected again whenever they end.

use std::{future::Future as _, pin::pin, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{
    openflow::{FlowEvent, FlowWatch, Match, NativeSwitch, PortEvent, PortWatch, SwitchError},
    ovsdb::Backoff,
};

/// How long a bridge may take to accept a watch.
const PATIENCE: Duration = Duration::from_secs(3);
/// A switch that restarts is there again within a second or so.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(20),
    longest: Duration::from_secs(1),
};

/// What a watch tells.
#[derive(Debug)]
pub(super) enum Event {
    /// The watches stand (again): what happened before is not known.
    Connected,
    /// They ended, or did not come about.
    Ended(SwitchError),
    /// A flow.
    Flow(FlowEvent),
    /// A port.
    Port(PortEvent),
}

/// Both watches of a bridge, or the wait for them.
#[derive(Debug)]
pub(super) struct Watches {
    switch: NativeSwitch,
    bridge: String,
    cover: Vec<Match>,
    state: State,
    failures: u32,
}

#[derive(Debug)]
enum State {
    /// Nothing is to be watched.
    Off,
    Waiting(Instant),
    Watching(Box<(FlowWatch, PortWatch)>),
}

impl Watches {
    /// No watch yet.
    #[must_use]
    pub(super) fn new(switch: &NativeSwitch, bridge: &str) -> Self {
        Self {
            switch: switch.clone().with_timeout(PATIENCE),
            bridge: bridge.to_owned(),
            cover: Vec::new(),
            state: State::Off,
            failures: 0,
        }
    }

    /// Watches flows that one of `cover` covers (all where it is empty) and ports; `None` = nothing.
    pub(super) fn want(&mut self, cover: Option<Vec<Match>>) {
        match cover {
            None => self.state = State::Off,
            Some(cover) => {
                if matches!(self.state, State::Off) || cover != self.cover {
                    self.state = State::Waiting(Instant::now());
                    self.failures = 0;
                }
                self.cover = cover;
            }
        }
    }

    /// Whether news come.
    #[must_use]
    pub(super) const fn is_watching(&self) -> bool {
        matches!(self.state, State::Watching(_))
    }

    /// The next event; for ever pending where nothing is to be watched. Cancel-safe.
    pub(super) async fn next(&mut self) -> Event {
        let event = match &mut self.state {
            State::Off => std::future::pending().await,
            State::Waiting(until) => {
                sleep_until(*until).await;
                match self.connect().await {
                    Ok(watches) => {
                        self.failures = 0;
                        self.state = State::Watching(Box::new(watches));
                        return Event::Connected;
                    }
                    Err(error) => Err(error),
                }
            }
            State::Watching(watches) => {
                let (flows, ports) = &mut **watches;
                tokio::select! {
                    flow = flows.next() => flow.map(Event::Flow),
                    port = ports.next() => port.map(Event::Port),
                }
            }
        };
        event.unwrap_or_else(|error| {
            self.failures += 1;
            let wait = BACKOFF.wait(self.failures, fastrand::f64());
            self.state = State::Waiting(Instant::now() + wait);
            Event::Ended(error)
        })
    }

    async fn connect(&self) -> Result<(FlowWatch, PortWatch), SwitchError> {
        // What is there already is seen by the look that follows.
        let (_, flows) = self.switch.watch_flows(&self.bridge, &self.cover).await?;
        let (_, ports) = self.switch.watch_ports(&self.bridge).await?;
        Ok((flows, ports))
    }

    /// An event that has come already; never waits.
    pub(super) async fn try_next(&mut self) -> Option<Event> {
        if !self.is_watching() {
            return None;
        }
        let mut next = pin!(self.next());
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match next.as_mut().poll(context) {
                std::task::Poll::Ready(event) => Some(event),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
