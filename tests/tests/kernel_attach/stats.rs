//! `neighsteer stats` where pins of one interface cannot be read.

use std::fs;

use neighsteer::{
    cli::datapath::{StatsArgs, stats},
    datapath::{self, AttachOptions, Hook},
};

use crate::rig::*;

fn shown(rig: &Rig, json: bool) -> (String, anyhow::Result<()>) {
    let arguments = StatsArgs {
        interface: None,
        bpffs: rig.bpffs(),
    };
    let mut output = Vec::new();
    let result = stats(&arguments, json, &mut output);
    (String::from_utf8(output).unwrap(), result)
}

#[test]
fn a_directory_without_a_program_is_left_out() {
    let Some(rig) = Rig::new() else { return };
    rig.attach(Hook::Tc);
    fs::create_dir(rig.version().join("empty")).unwrap();
    let (text, result) = shown(&rig, false);
    result.unwrap();
    assert!(text.starts_with(UPLINK), "{text}");
    assert!(!text.contains("empty"), "{text}");
    rig.detach();
    fs::create_dir_all(rig.version().join("empty")).unwrap();
    assert_eq!(shown(&rig, false).0, "nothing is attached\n");
}

#[test]
fn counters_that_cannot_be_read_keep_no_others_from_being_shown() {
    let Some(rig) = Rig::new() else { return };
    rig.attach(Hook::Tc);
    datapath::attach(&AttachOptions {
        interface: OUTSIDE.to_owned(),
        ..rig.options(Hook::Tc)
    })
    .unwrap();
    fs::remove_file(rig.version().join(OUTSIDE).join("counters")).unwrap();
    let failed = |result: anyhow::Result<()>| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("outside/counters is missing"), "{error}");
    };
    let (text, result) = shown(&rig, false);
    failed(result);
    assert!(text.starts_with(UPLINK), "{text}");
    let (text, result) = shown(&rig, true);
    failed(result);
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1);
    assert_eq!(all[0]["interface"], UPLINK);
}
