//! Frames over the contexts of tc and XDP.

use core::{ffi::c_void, mem::MaybeUninit, ptr};

use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_skb_load_bytes, bpf_xdp_get_buff_len, bpf_xdp_load_bytes},
    programs::{TcContext, XdpContext},
};
use neighsteer_common::{Frame, OuterTag, wire::VLAN_TAG};

/// What a program gets its frame in.
pub trait Context {
    /// Start and end of the part that can be read directly.
    fn linear(&self) -> (usize, usize);

    /// Reads `length` bytes at `offset`, wherever they lie; returns 0 if all were there.
    ///
    /// # Safety
    /// `to` must have room for them.
    unsafe fn load_bytes(&self, offset: u32, to: *mut c_void, length: u32) -> i64;

    /// Bytes of the frame from the Ethernet header on, a tag that was taken off counted in.
    fn length(&self) -> u64;

    /// Index of the interface.
    fn interface_index(&self) -> u32;

    /// The tag that was taken off.
    #[inline(always)]
    fn outer_tag(&self) -> Option<OuterTag> {
        None
    }
}

/// The kernel took the outer tag off.
impl Context for TcContext {
    #[inline(always)]
    fn linear(&self) -> (usize, usize) {
        (self.data(), self.data_end())
    }

    #[inline(always)]
    unsafe fn load_bytes(&self, offset: u32, to: *mut c_void, length: u32) -> i64 {
        // SAFETY: the context is the kernel's; the caller gives the room.
        unsafe { bpf_skb_load_bytes(self.as_ptr(), offset, to, length) }
    }

    #[inline(always)]
    fn length(&self) -> u64 {
        let tag = match self.outer_tag() {
            Some(_) => VLAN_TAG as u64,
            None => 0,
        };
        u64::from(self.len()) + tag
    }

    #[inline(always)]
    fn interface_index(&self) -> u32 {
        // SAFETY: the kernel hands a valid context to the program.
        unsafe { (*self.skb.skb).ifindex }
    }

    #[inline(always)]
    fn outer_tag(&self) -> Option<OuterTag> {
        let skb = self.skb.skb;
        // SAFETY: the kernel hands a valid context to the program.
        let (present, tci, protocol) =
            unsafe { ((*skb).vlan_present, (*skb).vlan_tci, (*skb).vlan_proto) };
        (present != 0).then(|| OuterTag {
            // The context holds the protocol in network order and the TCI in host order.
            tpid: u16::from_be(protocol as u16),
            tci: tci as u16,
        })
    }
}

/// All tags are in the frame, unless the NIC stripped one.
impl Context for XdpContext {
    #[inline(always)]
    fn linear(&self) -> (usize, usize) {
        (self.data(), self.data_end())
    }

    #[inline(always)]
    unsafe fn load_bytes(&self, offset: u32, to: *mut c_void, length: u32) -> i64 {
        // SAFETY: the context is the kernel's; the caller gives the room.
        unsafe { bpf_xdp_load_bytes(self.ctx, offset, to, length) }
    }

    #[inline(always)]
    fn length(&self) -> u64 {
        // SAFETY: the kernel hands a valid context to the program.
        unsafe { bpf_xdp_get_buff_len(self.ctx) }
    }

    #[inline(always)]
    fn interface_index(&self) -> u32 {
        self.ingress_ifindex() as u32
    }
}

/// The frame of a context.
pub struct Packet<'a, C> {
    context: &'a C,
    start: usize,
    end: usize,
}

impl<'a, C: Context> Packet<'a, C> {
    /// The frame that `context` holds.
    #[inline(always)]
    pub fn new(context: &'a C) -> Self {
        let (start, end) = context.linear();
        Self {
            context,
            start,
            end,
        }
    }
}

impl<C: Context> Frame for Packet<'_, C> {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let from = self.start + offset;
        if from + N > self.end {
            // Outside the linear part, or not there at all.
            return self.load_computed(offset);
        }
        // SAFETY: the bytes lie before `end`; packet memory has no alignment to rely on.
        Some(unsafe { ptr::read_unaligned(from as *const [u8; N]) })
    }

    #[inline(always)]
    fn load_computed<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: `bytes` has room for `N`.
        let status = unsafe {
            self.context
                .load_bytes(offset as u32, bytes.as_mut_ptr().cast(), N as u32)
        };
        // SAFETY: the helper wrote all `N` bytes if it returned 0.
        (status == 0).then(|| unsafe { bytes.assume_init() })
    }

    #[inline(always)]
    fn outer_tag(&self) -> Option<OuterTag> {
        self.context.outer_tag()
    }
}
