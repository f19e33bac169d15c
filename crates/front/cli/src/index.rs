//! `millstream index`: builds or removes indexes of compressed files here, or has a Spark job do it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Instant;

use millstream_compressed::index::{
    Action, Cause, Effect, Event, Location, Options, Reason, Sink, Summary, Task, run,
};
use millstream_operation::activity::Activity;
use millstream_system::concurrency::cpus;
use millstream_text::json::Object;
use millstream_text::size::SizeFormat;

use crate::compact::word;
use crate::diagnostics::{Diagnostics, FAILURE, Refused, UsageError};
use crate::mounted::mounted;
use crate::operand::paths;
use crate::progress::{Progress, StdoutUse, report};
use crate::standard_output::Lines;
use crate::submit::{Submission, setting};

/// The class of the Spark job.
pub(crate) const CLASS: &str = "io.millstream.spark.MakeIndexes";
/// The programs whose indexes are written.
pub(crate) const EXPORTS: &[&str] = &["gztool"];
/// As `spark.millstream.index.minSize`.
const MIN_SIZE: u64 = 4 << 20;

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) directory: Option<OsString>,
    pub(crate) prune: bool,
    pub(crate) spark: bool,
    pub(crate) import: Option<OsString>,
    export: bool,
    min_size: Option<u64>,
}

impl Index {
    pub(crate) fn set_min_size(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        let size = match text {
            b"0" => Some(0),
            _ => match std::str::from_utf8(text).ok().and_then(|text| SizeFormat::parse(text).ok()) {
                Some(SizeFormat::Blocks { bytes, .. }) => Some(bytes.get()),
                _ => None,
            },
        };
        if size.is_none() {
            let quoted = diagnostics.quoted(text);
            return Err(UsageError::argument([b"invalid size: ", &quoted[..]].concat()));
        }
        self.min_size = size;
        Ok(())
    }

    pub(crate) fn set_export(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        word(text, "--export", EXPORTS, diagnostics)?;
        self.export = true;
        Ok(())
    }

    /// Checks combinations of options and operands.
    pub(crate) fn check(&self, operands: &[OsString], submission: &Submission) -> Result<(), UsageError> {
        let wrong = |message: &str| Err(UsageError::argument(message.into()));
        if operands.is_empty() {
            wrong("missing file or directory")
        } else if self.prune && self.min_size.is_some() {
            wrong("--min-size cannot be used with --prune, which removes indexes of files of any size")
        } else if (self.prune || self.spark) && (self.import.is_some() || self.export) {
            wrong("--import and --export cannot be used with --prune or --spark")
        } else if self.import.is_some() && operands.len() > 1 {
            wrong("--import takes exactly one file")
        } else if !self.spark && (submission.master.is_some() || !submission.spark_settings.is_empty()) {
            wrong("--master and --conf require --spark")
        } else {
            Ok(())
        }
    }

    /// The arguments of the class.
    pub(crate) fn settings(&self, operands: &[OsString], submission: &Submission) -> Vec<OsString> {
        let mut settings: Vec<_> = operands.iter().map(|operand| setting("path", operand)).collect();
        settings.extend(self.directory.iter().map(|directory| setting("directory", directory)));
        settings.extend(self.min_size.map(|bytes| setting("min-size", format!("{bytes}b").as_ref())));
        let flags = [("prune", self.prune), ("verbose", submission.verbose)];
        settings
            .extend(flags.into_iter().filter(|flag| flag.1).map(|(key, _)| setting(key, "true".as_ref())));
        settings
    }

