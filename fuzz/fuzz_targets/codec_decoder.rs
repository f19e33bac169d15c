#![no_main]
//! Any bytes are either a compressed file or an error, never a panic. The first byte is the codec.

use libfuzzer_sys::fuzz_target;
use millstream_codec::fuzz_decoder;

fuzz_target!(|bytes: &[u8]| fuzz_decoder(bytes));
