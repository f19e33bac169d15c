//! The wording of error messages.

use millstream_transfer::copy::{Problem, Question, Removal, Sink, Trouble};

use crate::diagnostics::{Diagnostics, Message};
use crate::standard_output::Lines;

/// Standard output and standard error.
pub(super) struct Output<'a> {
    pub(super) diagnostics: &'a Diagnostics,
    pub(super) lines: Lines,
    pub(super) removal: Removal,
}

impl Output<'_> {
    fn error(&self) -> Message<'_> {
        self.diagnostics.error(1)
    }
}

impl Sink for Output<'_> {
    fn lines(&self, lines: &[u8]) {
        self.lines.write(lines);
    }

    fn problem(&self, problem: &Problem<'_>) {
        let message = describe(self.error(), problem);
        match problem.errno {
            Some(errno) => message.errno(errno).send(),
            None => message.send(),
        }
    }

    fn given_twice(&self, source: &[u8], is_directory: bool) {
        let kind = if is_directory { "directory" } else { "file" };
        let text = format!("warning: source {kind} ");
        self.diagnostics.warning().text(&text).name(source).text(" specified more than once").send();
    }

    fn confirm(&self, question: &Question<'_>) -> bool {
        let message = self.diagnostics.warning();
        let message = match (question.unwritable, self.removal) {
            (None, _) => message.text("overwrite ").name(question.destination).text("? "),
            (Some(mode), removal) => {
                let letters = permissions(mode);
                let name = message.text(if removal == Removal::Never { "unwritable " } else { "replace " });
                let name = name.name(question.destination);
                match removal {
                    Removal::Never => name.text(&format!(" (mode {mode:04o}, {letters}); try anyway? ")),
                    _ => name.text(&format!(", overriding mode {mode:04o} ({letters})? ")),
                }
            }
        };
        let agrees = message.ask();
        if !agrees {
            self.diagnostics.fail(1);
        }
        agrees
    }
}

/// `rwxr-xr-x`.
fn permissions(mode: u32) -> String {
    let letter = |bit: u32, letter: char| if mode >> bit & 1 == 1 { letter } else { '-' };
    let mut text: Vec<char> =
        (0..9).rev().map(|bit| letter(bit, ['x', 'w', 'r'][bit as usize % 3])).collect();
    for (bit, at, with, without) in [(11, 2, 's', 'S'), (10, 5, 's', 'S'), (9, 8, 't', 'T')] {
        if mode >> bit & 1 == 1 {
            text[at] = if text[at] == 'x' { with } else { without };
        }
    }
    text.into_iter().collect()
}

fn describe<'m>(mut message: Message<'m>, problem: &Problem<'_>) -> Message<'m> {
    let (source, destination) = (problem.source, problem.destination);
    for (index, part) in wording(problem.trouble).split('`').enumerate() {
        message = match part {
            "source" if index % 2 == 1 => message.name(source),
            "destination" if index % 2 == 1 => message.name(destination),
            "destination:" if index % 2 == 1 => message.name_before_colon(destination).text(":"),
            text => message.text(text),
        };
    }
    message
}

/// A message, with the file names that it inserts between backquotes.
fn wording(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::StatSource => "cannot stat `source`",
        Trouble::StatDestination => "cannot stat `destination`",
        Trouble::ReadDirectory => "cannot access `source`",
        Trouble::OpenDestinationDirectory => "cannot access `destination`",
        Trouble::OpenSource => "cannot open `source` for reading",
        Trouble::SourceReplaced => "skipping file `source`, as it was replaced while being copied",
        Trouble::ReadLink => "cannot read symbolic link `source`",
        Trouble::Read => "error reading `source`",
        Trouble::Write => "error writing `destination`",
        Trouble::Close => "failed to close `destination`",
        Trouble::Clone => "failed to clone `destination` from `source`",
        Trouble::CreateFile => "cannot create regular file `destination`",
        Trouble::CreateParent => "cannot make directory `destination`",
        Trouble::CreateDirectory => "cannot create directory `destination`",
        Trouble::CreateSymlink => "cannot create symbolic link `destination` to `source`",
        Trouble::CopySymlink => "cannot create symbolic link `destination`",
        Trouble::CreateFifo => "cannot create fifo `destination`",
        Trouble::CreateSpecial => "cannot create special file `destination`",
        Trouble::CreateHardLink => "cannot create hard link `destination` to `source`",
        Trouble::Remove => "cannot remove `destination`",
        Trouble::Backup => "cannot backup `destination`",
        Trouble::PutBack => "cannot un-backup `destination`",
        Trouble::Rename => "cannot rename the copy to `destination`",
        Trouble::Times => "preserving times for `destination`",
        Trouble::Mode => "preserving permissions for `destination`",
        Trouble::Ownership => "failed to preserve ownership for `destination`",
        Trouble::Xattr => "setting attributes for `destination`",
        Trouble::UnknownKind => "`source` has unknown file type",
        Trouble::OmittedDirectory => "-r not specified; omitting directory `source`",
        Trouble::SameFile => "`source` and `destination` are the same file",
        Trouble::IntoItself => "cannot copy a directory, `source`, into itself, `destination`",
        Trouble::NotReplaced => "not replacing `destination`",
        Trouble::JustCreated => "will not overwrite just-created `destination` with `source`",
        Trouble::ThroughJustCreatedLink => {
            "will not copy `source` through just-created symlink `destination`"
        }
        Trouble::DirectoryInTheWay | Trouble::DirectoryKept => {
            "cannot overwrite directory `destination` with non-directory `source`"
        }
        Trouble::FileInTheWay => "cannot overwrite non-directory `destination` with directory `source`",
        Trouble::ThroughDanglingLink => "not writing through dangling symlink `destination`",
        Trouble::BackupIsSource => "backing up `destination` might destroy source;  `source` not copied",
        Trouble::Cycle => "cannot copy cyclic symbolic link `source`",
        Trouble::DirectoryHardLink => "will not create hard link `destination` to directory `source`",
        Trouble::Differs => "`destination` differs from `source` after copying",
        Trouble::ParentNotDirectory => "`destination` exists but is not a directory",
        Trouble::ParentAttributes => "failed to get attributes of `source`",
        Trouble::RelativeSymlink => {
            "`destination:` can make relative symbolic links only in current directory"
        }
    }
}
