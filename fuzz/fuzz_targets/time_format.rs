#![no_main]
//! Any format and any moment make a text, never a panic. The moment is in the first twelve bytes.

use libfuzzer_sys::fuzz_target;
use millstream_system::locale::Locale;
use millstream_text::time::{Clock, TimeStyle};
use millstream_vfs::Timestamp;

fuzz_target!(|bytes: &[u8]| {
    let Some((sec, rest)) = bytes.split_first_chunk::<8>() else { return };
    let Some((nsec, format)) = rest.split_first_chunk::<4>() else { return };
    let time = Timestamp { sec: i64::from_le_bytes(*sec), nsec: u32::from_le_bytes(*nsec) % 1_000_000_000 };
    let locale = Locale::from_environment();
    let style = TimeStyle::new(format, format, locale);
    Clock::new(locale).write(&style, time, &mut Vec::new());
});
