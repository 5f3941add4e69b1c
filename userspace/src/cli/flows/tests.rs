use std::collections::BTreeMap;

use super::*;
use crate::{
    cli::matching::MatchArgs,
    ids::OfPort,
    openflow::{Cookie, InstalledFlow, PortDescription, parse_dump},
    plan::SteeringMatch,
    topology::tests::{Network, Node},
};

/// A switch whose every bridge has the same flows.
struct Fixed(Vec<InstalledFlow>);

impl Switch for Fixed {
    async fn dump_flows(
        &self,
        _bridge: &str,
        cookie: Option<Cookie>,
    ) -> Result<Vec<InstalledFlow>, SwitchError> {
        let wanted = |it: &&InstalledFlow| cookie.is_none_or(|cookie| it.flow.cookie == cookie);
        Ok(self.0.iter().filter(wanted).cloned().collect())
    }

    async fn change_flows(&self, _: &str, _: &FlowChanges) -> Result<(), SwitchError> {
        unreachable!("showing flows changes none")
    }

    async fn ports(&self, _: &str) -> Result<Vec<PortDescription>, SwitchError> {
        unreachable!("showing flows looks at no port")
    }

    async fn set_no_flood(&self, _: &str, _: &BTreeMap<OfPort, bool>) -> Result<(), SwitchError> {
        unreachable!("showing flows changes no port")
    }
}

async fn show(args: FlowsArgs, json: bool, installed: &str) -> (bool, String) {
    let topology = Node::new(&[Network::default_network()]).topology();
    let gates = Gates::new(true, true).unwrap();
    let switch = Fixed(parse_dump(installed).unwrap());
    let mut out = Vec::new();
    let differs = run(&args, &topology, gates, &switch, json, &mut out)
        .await
        .unwrap();
    (differs, String::from_utf8(out).unwrap())
}

fn diff_args() -> FlowsArgs {
    FlowsArgs {
        diff: true,
        ..FlowsArgs::default()
    }
}

#[tokio::test]
async fn flows_by_mark_are_shown_where_the_bridge_can_be_steered_so() {
    let matching = MatchArgs {
        steering_match: SteeringMatch::Mark,
        steering_mark: "0x52".parse().unwrap(),
    };
    let args = FlowsArgs {
        matching,
        ..FlowsArgs::default()
    };
    let (_, text) = show(args.clone(), false, "").await;
    assert!(text.contains("pkt_mark=0x52, actions=set_field:0x0->pkt_mark,output:2"));
    assert_eq!(text.matches("priority=51").count(), 4, "{text}");

    let mut topology = Node::new(&[Network::default_network()]).topology();
    topology.hardware_offload = true;
    let gates = Gates::new(true, true).unwrap();
    let refused = run(
        &args,
        &topology,
        gates,
        &Fixed(Vec::new()),
        false,
        &mut Vec::new(),
    )
    .await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("breth0") && message.contains("hw-offload"),
        "{message}"
    );
}

#[tokio::test]
async fn flows_are_shown_as_a_file_that_ovs_ofctl_takes() {
    let (differs, text) = show(FlowsArgs::default(), false, "").await;
    assert!(!differs);
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn flows_are_shown_as_json() {
    let (_, text) = show(diff_args(), true, "").await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn a_difference_names_what_is_missing_what_is_to_go_and_what_another_has() {
    let (_, desired) = show(FlowsArgs::default(), false, "").await;
    let mut installed: Vec<String> = desired.lines().skip(1).map(str::to_owned).collect();
    installed.remove(0);
    installed[0] = installed[0].replace("output:2", "output:3");
    installed[1] = installed[1].replace("cookie=0x6e65696768737472", "cookie=0xdeff105");
    installed.push(format!(
        "cookie={COOKIE}, priority=52, table=0, in_port=9, arp, actions=drop"
    ));
    installed.push("cookie=0x0, priority=0, table=0, actions=NORMAL".to_owned());
    let (differs, text) = show(diff_args(), false, &installed.join("\n")).await;
    assert!(differs);
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn installed_flows_that_are_the_desired_ones_are_no_difference() {
    let (_, desired) = show(FlowsArgs::default(), false, "").await;
    let installed: Vec<&str> = desired.lines().skip(1).collect();
    let (differs, text) = show(diff_args(), false, &installed.join("\n")).await;
    assert!(!differs);
    assert!(
        text.lines().skip(2).all(|line| line.starts_with(' ')),
        "{text}"
    );
}

#[tokio::test]
async fn a_bridge_without_a_group_is_an_error_that_says_why() {
    let mut network = Network::default_network();
    network.ofport = -1;
    let topology = Node::new(&[network]).topology();
    let args = FlowsArgs {
        bridge: Some("breth0".to_owned()),
        ..FlowsArgs::default()
    };
    let switch = Fixed(Vec::new());
    let error = run(
        &args,
        &topology,
        Gates::default(),
        &switch,
        false,
        &mut Vec::new(),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no gateway routers of this node share bridge breth0; left out: GR_node-1: port patch-breth0_node-1-to-br-int has no OpenFlow number (yet)"
    );
}
