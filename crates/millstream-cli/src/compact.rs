//! `millstream compact`: finds Spark and Millstream's jar, and becomes the `spark-submit` that does the work.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use millstream_ops::size::SizeFormat;
use rustix::fs::{Access, access};

use crate::diagnostics::{Diagnostics, FAILURE, Refused, UsageError};
use crate::options::{Choice, choose};

const CLASS: &str = "io.millstream.spark.Compact";
const SPARK_HOME: &str = "SPARK_HOME";
const SUBMIT: &str = "spark-submit";
const PYTHON: &str = "python3";
/// What Python answers where pyspark is.
const ASK_PYTHON: &str = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";

pub(crate) const FORMATS: &[&str] = &["same", "text", "parquet"];

/// Lists the codecs: as words, and for the help.
macro_rules! codecs {
    ($first:literal $(, $word:literal)*) => {
        pub(crate) const CODECS: &[&str] = &[$first $(, $word)*];
        pub(crate) const CODEC_HELP: &str =
            concat!("compress by CODEC (", $first $(, ", ", $word)*, "); by default as the files were");
    };
}

codecs!("none", "gzip", "bzip2", "zstd", "lz4", "snappy");

/// Words that mean themselves.
fn word(
    text: &[u8],
    option: &str,
    words: &'static [&'static str],
    diagnostics: &Diagnostics,
) -> Result<&'static str, UsageError> {
    let choices: Vec<_> =
        words.iter().map(|word| Choice { words: std::slice::from_ref(word), meaning: *word }).collect();
    choose(text, option, &choices, diagnostics)
}

/// What the options say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compact {
    pub(crate) in_place: bool,
    pub(crate) header: bool,
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
    pub(crate) verbose: bool,
    pub(crate) master: Option<OsString>,
    /// Settings of Spark, as `KEY=VALUE`.
    pub(crate) spark_settings: Vec<OsString>,
    target_bytes: Option<u64>,
    format: Option<&'static str>,
    codec: Option<&'static str>,
}

impl Compact {
    pub(crate) fn set_target_size(
        &mut self,
        text: &[u8],
        diagnostics: &Diagnostics,
    ) -> Result<(), UsageError> {
        let size = std::str::from_utf8(text).ok().and_then(|text| SizeFormat::parse(text).ok());
        let Some(SizeFormat::Blocks { bytes, .. }) = size else {
            let quoted = diagnostics.quoted(text);
            return Err(UsageError::argument([b"invalid target size: ", &quoted[..]].concat()));
        };
        self.target_bytes = Some(bytes.get());
        Ok(())
    }

    pub(crate) fn set_format(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        self.format = Some(word(text, "--format", FORMATS, diagnostics)?);
        Ok(())
    }

    pub(crate) fn set_codec(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        self.codec = Some(word(text, "--codec", CODECS, diagnostics)?);
        Ok(())
    }

    /// What the class is told.
    fn settings(&self, operands: &[OsString]) -> Result<Vec<OsString>, UsageError> {
        let setting = |key: &str, value: &OsStr| {
            let mut setting = OsString::from(key);
            setting.push("=");
            setting.push(value);
            setting
        };
        let wrong = |message: &str| Err(UsageError::argument(message.into()));
        let mut settings = match (operands, self.in_place) {
            ([], _) => return wrong("missing source"),
            ([_], false) => return wrong("missing destination; --in-place replaces the files of the source"),
            ([source], true) => vec![setting("source", source), setting("in-place", "true".as_ref())],
            ([source, destination], false) => {
                vec![setting("source", source), setting("destination", destination)]
            }
            ([_, ..], true) => return wrong("--in-place takes no destination"),
            ([..], false) => return wrong("too many operands"),
        };
        let target = self.target_bytes.map(|bytes| format!("{bytes}b"));
        let flags = [("header", self.header), ("dry-run", self.dry_run)];
        let texts = [("target-size", target.as_deref()), ("format", self.format), ("codec", self.codec)];
        settings.extend(texts.into_iter().filter_map(|(key, value)| Some(setting(key, value?.as_ref()))));
        settings
            .extend(flags.into_iter().filter(|(_, on)| *on).map(|(key, _)| setting(key, "true".as_ref())));
        settings.extend(self.json.then(|| "--json".into()));
        Ok(settings)
    }

    /// The arguments of `spark-submit`; `block` is the conf block for the jar.
    pub(crate) fn arguments(
        &self,
        operands: &[OsString],
        jar: &OsStr,
        block: &[u8],
    ) -> Result<Vec<OsString>, UsageError> {
        let settings = self.settings(operands)?;
        let mut arguments = vec!["--class".into(), CLASS.into()];
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
        Ok(arguments)
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
            // The script looks for its pyspark with the first Python in PATH: that of an environment that is not active.
            let path = env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(folder.to_owned()).chain(env::split_paths(&path));
            command.envs(env::join_paths(folders).ok().map(|path| ("PATH", path)));
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

    fn operands(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn arguments_of_spark_submit() {
        let diagnostics = Diagnostics::new("millstream");
        let mut compact =
            Compact { header: true, json: true, master: Some("local[4]".into()), ..Compact::default() };
        compact.set_target_size(b"64M", &diagnostics).expect("a size");
        compact.set_format(b"text", &diagnostics).expect("a format");
        compact.set_codec(b"gz", &diagnostics).expect("a codec");
        compact.spark_settings.push("spark.driver.memory=4g".into());
        let block = b"# comment\nspark.jars                 /m.jar\nspark.driver.extraClassPath /m.jar\n";
        let made = compact.arguments(&operands(&["/a b", "/c"]), "/m.jar".as_ref(), block).expect("right");
        let expected = [
            "--class",
            CLASS,
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
            "destination=/c",
            "target-size=67108864b",
            "format=text",
            "codec=gzip",
            "header=true",
            "--json",
        ];
        assert_eq!(made, expected.map(OsString::from));
    }

    #[test]
    fn mistakes_are_told() {
        let diagnostics = Diagnostics::new("millstream");
        let mut compact = Compact::default();
        for (words, in_place, message) in [
            (&[][..], false, "missing source"),
            (&["a"], false, "missing destination; --in-place replaces the files of the source"),
            (&["a", "b"], true, "--in-place takes no destination"),
            (&["a", "b", "c"], false, "too many operands"),
        ] {
            compact.in_place = in_place;
            let error = compact.settings(&operands(words)).expect_err(message);
            assert_eq!(error.message(), message.as_bytes());
        }
        for size in [&b""[..], b"0", b"x", b"-1", b"si"] {
            assert!(compact.set_target_size(size, &diagnostics).is_err(), "{size:?}");
        }
        assert!(compact.set_format(b"orc", &diagnostics).is_err());
        assert!(compact.set_codec(b"rar", &diagnostics).is_err());
    }
}
