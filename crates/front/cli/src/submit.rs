//! Spark jobs: finds Spark, and replaces this process by a `spark-submit` that runs a class of Millstream's jar.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};

use crate::diagnostics::{Diagnostics, FAILURE, Refused};

const SPARK_HOME: &str = "SPARK_HOME";
const SUBMIT: &str = "spark-submit";
const PYTHON: &str = "python3";
/// The single source of the settings, which the jar and the Python package contain, too.
const SPARK_DEFAULTS: &str =
    include_str!("../../../../jvm/spark/src/main/resources/millstream/spark-defaults.conf");
const JAR_PLACEHOLDER: &str = "@JAR@";
/// The jar where a path is required; a URI of Spark's scheme for files on every machine counts as a path.
const JAR_PATH_PLACEHOLDER: &str = "@JAR_PATH@";
const ON_EVERY_MACHINE: &str = "local:";
const JAR_NAME: &str = "millstream-spark.jar";

const JAR_VARIABLE: &str = "MILLSTREAM_JAR";
/// The Python with which Spark's scripts look for their files.
const PYTHON_VARIABLES: [&str; 2] = ["PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"];
/// Settings that are class paths: ours is appended to the user's, which may have the jars of S3A.
const CLASS_PATHS: [&str; 2] = ["spark.driver.extraClassPath", "spark.executor.extraClassPath"];
const MASTER: &str = "spark.master";
/// JVM options that precede those of `spark.driver.extraJavaOptions`.
const JAVA_OPTIONS: &str = "spark.driver.defaultJavaOptions";
/// The Python code that prints where pyspark is.
const ASK_PYTHON: &str = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";

/// The values of the options that every job has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Submission {
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
    pub(crate) verbose: bool,
    pub(crate) master: Option<OsString>,
    /// Spark settings, as `KEY=VALUE`.
    pub(crate) spark_settings: Vec<OsString>,
    /// Whether the JVM waits for storage more than it computes.
    pub(crate) waits: bool,
}

/// The setting `KEY=VALUE` of a Spark job.
pub(crate) fn setting(key: &str, value: &OsStr) -> OsString {
    let mut setting = OsString::from(key);
    setting.push("=");
    setting.push(value);
    setting
}

impl Submission {
    /// The arguments of `spark-submit` for a class with its settings; `block` is the conf block for the jar, `defaults`
    /// the contents of Spark's `spark-defaults.conf`.
    pub(crate) fn arguments(
        &self,
        class: &str,
        settings: Vec<OsString>,
        jar: &OsStr,
        block: &[u8],
        defaults: &[u8],
    ) -> Vec<OsString> {
        let mut arguments = vec!["--class".into(), class.into()];
        if let Some(master) = &self.master {
            arguments.extend(["--master".into(), master.clone()]);
        }
        let level = if self.verbose { "INFO" } else { "WARN" };
        // The jar is the application's, so executors get it anyway.
        let lines = block
            .split(|&b| b == b'\n')
            .filter(|line| line.starts_with(b"spark.") && !line.starts_with(b"spark.jars "));
        let mut all: Vec<OsString> = lines
            .map(|line| {
                let (key, value) = line.split_at(line.iter().position(|&b| b == b' ').unwrap_or(line.len()));
                OsString::from_vec([key, b"=", value.trim_ascii()].concat())
            })
            .collect();
        all.push(format!("spark.log.level={level}").into());
        all.extend(self.spark_settings.iter().cloned());
        join_class_paths(&mut all, defaults);
        if self.waits && self.is_local(defaults) {
            all.extend(fast_start(&all, defaults));
        }
        for setting in all {
            arguments.extend(["--conf".into(), setting]);
        }
        arguments.push(jar.to_owned());
        arguments.extend(settings);
        arguments.extend(self.dry_run.then(|| setting("dry-run", "true".as_ref())));
        arguments.extend(self.json.then(|| "--json".into()));
        arguments
    }

    /// Whether the driver's JVM does all the work.
    fn is_local(&self, defaults: &[u8]) -> bool {
        let of_settings = given(&self.spark_settings, MASTER);
        let master = self.master.as_ref().map(|master| master.as_bytes()).or(of_settings);
        // Spark's own default is `local[*]`.
        let master = master.or_else(|| default_setting(defaults, MASTER)).unwrap_or(b"local[*]");
        master == b"local" || master.starts_with(b"local[")
    }

