//! See `neighsteer_fuzz_checks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| neighsteer_fuzz_checks::run("rows", data));
