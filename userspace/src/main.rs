//! The `neighsteer` binary.

fn main() {}
