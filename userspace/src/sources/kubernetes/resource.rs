//! The two kinds that are followed.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    nodes::{Node, ObjectError, UplinkState, manifest::Kind},
    sources::feed::{NoNodes, Publisher},
};

/// A kind of objects that an API server has.
pub(super) trait Resource: Sized + Send {
    /// Which.
    const KIND: Kind;
    /// Where all of them are.
    const PATH: &'static str;
    /// Whether a server may do without.
    const IS_OPTIONAL: bool;

    /// Reads an object.
    fn read(object: &Value) -> Result<(Arc<str>, Self), ObjectError>;

    /// Publishes all of them.
    fn replace(publisher: &Publisher, all: BTreeMap<Arc<str>, Self>) -> Result<(), NoNodes>;

    /// Publishes that one came, changed or went.
    fn set(publisher: &Publisher, name: &Arc<str>, object: Option<Self>) -> Result<(), NoNodes>;
}

impl Resource for Node {
    const KIND: Kind = Kind::Node;
    const PATH: &'static str = "/api/v1/nodes";
    const IS_OPTIONAL: bool = false;

    fn read(object: &Value) -> Result<(Arc<str>, Self), ObjectError> {
        Self::read(object)
    }

    fn replace(publisher: &Publisher, all: BTreeMap<Arc<str>, Self>) -> Result<(), NoNodes> {
        publisher.replace_nodes(all)
    }

    fn set(publisher: &Publisher, name: &Arc<str>, object: Option<Self>) -> Result<(), NoNodes> {
        publisher.set_node(name, object)
    }
}

impl Resource for UplinkState {
    const KIND: Kind = Kind::UplinkState;
    const PATH: &'static str = "/apis/k8s.ovn.org/v1alpha1/uplinkstates";
    const IS_OPTIONAL: bool = true;

    fn read(object: &Value) -> Result<(Arc<str>, Self), ObjectError> {
        Self::read(object)
    }

    fn replace(publisher: &Publisher, all: BTreeMap<Arc<str>, Self>) -> Result<(), NoNodes> {
        publisher.replace_uplinks(all);
        Ok(())
    }

    fn set(publisher: &Publisher, name: &Arc<str>, object: Option<Self>) -> Result<(), NoNodes> {
        publisher.set_uplink(name, object);
        Ok(())
    }
}
