//! What a manifest's file holds.

use serde_json::Value;

use crate::nodes::manifest::Manifest;

/// A file whose objects are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseError {
    /// Not JSON.
    #[error("it cannot be read as JSON")]
    Json(#[source] serde_json::Error),
    /// Not YAML.
    #[error("it cannot be read as YAML")]
    Yaml(#[source] Box<serde_saphyr::Error>),
    /// Text that happens to be YAML or JSON.
    #[error("{documents} of its documents have no apiVersion and kind")]
    NoObjects {
        /// How many.
        documents: usize,
    },
    /// As after somebody opened it to write it.
    #[error("it has no object")]
    Empty,
}

/// Reads documents: JSON if it starts as such, one value after the other; YAML otherwise.
pub(super) fn parse(bytes: &[u8]) -> Result<Manifest, ParseError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut manifest = Manifest::default();
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        for document in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
            manifest.add(&document.map_err(ParseError::Json)?);
        }
    } else {
        let documents: Vec<Value> =
            serde_saphyr::from_slice_multiple_with_options(bytes, options())
                .map_err(|error| ParseError::Yaml(Box::new(error)))?;
        for document in &documents {
            manifest.add(document);
        }
    }
    match manifest.not_objects {
        0 if manifest.is_empty() => Err(ParseError::Empty),
        0 => Ok(manifest),
        documents => Err(ParseError::NoObjects { documents }),
    }
}

/// Sized for whole clusters: a node is some thousand events.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        // As kubectl takes them: `on` is a text.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 20_000_000,
            max_documents: 100_000,
        },
        // Nobody writes manifests with aliases of aliases; they make much of little.
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 3,
            max_alias_expansions_per_anchor: 1_000,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let manifest = parse(text.as_bytes()).unwrap();
        manifest
            .nodes
            .iter()
            .map(|(name, _)| name.to_string())
            .collect()
    }

    #[test]
    fn documents_of_yaml_are_read_one_after_the_other() {
        let text = "---\n# nothing\n---\napiVersion: v1\nkind: Node\nmetadata:\n  name: a\n\
            ---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  \
            metadata:\n    name: b\n    annotations:\n      k8s.ovn.org/l3-gateway-config: \
            '{\"default\":{\"mode\":\"shared\",\"mac-address\":\"02:00:00:00:00:01\"}}'\n";
        assert_eq!(names(text), ["a", "b"]);
        let manifest = parse(text.as_bytes()).unwrap();
        let mac = manifest.nodes[1].1.gateway.as_ref().unwrap().mac;
        assert_eq!(mac.to_string(), "02:00:00:00:00:01");
    }

    #[test]
    fn the_manifests_that_the_documentation_shows_say_everything() {
        let page = include_str!("../../../../docs/nodes.md");
        let (_, rest) = page.split_once("```yaml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let manifest = parse(example.as_bytes()).unwrap();
        let [(name, node)] = &manifest.nodes[..] else {
            panic!("{:?}", manifest.nodes);
        };
        assert_eq!(&**name, "worker-2");
        assert!(node.problems.is_empty(), "{:?}", node.problems);
        assert_eq!(node.internal_ips.len(), 2);
        let mac = node.gateway.as_ref().unwrap().mac;
        assert_eq!(mac.to_string(), "02:42:ac:12:00:04");
        let [(_, state)] = &manifest.uplinks[..] else {
            panic!("{:?}", manifest.uplinks);
        };
        assert!(state.problems.is_empty(), "{:?}", state.problems);
        assert_eq!(state.addresses.len(), 1);
    }

    #[test]
    fn aliases_of_aliases_are_refused_before_they_grow() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..=11 {
            let below = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
        }
        assert!(parse(text.as_bytes()).is_err());
    }

    #[test]
    fn json_values_are_read_one_after_the_other() {
        let node = |name: &str| {
            format!(
                "{{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{{\"name\":\"{name}\"}}}}"
            )
        };
        assert_eq!(
            names(&format!("\u{feff}{}\n{}\n", node("a"), node("b"))),
            ["a", "b"]
        );
    }

    #[test]
    fn a_file_that_is_not_whole_has_no_objects() {
        let whole = "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}";
        assert!(parse(whole.as_bytes()).is_ok());
        for end in 1..whole.len() {
            assert!(matches!(
                parse(&whole.as_bytes()[..end]),
                Err(ParseError::Json(_))
            ));
        }
        for empty in ["", "\n", "---\n", "# nothing\n", "---\n---\n"] {
            assert!(
                matches!(parse(empty.as_bytes()), Err(ParseError::Empty)),
                "{empty:?}"
            );
        }
        for text in ["a: [", "a: 1\na: 2\n", "\u{0}"] {
            assert!(
                matches!(parse(text.as_bytes()), Err(ParseError::Yaml(_))),
                "{text:?}"
            );
        }
        for text in [
            "7",
            "no manifest",
            "apiVersion: v1\nmetadata: {name: a}\n",
            "[]",
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(
                matches!(error, ParseError::NoObjects { documents: 1 }),
                "{text:?}"
            );
        }
        assert!(matches!(parse(b"a: \xff"), Err(ParseError::Yaml(_))));
    }

    #[test]
    fn a_list_of_five_hundred_nodes_with_long_annotations_is_read() {
        let images = "    - names: [registry/a, registry/b]\n      sizeBytes: 100\n".repeat(50);
        let nodes: String = (0..500)
            .map(|node| {
                let annotation = "x".repeat(4000);
                format!(
                    "- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n{node}\n    \
                     annotations:\n      long: \"{annotation}\"\n  status:\n    images:\n{images}"
                )
            })
            .collect();
        assert_eq!(
            names(&format!("apiVersion: v1\nkind: List\nitems:\n{nodes}")).len(),
            500
        );
    }
}
