use super::*;

const SCHEMA: &str = r#"{"name":"_Server","version":"1.2.0","tables":{"Database":{"columns":{
    "name":{"type":"string"},
    "model":{"type":"string"},
    "connected":{"type":"boolean"},
    "leader":{"type":"boolean"},
    "cid":{"type":{"key":"uuid","min":0,"max":1}},
    "index":{"type":{"key":"integer","min":0,"max":1}}}}}}"#;
const CLUSTER: &str = "550e8400-e29b-41d4-a716-446655440000";
const OTHER_CLUSTER: &str = "550e8400-e29b-41d4-a716-446655440001";
const ROW: &str = "11111111-1111-4111-8111-111111111111";
const NIL: &str = "00000000-0000-0000-0000-000000000000";

fn served(leader_only: bool, newest: Newest) -> Served {
    let demands = Demands {
        remote: "tcp:10.0.0.1:6642".parse().unwrap(),
        database: "D".into(),
        leader_only,
        index: true,
    };
    Served::new(SCHEMA.as_bytes(), demands, newest).unwrap()
}

fn columns(model: &str, connected: bool, leader: bool, cluster: &str, index: i64) -> String {
    format!(
        r#"{{"name":"D","model":"{model}","connected":{connected},"leader":{leader},"cid":["uuid","{cluster}"],"index":{index}}}"#
    )
}

fn reply(columns: &str) -> String {
    format!(r#"[false,"{NIL}",{{"Database":{{"{ROW}":{{"initial":{columns}}}}}}}]"#)
}

fn update(columns: &str) -> String {
    format!(r#"["server","{NIL}",{{"Database":{{"{ROW}":{{"modify":{columns}}}}}}}]"#)
}

#[track_caller]
fn unfit(result: Result<(), SessionError>) -> UnfitServer {
    match result {
        Err(SessionError::Unfit(unfit)) => unfit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn standalone_server_is_fit_whatever_else_it_says() {
    let mut served = served(true, Newest::default());
    let row = r#"{"name":"D","model":"standalone","connected":false,"leader":false}"#;
    served.reply(reply(row).as_bytes()).unwrap();
}

#[test]
fn database_that_is_not_listed_is_left_to_its_own_requests() {
    let mut served = served(true, Newest::default());
    let nothing = format!(r#"[false,"{NIL}",{{}}]"#);
    served.reply(nothing.as_bytes()).unwrap();
}

#[test]
fn follower_is_fit_unless_only_the_leader_will_do() {
    let row = reply(&columns("clustered", true, false, CLUSTER, 7));
    let newest = Newest::default();
    served(false, newest).reply(row.as_bytes()).unwrap();
    let refused = unfit(served(true, newest).reply(row.as_bytes()));
    assert_eq!(
        refused.to_string(),
        "tcp:10.0.0.1:6642 does not lead the cluster of database D; only its leader will do"
    );
}

#[test]
fn leader_that_loses_the_lead_and_member_that_loses_its_cluster_cease_to_be_fit() {
    for (change, expected) in [
        (r#"{"leader":false}"#, "does not lead the cluster"),
        (r#"{"connected":false}"#, "has lost touch with the cluster"),
    ] {
        let mut served = served(true, Newest::default());
        let row = columns("clustered", true, true, CLUSTER, 7);
        served.reply(reply(&row).as_bytes()).unwrap();
        served.update(update(r#"{"index":8}"#).as_bytes()).unwrap();
        let error = unfit(served.update(update(change).as_bytes())).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn relay_without_its_source_is_not_fit() {
    let mut served = served(false, Newest::default());
    let row = r#"{"name":"D","model":"relay","connected":false,"leader":true}"#;
    let refused = unfit(served.reply(reply(row).as_bytes()));
    assert!(refused.to_string().contains("relay source"), "{refused}");
}

#[test]
fn member_that_is_behind_is_not_fit_until_it_has_caught_up() {
    let mut first = served(false, Newest::default());
    let at = |cluster, index| reply(&columns("clustered", true, false, cluster, index));
    first.reply(at(CLUSTER, 7).as_bytes()).unwrap();
    first.update(update(r#"{"index":9}"#).as_bytes()).unwrap();
    let newest = first.newest();
    let refused = unfit(served(false, newest).reply(at(CLUSTER, 8).as_bytes()));
    assert!(
        matches!(
            refused,
            UnfitServer::Behind {
                index: 8,
                newest: 9,
                ..
            }
        ),
        "{refused:?}"
    );
    served(false, newest)
        .reply(at(CLUSTER, 9).as_bytes())
        .unwrap();
    // A cluster that was made anew counts from the start.
    served(false, newest)
        .reply(at(OTHER_CLUSTER, 1).as_bytes())
        .unwrap();
}

#[test]
fn updates_of_the_server_are_told_from_those_of_rows() {
    assert!(concerns_server(update("{}").as_bytes()));
    assert!(concerns_server(br#" [ "server", 1]"#));
    assert!(!concerns_server(br#"["monitor","server"]"#));
    assert!(!concerns_server(b"null"));
}
