//! `psync --spark`: the arguments of the job that synchronizes directories of any file system of Hadoop's.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use millstream_ops::sync::{
    Comparison, Execution, Missing, Newer, Options, Present, Recursion, Report, TimeAccuracy, Verification,
    means_contents,
};

use super::USAGE;
use super::table::Id;
use crate::diagnostics::{Diagnostics, Refused};
use crate::options::Occurrence;
use crate::submit::{Submission, present_jar_or_refuse, setting};

const CLASS: &str = "io.millstream.spark.Sync";
const NOT_CARRIED: &str = " cannot be combined with --spark, which does not carry that";
const NOT_YET: &str = " cannot be combined with --spark";

/// What the options that concern Spark say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    is_wanted: bool,
    submission: Submission,
    checkpoint: Option<OsString>,
    jar: Option<OsString>,
    /// The first option that only the local engine knows.
    local: Option<(String, &'static str)>,
    /// The first option that only has a meaning with `--spark`.
    lonely: Option<String>,
}

impl Request {
    /// Takes note of an option.
    pub(super) fn note(&mut self, option: &Occurrence<Id>) {
        match option.id {
            Id::Spark => {
                self.is_wanted = true;
                self.submission.master.clone_from(&option.value);
            }
            Id::SparkConf => self.submission.spark_settings.extend(option.value.clone()),
            Id::Checkpoint => self.checkpoint.clone_from(&option.value),
            Id::Jar => self.jar.clone_from(&option.value),
            Id::Json => self.submission.json = true,
            Id::Devices | Id::Specials | Id::DevicesAndSpecials => self.refuse(option, NOT_CARRIED),
            Id::HardLinks | Id::Acls | Id::Xattrs => self.refuse(option, NOT_CARRIED),
            Id::Threads | Id::BandwidthLimit | Id::IgnoreErrors | Id::Itemize | Id::Force => {
                self.refuse(option, NOT_YET);
            }
            Id::Exclude | Id::Include | Id::Filter | Id::ExcludeFrom | Id::IncludeFrom | Id::FilesFrom => {
                self.refuse(option, NOT_YET);
            }
            Id::DeleteExcluded | Id::DeleteBefore | Id::OneFileSystem | Id::Sparse => {
                self.refuse(option, NOT_YET)
            }
            _ => {}
        }
        if matches!(option.id, Id::SparkConf | Id::Checkpoint | Id::Jar) {
            self.lonely.get_or_insert_with(|| option.spelling.to_string());
        }
    }

    fn refuse(&mut self, option: &Occurrence<Id>, why: &'static str) {
        self.local.get_or_insert_with(|| (option.spelling.to_string(), why));
    }

    /// Whether the job is wanted.
    ///
    /// # Errors
    /// If an option has no meaning with or without it.
    pub(super) fn is_wanted(&self, diagnostics: &Diagnostics) -> Result<bool, Refused> {
        let wrong = match (&self.local, &self.lonely) {
            (Some((option, why)), _) if self.is_wanted => [option, *why].concat(),
            (_, Some(option)) if !self.is_wanted => [option, " is an option for --spark"].concat(),
            _ => return Ok(self.is_wanted),
        };
        diagnostics.error(USAGE).text(&wrong).send();
        Err(Refused)
    }

    /// Becomes the job; comes back if that cannot be.
    pub(super) fn submit(
        self,
        operands: &[OsString],
        options: &Options,
        diagnostics: &Diagnostics,
    ) -> Refused {
        let settings = match self.settings(operands, options) {
            Ok(settings) => settings,
            Err(message) => {
                diagnostics.error(USAGE).text(message).send();
                return Refused;
            }
        };
        match present_jar_or_refuse(self.jar.clone(), diagnostics) {
            Ok(jar) => self.submission.run(CLASS, settings, &jar, diagnostics),
            Err(refused) => refused,
        }
    }