    /// Runs a class of the jar with Millstream's settings; returns only if that fails.
    pub(crate) fn run(
        &self,
        class: &str,
        settings: Vec<OsString>,
        jar: &OsStr,
        diagnostics: &Diagnostics,
    ) -> Refused {
        let arguments = self.arguments(class, settings, jar, &spark_conf(jar), &spark_defaults());
        Submission::submit(arguments, diagnostics)
    }

    /// Becomes `spark-submit`; returns only if that fails.
    pub(crate) fn submit(arguments: Vec<OsString>, diagnostics: &Diagnostics) -> Refused {
        match Submission::command(arguments, diagnostics) {
            Ok(mut command) => {
                let error = command.exec();
                Submission::cannot_run(&command, &error, diagnostics)
            }
            Err(refused) => refused,
        }
    }

    pub(crate) fn cannot_run(command: &Command, error: &io::Error, diagnostics: &Diagnostics) -> Refused {
        let name = diagnostics.quoted(command.get_program().as_bytes());
        diagnostics.error(FAILURE).text("cannot run ").bytes(&name).cause(error).send();
        Refused
    }

    /// The call of `spark-submit`.
    pub(crate) fn command(arguments: Vec<OsString>, diagnostics: &Diagnostics) -> Result<Command, Refused> {
        let Some(program) = spark_submit() else {
            let text = "cannot find spark-submit: set SPARK_HOME, or install pyspark for the python3 in PATH";
            diagnostics.error(FAILURE).text(text).send();
            return Err(Refused);
        };
        let mut command = Command::new(&program);
        command.args(arguments);
        if env::var_os(SPARK_HOME).is_some_and(|home| home.is_empty()) {
            // Spark's scripts would use the root directory instead.
            command.env_remove(SPARK_HOME);
        }
        if !locale_is_utf8() {
            // Otherwise the JVM could not open files with names that are not ASCII.
            command.env("LC_ALL", "C.UTF-8");
        }
        if let Some(folder) = program.parent().filter(|folder| is_program(&folder.join(PYTHON))) {
            // The script asks a Python where its pyspark is; that is not the first in PATH if the environment is not
            // active.
            if PYTHON_VARIABLES.into_iter().all(|variable| env::var_os(variable).is_none()) {
                command.env(PYTHON_VARIABLES[0], folder.join(PYTHON));
            }
        }
        Ok(command)
    }
}

/// The absolute path of the jar that was named or found.
pub(crate) fn jar_or_refuse(named: Option<OsString>, diagnostics: &Diagnostics) -> Result<OsString, Refused> {
    let of_environment = || std::env::var_os(JAR_VARIABLE).filter(|jar| !jar.is_empty());
    let found = named.or_else(of_environment).or_else(|| jar_of_installation().map(PathBuf::into_os_string));
    let Some(jar) = found else {
        let text = format!(
            "cannot find {JAR_NAME} next to this program; it is part of Millstream's Python package: name it with \
                 --jar=PATH or {JAR_VARIABLE}"
        );
        diagnostics.error(FAILURE).text(&text).send();
        return Err(Refused);
    };
    if jar.as_bytes().windows(2).any(|pair| pair == b":/") {
        // A URI, which Spark understands.
        return Ok(jar);
    }
    // Spark may start in another directory. The jar need not exist here: it may be for other machines.
    std::path::absolute(jar).map(PathBuf::into_os_string).map_err(|error| {
        diagnostics.error(FAILURE).text("--jar").cause(&error).send();
        Refused
    })
}

/// As [`jar_or_refuse`], for a job that is started here and needs the jar here, unless a URI says otherwise.
pub(crate) fn present_jar_or_refuse(
    named: Option<OsString>,
    diagnostics: &Diagnostics,
) -> Result<OsString, Refused> {
    let jar = jar_or_refuse(named, diagnostics)?;
    if jar.as_bytes().starts_with(b"/") && !Path::new(&jar).is_file() {
        let text = format!(": there is no such jar; correct --jar or {JAR_VARIABLE}");
        diagnostics
            .error(FAILURE)
            .bytes(&[&diagnostics.quoted(jar.as_bytes())[..], text.as_bytes()].concat())
            .send();
        return Err(Refused);
    }
    Ok(jar)
}