    /// Builds or removes indexes here.
    pub(crate) fn carry_out(
        self,
        operands: Vec<OsString>,
        submission: &Submission,
        diagnostics: &Diagnostics,
    ) -> Result<(), Refused> {
        let reason = "without --spark, indexes are built on mounted file systems only";
        let given = operands.iter().map(|operand| operand.as_bytes());
        let volume = mounted("millstream", given, (FAILURE, reason), diagnostics)?;
        let started = Instant::now();
        let location = self.location(diagnostics)?;
        let min_size = self.min_size.unwrap_or(MIN_SIZE);
        let options = Options {
            task: if self.prune { Task::Prune } else { Task::Make { min_size } },
            effect: if submission.dry_run { Effect::DryRun } else { Effect::Real },
            location,
            threads: cpus(),
            import: self.import.and_then(|path| paths(vec![path]).pop()),
            export: self.export,
        };
        let activity = Arc::new(Activity::default());
        let progress = Progress::start(&activity, StdoutUse::WithoutProgress, diagnostics);
        let lines = Lines::new(progress.screen().clone());
        let output = Output { lines, options: &options, submission, diagnostics };
        run(&volume, &paths(operands), &options, &output, &activity);
        drop(progress);
        output.lines.finish(diagnostics, FAILURE);
        if submission.verbose {
            report(&activity, options.threads, started, diagnostics);
        }
        Ok(())
    }

    fn location(&self, diagnostics: &Diagnostics) -> Result<Location, Refused> {
        let Some(directory) = &self.directory else { return Ok(Location::Beside) };
        let Some(path) = paths(vec![directory.clone()]).pop() else { return Ok(Location::Beside) };
        let working_directory = std::env::current_dir().map_err(|error| {
            diagnostics.error(FAILURE).text("cannot determine the current directory").cause(&error).send();
            Refused
        })?;
        Ok(Location::Directory { path, working_directory: working_directory.into_os_string().into_vec() })
    }
}

/// Standard output and standard error.
struct Output<'a> {
    lines: Lines,
    options: &'a Options,
    submission: &'a Submission,
    diagnostics: &'a Diagnostics,
}

impl Output<'_> {
    fn is_dry_run(&self) -> bool {
        self.options.effect == Effect::DryRun
    }

    /// The line of an event; empty if it is not wanted.
    fn text(&self, event: Event<'_>) -> Vec<u8> {
        let quoted = self.diagnostics.quoted_name(event.path);
        let text = match event.action {
            Action::Kept(_) | Action::Made(_) if !self.submission.verbose => return Vec::new(),
            Action::Removed(_) if !self.submission.verbose && !self.is_dry_run() => return Vec::new(),
            Action::Exported if !self.submission.verbose && !self.is_dry_run() => return Vec::new(),
            Action::NotExported if !self.submission.verbose => return Vec::new(),
            Action::WouldMake => "an index would be created".into(),
            Action::Exported if self.is_dry_run() => "would be written".into(),
            Action::Exported => "written".into(),
            Action::NotExported => "gztool reads only gzip, so no index is written for it".into(),
            Action::Undivided => format!("no index: {}{}", Cause::Undivided, way_out(&Cause::Undivided)),
            Action::Made(summary) => format!("index created: {}", described(summary)),
            Action::Kept(summary) => format!("has an index: {}", described(summary)),
            Action::Removed(reason) => {
                let done = if self.is_dry_run() { "would be removed" } else { "removed" };
                format!("{done}: {}", why(reason))
            }
        };
        [&quoted[..], b": ", text.as_bytes(), b"\n"].concat()
    }

    fn record(&self, event: Event<'_>) -> Vec<u8> {
        let mut line = Vec::new();
        let (action, summary, reason) = match event.action {
            Action::Undivided => ("skip", None, Some(Cause::Undivided.to_string())),
            Action::WouldMake => ("would make index", None, None),
            Action::Made(summary) => ("make index", Some(summary), None),
            Action::Kept(summary) => ("keep index", Some(summary), None),
            Action::Exported if self.is_dry_run() => ("would export", None, None),
            Action::Exported => ("export", None, None),
            Action::NotExported => ("skip export", None, None),
            Action::Removed(reason) if self.is_dry_run() => ("would remove", None, Some(why(reason).into())),
            Action::Removed(reason) => ("remove", None, Some(why(reason).into())),
        };
        let mut object = Object::begin(&mut line).string("action", action.as_bytes());
        if let Some(reason) = reason {
            object = object.string("reason", reason.as_bytes());
        }
        if let Some(summary) = summary {
            let numbers = [
                ("bytes", summary.size),
                ("decoded_bytes", summary.decoded),
                ("lines", summary.lines),
                ("chunks", summary.chunks),
                ("index_bytes", summary.index_bytes),
            ];
            object =
                numbers.into_iter().fold(object, |object, (key, value)| object.number(key, value.into()));
        }
        object.string("path", event.path).end();
        line
    }
}

