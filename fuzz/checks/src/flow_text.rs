//! Flows as `ovs-ofctl dump-flows` prints them.

use neighsteer::openflow::{Action, Flow, parse_dump, parse_flow};

/// Whether nothing of a flow is kept as mere text, which may be anything.
fn is_understood(flow: &Flow) -> bool {
    let is_text = |action: &Action| matches!(action, Action::Other(_));
    flow.matches.other.is_empty() && !flow.actions.iter().any(is_text)
}

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match parse_dump(text) {
        Ok(flows) => {
            for installed in flows {
                let text = installed.flow.to_string();
                let again = parse_flow(&text);
                if is_understood(&installed.flow) {
                    assert_eq!(again.as_ref(), Ok(&installed.flow), "{text}");
                }
            }
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
}
