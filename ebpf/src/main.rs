//! The programs that the agent attaches: they count ARP and NDP, and rewrite and drop nothing.
#![no_std]
#![no_main]
#![expect(
    missing_docs,
    reason = "the program macros make undocumented functions"
)]

use aya_ebpf::{
    bindings::{TC_ACT_UNSPEC, xdp_action},
    macros::{classifier, xdp},
    programs::{TcContext, XdpContext},
};
use neighsteer_common::{Recognised, Verdict, abi::Settings};
use neighsteer_ebpf::{
    account,
    mark::mark,
    packet::{Context, Packet},
    settings::settings,
};

#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = neighsteer_ebpf::LICENSE;

/// tc ingress, by TCX or clsact. Later programs run as if this one were not there.
#[classifier]
pub fn tc_ingress(context: TcContext) -> i32 {
    let judged = judge(&context);
    mark(&context, judged.map(|(_, verdict)| verdict.decision));
    if let Some((settings, verdict)) = judged {
        if settings.tag_set != 0 {
            context.set_mark(settings.tag.wrapping_add(verdict.decision as u32));
        }
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!(
            &context,
            "tc kind={} decision={}",
            verdict.kind as u8,
            verdict.decision as u8
        );
    }
    TC_ACT_UNSPEC
}

/// XDP, for datapaths that take frames before tc.
#[xdp(frags)]
pub fn xdp_ingress(context: XdpContext) -> u32 {
    if let Some((_settings, _verdict)) = judge(&context) {
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!(
            &context,
            "xdp kind={} decision={}",
            _verdict.kind as u8,
            _verdict.decision as u8
        );
    }
    xdp_action::XDP_PASS
}

/// Judges and counts a frame that is ARP or NDP; any other one costs no access to a map.
#[inline(always)]
fn judge<C: Context>(context: &C) -> Option<(Settings, Verdict)> {
    let frame = Packet::new(context);
    let recognised = Recognised::in_frame(&frame);
    if !recognised.is_neighbour() {
        return None;
    }
    let settings = settings();
    let verdict = recognised.judge(&frame, settings.policy().as_ref());
    account::count(
        context.interface_index(),
        settings.direction,
        verdict,
        context.length(),
    );
    Some((settings, verdict))
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
