//! What the classifier needs of a frame: bounded loads and what the context knows.

/// A VLAN tag that is not in the frame any more: the kernel (or the NIC) took it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterTag {
    /// Tag protocol identifier, host order: `0x8100` or `0x88a8`.
    pub tpid: u16,
    /// Tag control information, host order: priority (3 bits), DEI (1), VLAN ID (12).
    pub tci: u16,
}

/// One Ethernet frame, from the destination address on, without preamble and FCS.
pub trait Frame {
    /// `N` bytes from `offset`, or `None` where the frame ends before.
    ///
    /// `offset` must be one of few constants on every path: then any verifier accepts the load, and
    /// it costs next to nothing.
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// The same for an offset that was computed from the frame. In the kernel this is a helper call,
    /// which leaves the verifier nothing to prove about the offset.
    fn load_computed<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.load(offset)
    }

    /// The tag that the context carries beside the frame (`vlan_present` on tc).
    fn outer_tag(&self) -> Option<OuterTag> {
        None
    }
}

/// A frame in native memory.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// The frame as it is on the wire, less `outer_tag`.
    pub frame: &'a [u8],
    /// The tag that was taken off, if any.
    pub outer_tag: Option<OuterTag>,
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(frame: &'a [u8]) -> Self {
        Self {
            frame,
            outer_tag: None,
        }
    }
}

impl Frame for Bytes<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.frame
            .get(offset..offset.checked_add(N)?)?
            .try_into()
            .ok()
    }

    #[inline(always)]
    fn outer_tag(&self) -> Option<OuterTag> {
        self.outer_tag
    }
}
