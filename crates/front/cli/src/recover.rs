//! `millstream recover`: the arguments for its Spark job.

use std::ffi::OsString;

use crate::compact::word;
use crate::diagnostics::{Diagnostics, UsageError};
use crate::submit::setting;

/// The job's class.
pub(crate) const CLASS: &str = "io.millstream.spark.Recover";
/// How to treat the files of overwrites that another writer has superseded.
pub(crate) const SUPERSEDED: &[&str] = &["apply", "drop"];

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recover {
    pub(crate) accept_loss: bool,
    superseded: Option<&'static str>,
}

impl Recover {
    pub(crate) fn set_superseded(
        &mut self,
        text: &[u8],
        diagnostics: &Diagnostics,
    ) -> Result<(), UsageError> {
        self.superseded = Some(word(text, "--superseded", SUPERSEDED, diagnostics)?);
        Ok(())
    }

    /// The arguments of the class.
    pub(crate) fn settings(&self, target: &OsString) -> Vec<OsString> {
        let mut settings = vec![setting("target", target)];
        if self.accept_loss {
            settings.push(setting("accept-loss", "true".as_ref()));
        }
        if let Some(choice) = self.superseded {
            settings.push(setting("superseded", choice.as_ref()));
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_checked() {
        let diagnostics = Diagnostics::new("millstream");
        let mut recover = Recover { accept_loss: true, ..Recover::default() };
        recover.set_superseded(b"apply", &diagnostics).expect("a choice");
        assert_eq!(recover.settings(&"a.b".into()), ["target=a.b", "accept-loss=true", "superseded=apply"]);
        assert!(recover.set_superseded(b"keep", &diagnostics).is_err());
    }
}
