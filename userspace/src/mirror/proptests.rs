//! Any sequence of events, against a model of the server and a computation from scratch.

mod server;
mod world;

use proptest::prelude::*;

use self::world::{Step, World};
use super::{Limits, RowOperation};

fn step() -> impl Strategy<Value = Step> {
    let text = 0..5_usize;
    let router = 0..4_usize;
    prop_oneof![
        6 => (text.clone(), 0..3_u8).prop_map(|(text, mac)| Step::Learn { text, mac }),
        4 => text.clone().prop_map(|text| Step::Touch { text }),
        2 => text.clone().prop_map(|text| Step::Unlearn { text }),
        3 => (router.clone(), text.clone(), 0..3_u8, 0..400_000_u32).prop_map(
            |(router, text, mac, age_ms)| Step::Meddle { router, text, mac, age_ms }
        ),
        3 => (router.clone(), text.clone())
            .prop_map(|(router, text)| Step::Delete { router, text }),
        2 => router.clone().prop_map(|router| Step::Router { router }),
        1 => router.prop_map(|router| Step::Designate { router }),
        1 => text.clone().prop_map(|text| Step::NodeIp { text }),
        4 => (text, 0..3_u8).prop_map(|(text, mac)| Step::Pin { text, mac }),
        4 => prop_oneof![0..300_u32, 0..200_000_u32].prop_map(|ms| Step::Pass { ms }),
        8 => (0..8_usize).prop_map(|messages| Step::Read { messages }),
        2 => Just(Step::Overtake),
        8 => Just(Step::Send),
        1 => (0..6_usize).prop_map(|lose| Step::Reconnect { lose }),
        1 => (0..2_usize).prop_map(|kind| Step::Refuse { kind }),
    ]
}

fn run(steps: &[Step], names_faults: bool) -> World {
    let mut world = World::new(names_faults);
    for step in steps {
        world.step(*step);
    }
    world
}

/// Ordered, and without what a row has no history for.
fn writes(operations: Vec<RowOperation>) -> Vec<String> {
    let mut writes: Vec<String> = operations
        .into_iter()
        .map(|operation| format!("{} {} {:?}", operation.port, operation.ip, operation.write))
        .collect();
    writes.sort();
    writes
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        ..ProptestConfig::default()
    })]

    /// Whatever happened, in the end the followers have what a computation from scratch wants them
    /// to have, and then nothing more is written.
    #[test]
    fn any_history_converges_to_the_recomputed_state(
        steps in prop::collection::vec(step(), 1..80),
        names_faults: bool,
    ) {
        let mut world = run(&steps, names_faults);
        for _ in 0..40 {
            world.exchange();
            if world.recomputed().is_empty() && world.mirror.is_idle() {
                break;
            }
            // Something is held back; no longer than until the next deadline.
            let deadline = world.mirror.next_deadline();
            prop_assert!(deadline.is_some());
            let wait = deadline.map_or(1, |at| at.since(world.now.at).max(1));
            world.pass(wait);
        }
        prop_assert_eq!(writes(world.recomputed()), Vec::<String>::new());
        let written = world.server.written;
        for _ in 0..3 {
            world.exchange();
        }
        prop_assert!(world.mirror.is_idle());
        prop_assert_eq!(world.server.written, written);
        prop_assert_eq!(world.mirror.lag(world.now), None);
        prop_assert_eq!(world.mirror.pinned_missing(), 0);
    }

    /// Once the short pauses are over, the incremental plan is the recomputed one, apart from rows
    /// that are held back.
    #[test]
    fn the_incremental_plan_is_the_recomputed_one(
        steps in prop::collection::vec(step(), 1..60),
        names_faults: bool,
    ) {
        let mut world = run(&steps, names_faults);
        while world.read() {}
        prop_assert_eq!(world.mirror.pinned_missing(), world.pinned_missing());
        world.pass(6_000);
        let held = world.mirror.held_back(world.now);
        let mut planned = Vec::new();
        world.mirror.limit(Limits { in_flight: usize::MAX, ..Limits::default() });
        while let Some(batch) = world.mirror.take_batch(world.now) {
            planned.extend(batch.operations);
        }
        let mut recomputed = world.recomputed();
        recomputed.retain(|operation| !held.contains(&(operation.port.clone(), operation.ip)));
        prop_assert_eq!(writes(planned), writes(recomputed));
        prop_assert!(world.mirror.take_batch(world.now).is_none());
    }

    /// With a driver that keeps its deadlines and a server that ages rows, a follower has its row as
    /// long as the source has its own.
    #[test]
    fn no_follower_row_expires_before_its_source(
        touches in prop::collection::vec(1..290_000_u64, 1..30),
    ) {
        let mut world = World::new(true);
        world.step(Step::Learn { text: 0, mac: 1 });
        world.exchange();
        for touch in touches {
            let end = world.now.at.after(touch);
            while world.now.at < end {
                let deadline = world.mirror.next_deadline().unwrap_or(end);
                let wait = deadline.min(end).since(world.now.at).max(1);
                world.pass(wait);
                world.sweep();
                world.exchange();
                prop_assert_eq!(world.server.rows.len(), 3);
            }
            world.touch(0);
            world.exchange();
        }
    }

    /// However the nodes change, and whatever the source learns and forgets about them: what stays
    /// pinned never expires on a follower.
    #[test]
    fn no_pinned_row_expires(
        steps in prop::collection::vec(
            (1..200_000_u64, 1..5_usize, 0..3_u8, 0..5_usize, any::<bool>()), 1..20
        ),
    ) {
        let mut world = World::new(true);
        world.step(Step::Pin { text: 0, mac: 1 });
        world.exchange();
        for (pause, node, mac, learnt, forget) in steps {
            let end = world.now.at.after(pause);
            while world.now.at < end {
                let deadline = world.mirror.next_deadline().unwrap_or(end);
                let wait = deadline.min(end).since(world.now.at).max(1);
                world.pass(wait);
                world.sweep();
                world.exchange();
                prop_assert_eq!(world.mirror.pinned_missing(), 0);
            }
            world.step(Step::Pin { text: node, mac });
            world.step(if forget {
                Step::Unlearn { text: learnt }
            } else {
                Step::Learn { text: learnt, mac: 2 }
            });
            world.exchange();
        }
        prop_assert_eq!(world.pinned_missing(), 0);
    }
}
