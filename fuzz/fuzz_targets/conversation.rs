#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aside_fuzz::check("conversation", data));
