//! The feature gates, named as OVN-Kubernetes names them.

/// Which features are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    disable_udn_arp_ndp_flood: bool,
}

/// Gates that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// Steering without networks to steer for.
    #[error("disable-udn-arp-ndp-flood needs enable-network-segmentation: turn on both or neither")]
    NeedsNetworkSegmentation,
}

impl Gates {
    /// Reads `enable-network-segmentation` and `disable-udn-arp-ndp-flood`.
    ///
    /// # Errors
    /// Where the second is on without the first.
    pub const fn new(
        network_segmentation: bool,
        disable_udn_arp_ndp_flood: bool,
    ) -> Result<Self, GateError> {
        if disable_udn_arp_ndp_flood && !network_segmentation {
            return Err(GateError::NeedsNetworkSegmentation);
        }
        Ok(Self {
            disable_udn_arp_ndp_flood,
        })
    }

    /// Whether unicast ARP and NDP are steered to the source and its bindings mirrored.
    #[must_use]
    pub const fn steering(self) -> bool {
        self.disable_udn_arp_ndp_flood
    }
}
