//! `io.millstream.hadoop.tree.NativeSyncRules`.
//!
//! Rules, and then questions to the end, as Java writes them:
//!
//! ```text
//! u8 flags        1 links, 2 devices, 4 specials, 8 newer files stay, 16 missing entries are skipped,
//!                 32 existing entries are left, 64 the destination's times are times of copying,
//!                 128 unchanged entries are noted
//! u8 comparison   0 size and time, 1 size, 2 contents, 3 none
//! u32 window      of times in seconds; 0xffffffff as they are stored, 0xfffffffe to the nanosecond
//! u8 deletion     0 none, 1 all, 2 examined
//! u32 modes       bits that are preserved
//! u8 preserved    1 owner, 2 group, 4 times of files, 8 of directories, 16 of links, 32 extended attributes,
//!                 64 attributes of existing entries are set
//! then for each question:
//!   u8 question   0 step, 1 step of a file, 2 step if contents are the same, 3 step of an unchanged entry, 4 are times
//!                 needed, 5 is it left alone, 6 letters of a copy, 7 letters of a hard link
//!   u8 sides      1 source, 2 destination; then the entry of each
//! an entry:
//!   u8 kind       0 file, 1 directory, 2 symbolic link, 3 pipe, 4 socket, 5 character device, 6 block device,
//!                 7 other
//!   u64 size, u64 number of a device
//!   u8 known      1 time, 2 mode, 4 owner, 8 group, 16 target, 32 ETag, 64 access control lists,
//!                 128 other extended attributes
//!   u8 is         1 one of several hard links, 2 mounted
//!   the known ones of: i64 mtime in nanoseconds since 1970, u32 mode, and prefixed owner, group, target, ETag, lists,
//!                 attributes
//! ```
//!
//! The answers have the same order: for a step, `u8` action (0: none), `u8` reason, `u8` whether an entry has to be
//! removed first, `u32` differing attributes, and the prefixed letters; for 4 and 5, a flag; for 6 and 7, the prefixed
//! letters.
//!
//! Changes; each has at most one line:
//!
//! ```text
//! u8 flags        1 lines show letters, 2 all bytes that are not ASCII are escaped
//! then for each change:
//!   u8 flags      1 deleted, 2 a directory, 4 has a target, 8 the target is another name of the same file
//!   prefixed letters, prefixed name, and prefixed target if there is one
//! ```
//!
//! The lines are UTF-8, and each ends with a newline, which no name in them has.

use jni::JNIEnv;
use jni::objects::{JByteArray, JClass};
use jni::sys::jbyteArray;
use millstream_rsync_rules::decision::{
    Action, Comparing, Comparison, Deletion, Entry, Facts, Kinds, Missing, Newer, Present, Preserved, Reason,
    Rules, Step, Times,
};
use millstream_rsync_rules::itemize::{self, Change, Form, HighBytes, Target};
use millstream_rsync_rules::times::TimeAccuracy;
use millstream_vfs::{FileKind, Timestamp};
use millstream_wire::{Decoder, Encoder, Malformed};

use crate::arrays::{array, bytes};
use crate::{Failure, guard};

const AS_STORED: u32 = u32::MAX;
const NANOSECONDS: u32 = u32::MAX - 1;

/// `static native byte[] answers(byte[] questions)`: see above.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeSyncRules_answers<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    questions: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let questions = bytes(env, &questions)?;
        let answers = answers(&questions).map_err(|Malformed| Failure::Argument("malformed questions"))?;
        array(env, &answers)
    })
}

fn answers(questions: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut questions = Decoder::new(questions);
    let rules = rules(&mut questions)?;
    let mut out = Encoder::with_capacity(1024);
    while !questions.is_empty() {
        let question = questions.u8()?;
        let sides = questions.u8()?;
        let source = if sides & 1 != 0 { Some(entry(&mut questions)?) } else { None };
        let found = if sides & 2 != 0 { Some(entry(&mut questions)?) } else { None };
        match (question, source, found) {
            (0, source, found) => step(&mut out, rules.step(source.as_ref(), found.as_ref())),
            (1, Some(source), Some(found)) => step(&mut out, rules.file(&source, &found)),
            (2, Some(source), Some(found)) => step(&mut out, rules.amendment(&source, &found)),
            (3, Some(source), _) => step(&mut out, rules.staying(&source)),
            (4, Some(source), Some(found)) => out.u8(rules.needs_times(&source, &found).into()),
            (5, Some(source), Some(found)) => out.u8(rules.leaves(&source, &found).into()),
            (6, Some(source), found) => out.prefixed(&rules.replaced(&source, found.as_ref())),
            (7, Some(source), found) => out.prefixed(&rules.linked(&source, found.as_ref())),
            _ => return Err(Malformed),
        }
    }
    Ok(out.into_bytes())
}

/// `static native byte[] linesOf(byte[] changes)`: see above.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_millstream_hadoop_tree_NativeSyncRules_linesOf<'local>(
    mut env: JNIEnv<'local>,
    _class: JClass<'local>,
    changes: JByteArray<'local>,
) -> jbyteArray {
    guard(&mut env, std::ptr::null_mut(), |env| {
        let changes = bytes(env, &changes)?;
        let lines = lines(&changes).map_err(|Malformed| Failure::Argument("malformed changes"))?;
        array(env, &lines)
    })
}

