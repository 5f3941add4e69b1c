//! Every developer command of neighsteer: `cargo xtask --help`.

fn main() {}
