#![no_main]
//! Any list of files is valid or refused, never a panic; a listed path that has been met is not missing.

use libfuzzer_sys::fuzz_target;
use millstream_rsync_rules::Separator;
use millstream_rsync_rules::files::FileList;

fuzz_target!(|bytes: &[u8]| {
    for separator in [Separator::Line, Separator::Nul] {
        let Ok(list) = FileList::parse(bytes, separator) else { continue };
        let paths: Vec<Vec<u8>> = list.missing().map(<[u8]>::to_vec).collect();
        for path in &paths {
            assert!(list.meet(path).is_listed);
            for at in (0..path.len()).filter(|&at| path[at] == b'/') {
                assert!(list.membership(&path[..at]).is_parent);
            }
            assert!(list.membership(&[path, &b"/x"[..]].concat()).is_below);
        }
        assert_eq!(list.missing().next(), None);
    }
});
