//! Spark jobs: finds Spark, and replaces this process by the `spark-submit` that runs a class of Millstream's jar.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};

use crate::diagnostics::{Diagnostics, FAILURE, Refused};

const SPARK_HOME: &str = "SPARK_HOME";
const SUBMIT: &str = "spark-submit";
const PYTHON: &str = "python3";
/// With which Python Spark's scripts look for their files.
const PYTHON_VARIABLES: [&str; 2] = ["PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"];
/// What Python answers where pyspark is.
const ASK_PYTHON: &str = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";

/// What the options of every job say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Submission {
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
    pub(crate) verbose: bool,
    pub(crate) master: Option<OsString>,
    /// Settings of Spark, as `KEY=VALUE`.
    pub(crate) spark_settings: Vec<OsString>,
}

/// The setting `KEY=VALUE` of a Spark job.
pub(crate) fn setting(key: &str, value: &OsStr) -> OsString {
    let mut setting = OsString::from(key);
    setting.push("=");
    setting.push(value);
    setting
}

impl Submission {
    /// The arguments of `spark-submit` for a class with its settings; `block` is the conf block for the jar.
    pub(crate) fn arguments(
        &self,
        class: &str,
        settings: Vec<OsString>,
        jar: &OsStr,
        block: &[u8],
    ) -> Vec<OsString> {
        let mut arguments = vec!["--class".into(), class.into()];
        if let Some(master) = &self.master {
            arguments.extend(["--master".into(), master.clone()]);
        }
        let level = if self.verbose { "INFO" } else { "WARN" };
        // The jar is the application's, which executors get anyway.
        let lines = block
            .split(|&b| b == b'\n')
            .filter(|line| line.starts_with(b"spark.") && !line.starts_with(b"spark.jars "));
        let ours = lines.map(|line| {
            let (key, value) = line.split_at(line.iter().position(|&b| b == b' ').unwrap_or(line.len()));
            let setting = [key, b"=", value.trim_ascii()].concat();
            OsStr::from_bytes(&setting).to_owned()
        });
        let level = OsString::from(format!("spark.log.level={level}"));
        for setting in ours.chain([level]).chain(self.spark_settings.iter().cloned()) {
            arguments.extend(["--conf".into(), setting]);
        }
        arguments.push(jar.to_owned());
        arguments.extend(settings);
        arguments.extend(self.dry_run.then(|| setting("dry-run", "true".as_ref())));
        arguments.extend(self.json.then(|| "--json".into()));
        arguments
    }

    /// Becomes `spark-submit`; comes back if that cannot be.
    pub(crate) fn submit(arguments: Vec<OsString>, diagnostics: &Diagnostics) -> Refused {
        let Some(program) = spark_submit() else {
            let text = "cannot find spark-submit: set SPARK_HOME, or install pyspark for the python3 in PATH";
            diagnostics.error(FAILURE).text(text).send();
            return Refused;
        };
        let mut command = Command::new(&program);
        command.args(arguments);
        if env::var_os(SPARK_HOME).is_some_and(|home| home.is_empty()) {
            // Spark's scripts would take the root directory for it.
            command.env_remove(SPARK_HOME);
        }
        let utf8 = |value: &OsString| {
            value.to_string_lossy().to_ascii_lowercase().replace('-', "").ends_with("utf8")
        };
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os).find(|v| !v.is_empty());
        if !locale.is_some_and(|locale| utf8(&locale)) {
            // Otherwise the JVM could not open files with names that are not ASCII.
            command.env("LC_ALL", "C.UTF-8");
        }
        if let Some(folder) = program.parent().filter(|folder| is_program(&folder.join(PYTHON))) {
            // The script asks a Python where its pyspark is: not the first in PATH, if the environment is not active.
            if PYTHON_VARIABLES.into_iter().all(|variable| env::var_os(variable).is_none()) {
                command.env(PYTHON_VARIABLES[0], folder.join(PYTHON));
            }
        }
        let error = command.exec();
        let name = diagnostics.quoted(program.as_os_str().as_bytes());
        diagnostics.error(FAILURE).text("cannot run ").bytes(&name).cause(&error).send();
        Refused
    }
}

/// That of SPARK_HOME, in PATH, beside this program, or of the pyspark that Python finds.
fn spark_submit() -> Option<PathBuf> {
    if let Some(home) = env::var_os(SPARK_HOME).filter(|home| !home.is_empty()) {
        return Some(Path::new(&home).join("bin").join(SUBMIT));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let folders = env::split_paths(&path).chain(beside);
    let found = folders.map(|folder| folder.join(SUBMIT)).find(|program| is_program(program));
    found.or_else(|| {
        let answer = Command::new(PYTHON).args(["-c", ASK_PYTHON]).output().ok()?;
        let package = OsStr::from_bytes(answer.stdout.trim_ascii_end());
        let program = Path::new(package).join("bin").join(SUBMIT);
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
    fn arguments_of_spark_submit() {
        let submission = Submission {
            dry_run: true,
            json: true,
            master: Some("local[4]".into()),
            spark_settings: vec!["spark.driver.memory=4g".into()],
            ..Submission::default()
        };
        let block = b"# comment\nspark.jars                 /m.jar\nspark.driver.extraClassPath /m.jar\n";
        let made = submission.arguments("of.Job", vec!["source=/a b".into()], "/m.jar".as_ref(), block);
        let expected = [
            "--class",
            "of.Job",
            "--master",
            "local[4]",
            "--conf",
            "spark.driver.extraClassPath=/m.jar",
            "--conf",
            "spark.log.level=WARN",
            "--conf",
            "spark.driver.memory=4g",
            "/m.jar",
            "source=/a b",
            "dry-run=true",
            "--json",
        ];
        assert_eq!(made, expected.map(OsString::from));
    }
}
