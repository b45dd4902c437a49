#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| portal_fuzz::targets::rules(input));
