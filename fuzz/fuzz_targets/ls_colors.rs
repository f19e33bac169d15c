#![no_main]
//! Any value of LS_COLORS is either valid or an error, never a panic; any name then has a color or none.

use libfuzzer_sys::fuzz_target;
use millstream_ops::list::color::{Colors, Subject, Target};
use millstream_vfs::FileKind;

fuzz_target!(|bytes: &[u8]| {
    let Ok(colors) = Colors::parse(bytes) else { return };
    for (kind, attributes) in [
        (FileKind::File, None),
        (FileKind::File, Some((0o6755, 2))),
        (FileKind::Directory, Some((0o1777, 2))),
        (FileKind::Symlink, None),
    ] {
        let subject = Subject { name: bytes, kind, attributes, target: Target::Missing };
        if let Some(sequence) = colors.of(&subject) {
            let mut written = Vec::new();
            colors.write(sequence, &mut written);
            assert!(written.len() >= sequence.len());
        }
    }
});
