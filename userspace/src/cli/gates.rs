//! The flags of the feature gates.

use crate::plan::{GateError, Gates};

/// The feature gates, as OVN-Kubernetes has them.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Feature gates")]
pub struct GateArgs {
    /// Networks have gateway routers of their own on the shared bridge
    #[arg(long, env = "NEIGHSTEER_ENABLE_NETWORK_SEGMENTATION")]
    pub enable_network_segmentation: bool,
    /// Steer ARP and NDP to one gateway router and mirror its bindings; needs the gate above
    #[arg(long, env = "NEIGHSTEER_DISABLE_UDN_ARP_NDP_FLOOD")]
    pub disable_udn_arp_ndp_flood: bool,
}

impl GateArgs {
    /// The gates.
    ///
    /// # Errors
    /// Where they contradict each other.
    pub const fn read(self) -> Result<Gates, GateError> {
        Gates::new(
            self.enable_network_segmentation,
            self.disable_udn_arp_ndp_flood,
        )
    }
}
