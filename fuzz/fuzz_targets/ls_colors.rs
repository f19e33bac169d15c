#![no_main]
//! Any value of LS_COLORS is either valid or an error, never a panic; any name then has a color or none.

use libfuzzer_sys::fuzz_target;
use millstream_inspect::list::color::{Colors, Subject, Target};
use millstream_vfs::FileKind;

fuzz_target!(|bytes: &[u8]| {
    let Ok(colors) = Colors::parse(bytes) else { return };
    for (kind, attributes, is_capable) in [
        (FileKind::File, None, false),
        (FileKind::File, Some((0o644, 1)), true),
        (FileKind::File, Some((0o6755, 2)), false),
        (FileKind::Directory, Some((0o1777, 2)), false),
        (FileKind::Symlink, None, false),
    ] {
        let subject = Subject { name: bytes, kind, attributes, is_capable, target: Target::Missing };
        if let Some(sequence) = colors.of(&subject) {
            let mut written = Vec::new();
            colors.write(sequence, &mut written);
            assert!(written.len() >= sequence.len());
        }
    }
});
