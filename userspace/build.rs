//! Finds the eBPF object that the binary carries.

use std::{
    env,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NEIGHSTEER_BPF_OBJECT");
    let object = object();
    println!("cargo::rerun-if-changed={}", object.display());
    if object.is_file() {
        println!(
            "cargo::rustc-env=NEIGHSTEER_BPF_OBJECT_FILE={}",
            object.display()
        );
    } else {
        println!(
            "cargo::error={} is missing: run `cargo xtask build-ebpf`",
            object.display()
        );
    }
}

/// What `NEIGHSTEER_BPF_OBJECT` names, or what `cargo xtask build-ebpf` makes.
fn object() -> PathBuf {
    if let Some(path) = env::var_os("NEIGHSTEER_BPF_OBJECT") {
        return PathBuf::from(path);
    }
    let name = if env::var_os("CARGO_FEATURE_LOG").is_some() {
        "neighsteer-log.bpf.o"
    } else {
        "neighsteer.bpf.o"
    };
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let workspace = Path::new(&package).parent().map(Path::to_owned);
    workspace.unwrap_or_default().join("target/bpf").join(name)
}
