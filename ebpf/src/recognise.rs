//! What a frame is, so that the verifier can follow.

use aya_ebpf::{btf_maps::PerCpuArray, macros::btf_map};
use neighsteer_common::{Frame, Recognised};

/// Where a number goes through.
#[btf_map]
static SCRATCH: PerCpuArray<u64, 1> = PerCpuArray::new();

/// Recognises a frame, for a caller that needs more of it than whether it is ARP or NDP.
///
/// The verifier walks each of some thousand ways through the headers, and knows on each what was
/// found. Without this it would walk all that follows as often, which is more than it is willing to.
#[inline(always)]
pub fn forget_the_way(recognised: Recognised) -> Option<Recognised> {
    let scratch = SCRATCH.get_ptr_mut(0)?;
    // SAFETY: the pointer is this CPU's value, and no other program runs here meanwhile. Volatile,
    // because the compiler would see through it.
    let packed = unsafe {
        scratch.write_volatile(recognised.pack());
        scratch.read_volatile()
    };
    Recognised::unpack(packed)
}

/// What a frame is.
#[inline(always)]
pub fn recognise<F: Frame>(frame: &F) -> Option<Recognised> {
    forget_the_way(Recognised::in_frame(frame))
}
