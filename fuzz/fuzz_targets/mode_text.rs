#![no_main]
//! Any bytes are either a valid mode or an error, never a panic; applied to any bits, a mode gives permission bits.

use libfuzzer_sys::fuzz_target;
use millstream_text::mode::{ALL_BITS, FileClass, Mode};

fuzz_target!(|bytes: &[u8]| {
    let Some(mode) = Mode::parse(bytes) else { return };
    for (old, umask) in [(0, 0), (0o7777, 0o022), (0o644, 0o777)] {
        for class in [FileClass::File, FileClass::Directory] {
            assert_eq!(mode.adjust(old, class, umask) & !ALL_BITS, 0);
        }
    }
});
