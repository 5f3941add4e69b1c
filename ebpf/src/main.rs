//! The programs that the agent attaches: they count ARP and NDP, rewrite nothing, and drop nothing but,
//! where that was asked for, what every receiver must discard.
#![no_std]
#![no_main]
#![expect(
    missing_docs,
    reason = "the program macros make undocumented functions"
)]

use aya_ebpf::{
    bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC, xdp_action},
    macros::{classifier, xdp},
    programs::{TcContext, XdpContext},
};
use neighsteer_common::{Kind, Notes, Recognised, Validate, Verdict, abi::Settings};
use neighsteer_ebpf::{
    account,
    mark::mark,
    packet::{Context, Packet},
    recognise::forget_the_way,
    settings::settings,
};

#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = neighsteer_ebpf::LICENSE;

/// tc ingress, by TCX or clsact. Later programs run as if this one were not there, but for frames that
/// it drops.
#[classifier]
pub fn tc_ingress(context: TcContext) -> i32 {
    let judged = judge(&context);
    mark(&context, judged.map(|judged| judged.verdict.decision));
    if let Some(Judged {
        settings,
        verdict,
        is_dropped,
    }) = judged
    {
        if settings.tag_set != 0 && !matches!(verdict.kind, Kind::NotNeighbour) {
            context.set_mark(settings.tag.wrapping_add(verdict.decision as u32));
        }
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!(
            &context,
            "tc kind={} decision={}",
            verdict.kind as u8,
            verdict.decision as u8
        );
        if is_dropped {
            return TC_ACT_SHOT;
        }
    }
    TC_ACT_UNSPEC
}

/// XDP, for datapaths that take frames before tc.
#[xdp(frags)]
pub fn xdp_ingress(context: XdpContext) -> u32 {
    if let Some(judged) = judge(&context) {
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!(
            &context,
            "xdp kind={} decision={}",
            judged.verdict.kind as u8,
            judged.verdict.decision as u8
        );
        if judged.is_dropped {
            return xdp_action::XDP_DROP;
        }
    }
    xdp_action::XDP_PASS
}

/// What there is to say of a frame that is ARP or NDP.
#[derive(Clone, Copy)]
struct Judged {
    settings: Settings,
    verdict: Verdict,
    /// Every receiver must discard it, and dropping such frames was asked for.
    is_dropped: bool,
}

/// Judges and counts a frame that is ARP or NDP; any other one costs no access to a map.
#[inline(always)]
fn judge<C: Context>(context: &C) -> Option<Judged> {
    let frame = Packet::new(context);
    let recognised = Recognised::in_frame(&frame);
    if !recognised.is_neighbour() && !recognised.is_fragmented_ndp() {
        return None;
    }
    let recognised = forget_the_way(recognised)?;
    let settings = settings();
    let verdict = recognised.judge(&frame, settings.policy().as_ref());
    if recognised.is_neighbour() {
        account::count(
            context.interface_index(),
            settings.direction,
            verdict,
            context.length(),
        );
    }
    let is_dropped = settings.validate == Validate::Drop as u8 && verdict.is_invalid();
    if settings.validate != Validate::Off as u8
        && verdict.notes.intersects(Notes::INVALID | Notes::SUSPICIOUS)
    {
        account::count_failed(
            context.interface_index(),
            settings.direction,
            verdict.notes,
            is_dropped,
        );
    }
    Some(Judged {
        settings,
        verdict,
        is_dropped,
    })
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
