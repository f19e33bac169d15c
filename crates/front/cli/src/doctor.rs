//! `millstream doctor`: whether Millstream works in the installed Spark.
//!
//! The checks run in Spark, as the installation configures it. If `spark-defaults.conf` does not mention Millstream,
//! programs may still switch it on with `millstream.enable`; then the checks run with the settings of that function.
//! Two problems are detected here, since no class of ours would be reached: a Spark version that the jar does not
//! support, and a Spark that does not start.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use millstream_text::json::write_string;

use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::standard_output::StandardOutput;
use crate::submit::{SparkVersion, Submission, spark_conf, spark_defaults, spark_version};

/// The class of the checks.
const CLASS: &str = "io.millstream.spark.Doctor";
/// Tells the class that the settings are those of `millstream.enable`.
const ENABLED: &str = "--enabled";
/// A word in each of our settings: in a key, in the name of a class, or in the path of the jar.
const OURS: &[u8] = b"millstream";
const SUPPORTED: &str =
    "use Spark 4.0 to 4.3 with Scala 2.13; on this version, Spark itself lists, reads and writes";

/// Runs the checks, and prints their findings.
pub(crate) fn run(submission: &Submission, jar: &OsStr, diagnostics: &Diagnostics) -> Result<(), Refused> {
    if let Some(SparkVersion { spark, scala }) = spark_version().filter(|version| !version.is_supported()) {
        let found = format!("{spark} with Scala {scala}, which Millstream does not support");
        return print(
            &Finding { found: found.into_bytes(), fix: SUPPORTED.into() }.shown(submission),
            diagnostics,
        );
    }
    let defaults = spark_defaults();
    let (settings, block) = if is_installed(&defaults, &submission.spark_settings) {
        (Vec::new(), Vec::new())
    } else {
        (vec![ENABLED.into()], spark_conf(jar))
    };
    let arguments = submission.arguments(CLASS, settings, jar, &block, &defaults);
    let mut command = Submission::command(arguments, diagnostics)?;
    let done = command.output().map_err(|error| Submission::cannot_run(&command, &error, diagnostics))?;
    if done.stdout.is_empty() {
        if submission.verbose {
            warn(&done.stderr);
        }
        return print(&Finding::of_failed_start(&done.stderr).shown(submission), diagnostics);
    }
    warn(&done.stderr);
    if !done.status.success() {
        diagnostics.fail(FAILURE);
    }
    write(&done.stdout, diagnostics)
}

/// Whether Spark's settings include any of Millstream's.
fn is_installed(defaults: &[u8], given: &[OsString]) -> bool {
    let mut lines = defaults.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    lines.any(|line| !line.starts_with(b"#") && !line.starts_with(b"!") && is_ours(line))
        || given.iter().any(|setting| is_ours(setting.as_bytes()))
}

fn is_ours(text: &[u8]) -> bool {
    text.windows(OURS.len()).any(|part| part == OURS)
}

/// A problem with Spark.
struct Finding {
    found: Vec<u8>,
    fix: String,
}

impl Finding {
    /// From the output of a Spark that ended before the checks.
    fn of_failed_start(output: &[u8]) -> Self {
        let lines: Vec<_> = output.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).collect();
        let causes = lines.iter().rev().filter_map(|line| {
            line.strip_prefix(b"Caused by: ").or_else(|| line.strip_prefix(b"Exception in thread \"main\" "))
        });
        // The last cause is the root cause, but may be an unreadable number, for which another message names the
        // setting.
        let of_ours = causes.clone().find(|cause| is_ours(cause));
        let last_line = lines.iter().rev().find(|line| !line.is_empty()).copied();
        let message = of_ours.or_else(|| causes.clone().next()).or(last_line).unwrap_or_default();
        let is_linkage = [
            &b"java.lang.NoClassDefFoundError"[..],
            b"java.lang.NoSuchMethodError",
            b"java.lang.ClassNotFoundException",
        ]
        .iter()
        .any(|error| message.starts_with(error));
        let fix = if is_linkage {
            format!("{SUPPORTED}. --verbose prints Spark's output")
        } else {
            "correct the setting that this message names. --verbose prints Spark's output".into()
        };
        Finding { found: [b"does not start: ", message].concat(), fix }
    }

    /// In the format of the checks in Spark.
    fn shown(&self, submission: &Submission) -> Vec<u8> {
        if !submission.json {
            return [b"FIX   Spark  ", &self.found[..], b"\n             ", self.fix.as_bytes(), b"\n"]
                .concat();
        }
        let mut text = br#"[{"what":"Spark","ok":false,"found":"#.to_vec();
        write_string(&self.found, &mut text);
        text.extend(br#","fix":"#);
        write_string(self.fix.as_bytes(), &mut text);
        text.extend(b"}]\n");
        text
    }
}

/// Prints a finding that is a failure.
fn print(text: &[u8], diagnostics: &Diagnostics) -> Result<(), Refused> {
    diagnostics.fail(FAILURE);
    write(text, diagnostics)
}

fn write(text: &[u8], diagnostics: &Diagnostics) -> Result<(), Refused> {
    StandardOutput.write_text(text).map_err(|error| {
        diagnostics.write_error(&error, FAILURE);
        Refused
    })
}

/// Passes on Spark's log.
fn warn(text: &[u8]) {
    // If standard error is closed, the log is lost.
    drop(io::stderr().write_all(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_switch_nothing_on() {
        let is_on = |defaults: &str, given: &[&str]| {
            is_installed(defaults.as_bytes(), &given.iter().map(OsString::from).collect::<Vec<_>>())
        };
        assert!(is_on("spark.master yarn\nspark.jars /opt/millstream-spark.jar\n", &[]));
        assert!(is_on("", &["spark.millstream.read.enabled=false"]));
        assert!(!is_on(
            "# spark.jars /opt/millstream-spark.jar\nspark.master yarn\n",
            &["spark.ui.enabled=false"]
        ));
    }

    #[test]
    fn the_cause_of_a_failed_start_is_found() {
        let of = |output: &str| {
            String::from_utf8(Finding::of_failed_start(output.as_bytes()).found).expect("UTF-8")
        };
        let thrown = "26/11/29 WARN x\nException in thread \"main\" java.lang.A: one\n\tat b.C\n";
        assert_eq!(of(thrown), "does not start: java.lang.A: one");
        assert_eq!(
            of(&format!("{thrown}Caused by: java.lang.B: two\n\tat d.E\n")),
            "does not start: java.lang.B: two"
        );
        let number = "Exception in thread \"main\" java.lang.A: fs.millstream.x must be a number\nCaused by: java.lang.B: \"y\"\n";
        assert_eq!(of(number), "does not start: java.lang.A: fs.millstream.x must be a number");
        assert_eq!(
            of("Error: Master must start with yarn\n"),
            "does not start: Error: Master must start with yarn"
        );
        let fix = Finding::of_failed_start(
            b"Exception in thread \"main\" java.lang.NoClassDefFoundError: scala/X\n",
        )
        .fix;
        assert!(fix.starts_with(SUPPORTED), "{fix}");
    }
}
