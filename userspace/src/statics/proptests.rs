//! Any sequence of events, against a model of the server and a computation from scratch.

use std::net::IpAddr;

use proptest::prelude::*;

use super::{
    FailureKind, Mode, RowOperation, Settings, Treatment, Wanted,
    tests::{Bench, MAC_A, MAC_B, known, target, uuid},
};
use crate::{
    ids::Mac,
    ovsdb::Uuid,
    statics::{RowWrite, Target, tests::server::Told},
};

/// Spelt in two ways, to be one address; the gateway's; and no address.
const TEXTS: [&str; 7] = [
    "192.0.2.1",
    "192.0.2.2",
    "fd00::1",
    "FD00:0::1",
    "169.254.0.2",
    "fd69::4",
    "unknown",
];
const PORTS: [&str; 4] = ["rtoe-GR_0", "rtoe-GR_1", "rtoe-GR_2", "rtos-node"];
const TREATMENTS: [Treatment; 8] = [
    Treatment::Follower,
    Treatment::UplinkSource,
    Treatment::DefaultSource,
    Treatment::Held,
    Treatment::Paused,
    Treatment::Leaving,
    Treatment::Recreated,
    Treatment::Gone,
];

/// What may happen.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A node's address gets a MAC, is kept as it is, or is no node's.
    Node { text: usize, wanted: usize },
    /// The nodes are not known, or known again.
    Inventory,
    /// Somebody writes a row; MAC 0 is no MAC at all.
    Meddle {
        port: usize,
        text: usize,
        mac: u8,
        overrides: bool,
    },
    /// Somebody deletes a row.
    Delete { port: usize, text: usize },
    /// A port is treated otherwise, or made anew.
    Port { port: usize, treatment: usize },
    /// A port goes, and the agent does not know yet.
    Lose { port: usize },
    /// What becomes of static bindings.
    Mode { mode: usize },
    /// Time passes.
    Pass { ms: u32 },
    /// The driver reads some of what the server tells.
    Read { messages: usize },
    /// The outcome of a transaction overtakes the changes that it made.
    Overtake,
    /// The driver sends one transaction.
    Send,
    /// The connection breaks, and a new snapshot comes.
    Reconnect { lose: usize },
    /// The next transaction is refused.
    Refuse { kind: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let text = 0..TEXTS.len();
    let port = 0..PORTS.len();
    prop_oneof![
        6 => (0..4_usize, 0..4_usize).prop_map(|(text, wanted)| Step::Node { text, wanted }),
        1 => Just(Step::Inventory),
        3 => (port.clone(), text.clone(), 0..3_u8, any::<bool>()).prop_map(
            |(port, text, mac, overrides)| Step::Meddle { port, text, mac, overrides }
        ),
        3 => (port, text).prop_map(|(port, text)| Step::Delete { port, text }),
        3 => (0..3_usize, 0..TREATMENTS.len())
            .prop_map(|(port, treatment)| Step::Port { port, treatment }),
        1 => (0..3_usize).prop_map(|port| Step::Lose { port }),
        1 => (0..6_usize).prop_map(|mode| Step::Mode { mode }),
        4 => prop_oneof![0..300_u32, 0..20_000_u32].prop_map(|ms| Step::Pass { ms }),
        8 => (0..8_usize).prop_map(|messages| Step::Read { messages }),
        2 => Just(Step::Overtake),
        8 => Just(Step::Send),
        1 => (0..6_usize).prop_map(|lose| Step::Reconnect { lose }),
        1 => (0..3_usize).prop_map(|kind| Step::Refuse { kind }),
    ]
}

struct World {
    bench: Bench,
    nodes: Vec<(IpAddr, Wanted)>,
    inventory: bool,
    treatments: [Treatment; 3],
    /// How often each port was made.
    made: [u128; 3],
}

