//! `millstream recompress`: recompresses files in a form that several Spark tasks can share.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Instant;

use millstream_codec::Form;
use millstream_compressed::recompress::{Action, Cause, Effect, Old, Options, Sink, run};
use millstream_operation::activity::Activity;
use millstream_system::concurrency::cpus;
use millstream_text::json::Object;
use millstream_vfs::Errno;

use crate::compact::word;
use crate::diagnostics::{Diagnostics, FAILURE, Refused, UsageError};
use crate::mounted::mounted;
use crate::operand::paths;
use crate::progress::{Progress, StdoutUse, report};
use crate::standard_output::Lines;
use crate::submit::Submission;

/// Words for forms.
pub(crate) const FORMS: &[&str] = &["gz", "zst", "lz4"];

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recompress {
    pub(crate) keep: bool,
    form: Option<Form>,
    level: Option<i32>,
}

impl Recompress {
    pub(crate) fn set_form(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        self.form = Some(match word(text, "--to", FORMS, diagnostics)? {
            "gz" => Form::Bgzf,
            "zst" => Form::Zstd,
            _ => Form::Lz4,
        });
        Ok(())
    }

    pub(crate) fn set_level(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        self.level = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        if self.level.is_none() {
            let quoted = diagnostics.quoted(text);
            return Err(UsageError::argument([b"invalid level: ", &quoted[..]].concat()));
        }
        Ok(())
    }