/// The conf block for a jar at `jar`, whose path need not be UTF-8.
pub(crate) fn spark_conf(jar: &OsStr) -> Vec<u8> {
    let jar = jar.as_bytes();
    let filled = |text: &str| text.split(JAR_PLACEHOLDER).map(str::as_bytes).collect::<Vec<_>>().join(jar);
    let parts: Vec<_> = SPARK_DEFAULTS.split(JAR_PATH_PLACEHOLDER).map(filled).collect();
    parts.join(path_of(jar))
}

/// The path of a jar; that of a URI only if it is for files on every machine.
fn path_of(jar: &[u8]) -> &[u8] {
    let Some(path) = jar.strip_prefix(ON_EVERY_MACHINE.as_bytes()) else { return jar };
    path.strip_prefix(b"//").unwrap_or(path)
}

/// The jar of the Python package that was installed together with this program: `PREFIX/bin/millstream` goes with
/// `PREFIX/lib/python3.N/site-packages`.
fn jar_of_installation() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let library = program.parent()?.parent()?.join("lib");
    let pythons = std::fs::read_dir(library).ok()?;
    let jar_below = |python: PathBuf| python.join("site-packages/millstream/jars").join(JAR_NAME);
    let mut jars: Vec<_> = pythons.flatten().map(|python| jar_below(python.path())).collect();
    jars.retain(|jar| jar.is_file());
    jars.sort();
    jars.pop()
}

/// Whether the environment's locale has the encoding UTF-8.
pub(crate) fn locale_is_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os).find(|v| !v.is_empty());
    locale.is_some_and(|locale| {
        locale.to_string_lossy().to_ascii_lowercase().replace('-', "").ends_with("utf8")
    })
}

/// Joins class paths in `settings`, each `KEY=VALUE`: the first one is ours. The user's, a later setting or one of
/// `defaults`, precedes it, in one setting.
fn join_class_paths(settings: &mut Vec<OsString>, defaults: &[u8]) {
    for key in CLASS_PATHS {
        let prefix = format!("{key}=").into_bytes();
        let is_of_key = |setting: &OsString| setting.as_bytes().starts_with(&prefix);
        let given: Vec<OsString> = settings.extract_if(.., |setting| is_of_key(setting)).collect();
        let Some((ours, theirs)) = given.split_first() else { continue };
        let ours = &ours.as_bytes()[prefix.len()..];
        let theirs = match theirs.last() {
            Some(setting) => &setting.as_bytes()[prefix.len()..],
            None => default_setting(defaults, key).unwrap_or_default(),
        };
        let joined: Vec<u8> = if theirs.split(|&b| b == b':').any(|entry| entry == ours) {
            theirs.to_vec()
        } else {
            [theirs, ours].into_iter().filter(|path| !path.is_empty()).collect::<Vec<_>>().join(&b':')
        };
        settings.push(OsString::from_vec([prefix, joined].concat()));
    }
}

/// The value of a key in `settings`, each `KEY=VALUE`.
fn given<'a>(settings: &'a [OsString], key: &str) -> Option<&'a [u8]> {
    let value = |setting: &'a OsString| setting.as_bytes().strip_prefix(key.as_bytes())?.strip_prefix(b"=");
    settings.iter().rev().find_map(value)
}

/// A setting with which the driver's JVM compiles quickly, which is most of the cost of a short job. The user's options
/// stay. None if an administrator has set the key.
fn fast_start(settings: &[OsString], defaults: &[u8]) -> Option<OsString> {
    let is_free =
        given(settings, JAVA_OPTIONS).is_none() && default_setting(defaults, JAVA_OPTIONS).is_none();
    // With that option alone, there is little room for compiled code.
    is_free.then(|| setting(JAVA_OPTIONS, "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m".as_ref()))
}

/// The value of a key in a `spark-defaults.conf`, a file of Java properties; the last one counts.
fn default_setting<'a>(defaults: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let is_between = |b: &u8| matches!(b, b' ' | b'\t' | b'=' | b':');
    let mut found = defaults.split(|&b| b == b'\n').filter_map(|line| {
        let value = line.trim_ascii().strip_prefix(key.as_bytes())?;
        let start = value.iter().position(|b| !is_between(b)).unwrap_or(value.len());
        (start > 0).then(|| &value[start..])
    });
    found.next_back()
}

