use super::{paths::scan, sources::module_path, *};

const PAGE: &str = "
| crate or module | what it is | may use |
| --- | --- | --- |
| `common` | the classifier | nothing |
| `userspace::ids` | identities | nothing |
| `userspace::ovsdb` | a client; knows nothing of OVN | `ids` |
| `userspace::plan` | groups in, flows out | `ids`, `openflow` (flow types), `ovsdb::value` |
| `userspace::openflow` | flows; knows nothing of OVN | `ids` |
| `userspace::agent` | tasks | all but `cli` |
| `userspace::cli` | arguments | all |

`plan` and `ids` are pure: no socket.
";

fn faults(file: &str, source: &str) -> Vec<String> {
    let rules = Rules::parse(PAGE).unwrap();
    let client = Source {
        name: "ovsdb/mod.rs".to_owned(),
        module: vec!["ovsdb".to_owned()],
        scan: scan("pub use value::{Row, Uuid};\npub use session::Session;").unwrap(),
    };
    userspace_faults(
        &rules,
        &Names::of(&[client]),
        &module_path(Path::new(file)),
        &scan(source).unwrap(),
    )
    .into_iter()
    .map(|(line, fault)| format!("{line}: {fault}"))
    .collect()
}

#[test]
fn a_module_that_the_table_allows_is_used_freely() {
    let source = "use crate::{ids::Mac, openflow::{Flow, Match}};\nuse super::diff::Change;";
    assert_eq!(faults("plan/flows.rs", source), [""; 0]);
}

#[test]
fn a_module_that_the_table_does_not_allow_is_refused_wherever_it_is_named() {
    for source in [
        "use crate::agent::Driver;",
        "use crate::{ids::Mac, agent::Driver};",
        "use super::super::agent::Driver;",
        "fn f() { crate::agent::run(); }",
        "mod inner { use super::super::super::agent::Driver; }",
    ] {
        let found = faults("plan/flows.rs", source);
        assert_eq!(found.len(), 1, "{source}");
        assert!(
            found[0].starts_with("1: `plan` may not use `agent"),
            "{source}: {}",
            found[0]
        );
    }
}

#[test]
fn a_part_of_a_module_is_allowed_under_its_short_name_too_and_the_rest_is_not() {
    let allowed = "use crate::{ovsdb::Uuid, ovsdb::value::Row};";
    assert_eq!(faults("plan/flows.rs", allowed), [""; 0]);
    for source in [
        "use crate::ovsdb::Session;",
        "use crate::ovsdb::session::Session;",
        "use crate::ovsdb;",
    ] {
        assert_eq!(faults("plan/flows.rs", source).len(), 1, "{source}");
    }
}

#[test]
fn all_but_one_is_read_as_such() {
    assert_eq!(
        faults("agent/driver.rs", "use crate::{plan::Plan, ovsdb::Client};"),
        [""; 0]
    );
    assert_eq!(
        faults("agent/driver.rs", "use crate::cli::Args;"),
        ["1: `agent` may not use `cli::Args` (docs/architecture.md)"]
    );
}

#[test]
fn a_module_that_the_page_does_not_list_is_a_fault() {
    assert_eq!(
        faults("telemetry/mod.rs", ""),
        ["1: docs/architecture.md does not say what the module `telemetry` may use"]
    );
}

#[test]
fn pure_code_reads_no_clock_and_opens_nothing() {
    for source in [
        "use tokio::sync::mpsc;",
        "use std::{collections::BTreeMap, fs};",
        "fn f() { let now = Instant::now(); }",
        "fn f(then: Instant) { let age = then.elapsed(); }",
        "fn f() { tracing::warn!(\"no port\"); }",
        "fn f() { let home = std::env::var(\"HOME\"); }",
        "fn f() { println!(\"x\"); }",
    ] {
        assert_eq!(faults("plan/flows.rs", source).len(), 1, "{source}");
    }
    let allowed = "use std::{net::Ipv4Addr, time::Instant};\nfn f() { tracing::trace!(\"x\"); }";
    assert_eq!(faults("plan/flows.rs", allowed), [""; 0]);
}

#[test]
fn tests_and_documentation_are_free_of_the_rules() {
    let source = "
        //! Knows nothing of OVN.
        #[cfg(test)]
        use crate::agent::Driver;
        #[cfg(test)]
        mod tests { use crate::plan::Plan; const OVN: u8 = 1; }
        #[cfg(test)]
        mod proptests;
        /// Not of OVN.
        fn f() {}";
    assert_eq!(faults("ovsdb/client.rs", source), [""; 0]);
    assert_eq!(scan(source).unwrap().test_modules, ["proptests"]);
}

#[test]
fn a_protocol_client_that_speaks_of_ovn_is_refused() {
    let found = faults(
        "ovsdb/client.rs",
        "\nconst DATABASE: &str = \"OVN_Southbound\";",
    );
    assert_eq!(
        found,
        ["2: `ovsdb` knows nothing of OVN, but says `\"OVN_Southbound\"`"]
    );
}

#[test]
fn a_page_that_states_no_rule_is_an_error() {
    assert!(Rules::parse("# Architecture").is_err());
    assert!(Rules::parse(&PAGE.replace("are pure", "are small")).is_err());
    assert!(Rules::parse(&PAGE.replace("`plan` and", "`plam` and")).is_err());
}
