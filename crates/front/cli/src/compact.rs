//! `millstream compact`: the arguments for the job that merges small files.

use std::ffi::OsString;

use millstream_text::size::SizeFormat;

use crate::diagnostics::{Diagnostics, UsageError};
use crate::options::{Choice, choose};
use crate::submit::setting;

pub(crate) const CLASS: &str = "io.millstream.spark.Compact";

pub(crate) const FORMATS: &[&str] = &["same", "text", "parquet"];

/// The codecs: as words, and for the help.
macro_rules! codecs {
    ($first:literal $(, $word:literal)*) => {
        pub(crate) const CODECS: &[&str] = &[$first $(, $word)*];
        pub(crate) const CODEC_HELP: &str =
            concat!("compress with CODEC (", $first $(, ", ", $word)*, "); by default, like the input files");
    };
}

codecs!("none", "gzip", "bzip2", "zstd", "lz4", "snappy");

/// Words that stand for themselves.
pub(crate) fn word(
    text: &[u8],
    option: &str,
    words: &'static [&'static str],
    diagnostics: &Diagnostics,
) -> Result<&'static str, UsageError> {
    let choices: Vec<_> =
        words.iter().map(|word| Choice { words: std::slice::from_ref(word), meaning: *word }).collect();
    choose(text, option, &choices, diagnostics)
}

/// A number of bytes such as `128M`; `of` is its name in messages.
pub(crate) fn size(text: &[u8], of: &str, diagnostics: &Diagnostics) -> Result<u64, UsageError> {
    match std::str::from_utf8(text).ok().and_then(|text| SizeFormat::parse(text).ok()) {
        Some(SizeFormat::Blocks { bytes, .. }) => Ok(bytes.get()),
        _ => {
            let quoted = diagnostics.quoted(text);
            Err(UsageError::argument([format!("invalid {of}: ").as_bytes(), &quoted[..]].concat()))
        }
    }
}

/// The values of the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compact {
    pub(crate) in_place: bool,
    pub(crate) header: bool,
    pub(crate) no_header: bool,
    pub(crate) plain_files: bool,
    pub(crate) undo: bool,
    pub(crate) purge: bool,
    pub(crate) lines: Option<OsString>,
    pub(crate) table: Option<OsString>,
    pub(crate) keep_for: Option<OsString>,
    pub(crate) copy_left: bool,
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
        self.target_bytes = Some(size(text, "target size", diagnostics)?);
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

    /// The arguments of the class, which checks their combinations.
    pub(crate) fn settings(&self, operands: &[OsString]) -> Result<Vec<OsString>, UsageError> {
        let wrong = |message: &str| Err(UsageError::argument(message.into()));
        let is_alone = self.undo || self.purge && !self.in_place;
        let mut settings = match (operands, self.in_place) {
            ([], true) if self.table.is_some() => vec![setting("in-place", "true".as_ref())],
            ([], _) => return wrong("missing source"),
            ([source], false) if is_alone => vec![setting("source", source)],
            (_, _) if is_alone => return wrong("--undo and --purge take exactly one directory"),
            (_, true) if self.copy_left => {
                return wrong("--copy-left needs a destination: with --in-place, there is nothing to copy");
            }
            ([_], false) => {
                return wrong("missing destination; use --in-place to replace the files in the source");
            }
            ([source], true) => vec![setting("source", source), setting("in-place", "true".as_ref())],
            ([source, destination], false) => {
                vec![setting("source", source), setting("destination", destination)]
            }
            ([_, ..], true) => return wrong("--in-place takes no destination"),
            ([..], false) => return wrong("too many operands"),
        };
        let target = self.target_bytes.map(|bytes| format!("{bytes}b"));
        let texts = [("target-size", target.as_deref()), ("format", self.format), ("codec", self.codec)];
        settings.extend(texts.into_iter().filter_map(|(key, value)| Some(setting(key, value?.as_ref()))));
        let others = [("lines", &self.lines), ("table", &self.table), ("keep-for", &self.keep_for)];
        settings.extend(others.into_iter().filter_map(|(key, value)| Some(setting(key, value.as_deref()?))));
        let flags = [
            ("header", self.header),
            ("no-header", self.no_header),
            ("plain-files", self.plain_files),
            ("undo", self.undo),
            ("purge", self.purge),
            ("copy-left", self.copy_left),
        ];
        settings
            .extend(flags.into_iter().filter(|flag| flag.1).map(|(key, _)| setting(key, "true".as_ref())));
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operands(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn settings_of_the_job() {
        let diagnostics = Diagnostics::new("millstream");
        let mut compact = Compact { header: true, copy_left: true, ..Compact::default() };
        compact.set_target_size(b"64M", &diagnostics).expect("a size");
        compact.set_format(b"text", &diagnostics).expect("a format");
        compact.set_codec(b"gz", &diagnostics).expect("a codec");
        let made = compact.settings(&operands(&["/a b", "/c"])).expect("right");
        let expected = [
            "source=/a b",
            "destination=/c",
            "target-size=67108864b",
            "format=text",
            "codec=gzip",
            "header=true",
            "copy-left=true",
        ];
        assert_eq!(made, expected.map(OsString::from));
    }

    #[test]
    fn mistakes_are_reported() {
        let diagnostics = Diagnostics::new("millstream");
        let mut compact = Compact::default();
        for (words, in_place, message) in [
            (&[][..], false, "missing source"),
            (&["a"], false, "missing destination; use --in-place to replace the files in the source"),
            (&["a", "b"], true, "--in-place takes no destination"),
            (&["a", "b", "c"], false, "too many operands"),
        ] {
            compact.in_place = in_place;
            let error = compact.settings(&operands(words)).expect_err(message);
            assert_eq!(error.message(), message.as_bytes());
        }
        compact = Compact { undo: true, ..Compact::default() };
        let error = compact.settings(&operands(&["a", "b"])).expect_err("one directory");
        assert_eq!(error.message(), b"--undo and --purge take exactly one directory");
        assert_eq!(
            compact.settings(&operands(&["a"])),
            Ok(["source=a", "undo=true"].map(OsString::from).to_vec())
        );
        compact = Compact { table: Some("d.t".into()), in_place: true, purge: true, ..Compact::default() };
        let expected = ["in-place=true", "table=d.t", "purge=true"].map(OsString::from).to_vec();
        assert_eq!(compact.settings(&[]), Ok(expected));
        compact = Compact { copy_left: true, ..Compact::default() };
        assert!(compact.settings(&operands(&["a", "b"])).is_ok());
        compact.in_place = true;
        let error = compact.settings(&operands(&["a"])).expect_err("nothing to copy");
        assert_eq!(
            error.message(),
            b"--copy-left needs a destination: with --in-place, there is nothing to copy"
        );
        for size in [&b""[..], b"0", b"x", b"-1", b"si"] {
            assert!(compact.set_target_size(size, &diagnostics).is_err(), "{size:?}");
        }
        assert!(compact.set_format(b"orc", &diagnostics).is_err());
        assert!(compact.set_codec(b"rar", &diagnostics).is_err());
    }

    #[test]
    fn codecs_are_those_of_the_shared_table() {
        let lines = millstream_wire::lines("codecs.tsv");
        let names = lines[1..].iter().filter_map(|line| line.split('\t').nth(8)).filter(|&name| name != "-");
        assert_eq!(CODECS, ["none"].into_iter().chain(names).collect::<Vec<_>>());
    }
}
