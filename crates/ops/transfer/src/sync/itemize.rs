//! Lines about changes, in the form of rsync's `--itemize-changes`, and records of them.

use millstream_rsync_rules::itemize::{self, Difference, Form, HighBytes, Target, Update, letters};
use millstream_text::json::Object;
use millstream_vfs::FileKind;

use super::options::{Execution, Report};

/// One entry that changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) update: Update,
    pub(super) kind: FileKind,
    pub(super) differs: Difference,
    /// Its name in the transfer.
    pub(super) name: &'a [u8],
    /// What it leads to: the target of a symbolic link, or the other name of a hard link.
    pub(super) target: Option<&'a [u8]>,
    /// Bytes of a file that is copied.
    pub(super) bytes: Option<u64>,
}

impl<'a> Change<'a> {
    /// A change of an entry whose name is not known yet, which leads nowhere, and whose data is not copied.
    pub(super) fn new(kind: FileKind, update: Update, differs: Difference) -> Self {
        Change { update, kind, differs, name: b"", target: None, bytes: None }
    }

    /// The same change of an entry that leads to `target`.
    pub(super) fn to(self, target: Option<&'a [u8]>) -> Self {
        Change { target, ..self }
    }
}

impl Report {
    /// Appends a line about a change.
    pub(super) fn change(
        self,
        change: &Change<'_>,
        execution: Execution,
        high: HighBytes,
        out: &mut Vec<u8>,
    ) {
        let is_nothing = change.update == Update::Attributes && change.differs.is_empty();
        match self {
            Report::Nothing => {}
            _ if is_nothing && self != Report::AllItems => {}
            Report::Names => line(change, Form::Names, high, out),
            Report::Items | Report::AllItems => line(change, Form::Items, high, out),
            Report::Json => {
                let action = in_words(word(change.update), execution);
                let changes = letters(change.update, change.kind, change.differs);
                let mut object = Object::begin(out)
                    .string("action", &action)
                    .string("path", change.name)
                    .string("changes", &changes);
                if let Some(target) = change.target {
                    object = object.string("target", target);
                }
                if let Some(bytes) = change.bytes {
                    object = object.number("bytes", bytes.into());
                }
                object.end();
            }
        }
    }

    /// Appends that an entry of the destination is deleted; the name of a directory ends with a slash.
    pub(super) fn deletion(
        self,
        path: &[u8],
        is_directory: bool,
        execution: Execution,
        high: HighBytes,
        out: &mut Vec<u8>,
    ) {
        match self {
            Report::Nothing => {}
            Report::Json => {
                Object::begin(out)
                    .string("action", &in_words("delete", execution))
                    .string("path", path)
                    .end();
            }
            Report::Names => itemize::deletion(path, is_directory, Form::Names, high, out),
            Report::Items | Report::AllItems => itemize::deletion(path, is_directory, Form::Items, high, out),
        }
    }
}

/// The name of an action, or of one that is only reported.
fn in_words(words: &str, execution: Execution) -> Vec<u8> {
    match execution {
        Execution::Real => words.into(),
        Execution::DryRun => [b"would ", words.as_bytes()].concat(),
    }
}

fn word(update: Update) -> &'static str {
    match update {
        Update::Transfer => "copy",
        Update::Create => "create",
        Update::Link => "link",
        Update::Attributes => "set attributes",
    }
}

fn line(change: &Change<'_>, form: Form, high: HighBytes, out: &mut Vec<u8>) {
    let change = itemize::Change {
        letters: &letters(change.update, change.kind, change.differs),
        name: change.name,
        is_directory: change.kind == FileKind::Directory,
        target: change.target.map(if change.update == Update::Link { Target::Name } else { Target::OfLink }),
    };
    itemize::change(&change, form, high, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_rsync() {
        for (update, kind, differs, name, target, expected) in [
            (Update::Transfer, FileKind::File, Difference::NEW, &b"a"[..], None, &b">f+++++++++ a\n"[..]),
            (Update::Create, FileKind::Directory, Difference::NEW, b"d", None, b"cd+++++++++ d/\n"),
            (Update::Attributes, FileKind::Directory, Difference::TIME, b"", None, b".d..t...... ./\n"),
            (
                Update::Create,
                FileKind::Symlink,
                Difference::CONTENTS,
                b"l",
                Some(&b"t"[..]),
                b"cLc........ l -> t\n",
            ),
            (Update::Link, FileKind::File, Difference::empty(), b"h", Some(b"g"), b"hf          h => g\n"),
            (
                Update::Transfer,
                FileKind::File,
                Difference::SIZE | Difference::TIME_OF_RUN | Difference::XATTR,
                b"a\n\xff\\#012",
                None,
                b">f.sT.....x a\\#012\\#377\\#134#012\n",
            ),
        ] {
            let change = Change { update, kind, differs, name, target, bytes: None };
            let mut out = Vec::new();
            Report::Items.change(&change, Execution::Real, HighBytes::Utf8, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected));
        }
    }
}
