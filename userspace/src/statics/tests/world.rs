//! Static bindings, their driver and an obedient server, in virtual time.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use super::server::{Server, Told};
use crate::{
    ids::Mac,
    mirror::Millis,
    ovsdb::Uuid,
    statics::{
        Batch, BridgeBindings, Mode, RowAtFault, RowOperation, Settings, StaticBindings, Target,
        Treatment, Wanted, WantedBindings, recompute,
    },
};

pub(in crate::statics) const MAC_A: Mac = Mac([2, 0, 0, 0, 0, 0xa]);
pub(in crate::statics) const MAC_B: Mac = Mac([2, 0, 0, 0, 0, 0xb]);

pub(in crate::statics) fn uuid(number: u128) -> Uuid {
    Uuid(uuid::Uuid::from_u128(number))
}

/// The row of a router port: another one for each name.
pub(in crate::statics) fn port_row(port: &str) -> Uuid {
    let mix = |sum: u128, byte: u8| (sum * 257 + u128::from(byte)) % (1 << 90);
    uuid((1 << 100) + port.bytes().fold(0, mix))
}

pub(in crate::statics) fn target(port: &str, treatment: Treatment) -> Target {
    Target {
        port: port.into(),
        port_row: (treatment != Treatment::Gone).then(|| port_row(port)),
        bridge: Some("breth0".into()),
        treatment,
    }
}

pub(in crate::statics) fn binding(ip: &str, mac: Mac) -> (IpAddr, Wanted) {
    (ip.parse().unwrap(), Wanted::Binding(mac))
}

/// What is wanted on `breth0`.
pub(in crate::statics) fn known(
    bindings: impl IntoIterator<Item = (IpAddr, Wanted)>,
) -> WantedBindings {
    let bindings = BridgeBindings {
        bindings: bindings.into_iter().collect(),
        ..BridgeBindings::default()
    };
    WantedBindings {
        bridges: BTreeMap::from([("breth0".into(), bindings)]),
        ..WantedBindings::default()
    }
}

pub(in crate::statics) struct Bench {
    pub(in crate::statics) machine: StaticBindings,
    pub(in crate::statics) server: Server,
    pub(in crate::statics) now: Millis,
    pub(in crate::statics) settings: Settings,
    pub(in crate::statics) mode: Mode,
    pub(in crate::statics) targets: Vec<Target>,
    pub(in crate::statics) wanted: Option<WantedBindings>,
    /// Rows that the machine asked to read again.
    pub(in crate::statics) at_fault: Vec<RowAtFault>,
}

impl Bench {
    pub(in crate::statics) fn new(settings: Settings) -> Self {
        Self {
            machine: StaticBindings::new(settings.clone()),
            server: Server::default(),
            now: Millis(1_000_000),
            settings,
            mode: Mode::Write,
            targets: Vec::new(),
            wanted: None,
            at_fault: Vec::new(),
        }
    }

    /// Two followers, and an inventory; everything told.
    pub(in crate::statics) fn with_two_followers(wanted: WantedBindings) -> Self {
        let mut bench = Self::new(Settings::default());
        bench.retarget(vec![
            target("rtoe-GR_blue", Treatment::Follower),
            target("rtoe-GR_green", Treatment::Follower),
        ]);
        bench.want(Some(wanted));
        bench.machine.synced(bench.now);
        bench
    }

    /// The same, with all its rows written.
    pub(in crate::statics) fn settled(wanted: WantedBindings) -> Self {
        let mut bench = Self::with_two_followers(wanted);
        bench.run(10_000);
        assert_eq!(bench.due(), []);
        bench.server.transactions = 0;
        bench.server.written = 0;
        bench
    }

    /// The ports are what the server has, but for those that are gone.
    pub(in crate::statics) fn retarget(&mut self, targets: Vec<Target>) {
        for target in &targets {
            match target.port_row {
                Some(row) => self.server.ports.insert(Arc::clone(&target.port), row),
                None => self.server.ports.remove(&target.port),
            };
        }
        self.machine.set_targets(&targets, self.now);
        self.targets = targets;
    }

    /// One of the ports is treated otherwise.
    pub(in crate::statics) fn treat(&mut self, port: &str, treatment: Treatment) {
        let mut targets = self.targets.clone();
        targets.retain(|target| &*target.port != port);
        targets.push(target(port, treatment));
        self.retarget(targets);
    }

    pub(in crate::statics) fn want(&mut self, wanted: Option<WantedBindings>) {
        self.machine.set_wanted(wanted.as_ref(), self.now);
        self.wanted = wanted;
    }

    pub(in crate::statics) fn set_mode(&mut self, mode: Mode) {
        self.machine.set_mode(mode, self.now);
        self.mode = mode;
    }

    /// The driver reads one message.
    pub(in crate::statics) fn read(&mut self) -> bool {
        let Some(told) = self.server.telling.pop_front() else {
            return false;
        };
        match told {
            Told::Row(row) => self.machine.upsert(&row, self.now),
            Told::Gone(uuid) => self.machine.remove(uuid, self.now),
            Told::Outcome(id, Ok(missed)) => self.machine.committed(id, &missed, self.now),
            Told::Outcome(id, Err(failure)) => {
                let unknown = self.machine.failed(id, &failure, self.now);
                self.at_fault.extend(unknown);
            }
        }
        true
    }

    pub(in crate::statics) fn take(&mut self) -> Option<Batch> {
        self.machine.take_batch(self.now)
    }

    /// Reads and sends until neither is left.
    pub(in crate::statics) fn exchange(&mut self) {
        loop {
            while self.read() {}
            let Some(batch) = self.take() else {
                return;
            };
            self.server.transact(&batch);
        }
    }

    /// So much time passes, with a driver that keeps its deadlines.
    pub(in crate::statics) fn run(&mut self, ms: u64) {
        let end = self.now.after(ms);
        self.exchange();
        while let Some(next) = self.machine.next_deadline().filter(|next| *next <= end) {
            assert!(next > self.now, "a deadline in the past changes nothing");
            self.now = next;
            self.exchange();
        }
        self.now = end;
    }

    /// What a computation from scratch would write.
    pub(in crate::statics) fn due(&self) -> Vec<RowOperation> {
        recompute(
            self.server.rows.values().map(|(row, _)| row),
            &self.targets,
            self.wanted.as_ref(),
            self.mode,
            &self.settings.masquerade,
        )
    }

    pub(in crate::statics) fn mac(&self, port: &str, text: &str) -> Option<Mac> {
        let uuid = self.server.find(port, text)?;
        self.server.rows[&uuid].0.mac
    }
}