impl Sink for Output<'_> {
    fn event(&self, event: Event<'_>) {
        let line = if self.submission.json { self.record(event) } else { self.text(event) };
        self.lines.write(&line);
    }

    fn problem(&self, path: &[u8], cause: &Cause) {
        let what = if self.options.task == Task::Prune { "cannot prune " } else { "cannot index " };
        let text = format!(": {cause}{}", way_out(cause));
        self.diagnostics.error(FAILURE).text(what).name(path).text(&text).send();
        if self.submission.json {
            let mut line = Vec::new();
            let operation = what.trim_start_matches("cannot ").trim_end();
            let object = Object::begin(&mut line).string("error", cause.to_string().as_bytes());
            object.string("operation", operation.as_bytes()).string("path", path).end();
            self.lines.write(&line);
        }
    }
}

fn described(summary: Summary) -> String {
    let Summary { decoded, chunks, lines, .. } = summary;
    format!("{decoded} bytes of text, {lines} line feeds, {chunks} chunks")
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::FileGone => "the file is gone",
        Reason::FileChanged => "the file has changed",
        Reason::Visible => "it has the visible name that an earlier version gave it",
        Reason::Incomplete => "it was never completed",
    }
}

/// The advice to the user.
fn way_out(cause: &Cause) -> &'static str {
    match cause {
        Cause::Volume(_) | Cause::Loop | Cause::NotAFile | Cause::NotImported(_) | Cause::NotExported(_) => {
            ""
        }
        Cause::Unfit(_) => "; run the command without --import: if that fails too, the file is damaged",
        Cause::NotForeign(_) | Cause::OnlyGzip => "; leave out --import",
        Cause::ImportForDirectory => "; name the file, or leave out --import",
        Cause::Unexportable(_) => "; remove the file's index; the next run creates it again",
        Cause::OtherIndex(_) => "; move or remove it, and run the command again",
        Cause::Damaged(_) => "; replace it with an intact copy",
        Cause::Undivided => "; a single task reads it (see millstream recompress)",
        Cause::Changed => "; run the command again when nothing is writing to it",
        Cause::NotDivisible => {
            "; tasks share a .bz2 file without an index, and a single task reads a file of any other format"
        }
        Cause::NotKept(_) | Cause::Linked => {
            "; choose a directory for indexes with --directory and with spark.millstream.index.directory"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_job() {
        let diagnostics = Diagnostics::new("millstream");
        let mut index = Index { prune: true, directory: Some("s3a://b/x".into()), ..Index::default() };
        let submission = Submission { verbose: true, ..Submission::default() };
        let operands = ["s3a://b/logs".into(), "/a b".into()];
        let settings = index.settings(&operands, &submission);
        let expected =
            ["path=s3a://b/logs", "path=/a b", "directory=s3a://b/x", "prune=true", "verbose=true"];
        assert_eq!(settings, expected.map(OsString::from));
        index.set_min_size(b"1M", &diagnostics).expect("a size");
        assert!(index.settings(&operands, &submission).contains(&"min-size=1048576b".into()));
    }

    #[test]
    fn mistakes_are_reported() {
        let diagnostics = Diagnostics::new("millstream");
        let mut index = Index::default();
        let master = Submission { master: Some("yarn".into()), ..Submission::default() };
        let told = |index: &Index, operands: &[OsString], submission: &Submission| {
            let error = index.check(operands, submission).expect_err("a mistake");
            String::from_utf8_lossy(error.message()).into_owned()
        };
        assert_eq!(told(&index, &[], &Submission::default()), "missing file or directory");
        assert_eq!(told(&index, &["a".into()], &master), "--master and --conf require --spark");
        index.spark = true;
        assert_eq!(index.check(&["a".into()], &master), Ok(()));
        index.prune = true;
        index.set_min_size(b"0", &diagnostics).expect("a size");
        assert!(told(&index, &["a".into()], &master).contains("--min-size cannot be used with --prune"));
        for size in [&b""[..], b"x", b"-1", b"si"] {
            assert!(index.set_min_size(size, &diagnostics).is_err(), "{size:?}");
        }
    }
}
