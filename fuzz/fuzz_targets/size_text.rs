#![no_main]
//! Any text is a block size or none, never a panic; any number of bytes can be written in it.

use libfuzzer_sys::fuzz_target;
use millstream_cli::pdu::fuzz_numbers;
use millstream_system::locale::Locale;
use millstream_text::size::SizeFormat;

fuzz_target!(|bytes: &[u8]| {
    fuzz_numbers(bytes);
    let Ok(format) = SizeFormat::parse(&String::from_utf8_lossy(bytes)) else { return };
    for size in [0, 1, 1023, 1025, 1 << 40, u128::from(u64::MAX), u128::from(u64::MAX) << 32] {
        let mut written = Vec::new();
        format.write(size, Locale::from_environment(), &mut written);
        assert!(written.iter().any(u8::is_ascii_digit));
    }
});
