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
use neighsteer_common::Recognised;
use neighsteer_ebpf::{account, packet, settings::settings};

#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = neighsteer_ebpf::LICENSE;

/// tc ingress, by TCX or clsact. Later programs run as if this one were not there.
#[classifier]
pub fn tc_ingress(context: TcContext) -> i32 {
    let frame = packet::TcFrame::new(&context);
    let recognised = Recognised::in_frame(&frame);
    if recognised.is_neighbour() {
        let settings = settings();
        let verdict = recognised.judge(&frame, settings.policy().as_ref());
        account::count(
            frame.interface_index(),
            settings.direction,
            verdict,
            frame.length(),
        );
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
    let frame = packet::XdpFrame::new(&context);
    let recognised = Recognised::in_frame(&frame);
    if recognised.is_neighbour() {
        let settings = settings();
        let verdict = recognised.judge(&frame, settings.policy().as_ref());
        account::count(
            frame.interface_index(),
            settings.direction,
            verdict,
            frame.length(),
        );
        #[cfg(feature = "log")]
        aya_log_ebpf::debug!(
            &context,
            "xdp kind={} decision={}",
            verdict.kind as u8,
            verdict.decision as u8
        );
    }
    xdp_action::XDP_PASS
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
