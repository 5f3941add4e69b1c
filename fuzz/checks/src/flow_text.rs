//! Flows as `ovs-ofctl dump-flows` prints them.

use neighsteer::openflow::{parse_dump, parse_flow};

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match parse_dump(text) {
        Ok(flows) => {
            for installed in flows {
                let text = installed.flow.to_string();
                assert_eq!(parse_flow(&text).as_ref(), Ok(&installed.flow), "{text}");
            }
        }
        Err(error) => {
            let _ = error.to_string();
        }
    }
}
