use std::{fs, path::Path};

use tempfile::TempDir;

use super::super::{SourceConfig, SourceError, start};

fn kubeconfig(directory: &Path, text: &str) -> SourceConfig {
    let path = directory.join("kubeconfig");
    fs::write(&path, text).unwrap();
    SourceConfig::Kubernetes {
        kubeconfig: Some(path),
        context: None,
    }
}

fn with_causes(error: &SourceError) -> String {
    crate::sources::text::with_causes(error)
}

#[test]
fn a_configuration_that_leads_nowhere_is_refused() {
    let directory = TempDir::new().unwrap();
    let missing = SourceConfig::Kubernetes {
        kubeconfig: Some(directory.path().join("none")),
        context: None,
    };
    let error = with_causes(&start(missing).unwrap_err());
    assert!(
        error.contains("none") && error.contains("No such file"),
        "{error}"
    );
    for text in [
        "",
        "}",
        "current-context: a",
        "apiVersion: v1\nkind: Config",
    ] {
        let error = start(kubeconfig(directory.path(), text)).unwrap_err();
        assert!(matches!(error, SourceError::Kubeconfig { .. }), "{error}");
    }
}

#[test]
fn a_context_is_looked_for_in_the_kubeconfig() {
    let directory = TempDir::new().unwrap();
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n\
        contexts: [{name: a, context: {cluster: c, user: u}}]\nusers: []\n";
    let SourceConfig::Kubernetes { kubeconfig, .. } = kubeconfig(directory.path(), text) else {
        panic!("no kubeconfig");
    };
    let other = SourceConfig::Kubernetes {
        kubeconfig,
        context: Some("b".to_owned()),
    };
    let error = with_causes(&start(other).unwrap_err());
    assert!(error.contains('b'), "{error}");
    let of_nothing = SourceConfig::Kubernetes {
        kubeconfig: None,
        context: Some("b".to_owned()),
    };
    let error = start(of_nothing).unwrap_err();
    assert!(matches!(error, SourceError::ContextOfNothing { .. }));
}

#[test]
fn what_is_no_pod_needs_a_kubeconfig() {
    let config = SourceConfig::Kubernetes {
        kubeconfig: None,
        context: None,
    };
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        println!("SKIPPED: this is a pod");
        return;
    }
    let error = with_causes(&start(config).unwrap_err());
    assert!(error.contains("no pod"), "{error}");
}