    /// The settings of the class.
    fn settings(&self, operands: &[OsString], options: &Options) -> Result<Vec<OsString>, &'static str> {
        let [source, destination] = operands else {
            return Err("--spark needs one source and one destination, which are directories");
        };
        if options.recursion != Recursion::Recursive {
            return Err("--spark synchronizes directories with their contents, which needs -r or -a");
        }
        if [source, destination].into_iter().any(|operand| is_of_host(operand.as_bytes())) {
            return Err("other hosts are not supported; name the file system, as in hdfs://host/directory");
        }
        let preserve = &options.preserve;
        let flags = [
            ("delete", options.deletion.is_some()),
            ("checksum", options.comparison == Comparison::Contents),
            ("size-only", options.comparison == Comparison::Size),
            ("ignore-times", options.comparison == Comparison::None),
            ("update", options.newer == Newer::Kept),
            ("existing", options.missing == Missing::Skipped),
            ("ignore-existing", options.present == Present::Left),
            ("links", options.kinds.links),
            ("perms", preserve.mode),
            ("times", preserve.timestamps),
            ("owner", preserve.owner),
            ("group", preserve.group),
            ("omit-dir-times", options.untimed.directories),
            ("verify", options.verification == Verification::Checksum),
            ("dry-run", options.execution == Execution::DryRun),
            ("names", options.report == Report::Names),
        ];
        let mut settings =
            vec![setting("source", source), setting("destination", &placed(source, destination))];
        settings.extend(flags.map(|(key, is_set)| setting(key, is_set.to_string().as_ref())));
        if let Some(most) = options.most_deletions {
            settings.push(setting("max-delete", most.to_string().as_ref()));
        }
        match options.time_accuracy {
            TimeAccuracy::AsStored => {}
            TimeAccuracy::Seconds(window) => {
                settings.push(setting("modify-window", window.to_string().as_ref()))
            }
            TimeAccuracy::Nanoseconds => settings.push(setting("modify-window", "-1".as_ref())),
        }
        settings.extend(self.checkpoint.as_ref().map(|directory| setting("checkpoint", directory)));
        Ok(settings)
    }
}

/// The directory that becomes like the source: without a slash at its end, the source itself goes into the destination.
fn placed(source: &OsStr, destination: &OsStr) -> OsString {
    let source = source.as_bytes();
    if means_contents(source) {
        return destination.to_owned();
    }
    let name = source.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let destination = destination.as_bytes().strip_suffix(b"/").unwrap_or(destination.as_bytes());
    OsString::from_vec([destination, b"/", name].concat())
}

/// Whether an operand is `host:path`, and not the URL of a file system or a path.
fn is_of_host(operand: &[u8]) -> bool {
    let colon = operand.iter().position(|&b| b == b':');
    colon.is_some_and(|at| !operand[..at].contains(&b'/') && operand.get(at + 1) != Some(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(operands: &[&str], options: &Options) -> Result<Vec<String>, &'static str> {
        let operands: Vec<OsString> = operands.iter().map(OsString::from).collect();
        let request = Request { checkpoint: Some("/c".into()), ..Request::default() };
        let settings = request.settings(&operands, options)?;
        Ok(settings.into_iter().map(|setting| setting.into_string().expect("UTF-8")).collect())
    }

    #[test]
    fn settings_of_the_job() {
        let mut options = Options { recursion: Recursion::Recursive, ..Options::default() };
        options.newer = Newer::Kept;
        options.time_accuracy = TimeAccuracy::Nanoseconds;
        let made = settings(&["hdfs://n/a b/", "s3a://b/c"], &options).expect("right");
        assert_eq!(made[..3], ["source=hdfs://n/a b/", "destination=s3a://b/c", "delete=false"]);
        for expected in ["update=true", "links=false", "perms=false", "modify-window=-1", "checkpoint=/c"] {
            assert!(made.iter().any(|setting| setting == expected), "{expected} of {made:?}");
        }
        assert!(!made.iter().any(|setting| setting.starts_with("max-delete")));
    }

    #[test]
    fn a_source_without_a_slash_goes_into_the_destination() {
        for (source, destination, expected) in [
            ("/a/b", "/c", "/c/b"),
            ("/a/b", "/c/", "/c/b"),
            ("/a/b/", "/c", "/c"),
            ("/a/.", "/c", "/c"),
            ("s3a://bucket/k", "d", "d/k"),
        ] {
            assert_eq!(placed(source.as_ref(), destination.as_ref()), expected, "{source}");
        }
    }

    #[test]
    fn what_the_job_cannot_do_is_refused() {
        let recursive = Options { recursion: Recursion::Recursive, ..Options::default() };
        assert!(settings(&["/a/", "/b"], &Options::default()).is_err());
        for operands in [&["/a/"][..], &["/a", "/b", "/c"], &["host:a", "/b"], &["/a", "user@host:b"]] {
            assert!(settings(operands, &recursive).is_err(), "{operands:?}");
        }
        assert!(settings(&["file:/a/", "./a:b"], &recursive).is_ok());
    }
}
