//! The wording of messages and reports.

use std::os::unix::ffi::OsStrExt;

use millstream_text::json::Object;
use millstream_transfer::sync::{HighBytes, Notice, Problem, Report, Sink, Stats, Trouble, escape};

use super::buckets::Remarks;
use crate::diagnostics::Diagnostics;
use crate::progress::grouped;
use crate::standard_output::Lines;

/// Standard output and standard error.
pub(super) struct Output<'a> {
    pub(super) diagnostics: &'a Diagnostics,
    pub(super) lines: Lines,
    pub(super) report: Report,
    pub(super) high_bytes: HighBytes,
    /// The messages of S3 servers.
    pub(super) remarks: &'a Remarks,
}

impl Output<'_> {
    /// Writes a line about a path to standard output, as rsync does.
    fn remark(&self, before: &[u8], path: &[u8], after: &[u8]) {
        let mut line = before.to_vec();
        escape(path, self.high_bytes, &mut line);
        line.extend_from_slice(after);
        self.lines.write(&line);
    }
}

impl Sink for Output<'_> {
    fn lines(&self, lines: &[u8]) {
        self.lines.write(lines);
    }

    fn problem(&self, problem: &Problem<'_>) {
        self.remarks.write(self.diagnostics);
        let (source, destination) = (problem.source, problem.destination);
        let message = self.diagnostics.warning();
        let message = match problem.trouble {
            Trouble::Differs => message.text("the copy differs from its source: ").name(destination),
            Trouble::SourceReplaced => {
                message.text("skipping an entry that was replaced while it was read: ").name(source)
            }
            Trouble::DirectoryInTheWay => {
                let message = message.text("a directory with contents is in the way: ").name(destination);
                message.text("; use --delete or --force to remove it")
            }
            Trouble::DirectoryKept => message
                .text("a directory is in the way, and --max-delete prevents its removal: ")
                .name(destination),
            Trouble::FileInTheWay => {
                message.text("directory not created, because something else has its name: ").name(destination)
            }
            Trouble::IntoItself => {
                message.text("not copied, because it is the destination or contains a source: ").name(source)
            }
            Trouble::Cycle => message.text("skipping a directory that contains itself: ").name(source),
            Trouble::UnknownKind => message.text("skipping a file of unknown type: ").name(source),
            trouble => {
                let path = if problem.is_about_source() { source } else { destination };
                message.text("cannot ").text(trouble.operation()).text(" ").name(path)
            }
        };
        match problem.errno {
            Some(errno) => message.errno(errno).send(),
            None => message.send(),
        }
    }

    fn notice(&self, notice: &Notice<'_>) {
        let warning = || self.diagnostics.warning();
        match notice {
            Notice::Created(path) => {
                if !matches!(self.report, Report::Nothing | Report::Json) {
                    self.remark(b"created directory ", path.strip_suffix(b"/").unwrap_or(path), b"\n");
                }
            }
            Notice::SkippedDirectory(name) => {
                let name: &[u8] = if name.is_empty() { b"." } else { name };
                warning().text("skipping directory ").name(name).text("; -r synchronizes directories").send();
            }
            Notice::SkippedKind(name) => {
                if self.report != Report::Json {
                    self.remark(b"skipping non-regular file \"", name, b"\"\n");
                }
            }
            Notice::Vanished(path) => warning().text("file has vanished: ").name(path).send(),
            Notice::Grown(path) => {
                let message = warning().text("grew while it was copied; run psync again for the rest: ");
                message.name(path).send();
            }
            Notice::Changing(path) => {
                let message = warning().text("not copied, because it changed while it was read: ");
                message.name(path).send();
            }
            Notice::NothingDeleted => {
                let text =
                    "nothing is deleted, because something failed before; --ignore-errors deletes anyway";
                warning().text(text).send();
            }
            Notice::EmptySource(path) => {
                let message = warning().text("nothing is deleted, because the source is empty: ").name(path);
                message.text("; to empty the destination, use pfind DESTINATION -mindepth 1 -delete").send();
            }
            Notice::Nested(outer, inner) => {
                let message =
                    warning().text("nothing is deleted, because the destination directory ").name(inner);
                message.text(" is inside another destination directory, ").name(outer).send();
            }
            Notice::HoldsSource(path) => {
                warning().text("not deleted, because it contains a source: ").name(path).send();
            }
            Notice::DeletionsEnded(count) => {
                let text = format!("deletions stopped due to --max-delete limit ({count} skipped)");
                warning().text(&text).send();
            }
            Notice::DeletionsLost(errno) => {
                let message = warning().text(
                    "not everything was deleted, because there is no space for the list of deletions in ",
                );
                let directory = std::env::temp_dir();
                message.name(directory.as_os_str().as_bytes()).errno(*errno).send();
            }
            Notice::Appeared(path) => {
                let message = warning().text("not deleted, because the source has it now: ");
                message.name(path).send();
            }
            Notice::Mounted(path) => {
                let message = warning().text("not deleted, because a file system is mounted on it: ");
                message.name(path).send();
            }
            Notice::NotEmptied(path) => {
                warning().text("cannot delete non-empty directory: ").name(path).send();
            }
        }
    }
}

/// The statistics, in rsync's words, or as a record.
pub(super) fn summary(stats: &Stats, report: Report) -> Vec<u8> {
    let entries = stats.files + stats.directories + stats.links + stats.specials;
    if report == Report::Json {
        let mut record = Vec::new();
        let number = |name, value: u64| (name, i128::from(value));
        let numbers = [
            number("entries", entries),
            number("files", stats.files),
            number("directories", stats.directories),
            number("links", stats.links),
            number("specials", stats.specials),
            number("bytes", stats.bytes),
            number("created", stats.created),
            number("deleted", stats.deleted),
            number("copied_files", stats.copied_files),
            number("copied_bytes", stats.copied_bytes),
            number("amended", stats.amended),
            number("undeleted", stats.undeleted),
            number("errors", stats.errors),
        ];
        let object = Object::begin(&mut record).string("action", b"stats");
        numbers.into_iter().fold(object, |object, (name, value)| object.number(name, value)).end();
        return record;
    }
    let kinds: Vec<String> = [
        ("reg", stats.files),
        ("dir", stats.directories),
        ("link", stats.links),
        ("special", stats.specials),
    ]
    .iter()
    .filter(|(_, count)| *count > 0)
    .map(|(kind, count)| format!("{kind}: {}", grouped(*count)))
    .collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    [
        format!("Number of files: {}{kinds}", grouped(entries)),
        format!("Number of created files: {}", grouped(stats.created)),
        format!("Number of deleted files: {}", grouped(stats.deleted)),
        format!("Number of regular files transferred: {}", grouped(stats.copied_files)),
        format!("Total file size: {} bytes", grouped(stats.bytes)),
        format!("Total transferred file size: {} bytes", grouped(stats.copied_bytes)),
        String::new(),
    ]
    .join("\n")
    .into_bytes()
}