    /// Checks combinations of options and operands.
    pub(crate) fn check(&self, operands: &[OsString], submission: &Submission) -> Result<(), UsageError> {
        let wrong = |message: &str| Err(UsageError::argument(message.into()));
        if operands.is_empty() {
            return wrong("missing file");
        }
        if submission.master.is_some() || !submission.spark_settings.is_empty() {
            return wrong("--master and --conf cannot be used with recompress, which runs no Spark job");
        }
        match (self.level, self.form.map(Form::levels)) {
            (Some(_), None) => wrong("--level requires --to"),
            (Some(_), Some(None)) => wrong("lz4 has no compression levels"),
            (Some(level), Some(Some((least, _, most)))) if !(least..=most).contains(&level) => {
                Err(UsageError::argument(format!("the level must be from {least} to {most}").into()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn carry_out(
        self,
        operands: Vec<OsString>,
        submission: &Submission,
        diagnostics: &Diagnostics,
    ) -> Result<(), Refused> {
        let reason = "files are recompressed on mounted file systems only";
        let given = operands.iter().map(|operand| operand.as_bytes());
        let volume = mounted("millstream", given, (FAILURE, reason), diagnostics)?;
        let started = Instant::now();
        let options = Options {
            form: self.form,
            level: self.level,
            old: if self.keep { Old::Keep } else { Old::Remove },
            effect: if submission.dry_run { Effect::DryRun } else { Effect::Real },
            threads: cpus(),
            real_path,
        };
        let activity = Arc::new(Activity::default());
        let progress = Progress::start(&activity, StdoutUse::WithoutProgress, diagnostics);
        let output = Output { lines: Lines::new(progress.screen().clone()), submission, diagnostics };
        run(&volume, &paths(operands), &options, &output, &activity);
        drop(progress);
        output.lines.finish(diagnostics, FAILURE);
        if submission.verbose {
            report(&activity, options.threads, started, diagnostics);
        }
        Ok(())
    }
}

/// The absolute path of a directory, without links.
fn real_path(directory: &CStr) -> Option<CString> {
    let path = std::fs::canonicalize(OsStr::from_bytes(directory.to_bytes())).ok()?;
    CString::new(path.into_os_string().into_vec()).ok()
}

/// Standard output and standard error.
struct Output<'a> {
    lines: Lines,
    submission: &'a Submission,
    diagnostics: &'a Diagnostics,
}

impl Output<'_> {
    fn text(&self, path: &[u8], new: &[u8], action: &Action) -> Vec<u8> {
        let told = match action {
            Action::WouldReplace => "would be recompressed".into(),
            Action::Finished if self.submission.dry_run => {
                "already compressed by an earlier run; the old file would be removed".into()
            }
            _ if !self.submission.verbose => return Vec::new(),
            Action::Replaced { before, after, text } => {
                format!("{before} bytes, now {after}; {text} bytes of text")
            }
            Action::Finished => "already compressed by an earlier run; the old file is removed".into(),
            Action::Kept => "already splittable".into(),
        };
        let [path, new] = [path, new].map(|name| self.diagnostics.quoted_name(name));
        [&path[..], b" -> ", &new, b": ", told.as_bytes(), b"\n"].concat()
    }

    fn record(&self, path: &[u8], new: &[u8], action: &Action) -> Vec<u8> {
        let mut line = Vec::new();
        let word = match action {
            Action::WouldReplace => "would recompress",
            Action::Replaced { .. } => "recompress",
            Action::Finished if self.submission.dry_run => "would finish",
            Action::Finished => "finish",
            Action::Kept => "skip",
        };
        let mut object = Object::begin(&mut line).string("action", word.as_bytes());
        if let Action::Replaced { before, after, text } = *action {
            let numbers = [("bytes_before", before), ("bytes", after), ("decoded_bytes", text)];
            object =
                numbers.into_iter().fold(object, |object, (key, value)| object.number(key, value.into()));
        }
        object.string("source", path).string("path", new).end();
        line
    }
}

impl Sink for Output<'_> {
    fn event(&self, path: &[u8], new: &[u8], action: &Action) {
        let json = self.submission.json;
        let line = if json { self.record(path, new, action) } else { self.text(path, new, action) };
        self.lines.write(&line);
    }

    fn problem(&self, path: &[u8], cause: &Cause) {
        let text = format!(": {cause}{}", way_out(cause));
        self.diagnostics.error(FAILURE).text("cannot recompress ").name(path).text(&text).send();
        if self.submission.json {
            let mut line = Vec::new();
            let object = Object::begin(&mut line).string("error", cause.to_string().as_bytes());
            object.string("operation", b"recompress").string("path", path).end();
            self.lines.write(&line);
        }
    }
}

/// The advice to the user. The file is unchanged.
fn way_out(cause: &Cause) -> &'static str {
    match cause {
        Cause::Volume(error) if error.errno == Errno::NOSPC => {
            "; free some space for the new file, which exists next to the old one until it is complete"
        }
        Cause::Volume(error) if error.errno == Errno::FBIG => "; raise the limit on file sizes (ulimit -f)",
        Cause::Volume(_) => "",
        Cause::Damaged(_) => "; replace it with an intact copy",
        Cause::NotAFile => "; name the files themselves",
        Cause::Format(_) => {
            "; only text is recompressed, and compressed text whose name has the extension of its format"
        }
        Cause::Exists(_) | Cause::Undecodable(..) | Cause::Unreadable(..) => "; move or remove it",
        Cause::OtherForm(_) => "; recompress or move that file first",
        Cause::Busy => "; wait until it is done",
        Cause::Named(_) => "; rewrite the table with its own program, or use --keep",
        Cause::Sticky | Cause::TakenBack(_) => "; run the command as its owner, or use --keep",
        Cause::Twice(..) => "; remove one of the two",
        Cause::Changed => "; run the command again when nothing is writing to it",
        Cause::NotVerified => "; check this machine's memory and disk",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_reported() {
        let diagnostics = Diagnostics::new("millstream");
        let told = |to: &[u8], level: &[u8], master: Option<&str>, operands: &[OsString]| {
            let mut recompress = Recompress::default();
            if !to.is_empty() {
                recompress.set_form(to, &diagnostics).expect("a form");
            }
            if !level.is_empty() {
                recompress.set_level(level, &diagnostics).expect("a number");
            }
            let submission = Submission { master: master.map(OsString::from), ..Submission::default() };
            let checked = recompress.check(operands, &submission);
            checked.map_err(|error| String::from_utf8_lossy(error.message()).into_owned())
        };
        let file = ["a.gz".into()];
        assert_eq!(told(b"zst", b"19", None, &file), Ok(()));
        assert_eq!(told(b"", b"", None, &file), Ok(()));
        for (to, level, master, operands, message) in [
            (&b""[..], &b""[..], None, &[][..], "missing file"),
            (
                b"",
                b"",
                Some("yarn"),
                &file,
                "--master and --conf cannot be used with recompress, which runs no Spark job",
            ),
            (b"", b"3", None, &file, "--level requires --to"),
            (b"lz4", b"3", None, &file, "lz4 has no compression levels"),
            (b"gz", b"0", None, &file, "the level must be from 1 to 9"),
            (b"zst", b"20", None, &file, "the level must be from 1 to 19"),
        ] {
            assert_eq!(told(to, level, master, operands), Err(message.into()));
        }
        let mut recompress = Recompress::default();
        assert!(recompress.set_form(b"bz2", &diagnostics).is_err());
        assert!(recompress.set_level(b"x", &diagnostics).is_err());
    }
}
