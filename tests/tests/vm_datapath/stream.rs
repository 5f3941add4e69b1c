//! A stream of steered frames that goes on while the program and the flows change under it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use neighsteer::{datapath::Hook, plan::SteeringMark};
use neighsteer_tests::{lab::wait_until, packet_socket::PacketSocket};

use crate::{
    rig::*,
    steering::{SHAPE, unicast},
};

const MARK: SteeringMark = SteeringMark::DEFAULT;
/// Between two frames: 1,000 a second, less where sleeping takes longer.
const PACE: Duration = Duration::from_millis(1);
/// What the stream goes on with between two changes.
const MORE: u64 = 400;
const PATIENCE: Duration = Duration::from_secs(60);

struct Stream {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Stream {
    /// In the network namespace of the calling thread.
    fn start(frame: Vec<u8>) -> Self {
        let (stop, sent) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            let socket = PacketSocket::open(OUTSIDE).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                if socket.try_send(&frame).unwrap() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                // The stream's rate.
                thread::sleep(PACE);
            }
        });
        Self { stop, sent, thread }
    }

    /// Until it has gone on for a while.
    fn goes_on(&self) {
        let until = self.sent.load(Ordering::Relaxed) + MORE;
        wait_until(PATIENCE, "the stream to go on", || {
            match self.sent.load(Ordering::Relaxed) {
                now if now >= until => Ok(()),
                now => Err(format!("{now} frames")),
            }
        })
        .unwrap();
    }

    /// How many frames it was.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn no_steered_frame_is_lost_while_programs_and_flows_go_over_to_marks_and_back() {
    let Some(mut rig) = Rig::start(SHAPE, &[]).await else {
        return;
    };
    rig.attach(Hook::Tc);
    let (_, frame) = unicast()[3].clone();
    rig.receive(&[]).await;
    let received = || [BRIDGE, SINK].map(Rig::delivered);
    let before = received();
    let stream = Stream::start(frame);
    stream.goes_on();
    // To marks: the flows, then the program; the program goes; back.
    rig.change_to(Some(MARK)).await;
    stream.goes_on();
    rig.attach(Hook::Tc);
    stream.goes_on();
    rig.detach();
    stream.goes_on();
    rig.attach(Hook::Tc);
    stream.goes_on();
    // The flow's counter goes with it.
    rig.receive(&[]).await;
    assert!(rig.marked().await >= 2 * MORE, "some were marked");
    rig.change_to(None).await;
    stream.goes_on();
    rig.attach(Hook::Tc);
    // To marks in the other order, and back.
    rig.change_to(Some(MARK)).await;
    rig.attach(Hook::Tc);
    stream.goes_on();
    let sent = stream.end();
    wait_until(PATIENCE, "every frame at the host and one router", || {
        let now = received();
        match now == before.map(|it| it + sent) {
            true => Ok(()),
            false => Err(format!("{now:?}, {before:?} before {sent} were sent")),
        }
    })
    .unwrap();
    let routers = rig.received().await;
    assert!(
        !routers.keys().any(|router| router != SOURCE),
        "{routers:?}"
    );
}
