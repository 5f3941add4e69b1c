//! What an `UplinkState` object says.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ObjectError, UplinkState,
    fields::{add_prefix, entries, is_name, mac, name, text},
};

const MAC: &str = "status.macAddress";
const ADDRESSES: &str = "status.ipAddresses";

impl UplinkState {
    /// Reads an `UplinkState` as the API gives it (`kind` and `apiVersion` are not looked at, lists
    /// leave them out). What is wrong costs itself only.
    ///
    /// # Errors
    /// When it has no name, or does not say whose state it is.
    pub fn read(object: &Value) -> Result<(Arc<str>, Self), ObjectError> {
        let name = name(object)?;
        let identity = |pointer, field| {
            text(object.pointer(pointer))
                .filter(|name| is_name(name))
                .map(Arc::from)
                .ok_or_else(|| ObjectError::Missing {
                    name: Arc::clone(&name),
                    field,
                })
        };
        let uplink = identity("/spec/uplinkName", "spec.uplinkName")?;
        let node = identity("/spec/nodeName", "spec.nodeName")?;
        let mut addresses = Vec::new();
        let mut problems = Vec::new();
        for entry in entries(
            object.pointer("/status/ipAddresses"),
            ADDRESSES,
            &mut problems,
        ) {
            add_prefix(entry, ADDRESSES, &mut addresses, &mut problems);
        }
        let state = Self {
            uplink,
            node,
            bridge: text(object.pointer("/status/ovsBridge/name")).map(Arc::from),
            mac: mac(object.pointer("/status/macAddress"), MAC),
            addresses,
            problems,
        };
        Ok((name, state))
    }
}
