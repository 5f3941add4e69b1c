use super::*;
use crate::{
    mirror::COLUMNS,
    ovsdb::{
        Atom, Datum, Driver, Monitor, MonitorCondition, MonitorRequest, Options, TableRequest,
    },
    topology::tests::{Network, Node},
};

const SOURCE: u128 = 1;
const FOLLOWERS: u128 = 2;
const IP: &str = "172.18.0.9";

/// Mirrors of one group with one follower; nobody answers what they send.
struct Rig {
    mirrors: Mirrors,
    source: Arc<str>,
    follower: Arc<str>,
    _unused: (Monitor, Driver),
}

impl Rig {
    fn new() -> Self {
        let table =
            TableRequest::new(MAC_BINDING, COLUMNS).filter(MonitorCondition::AnyOf(Vec::new()));
        let request = MonitorRequest::new().table(table);
        let (client, monitor, driver) =
            Client::connect(Options::new(Vec::new(), "OVN_Southbound", request));
        let networks = [
            Network::default_network(),
            Network::user_defined("tenant", 7),
        ];
        let topology = Node::new(&networks).topology();
        let group = topology.group("breth0").unwrap();
        let (source, follower) = (
            Arc::clone(&group.source.external_port),
            Arc::clone(&group.followers[0].external_port),
        );
        let mut mirrors = Mirrors::new(client, Clock::start(), Settings::default());
        let members = GroupMembers::of(group, Arc::default());
        mirrors.regroup([(Arc::clone(&group.bridge), members)].into());
        let wanted = mirrors.covered.waits_for().unwrap();
        mirrors.apply(&[], wanted);
        let mut rig = Self {
            mirrors,
            source,
            follower,
            _unused: (monitor, driver),
        };
        rig.told(SOURCE, Some(&rig.source.clone()), "02:00:00:00:00:0a");
        rig
    }

    /// A binding of this port, written just now.
    fn binding(&self, port: &str, mac: &str) -> Row {
        let columns: Vec<Arc<str>> = COLUMNS.iter().map(|name| (*name).into()).collect();
        let text = |value: &str| Datum::Scalar(Atom::String(value.into()));
        let values = vec![
            text(port),
            text(IP),
            text(mac),
            Datum::Scalar(Atom::Integer(self.mirrors.clock.now().wall_ms)),
            Datum::Scalar(Atom::Uuid(Uuid(uuid::Uuid::nil()))),
        ];
        Row::new(columns.into(), values).unwrap()
    }

    /// The monitor tells of a row, or that it is gone.
    fn told(&mut self, uuid: u128, port: Option<&str>, mac: &str) {
        let change = Change {
            table: MAC_BINDING.into(),
            uuid: row(uuid),
            old: None,
            new: port.map(|port| self.binding(port, mac)),
        };
        self.mirrors.apply(&[change], 0);
    }

    /// A transaction has read the follower's row.
    fn read(&mut self, mac: &str) {
        let read = (row(FOLLOWERS), self.binding(&self.follower, mac));
        self.mirrors.settle(Done::Read(vec![read]));
    }

    fn a_minute_later(&mut self) {
        self.mirrors
            .clock
            .advance(std::time::Duration::from_secs(60));
        self.mirrors.pump();
    }

    /// The rows that the mirror knows, the source's included.
    fn known(&self) -> usize {
        self.mirrors.status().values().map(|it| it.rows).sum()
    }
}

fn row(uuid: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(uuid))
}

#[tokio::test]
async fn a_row_that_was_gone_before_the_monitor_could_tell_is_not_believed_for_long() {
    let mut rig = Rig::new();
    rig.read("02:00:00:00:00:0a");
    assert_eq!(rig.known(), 2);
    assert!(rig.mirrors.next_deadline().is_some());
    rig.a_minute_later();
    assert_eq!(rig.known(), 1);
    assert_eq!(rig.mirrors.rows.len(), 1);
}

#[tokio::test]
async fn a_row_that_was_read_and_then_told_of_stays() {
    let mut rig = Rig::new();
    rig.read("02:00:00:00:00:0a");
    let follower = Arc::clone(&rig.follower);
    rig.told(FOLLOWERS, Some(&follower), "02:00:00:00:00:0a");
    rig.a_minute_later();
    assert_eq!(rig.known(), 2);
    rig.told(FOLLOWERS, None, "");
    assert_eq!(rig.known(), 1);
}

#[tokio::test]
async fn what_was_read_does_not_undo_what_the_monitor_told_meanwhile() {
    let mut rig = Rig::new();
    let follower = Arc::clone(&rig.follower);
    rig.told(FOLLOWERS, Some(&follower), "02:00:00:00:00:0b");
    rig.read("02:00:00:00:00:0a");
    let known = rig.mirrors.rows[&row(FOLLOWERS)].string("mac").unwrap();
    assert_eq!(&*known, "02:00:00:00:00:0b");
}