impl World {
    fn new(names_faults: bool, chunk_rows: usize) -> Self {
        let mut bench = Bench::new(Settings {
            chunk_rows,
            ..Settings::default()
        });
        bench.server.names_faults = names_faults;
        bench.machine.synced(bench.now);
        let mut world = Self {
            bench,
            nodes: Vec::new(),
            inventory: true,
            treatments: [Treatment::Follower; 3],
            made: [0; 3],
        };
        world.retarget();
        world.want();
        world
    }

    /// The ports, as the driver would find them.
    fn targets(&self) -> Vec<Target> {
        let remembered = self.bench.machine.remembered();
        let ports = self.treatments.iter().zip(PORTS).zip(self.made);
        let targets = ports.map(|((treatment, port), made)| {
            let mut target = target(port, *treatment);
            target.port_row = target.port_row.map(|Uuid(row)| uuid(row.as_u128() + made));
            target
        });
        let known = |it: &Target| it.treatment != Treatment::Gone || remembered.contains(&it.port);
        targets.filter(known).collect()
    }

    fn retarget(&mut self) {
        // The driver tells of targets once it has seen all of their rows.
        while self.bench.read() {}
        let targets = self.targets();
        self.bench.retarget(targets);
    }

    fn want(&mut self) {
        let wanted = self.inventory.then(|| known(self.nodes.clone()));
        self.bench.want(wanted);
    }

    fn step(&mut self, step: Step) {
        let mac = |number: u8| (number != 0).then_some(Mac([2, 0, 0, 0, 0, 9 + number]));
        match step {
            Step::Node { text, wanted } => {
                let ip: IpAddr = TEXTS[text].parse().unwrap();
                self.nodes.retain(|(known, _)| *known != ip);
                let choices = [
                    Some(Wanted::Binding(MAC_A)),
                    Some(Wanted::Binding(MAC_B)),
                    Some(Wanted::Keep),
                    None,
                ];
                self.nodes
                    .extend(choices[wanted].map(|wanted| (ip, wanted)));
                self.want();
            }
            Step::Inventory => {
                self.inventory = !self.inventory;
                self.want();
            }
            Step::Meddle {
                port,
                text,
                mac: number,
                overrides,
            } => {
                let server = &mut self.bench.server;
                server.put(PORTS[port], TEXTS[text], mac(number), overrides);
            }
            Step::Delete { port, text } => {
                if let Some(uuid) = self.bench.server.find(PORTS[port], TEXTS[text]) {
                    self.bench.server.delete(uuid);
                }
            }
            Step::Port { port, treatment } => {
                let treatment = TREATMENTS[treatment];
                let gone = |treatment| treatment == Treatment::Gone;
                if gone(self.treatments[port]) != gone(treatment) {
                    self.made[port] += 1;
                }
                self.treatments[port] = treatment;
                if gone(treatment) {
                    self.bench.server.ports.remove(PORTS[port]);
                }
                self.retarget();
            }
            Step::Lose { port } => {
                self.bench.server.ports.remove(PORTS[port]);
            }
            Step::Mode { mode } => {
                let modes = [Mode::Write, Mode::Retain, Mode::Withdraw];
                let mode = modes.get(mode).copied().unwrap_or(Mode::Write);
                self.bench.set_mode(mode);
            }
            Step::Pass { ms } => self.bench.now = self.bench.now.after(ms.into()),
            Step::Read { messages } => {
                for _ in 0..messages {
                    self.bench.read();
                }
            }
            Step::Overtake => {
                let telling = &mut self.bench.server.telling;
                let outcome = |told: &Told| matches!(told, Told::Outcome(..));
                let position = telling.iter().position(outcome);
                if let Some(told) = position.and_then(|at| telling.remove(at)) {
                    telling.push_front(told);
                }
            }
            Step::Send => {
                self.send();
            }
            Step::Reconnect { lose } => self.reconnect(lose),
            Step::Refuse { kind } => {
                let kinds = [
                    FailureKind::Unavailable,
                    FailureKind::Constraint,
                    FailureKind::GuardFailed,
                ];
                self.bench.server.refuse = Some(kinds[kind]);
            }
        }
    }

