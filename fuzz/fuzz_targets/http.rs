//! `punctual_parsers::http`, for libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| punctual_parsers::http(bytes));
