//! `punctual_parsers::link`, for libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| punctual_parsers::link(bytes));
