//! Bridges whose flows OVN-Kubernetes manages.

use super::{
    AgentConfig, AgentError,
    converge::{SteeringError, check_unmanaged},
    model::Model,
};
use crate::{openflow::NativeSwitch, plan::Install};

/// The complete set of flows is refused at start where OVN-Kubernetes manages a bridge. One that
/// does not answer is left to steering, which looks again.
///
/// # Errors
/// Names the first bridge that is managed.
pub async fn refuse_managed(
    model: &Model,
    config: &AgentConfig,
    switch: &NativeSwitch,
) -> Result<(), AgentError> {
    if config.install == Install::Complete {
        for group in &model.topology().groups {
            let checked = check_unmanaged(switch, &group.bridge).await;
            if let Err(error @ SteeringError::Managed { .. }) = checked {
                return Err(error.into());
            }
        }
    }
    Ok(())
}
