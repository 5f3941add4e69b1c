//! What the news from a bridge mean for us. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    openflow::{Flow, FlowEvent, FlowKey, Match, Port, PortEvent, Protocol},
    plan::{BridgePlan, COOKIE, STEERING_PRIORITY, StaticFdb, UNMARKED_PRIORITY},
};

/// What has come since the last look, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Flows of ours that were deleted or changed and did not come back.
    pub(super) lost: BTreeMap<FlowKey, Flow>,
    /// How many times one was.
    pub(super) losses: u64,
    /// Whether the bridge must be compared as a whole.
    pub(super) look: bool,
}

impl News {
    /// Whether there is anything to do.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.lost.is_empty() && !self.look
    }

    /// Takes in what became of a flow. Our own writes come back as news too, and mean nothing.
    pub(super) fn flow(&mut self, wanted: &BTreeMap<FlowKey, Flow>, event: &FlowEvent) {
        match event {
            FlowEvent::Deleted(flow) => {
                let key = flow.key();
                match wanted.get(&key) {
                    Some(ours) if flow.cookie == COOKIE => self.lose(key, ours),
                    // Somebody's flow that stood where ours should is gone.
                    Some(_) => self.look = true,
                    None => self.look |= flow.cookie != COOKIE && is_usual_place(wanted, key),
                }
            }
            FlowEvent::Added(flow) | FlowEvent::Modified(flow) => {
                let key = flow.key();
                match wanted.get(&key) {
                    Some(_) if flow.cookie != COOKIE => {
                        self.lost.remove(&key);
                        self.look = true;
                    }
                    Some(ours) if flow.actions != ours.actions => self.lose(key, ours),
                    Some(_) => {
                        self.lost.remove(&key);
                    }
                    None => self.look |= flow.cookie == COOKIE || is_usual_place(wanted, key),
                }
            }
            FlowEvent::Paused => {}
            FlowEvent::Resumed => self.look = true,
        }
    }

    fn lose(&mut self, key: FlowKey, ours: &Flow) {
        self.losses += 1;
        self.lost.insert(key, ours.clone());
    }

    /// Takes in what became of a port.
    pub(super) fn port(&mut self, plan: &BridgePlan, event: &PortEvent) {
        match event {
            PortEvent::Added(port) | PortEvent::Modified(port) => {
                // A port that is made anew has no static entry any more.
                let is_host = |fdb: &StaticFdb| fdb.leads_to == Port::Number(port.ofport);
                self.look |= matches!(event, PortEvent::Added(_))
                    && plan.static_fdb.as_ref().is_some_and(is_host);
                let must_flood = plan.flood.contains(&port.ofport);
                let must_not = plan.no_flood.contains(&port.ofport);
                self.look |= (must_flood && port.no_flood) || (must_not && !port.no_flood);
            }
            // The rows tell which ports are wanted.
            PortEvent::Deleted(_) => {}
        }
    }
}

/// Whether a flow of ours for the same headers is wanted one priority lower, for frames without a
/// mark: whoever has one here steers.
fn is_usual_place(wanted: &BTreeMap<FlowKey, Flow>, key: FlowKey) -> bool {
    let is_usual = key.priority == STEERING_PRIORITY;
    let lowered = FlowKey {
        priority: UNMARKED_PRIORITY,
        ..key
    };
    is_usual && wanted.contains_key(&lowered)
}

