//! The wording of error messages.

use millstream_ops::copy::{Problem, Question, Removal, Sink, Trouble};

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

fn describe<'m>(message: Message<'m>, problem: &Problem<'_>) -> Message<'m> {
    let (source, destination) = (problem.source, problem.destination);
    match problem.trouble {
        Trouble::StatSource => message.text("cannot stat ").name(source),
        Trouble::StatDestination => message.text("cannot stat ").name(destination),
        Trouble::ReadDirectory => message.text("cannot access ").name(source),
        Trouble::OpenDestinationDirectory => message.text("cannot access ").name(destination),
        Trouble::OpenSource => message.text("cannot open ").name(source).text(" for reading"),
        Trouble::SourceReplaced => {
            message.text("skipping file ").name(source).text(", as it was replaced while being copied")
        }
        Trouble::ReadLink => message.text("cannot read symbolic link ").name(source),
        Trouble::Read => message.text("error reading ").name(source),
        Trouble::Write => message.text("error writing ").name(destination),
        Trouble::Close => message.text("failed to close ").name(destination),
        Trouble::Clone => message.text("failed to clone ").name(destination).text(" from ").name(source),
        Trouble::CreateFile => message.text("cannot create regular file ").name(destination),
        Trouble::CreateParent => message.text("cannot make directory ").name(destination),
        Trouble::CreateDirectory => message.text("cannot create directory ").name(destination),
        Trouble::CreateSymlink => {
            message.text("cannot create symbolic link ").name(destination).text(" to ").name(source)
        }
        Trouble::CopySymlink => message.text("cannot create symbolic link ").name(destination),
        Trouble::CreateFifo => message.text("cannot create fifo ").name(destination),
        Trouble::CreateSpecial => message.text("cannot create special file ").name(destination),
        Trouble::CreateHardLink => {
            message.text("cannot create hard link ").name(destination).text(" to ").name(source)
        }
        Trouble::Remove => message.text("cannot remove ").name(destination),
        Trouble::Backup => message.text("cannot backup ").name(destination),
        Trouble::PutBack => message.text("cannot un-backup ").name(destination),
        Trouble::Rename => message.text("cannot rename the copy to ").name(destination),
        Trouble::Times => message.text("preserving times for ").name(destination),
        Trouble::Mode => message.text("preserving permissions for ").name(destination),
        Trouble::Ownership => message.text("failed to preserve ownership for ").name(destination),
        Trouble::Xattr => message.text("setting attributes for ").name(destination),
        Trouble::UnknownKind => message.name(source).text(" has unknown file type"),
        Trouble::OmittedDirectory => message.text("-r not specified; omitting directory ").name(source),
        Trouble::SameFile => message.name(source).text(" and ").name(destination).text(" are the same file"),
        Trouble::IntoItself => {
            message.text("cannot copy a directory, ").name(source).text(", into itself, ").name(destination)
        }
        Trouble::NotReplaced => message.text("not replacing ").name(destination),
        Trouble::JustCreated => {
            message.text("will not overwrite just-created ").name(destination).text(" with ").name(source)
        }
        Trouble::ThroughJustCreatedLink => message
            .text("will not copy ")
            .name(source)
            .text(" through just-created symlink ")
            .name(destination),
        Trouble::DirectoryInTheWay | Trouble::DirectoryKept => message
            .text("cannot overwrite directory ")
            .name(destination)
            .text(" with non-directory ")
            .name(source),
        Trouble::FileInTheWay => message
            .text("cannot overwrite non-directory ")
            .name(destination)
            .text(" with directory ")
            .name(source),
        Trouble::ThroughDanglingLink => {
            message.text("not writing through dangling symlink ").name(destination)
        }
        Trouble::BackupIsSource => message
            .text("backing up ")
            .name(destination)
            .text(" might destroy source;  ")
            .name(source)
            .text(" not copied"),
        Trouble::Cycle => message.text("cannot copy cyclic symbolic link ").name(source),
        Trouble::DirectoryHardLink => {
            message.text("will not create hard link ").name(destination).text(" to directory ").name(source)
        }
        Trouble::Differs => {
            message.name(destination).text(" differs from ").name(source).text(" after copying")
        }
        Trouble::ParentNotDirectory => message.name(destination).text(" exists but is not a directory"),
        Trouble::ParentAttributes => message.text("failed to get attributes of ").name(source),
        Trouble::RelativeSymlink => message
            .name_before_colon(destination)
            .text(": can make relative symbolic links only in current directory"),
    }
}
