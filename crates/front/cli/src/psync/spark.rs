//! `psync --spark`: the arguments of the job that synchronizes directories of any Hadoop file system.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use millstream_storage::is_bucket;
use millstream_transfer::sync::{
    Comparison, Conflicts, Errors, Execution, FileSystems, HighBytes, Missing, Newer, Options, Present,
    Recursion, Report, Sparse, TimeAccuracy, Timing, Verification, Xattrs, means_contents,
};

use super::USAGE;
use super::operands::of_host;
use super::table::{ChoiceId, Id, SparkId, ValueId};
use crate::diagnostics::{Diagnostics, Refused};
use crate::operand::is_url;
use crate::options::Occurrence;
use crate::submit::{Submission, present_jar_or_refuse, setting};

const CLASS: &str = "io.millstream.spark.Sync";

/// The values of the options that concern Spark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    is_wanted: bool,
    submission: Submission,
    checkpoint: Option<OsString>,
    jar: Option<OsString>,
    deletes_excluded: bool,
    /// The file with the list of files to synchronize; the job reads it.
    files_from: Option<OsString>,
    is_nul_separated: bool,
    /// The first option that only has a meaning with `--spark`.
    lonely: Option<String>,
}

impl Request {
    /// Records an option. The job gets all other values from [`Options`].
    pub(super) fn note(&mut self, option: &Occurrence<Id>) {
        match option.id {
            Id::Spark(id) => self.take(id, option),
            Id::Choice(ChoiceId::Json) => self.submission.json = true,
            Id::Choice(ChoiceId::FilesFrom) => self.files_from.clone_from(&option.value),
            Id::Choice(ChoiceId::From0) => self.is_nul_separated = true,
            Id::Choice(ChoiceId::NoFrom0) => self.is_nul_separated = false,
            Id::Choice(ChoiceId::DeleteExcluded) => self.deletes_excluded = true,
            Id::Value(ValueId::Threads) => {
                let threads = setting("spark.millstream.sync.threads", OsStr::from_bytes(option.bytes()));
                self.submission.spark_settings.push(threads);
            }
            Id::Tree(_) | Id::Choice(_) | Id::Value(_) => {}
        }
    }

    /// Handles an option of the job alone.
    fn take(&mut self, id: SparkId, option: &Occurrence<Id>) {
        match id {
            SparkId::Spark => {
                self.is_wanted = true;
                self.submission.master.clone_from(&option.value);
                self.submission.waits = true;
                return;
            }
            SparkId::SparkConf => self.submission.spark_settings.extend(option.value.clone()),
            SparkId::Checkpoint => self.checkpoint.clone_from(&option.value),
            SparkId::Jar => self.jar.clone_from(&option.value),
        }
        self.lonely.get_or_insert_with(|| option.spelling.to_string());
    }

    /// Whether to run the job: it runs if an operand is a URL, on this machine unless a master is given. Buckets
    /// (`s3:`) need no job.
    ///
    /// # Errors
    /// If an option has no meaning without the job, or a bucket is not combined with a path of this machine.
    pub(super) fn is_wanted(
        &mut self,
        operands: &[OsString],
        diagnostics: &Diagnostics,
    ) -> Result<bool, Refused> {
        let needs_spark = |operand: &[u8]| is_url(operand) && !is_bucket(operand);
        let wrong = operands.iter().map(|operand| operand.as_bytes());
        let mut wrong = wrong.filter(|operand| operand.starts_with(b"s3:") && !is_bucket(operand));
        if let Some(wrong) = wrong.next().filter(|_| !self.is_wanted) {
            diagnostics
                .error(USAGE)
                .name(wrong)
                .text(": not a valid S3 path; expected s3://BUCKET/KEY")
                .send();
            return Err(Refused);
        }
        if !self.is_wanted && operands.iter().any(|operand| needs_spark(operand.as_bytes())) {
            if let Some(bucket) = operands.iter().find(|operand| is_bucket(operand.as_bytes())) {
                let message = diagnostics.error(USAGE).name(bucket.as_bytes());
                message.text(": together with other URLs, write S3 paths as s3a://").send();
                return Err(Refused);
            }
            self.is_wanted = true;
            self.submission.waits = true;
            self.submission.spark_settings.insert(0, setting("spark.master", "local[*]".as_ref()));
        }
        let master = self.submission.master.as_ref().map(|master| master.as_bytes());
        if let Some(master) = master.filter(|master| !is_master(master)) {
            let message = diagnostics.error(USAGE).text("--spark: not a Spark master URL: ").name(master);
            message.text("; expected local[N], yarn, spark://HOST:PORT or k8s://HOST").send();
            return Err(Refused);
        }
        match &self.lonely {
            Some(option) if !self.is_wanted => {
                let text = [option, " requires --spark, or a URL as an operand"].concat();
                diagnostics.error(USAGE).text(&text).send();
                Err(Refused)
            }
            _ => Ok(self.is_wanted),
        }
    }