/// The `spark-defaults.conf` of the Spark of a `spark-submit`; empty if there is none.
pub(crate) fn spark_defaults() -> Vec<u8> {
    let folder = env::var_os("SPARK_CONF_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.or_else(|| Some(spark_home(&spark_submit()?)?.join("conf")));
    folder.and_then(|folder| fs::read(folder.join("spark-defaults.conf")).ok()).unwrap_or_default()
}

/// The versions of Spark and of its Scala, from the names of its jars; none if they have other names.
pub(crate) fn spark_version() -> Option<SparkVersion> {
    let jars = fs::read_dir(spark_home(&spark_submit()?)?.join("jars")).ok()?;
    jars.flatten().find_map(|jar| SparkVersion::of_core(jar.file_name().to_str()?))
}

/// The supported Spark lines; testbed/spark-versions.tsv has them, too.
const LINES: [&str; 4] = ["4.0", "4.1", "4.2", "4.3"];

/// Versions as in the name of a jar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SparkVersion {
    pub(crate) spark: String,
    pub(crate) scala: String,
}

impl SparkVersion {
    /// The versions in the name of Spark's core jar.
    fn of_core(jar: &str) -> Option<Self> {
        let (scala, spark) = jar.strip_prefix("spark-core_")?.strip_suffix(".jar")?.split_once('-')?;
        Some(SparkVersion { spark: spark.to_owned(), scala: scala.to_owned() })
    }

    /// Whether the jar supports them.
    pub(crate) fn is_supported(&self) -> bool {
        self.scala == "2.13"
            && LINES
                .iter()
                .any(|line| self.spark.strip_prefix(line).is_some_and(|release| release.starts_with('.')))
    }
}

/// The home of the Spark of a `spark-submit`, which may be a pip script that only knows a Python.
fn spark_home(submit: &Path) -> Option<PathBuf> {
    let bin = submit.parent()?;
    let home = bin.parent()?;
    if home.join("jars").is_dir() {
        return Some(home.to_owned());
    }
    let python = Some(bin.join(PYTHON)).filter(|python| is_program(python)).unwrap_or_else(|| PYTHON.into());
    pyspark_of(&python)
}

fn pyspark_of(python: &Path) -> Option<PathBuf> {
    let answer = Command::new(python).args(["-c", ASK_PYTHON]).output().ok()?;
    Some(answer.stdout.trim_ascii_end())
        .filter(|path| !path.is_empty())
        .map(|path| OsStr::from_bytes(path).into())
}

