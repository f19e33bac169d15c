//! `millstream formats`: the arguments for the job that measures formats.

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use crate::compact::{size, word};
use crate::diagnostics::{Diagnostics, UsageError};
use crate::submit::{Submission, locale_is_utf8, setting};

pub(crate) const CLASS: &str = "io.millstream.spark.Formats";
pub(crate) const CODECS: &[&str] = &["none", "gz", "bz2", "zst", "lz4", "snappy"];

/// The values of the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Formats {
    sample_bytes: Option<u64>,
    codecs: Vec<&'static str>,
    rounds: Option<u32>,
    /// Options that the job checks, as settings.
    others: Vec<OsString>,
}

impl Formats {
    pub(crate) fn set_sample(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        self.sample_bytes = Some(size(text, "sample size", diagnostics)?);
        Ok(())
    }

    pub(crate) fn set_codecs(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        let names = text.split(|&b| b == b',').map(|name| word(name, "--codecs", CODECS, diagnostics));
        self.codecs = names.collect::<Result<_, _>>()?;
        Ok(())
    }

    pub(crate) fn set_rounds(&mut self, text: &[u8], diagnostics: &Diagnostics) -> Result<(), UsageError> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).filter(|&n| n > 0);
        self.rounds = Some(number.ok_or_else(|| {
            let quoted = diagnostics.quoted(text);
            UsageError::argument([b"invalid number of rounds: ", &quoted[..]].concat())
        })?);
        Ok(())
    }

    /// Takes an option that the job checks.
    pub(crate) fn set_other(&mut self, key: &str, value: Option<OsString>) {
        self.others.extend(value.map(|value| setting(key, &value)));
    }

    /// The arguments of the class, for the terminal of this process.
    pub(crate) fn settings(&self, path: &OsString, submission: &Submission) -> Vec<OsString> {
        // The log would break the line.
        let progress = io::stderr().is_terminal() && !submission.verbose;
        self.settings_for(path, progress, !locale_is_utf8())
    }

    fn settings_for(&self, path: &OsString, progress: bool, ascii: bool) -> Vec<OsString> {
        let numbers = [
            ("sample", self.sample_bytes.map(|bytes| format!("{bytes}b"))),
            ("codecs", (!self.codecs.is_empty()).then(|| self.codecs.join(","))),
            ("rounds", self.rounds.map(|rounds| rounds.to_string())),
            ("progress", progress.then(|| "true".to_owned())),
            ("ascii", ascii.then(|| "true".to_owned())),
        ];
        let given = numbers.into_iter().filter_map(|(key, value)| Some(setting(key, value?.as_ref())));
        [setting("path", path)].into_iter().chain(given).chain(self.others.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_job() {
        let diagnostics = Diagnostics::new("millstream");
        let mut formats = Formats::default();
        formats.set_sample(b"64M", &diagnostics).expect("a size");
        formats.set_codecs(b"gz,none", &diagnostics).expect("codecs");
        formats.set_rounds(b"5", &diagnostics).expect("a number");
        formats.set_other("limit", Some("90s".into()));
        let expected = ["path=/a b", "sample=67108864b", "codecs=gz,none", "rounds=5"];
        let all = [&expected[..], &["progress=true", "ascii=true", "limit=90s"]].concat();
        assert_eq!(formats.settings_for(&"/a b".into(), true, true), all);
        assert_eq!(Formats::default().settings_for(&"/a".into(), false, false), ["path=/a"]);
    }

    #[test]
    fn mistakes_are_reported() {
        let diagnostics = Diagnostics::new("millstream");
        let mut formats = Formats::default();
        for text in [&b""[..], b"0", b"x", b"-1"] {
            assert!(formats.set_sample(text, &diagnostics).is_err(), "{text:?}");
            assert!(formats.set_rounds(text, &diagnostics).is_err(), "{text:?}");
        }
        for text in [&b""[..], b"rar", b"gz,", b"gz,rar"] {
            assert!(formats.set_codecs(text, &diagnostics).is_err(), "{text:?}");
        }
    }

    #[test]
    fn codecs_are_those_of_the_shared_table() {
        let lines = millstream_wire::lines("codecs.tsv");
        let names = lines[1..].iter().filter_map(|line| line.split('\t').nth(7)).filter(|&name| name != "-");
        assert_eq!(CODECS, ["none"].into_iter().chain(names).collect::<Vec<_>>());
    }
}