    /// The driver sends one transaction, which touches nothing but rows of ours.
    fn send(&mut self) -> bool {
        let Some(batch) = self.bench.take() else {
            return false;
        };
        for operation in &batch.operations {
            assert!(
                !self.bench.settings.masquerade.contains(operation.ip),
                "{operation:?}"
            );
            assert!(operation.port.starts_with("rtoe-"), "{operation:?}");
            if let RowWrite::Delete { uuid } | RowWrite::Update { uuid, .. } = operation.write
                && let Some((row, _)) = self.bench.server.rows.get(&uuid)
            {
                assert_eq!(row.port, operation.port);
            }
        }
        self.bench.server.transact(&batch);
        true
    }

    /// The last `lose` messages are lost with the connection; a snapshot follows.
    fn reconnect(&mut self, lose: usize) {
        let keep = self.bench.server.telling.len().saturating_sub(lose);
        for _ in 0..keep {
            self.bench.read();
        }
        let lost = std::mem::take(&mut self.bench.server.telling);
        self.bench.machine.disconnected();
        let gone = lost.iter().filter_map(|told| match told {
            Told::Gone(uuid) => Some(*uuid),
            _ => None,
        });
        for uuid in gone {
            self.bench.machine.remove(uuid, self.bench.now);
        }
        for (row, _) in self.bench.server.rows.values() {
            self.bench.machine.upsert(row, self.bench.now);
        }
        self.bench.machine.synced(self.bench.now);
    }

    /// Reads and sends until neither is left, and does what waits for time to pass.
    fn converge(&mut self) {
        self.bench.server.refuse = None;
        for (port, treatment) in PORTS.iter().zip(self.treatments) {
            if treatment != Treatment::Gone && !self.bench.server.ports.contains_key(*port) {
                // Who had lost it makes it anew.
                let index = PORTS.iter().position(|it| it == port).unwrap();
                self.made[index] += 1;
            }
        }
        for _ in 0..60 {
            self.retarget();
            while self.bench.read() || self.send() {}
            match self.bench.machine.next_deadline() {
                Some(next) => self.bench.now = self.bench.now.max(next),
                None => break,
            }
        }
        self.retarget();
    }
}

fn run(steps: &[Step], names_faults: bool, chunk_rows: usize) -> World {
    let mut world = World::new(names_faults, chunk_rows);
    for step in steps {
        world.step(*step);
    }
    world
}

fn sorted(mut operations: Vec<RowOperation>) -> Vec<RowOperation> {
    operations.sort();
    operations
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever has happened, in the end every port's rows are what a computation from scratch wants
    /// them to be, and then nothing more is written.
    #[test]
    fn any_history_converges_to_the_recomputed_state(
        steps in prop::collection::vec(step(), 1..80),
        names_faults: bool,
        chunk_rows in 1..6_usize,
    ) {
        let mut world = run(&steps, names_faults, chunk_rows);
        world.converge();
        prop_assert_eq!(world.bench.due(), []);
        prop_assert!(world.bench.machine.is_idle());
        prop_assert_eq!(world.bench.machine.next_deadline(), None);
        let transactions = world.bench.server.transactions;
        world.bench.run(600_000);
        prop_assert_eq!(world.bench.server.transactions, transactions);
    }

    /// Once the gathering is over, what is written is the recomputed difference, apart from rows that
    /// are held back.
    #[test]
    fn the_incremental_plan_is_the_recomputed_one(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = run(&steps, true, usize::MAX);
        world.bench.machine.disconnected();
        world.reconnect(0);
        while world.bench.read() {}
        world.retarget();
        let due = world.bench.due();
        world.bench.now = world.bench.now.after(700_000);
        let mut planned = Vec::new();
        while let Some(batch) = world.bench.take() {
            planned.extend(batch.operations);
        }
        prop_assert_eq!(sorted(planned), due);
    }
}
