//! Frames over the contexts of tc and XDP.

use core::{mem::MaybeUninit, ptr};

use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_skb_load_bytes, bpf_xdp_get_buff_len, bpf_xdp_load_bytes},
    programs::{TcContext, XdpContext},
};
use neighsteer_common::{Frame, OuterTag, wire::VLAN_TAG};

/// A frame on tc ingress. The kernel took the outer tag off.
pub struct TcFrame<'a> {
    context: &'a TcContext,
    start: usize,
    end: usize,
}

impl<'a> TcFrame<'a> {
    /// The frame of a context.
    #[inline(always)]
    pub fn new(context: &'a TcContext) -> Self {
        Self {
            context,
            start: context.data(),
            end: context.data_end(),
        }
    }

    /// Bytes from the Ethernet header on, the tag that was taken off counted in.
    #[inline(always)]
    pub fn length(&self) -> u64 {
        let tag = match self.outer_tag() {
            Some(_) => VLAN_TAG as u64,
            None => 0,
        };
        u64::from(self.context.len()) + tag
    }

    /// Index of the interface.
    #[inline(always)]
    pub fn interface_index(&self) -> u32 {
        // SAFETY: the kernel hands a valid context to the program.
        unsafe { (*self.context.skb.skb).ifindex }
    }

    /// The helper reads what lies outside the linear part of the socket buffer, too.
    #[inline(always)]
    fn load_by_helper<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the context is the kernel's, `bytes` has room for `N`.
        let status = unsafe {
            bpf_skb_load_bytes(
                self.context.as_ptr(),
                offset as u32,
                bytes.as_mut_ptr().cast(),
                N as u32,
            )
        };
        // SAFETY: the helper wrote all `N` bytes if it returned 0.
        (status == 0).then(|| unsafe { bytes.assume_init() })
    }
}

impl Frame for TcFrame<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        // SAFETY: the verifier proves that a load lies between `start` and `end`.
        match unsafe { load_linear(self.start, self.end, offset) } {
            Some(bytes) => Some(bytes),
            None => self.load_by_helper(offset),
        }
    }

    #[inline(always)]
    fn load_computed<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.load_by_helper(offset)
    }

    #[inline(always)]
    fn outer_tag(&self) -> Option<OuterTag> {
        let skb = self.context.skb.skb;
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

/// A frame on XDP: all tags are in it, unless the NIC stripped one.
pub struct XdpFrame<'a> {
    context: &'a XdpContext,
    start: usize,
    end: usize,
}

impl<'a> XdpFrame<'a> {
    /// The frame of a context.
    #[inline(always)]
    pub fn new(context: &'a XdpContext) -> Self {
        Self {
            context,
            start: context.data(),
            end: context.data_end(),
        }
    }

    /// Bytes from the Ethernet header on, those in further buffers counted in.
    #[inline(always)]
    pub fn length(&self) -> u64 {
        // SAFETY: the kernel hands a valid context to the program.
        unsafe { bpf_xdp_get_buff_len(self.context.ctx) }
    }

    /// Index of the interface.
    #[inline(always)]
    pub fn interface_index(&self) -> u32 {
        self.context.ingress_ifindex() as u32
    }

    /// The helper reads what lies in further buffers, too.
    #[inline(always)]
    fn load_by_helper<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the context is the kernel's, `bytes` has room for `N`.
        let status = unsafe {
            bpf_xdp_load_bytes(
                self.context.ctx,
                offset as u32,
                bytes.as_mut_ptr().cast(),
                N as u32,
            )
        };
        // SAFETY: the helper wrote all `N` bytes if it returned 0.
        (status == 0).then(|| unsafe { bytes.assume_init() })
    }
}

impl Frame for XdpFrame<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        // SAFETY: the verifier proves that a load lies between `start` and `end`.
        match unsafe { load_linear(self.start, self.end, offset) } {
            Some(bytes) => Some(bytes),
            None => self.load_by_helper(offset),
        }
    }

    #[inline(always)]
    fn load_computed<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.load_by_helper(offset)
    }
}

/// `N` bytes of the linear part, or `None` where it ends before.
///
/// # Safety
/// `start..end` must be the linear part of a frame.
#[inline(always)]
unsafe fn load_linear<const N: usize>(start: usize, end: usize, offset: usize) -> Option<[u8; N]> {
    let from = start + offset;
    if from + N > end {
        return None;
    }
    // SAFETY: the bytes lie before `end`; packet memory has no alignment to rely on.
    Some(unsafe { ptr::read_unaligned(from as *const [u8; N]) })
}
