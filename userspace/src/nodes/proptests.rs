use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use super::{Node, UplinkState, manifest::Manifest};

const KEYS: [&str; 20] = [
    "metadata",
    "name",
    "annotations",
    "k8s.ovn.org/l3-gateway-config",
    "k8s.ovn.org/node-chassis-id",
    "status",
    "addresses",
    "type",
    "address",
    "default",
    "mode",
    "mac-address",
    "ip-addresses",
    "spec",
    "uplinkName",
    "nodeName",
    "ipAddresses",
    "items",
    "kind",
    "apiVersion",
];

fn scalar() -> impl Strategy<Value = Value> {
    let texts = prop_oneof![
        "\\PC{0,40}",
        prop::sample::select(vec![
            "shared",
            "InternalIP",
            "10.0.0.1",
            "10.0.0.1/24",
            "fd00::1/64",
            "v1",
            "List",
            "Node",
            "NodeList",
            "02:00:00:00:00:01",
            "ff:ff:ff:ff:ff:ff",
            "",
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        texts.prop_map(Value::from),
    ]
}

/// JSON of any shape, with the keys that are looked at in any place.
fn anything() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 60, 6, |inner| {
        let keys = prop::sample::select(KEYS.to_vec());
        let object = vec((keys, inner.clone()), 0..6).prop_map(|entries| {
            let entries = entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value));
            Value::Object(entries.collect::<Map<_, _>>())
        });
        let list = vec(inner.clone(), 0..6).prop_map(Value::Array);
        let text = inner.prop_map(|value| Value::String(value.to_string()));
        prop_oneof![object, list, text]
    })
}

proptest! {
    #[test]
    fn nothing_panics_on_any_object(value in anything()) {
        let _node = Node::read(&value);
        let _uplink = UplinkState::read(&value);
        Manifest::default().add(&value);
    }

    #[test]
    fn a_node_that_has_a_name_counts_whatever_else_it_has(
        annotations in anything(),
        config in anything(),
        status in anything(),
    ) {
        for annotations in [
            annotations,
            json!({"k8s.ovn.org/l3-gateway-config": config.to_string()}),
            json!({"k8s.ovn.org/l3-gateway-config": json!({"default": config}).to_string()}),
        ] {
            let object = json!({
                "metadata": {"name": "a", "annotations": annotations},
                "status": status,
            });
            let (_, node) = Node::read(&object).unwrap();
            if let Ok(gateway) = node.gateway {
                prop_assert!(!gateway.mac.is_zero() && !gateway.mac.is_multicast());
            }
            for problem in node.problems {
                prop_assert!(problem.to_string().len() < 1000);
            }
        }
    }

    #[test]
    fn a_text_that_is_no_annotation_never_panics(text in "\\PC*") {
        let object = json!({
            "metadata": {"name": "a", "annotations": {"k8s.ovn.org/l3-gateway-config": text}},
        });
        prop_assert!(Node::read(&object).is_ok());
    }
}