/// What a watch must cover so that it tells of all flows that these can collide with: ARP, ICMPv6
/// and marked frames where all are of these kinds, else everything.
#[must_use]
pub(super) fn cover(flows: &[Flow]) -> Vec<Match> {
    let kinds = flows.iter().map(|flow| Match {
        pkt_mark: flow.matches.pkt_mark,
        protocol: flow.matches.protocol,
        ..Match::default()
    });
    let kinds: BTreeSet<Match> = kinds.collect();
    let is_narrow = |kind: &Match| match kind.protocol {
        Some(protocol) => matches!(protocol, Protocol::Arp | Protocol::Icmp6),
        None => kind.pkt_mark.is_some(),
    };
    if kinds.iter().all(is_narrow) {
        kinds.into_iter().collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::OfPort, openflow::PortDescription};

    const OURS: &str = "cookie=0x6e65696768737472, priority=52, table=0, in_port=1, \
                        dl_dst=02:42:ac:12:00:03, arp, actions=output:2,NORMAL";

    fn flow(text: &str) -> Flow {
        text.parse().unwrap()
    }

    fn wanted() -> BTreeMap<FlowKey, Flow> {
        [(flow(OURS).key(), flow(OURS))].into()
    }

    fn after(events: &[FlowEvent]) -> News {
        let mut news = News::default();
        for event in events {
            news.flow(&wanted(), event);
        }
        news
    }

    #[test]
    fn our_own_writes_mean_nothing() {
        let old = flow(&OURS.replace("in_port=1", "in_port=9"));
        let news = after(&[FlowEvent::Added(flow(OURS)), FlowEvent::Deleted(old)]);
        assert!(news.is_empty(), "{news:?}");
    }

    #[test]
    fn a_flow_of_ours_that_was_deleted_or_changed_is_put_back_as_it_is_wanted() {
        let changed = flow(&OURS.replace("output:2,NORMAL", "drop"));
        for event in [
            FlowEvent::Deleted(flow(OURS)),
            FlowEvent::Modified(changed.clone()),
            FlowEvent::Deleted(changed),
        ] {
            let news = after(std::slice::from_ref(&event));
            assert_eq!(
                news.lost.values().collect::<Vec<_>>(),
                [&flow(OURS)],
                "{event:?}"
            );
            assert_eq!((news.losses, news.look), (1, false));
        }
    }

    #[test]
    fn a_flow_that_came_back_is_counted_and_not_put_back_again() {
        let news = after(&[FlowEvent::Deleted(flow(OURS)), FlowEvent::Added(flow(OURS))]);
        assert!(news.is_empty());
        assert_eq!(news.losses, 1);
    }

    #[test]
    fn a_flow_of_somebody_else_in_our_place_is_looked_at_before_anything_is_written() {
        let theirs = flow(&OURS.replace("0x6e65696768737472", "0xdeff105"));
        let news = after(&[
            FlowEvent::Deleted(flow(OURS)),
            FlowEvent::Added(theirs.clone()),
        ]);
        assert!(news.lost.is_empty() && news.look);
        assert!(after(&[FlowEvent::Modified(theirs.clone())]).look);
        assert!(after(&[FlowEvent::Deleted(theirs)]).look, "we may resume");
    }

    #[test]
    fn whoever_steers_by_headers_above_ours_for_unmarked_frames_is_looked_at() {
        let ours = flow(&OURS.replace("priority=52", "priority=51"));
        let wanted = BTreeMap::from([(ours.key(), ours)]);
        let theirs = flow(&OURS.replace("0x6e65696768737472", "0xdeff105"));
        for event in [FlowEvent::Added(theirs.clone()), FlowEvent::Deleted(theirs)] {
            let mut news = News::default();
            news.flow(&wanted, &event);
            assert!(news.look && news.lost.is_empty(), "{event:?}");
        }
        let mut news = News::default();
        news.flow(&wanted, &FlowEvent::Deleted(flow(OURS)));
        assert!(news.is_empty(), "it was ours, of steering by headers");
    }

    #[test]
    fn flows_of_others_in_other_places_mean_nothing() {
        let theirs = flow("cookie=0xdeff105, priority=11, table=0, in_port=1, arp, actions=NORMAL");
        let news = after(&[FlowEvent::Added(theirs.clone()), FlowEvent::Deleted(theirs)]);
        assert!(news.is_empty());
    }

    #[test]
    fn after_a_pause_the_bridge_is_compared_as_a_whole() {
        assert!(after(&[FlowEvent::Paused]).is_empty());
        assert!(after(&[FlowEvent::Resumed]).look);
    }

    #[test]
    fn only_a_flag_that_is_not_as_wanted_wakes_us() {
        let number = |port: i64| OfPort::from_column(Some(port)).unwrap();
        let plan = BridgePlan {
            no_flood: [number(3)].into(),
            flood: [number(2)].into(),
            ..BridgePlan::empty(&"br-ex".into())
        };
        let looks = |port, no_flood| {
            let mut news = News::default();
            news.port(
                &plan,
                &PortEvent::Modified(PortDescription {
                    ofport: number(port),
                    name: String::new(),
                    no_flood,
                }),
            );
            news.look
        };
        assert!(looks(3, false) && looks(2, true));
        assert!(!looks(3, true) && !looks(2, false) && !looks(1, true));
    }

    #[test]
    fn a_watch_covers_the_kinds_of_our_flows_or_everything() {
        let arp = flow(OURS);
        let validation = flow("priority=9, table=0, in_port=3, actions=drop");
        assert_eq!(cover(std::slice::from_ref(&arp)).len(), 1);
        let marked = flow("priority=52, table=0, in_port=1, pkt_mark=0x52, actions=NORMAL");
        assert_eq!(cover(&[arp.clone(), marked]).len(), 2);
        assert_eq!(cover(&[arp, validation]), Vec::<Match>::new());
    }
}