    /// Becomes the job; returns only if that fails.
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
            return Err(if operands.first().is_some_and(|first| is_master(first.as_bytes())) {
                "write the master as part of the option: --spark=local[4]"
            } else {
                "--spark needs exactly one source and one destination, both directories"
            });
        };
        // All fields are listed, so that a new one does not compile until it is handled here. The job reads the list of
        // files itself, and gets the number of workers as a Spark setting.
        let Options {
            recursion,
            kinds,
            filter,
            file_systems,
            comparison,
            time_accuracy,
            newer,
            missing,
            present,
            deletion,
            most_deletions,
            conflicts,
            preserve,
            untimed,
            sparse,
            verification,
            bytes_per_second,
            execution,
            report,
            high_bytes,
            files: _,
            user: _,
            threads: _,
            cancellation: _,
            temporaries: _,
        } = options;
        let is_recursive = *recursion == Recursion::Recursive;
        if !is_recursive && self.files_from.is_none() {
            return Err("--spark synchronizes directories with their contents, which needs -r or -a");
        }
        let others = [source, destination].map(|operand| operand.as_bytes());
        if let Some(advice) = others.into_iter().filter(|operand| !is_url(operand)).find_map(of_host) {
            return Err(advice.trim_start_matches(": "));
        }
        if *high_bytes == HighBytes::Printed {
            return Err("--8-bit-output (-8) cannot be combined with --spark, which prints UTF-8");
        }
        let flags = [
            ("delete", deletion.is_some()),
            ("delete-before", deletion.is_some_and(|deletion| deletion.timing == Timing::Before)),
            ("delete-excluded", self.deletes_excluded),
            ("ignore-errors", deletion.is_some_and(|deletion| deletion.errors == Errors::Ignored)),
            ("force", *conflicts == Conflicts::Removed),
            ("checksum", *comparison == Comparison::Contents),
            ("size-only", *comparison == Comparison::Size),
            ("ignore-times", *comparison == Comparison::None),
            ("update", *newer == Newer::Kept),
            ("existing", *missing == Missing::Skipped),
            ("ignore-existing", *present == Present::Left),
            ("links", kinds.links),
            ("devices", kinds.devices),
            ("specials", kinds.specials),
            ("hard-links", preserve.links),
            ("acls", preserve.acls),
            ("xattrs", preserve.xattrs != Xattrs::Ignore),
            ("sparse", *sparse == Sparse::Always),
            ("one-file-system", *file_systems == FileSystems::One),
            ("perms", preserve.mode),
            ("times", preserve.timestamps),
            ("owner", preserve.owner),
            ("group", preserve.group),
            ("omit-dir-times", untimed.directories),
            ("omit-link-times", untimed.links),
            ("verify", *verification == Verification::Checksum),
            ("dry-run", *execution == Execution::DryRun),
            ("names", *report == Report::Names),
            ("items", *report == Report::Items),
            ("all-items", *report == Report::AllItems),
            ("ascii-output", *high_bytes == HighBytes::Escaped),
        ];
        // The paths of a list are relative to the source, with or without a trailing slash.
        let takes_contents = means_contents(source.as_bytes()) || self.files_from.is_some();
        let placed = if takes_contents { destination.clone() } else { placed(source, destination) };
        let mut settings = vec![setting("source", source), setting("destination", &placed)];
        if let Some(list) = &self.files_from {
            settings.extend([
                setting("files-from", list),
                setting("recursive", is_recursive.to_string().as_ref()),
            ]);
            settings.extend(self.is_nul_separated.then(|| setting("from0", "true".as_ref())));
        }
        if !takes_contents {
            settings.push(setting("prefix", escaped(name_of(source.as_bytes())).as_ref()));
        }
        // These include rules read from files: the job may run on a machine without the files.
        let rules = filter.rules().map(|rule| escaped(&[b"f", &rule[..]].concat()));
        settings.extend(
            (0..).zip(rules).map(|(at, rule): (u32, _)| setting(&format!("filter-{at}"), rule.as_ref())),
        );
        settings.extend(flags.map(|(key, is_set)| setting(key, is_set.to_string().as_ref())));
        if let Some(most) = most_deletions {
            settings.push(setting("max-delete", most.to_string().as_ref()));
        }
        if let Some(rate) = bytes_per_second {
            settings.push(setting("bytes-per-second", rate.to_string().as_ref()));
        }
        match time_accuracy {
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

/// The directory to be synchronized with a source that goes into the destination itself.
fn placed(source: &OsStr, destination: &OsStr) -> OsString {
    let name = name_of(source.as_bytes());
    let destination = destination.as_bytes().strip_suffix(b"/").unwrap_or(destination.as_bytes());
    OsString::from_vec([destination, b"/", name].concat())
}

/// The part after the last slash.
fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or_default()
}

