//! Programs for benches and tests only: empty ones to measure against, and ones that hand their
//! whole verdict out.
#![no_std]
#![no_main]
#![expect(
    missing_docs,
    reason = "the program macros make undocumented functions"
)]

use aya_ebpf::{
    bindings::{TC_ACT_UNSPEC, xdp_action},
    btf_maps::Array,
    macros::{btf_map, classifier, xdp},
    programs::{TcContext, XdpContext},
};
use neighsteer_common::{Frame, abi::ObservedVerdict};
use neighsteer_ebpf::{
    packet::{Context as _, Packet},
    recognise::recognise,
    settings::settings,
};

#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = neighsteer_ebpf::LICENSE;

/// What `tc_observe` saw last.
#[btf_map]
static OBSERVED: Array<ObservedVerdict, 1> = Array::new();

/// Returns what `tc_ingress` returns.
#[classifier]
pub fn tc_empty(_context: TcContext) -> i32 {
    TC_ACT_UNSPEC
}

/// Returns what `xdp_ingress` returns.
#[xdp(frags)]
pub fn xdp_empty(_context: XdpContext) -> u32 {
    xdp_action::XDP_PASS
}

/// Returns the packed verdict: for TEST_RUN.
#[classifier]
pub fn tc_verdict(context: TcContext) -> i32 {
    verdict(&Packet::new(&context)) as i32
}

/// Returns the packed verdict: for TEST_RUN.
#[xdp(frags)]
pub fn xdp_verdict(context: XdpContext) -> u32 {
    verdict(&Packet::new(&context))
}

/// Notes the packed verdict of each frame in a map: for frames on a real interface.
#[classifier]
pub fn tc_observe(context: TcContext) -> i32 {
    let verdict = verdict(&Packet::new(&context));
    if let Some(observed) = OBSERVED.get_ptr_mut(0) {
        // SAFETY: the one entry of an array; tests send one frame at a time.
        unsafe {
            (*observed).verdict = verdict;
            (*observed).length = context.length() as u32;
            (*observed).frames += 1;
        }
    }
    TC_ACT_UNSPEC
}

/// The packed verdict, by the way that the shipped programs take.
#[inline(always)]
fn verdict<F: Frame>(frame: &F) -> u32 {
    match recognise(frame) {
        Some(recognised) => recognised.judge(frame, settings().policy().as_ref()).pack(),
        None => u32::MAX,
    }
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