/// The `spark-submit` of SPARK_HOME, in PATH, next to this program, or of the pyspark that Python finds.
fn spark_submit() -> Option<PathBuf> {
    if let Some(home) = env::var_os(SPARK_HOME).filter(|home| !home.is_empty()) {
        return Some(Path::new(&home).join("bin").join(SUBMIT));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let folders = env::split_paths(&path).chain(beside);
    let found = folders.map(|folder| folder.join(SUBMIT)).find(|program| is_program(program));
    found.or_else(|| {
        let program = pyspark_of(Path::new(PYTHON))?.join("bin").join(SUBMIT);
        is_program(&program).then_some(program)
    })
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_needs_its_jar() {
        let diagnostics = Diagnostics::new("millstream");
        let present = |jar: &OsStr| present_jar_or_refuse(Some(jar.to_owned()), &diagnostics).is_ok();
        assert!(!present(OsStr::new("/nonexistent/millstream.jar")));
        assert!(present(OsStr::new("hdfs:///jars/millstream.jar")), "Spark fetches it");
        assert!(present(std::env::current_exe().expect("a path").as_os_str()));
    }

    #[test]
    fn every_placeholder_becomes_the_jar() {
        let block = String::from_utf8(spark_conf("/opt/m.jar".as_ref())).expect("UTF-8");
        assert!(!block.contains(JAR_PLACEHOLDER));
        let settings: Vec<_> = block.lines().filter(|line| line.starts_with("spark.")).collect();
        assert!(settings.iter().any(|line| line.starts_with("spark.jars") && line.ends_with("/opt/m.jar")));
        assert!(settings.iter().all(|line| line.split_whitespace().count() == 2), "{settings:?}");
    }

    #[test]
    fn class_paths_have_the_path_of_a_jar_that_is_on_every_machine() {
        for uri in ["local:///opt/m.jar", "local:/opt/m.jar"] {
            let block = String::from_utf8(spark_conf(uri.as_ref())).expect("UTF-8");
            let ending_with = |end: &str| block.lines().filter(|line| line.ends_with(end)).count();
            assert_eq!((ending_with(" /opt/m.jar"), ending_with(uri)), (2, 1), "{block}");
        }
    }

    #[test]
    fn versions_are_those_of_the_jars() {
        let version = |jar| SparkVersion::of_core(jar).map(|found| found.is_supported());
        assert_eq!(version("spark-core_2.13-4.3.0.jar"), Some(true));
        assert_eq!(version("spark-core_2.13-4.0.1-vendor.7.jar"), Some(true));
        assert_eq!(version("spark-core_2.12-3.5.6.jar"), Some(false));
        assert_eq!(version("spark-core_2.13-3.5.6.jar"), Some(false));
        assert_eq!(version("spark-sql_2.13-4.3.0.jar"), None);
    }

    #[test]
    fn arguments_of_spark_submit() {
        let submission = Submission {
            dry_run: true,
            json: true,
            master: Some("local[4]".into()),
            spark_settings: vec!["spark.driver.memory=4g".into()],
            ..Submission::default()
        };
        let block = b"# comment\nspark.jars                 /m.jar\nspark.driver.extraClassPath /m.jar\n";
        let made = submission.arguments("of.Job", vec!["source=/a b".into()], "/m.jar".as_ref(), block, b"");
        let expected = [
            "--class",
            "of.Job",
            "--master",
            "local[4]",
            "--conf",
            "spark.log.level=WARN",
            "--conf",
            "spark.driver.memory=4g",
            "--conf",
            "spark.driver.extraClassPath=/m.jar",
            "/m.jar",
            "source=/a b",
            "dry-run=true",
            "--json",
        ];
        assert_eq!(made, expected.map(OsString::from));
    }

    #[test]
    fn the_jvm_of_a_local_job_that_waits_starts_fast() {
        let is_fast = |master: Option<&str>, settings: &[&str], defaults: &str| {
            let submission = Submission {
                master: master.map(OsString::from),
                spark_settings: settings.iter().map(OsString::from).collect(),
                waits: true,
                ..Submission::default()
            };
            let made = submission.arguments("C", Vec::new(), "/m.jar".as_ref(), b"", defaults.as_bytes());
            made.iter().any(|word| {
                word.as_bytes().starts_with(b"spark.driver.defaultJavaOptions=-XX:TieredStopAtLevel=1")
            })
        };
        assert!(is_fast(Some("local[2]"), &["spark.driver.extraJavaOptions=-Da=b"], ""));
        assert!(is_fast(Some("local"), &[], "spark.master yarn"));
        assert!(is_fast(None, &[], ""), "Spark's own default is local[*]");
        for master in ["yarn", "local-cluster[1,1,1024]", "spark://h:7077"] {
            assert!(!is_fast(Some(master), &[], ""), "{master}");
        }
        assert!(!is_fast(None, &["spark.master=yarn"], ""));
        assert!(!is_fast(None, &[], "spark.master yarn"));
        assert!(!is_fast(None, &["spark.driver.defaultJavaOptions=-Da=b"], ""));
        assert!(!is_fast(None, &[], "spark.driver.defaultJavaOptions -Da=b"));
    }

    /// The jars of S3A, without which no S3 files could be compacted, are on the user's class path.
    #[test]
    fn our_class_path_is_added_to_the_users() {
        let joined = |given: &[&str], defaults: &str| {
            let settings = [&["spark.driver.extraClassPath=/m.jar"], given].concat();
            let mut settings: Vec<OsString> = settings.iter().map(OsString::from).collect();
            join_class_paths(&mut settings, defaults.as_bytes());
            settings.into_iter().map(|setting| setting.into_string().expect("UTF-8")).collect::<Vec<_>>()
        };
        let defaults = "# spark.driver.extraClassPath /no\nspark.driver.extraClassPathOfOthers=/no\n\
            spark.driver.extraClassPath /old.jar\nspark.driver.extraClassPath : /s3a.jar:/b.jar \r\n";
        assert_eq!(joined(&[], ""), ["spark.driver.extraClassPath=/m.jar"]);
        assert_eq!(joined(&[], defaults), ["spark.driver.extraClassPath=/s3a.jar:/b.jar:/m.jar"]);
        assert_eq!(
            joined(&["a=b", "spark.driver.extraClassPath=/x"], defaults),
            ["a=b", "spark.driver.extraClassPath=/x:/m.jar"]
        );
        assert_eq!(
            joined(&["spark.driver.extraClassPath=/m.jar:/x"], ""),
            ["spark.driver.extraClassPath=/m.jar:/x"]
        );
    }
}