/// Text of any bytes for a setting, independent of the encoding that the JVM assumes for its arguments: bytes other
/// than printable ASCII, and `%`, become `%` and two hexadecimal digits.
fn escaped(text: &[u8]) -> String {
    let mut escaped = String::new();
    for &byte in text {
        match byte {
            b' '..=b'~' if byte != b'%' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Whether an operand looks like a Spark master URL.
fn is_master(operand: &[u8]) -> bool {
    operand == b"local"
        || operand == b"yarn"
        || [&b"local["[..], b"local-cluster[", b"spark://", b"k8s://"]
            .iter()
            .any(|start| operand.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Spelling;
    use millstream_rsync_rules::Separator;
    use millstream_rsync_rules::filter::Effect;

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
        for missing in ["max-delete", "prefix", "filter", "bytes-per-second"] {
            assert!(!made.iter().any(|setting| setting.starts_with(missing)), "{missing}");
        }
    }

    #[test]
    fn filters_are_rules_without_files() {
        let mut options = Options { recursion: Recursion::Recursive, ..Options::default() };
        let mut read = |_: &OsStr| Ok(b"- b%\n\xe9".to_vec());
        options.filter.add_pattern(b"*.o", Effect::Exclude).expect("a pattern");
        options.filter.add_rule(b".- file", Separator::Line, &mut read).expect("a rule");
        let made = settings(&["/x/caf\u{e9}", "/y"], &options).expect("right");
        for expected in [
            "destination=/y/caf\u{e9}",
            "prefix=caf%C3%A9",
            "filter-0=f- *.o",
            "filter-1=f- - b%25",
            "filter-2=f- %E9",
        ] {
            assert!(made.iter().any(|setting| setting == expected), "{expected} of {made:?}");
        }
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
            let recursive = Options { recursion: Recursion::Recursive, ..Options::default() };
            let made = settings(&[source, destination], &recursive).expect("right");
            assert_eq!(made[1], format!("destination={expected}"), "{source}");
        }
    }

    #[test]
    fn a_list_of_files_is_read_by_the_job() {
        let options = Options { recursion: Recursion::Directories, ..Options::default() };
        let request = Request { files_from: Some("-".into()), is_nul_separated: true, ..Request::default() };
        let made = request.settings(&["/a/b".into(), "/c".into()], &options).expect("right");
        let expected = ["source=/a/b", "destination=/c", "files-from=-", "recursive=false", "from0=true"];
        assert_eq!(made[..5], expected.map(OsString::from), "its paths are relative to the source");
        assert!(!made.iter().any(|setting| setting.as_bytes().starts_with(b"prefix")));
    }

    #[test]
    fn the_last_of_from0_and_no_from0_wins() {
        let mut request = Request::default();
        for (id, is_nul_separated) in [(ChoiceId::From0, true), (ChoiceId::NoFrom0, false)] {
            request.note(&Occurrence {
                id: Id::Choice(id),
                spelling: Spelling::Long("from0"),
                value: None,
                word: OsString::new(),
            });
            assert_eq!(request.is_nul_separated, is_nul_separated, "{id:?}");
        }
    }

    #[test]
    fn masters_are_told_from_paths() {
        for master in
            ["local", "local[*]", "local-cluster[2,1,1024]", "yarn", "spark://h:7077", "k8s://https://h"]
        {
            assert!(is_master(master.as_bytes()), "{master}");
        }
        for other in ["", "bogus", "locals", "/local", "yarn/x", "hdfs://n/p"] {
            assert!(!is_master(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_the_job_cannot_do_is_refused() {
        let recursive = Options { recursion: Recursion::Recursive, ..Options::default() };
        assert!(settings(&["/a/", "/b"], &Options::default()).is_err());
        let raw = Options { high_bytes: HighBytes::Printed, ..recursive.clone() };
        assert!(settings(&["/a/", "/b"], &raw).is_err_and(|message| message.contains("-8")));
        let master = settings(&["local[2]", "/a/", "/b"], &recursive);
        assert!(master.is_err_and(|message| message.contains("--spark=")));
        for operands in [
            &["/a/"][..],
            &["/a", "/b", "/c"],
            &["host:a", "/b"],
            &["/a", "user@host:b"],
            &["s3a://b/x", "host:/b"],
        ] {
            assert!(settings(operands, &recursive).is_err(), "{operands:?}");
        }
        assert!(settings(&["file:/a/", "./a:b"], &recursive).is_ok());
    }
}