fn lines(changes: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut changes = Decoder::new(changes);
    let flags = changes.u8()?;
    let form = if flags & 1 != 0 { Form::Items } else { Form::Names };
    let high = if flags & 2 != 0 { HighBytes::Escaped } else { HighBytes::Utf8 };
    let mut out = Vec::new();
    while !changes.is_empty() {
        let is = changes.u8()?;
        let (letters, name) = (changes.prefixed()?, changes.prefixed()?);
        let target = if is & 4 != 0 { Some(changes.prefixed()?) } else { None };
        let is_directory = is & 2 != 0;
        if is & 1 != 0 {
            itemize::deletion(name, is_directory, form, high, &mut out);
        } else {
            let target = target.map(if is & 8 != 0 { Target::Name } else { Target::OfLink });
            itemize::change(&Change { letters, name, is_directory, target }, form, high, &mut out);
        }
    }
    Ok(out)
}

fn rules(from: &mut Decoder<'_>) -> Result<Rules, Malformed> {
    let flags = from.u8()?;
    let comparison = match from.u8()? {
        0 => Comparison::SizeAndTime,
        1 => Comparison::Size,
        2 => Comparison::Contents,
        3 => Comparison::None,
        _ => return Err(Malformed),
    };
    let accuracy = match from.u32()? {
        AS_STORED => TimeAccuracy::AsStored,
        NANOSECONDS => TimeAccuracy::Nanoseconds,
        seconds => TimeAccuracy::Seconds(seconds),
    };
    let deletion = match from.u8()? {
        0 => Deletion::None,
        1 => Deletion::All,
        2 => Deletion::Examined,
        _ => return Err(Malformed),
    };
    let modes = from.u32()?;
    let preserved = from.u8()?;
    Ok(Rules {
        kinds: Kinds { links: flags & 1 != 0, devices: flags & 2 != 0, specials: flags & 4 != 0 },
        comparing: Comparing {
            comparison,
            accuracy,
            times: if flags & 64 != 0 { Times::OfCopies } else { Times::OfSources },
            newer: if flags & 8 != 0 { Newer::Kept } else { Newer::Replaced },
        },
        missing: if flags & 16 != 0 { Missing::Skipped } else { Missing::Created },
        present: if flags & 32 != 0 { Present::Left } else { Present::Updated },
        deletion,
        preserved: Preserved {
            modes,
            owner: preserved & 1 != 0,
            group: preserved & 2 != 0,
            times: preserved & 4 != 0,
            directory_times: preserved & 8 != 0,
            link_times: preserved & 16 != 0,
        },
        preserves_extended: preserved & 32 != 0,
        amends: preserved & 64 != 0,
        notes_all: flags & 128 != 0,
    })
}

fn entry<'a>(from: &mut Decoder<'a>) -> Result<Entry<'a>, Malformed> {
    let kind = match from.u8()? {
        0 => FileKind::File,
        1 => FileKind::Directory,
        2 => FileKind::Symlink,
        3 => FileKind::Fifo,
        4 => FileKind::Socket,
        5 => FileKind::CharDevice,
        6 => FileKind::BlockDevice,
        7 => FileKind::Unknown,
        _ => return Err(Malformed),
    };
    let (size, number) = (from.u64()?, from.u64()?);
    let (known, is) = (from.u8()?, from.u8()?);
    let mtime = if known & 1 != 0 { Some(Timestamp::from_nanos(from.i64()?)) } else { None };
    let mode = if known & 2 != 0 { Some(from.u32()?) } else { None };
    let mut text = |bit| if known & bit != 0 { from.prefixed().map(Some) } else { Ok(None) };
    Ok(Entry {
        facts: Facts { kind, size, mtime, mode, owner: text(4)?, group: text(8)? },
        target: (text(16)?, number),
        etag: text(32)?,
        extended: [text(64)?, text(128)?],
        has_other_names: is & 1 != 0,
        is_mounted: is & 2 != 0,
    })
}

fn step(out: &mut Encoder, step: Option<Step>) {
    let Some(step) = step else { return out.u8(0) };
    out.u8(match step.action {
        Action::Directory => 1,
        Action::Copy => 2,
        Action::Compare => 3,
        Action::Create => 4,
        Action::Amend => 5,
        Action::Delete => 6,
        Action::Examine => 7,
        Action::Leave => 8,
        Action::Stay => 9,
        Action::Skip => 10,
        Action::Fail => 11,
    });
    out.u8(match step.reason {
        Reason::New => 0,
        Reason::Size => 1,
        Reason::Time => 2,
        Reason::Contents => 3,
        Reason::Assumed => 4,
        Reason::Attributes => 5,
        Reason::Kind => 6,
        Reason::Target => 7,
        Reason::Unwanted => 8,
        Reason::Surplus => 9,
        Reason::Mounted => 10,
        Reason::Present => 11,
        Reason::Blocked => 12,
        Reason::UpToDate => 13,
    });
    out.u8(step.makes_way.into());
    out.u32(step.differs.bits().into());
    out.prefixed(&step.letters);
}

#[cfg(test)]
mod tests {
    use millstream_wire::vector;

    use super::*;

    #[test]
    fn questions_and_answers_are_the_shared_vectors() {
        let found = answers(&vector("sync-questions.hex")).expect("questions");
        assert_eq!(found, vector("sync-answers.hex"));
    }

    #[test]
    fn changes_are_the_shared_vector() {
        let found = lines(&vector("sync-changes.hex")).expect("changes");
        let expected =
            ">f+++++++++ s/\\#303\\#251\ncL+++++++++ s/l -> t\nhf          s/h => s/g\n*deleting   s/d/\n";
        assert_eq!(String::from_utf8_lossy(&found), expected);
    }
}
