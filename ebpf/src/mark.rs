//! The mark by which Open vSwitch knows frames to steer.

use aya_ebpf::programs::TcContext;
use neighsteer_common::Decision;

use crate::settings;

/// Marks a frame that is to be steered. `decision` is that of ARP and NDP.
///
/// Any other frame that has the mark already, by whatever came before this program, loses it: the
/// flow that steers looks at nothing else, and would take it past conntrack.
#[inline(always)]
pub fn mark(context: &TcContext, decision: Option<Decision>) {
    let steering_mark = settings::steering_mark();
    if steering_mark == 0 {
        return;
    }
    if decision.is_some_and(Decision::is_steered) {
        context.set_mark(steering_mark);
        return;
    }
    // SAFETY: the kernel hands a valid context to the program.
    if unsafe { (*context.skb.skb).mark } == steering_mark {
        context.set_mark(0);
    }
}
