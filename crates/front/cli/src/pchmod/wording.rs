//! The wording of GNU `chmod`.

use millstream_change::attributes::{Event, Outcome, Problem};
use millstream_text::json::{Object, octal_as_decimal};
use millstream_text::mode::permission_text;
use millstream_vfs::Operation;

use super::table::PCHMOD;
use crate::attributes::Wording;

/// Lines and messages about modes.
#[derive(Debug)]
pub(super) struct ModeWording;

fn letters(mode: u32) -> String {
    permission_text(mode).into_iter().map(char::from).collect()
}

/// `0644 (rw-r--r--)`
fn both(mode: u32) -> String {
    format!("{mode:04o} ({})", letters(mode))
}

impl Wording for ModeWording {
    type Value = u32;

    const TOOL: &'static str = PCHMOD.name;
    const OPERATION: Operation = Operation::SetMode;

    fn setting(&self) -> &'static str {
        "changing permissions of "
    }

    fn line(&self, event: &Event<'_, u32>, name: &[u8], out: &mut Vec<u8>) {
        let values = event.before.zip(event.after);
        let (before, after) = match (event.outcome, values) {
            (Outcome::PassedOver, _) => {
                ("neither symbolic link ", " nor referent has been changed".to_owned())
            }
            (Outcome::Failed(Problem::Dereference(_)), _) => ("", " could not be accessed".to_owned()),
            (Outcome::Failed(_), Some((old, new))) => {
                ("failed to change mode of ", format!(" from {} to {}", both(old), both(new)))
            }
            (Outcome::Retained, Some((_, new))) => ("mode of ", format!(" retained as {}", both(new))),
            (Outcome::WouldChange, Some((old, new))) => {
                ("mode of ", format!(" would change from {} to {}", both(old), both(new)))
            }
            (_, Some((old, new))) => ("mode of ", format!(" changed from {} to {}", both(old), both(new))),
            (_, None) => ("", " could not be accessed".to_owned()),
        };
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(after.as_bytes());
    }

    fn surprise(&self, event: &Event<'_, u32>) -> Option<String> {
        match (event.outcome, event.after) {
            (Outcome::Surprising { expected }, Some(after)) => {
                Some(format!("new permissions are {}, not {}", letters(after), letters(expected)))
            }
            _ => None,
        }
    }

    fn values<'o>(&self, event: &Event<'_, u32>, mut record: Object<'o>) -> Object<'o> {
        let expected = match event.outcome {
            Outcome::Surprising { expected } => Some(expected),
            _ => None,
        };
        let members = [("mode_before", event.before), ("mode", event.after), ("mode_expected", expected)];
        for (key, value) in members {
            if let Some(mode) = value {
                record = record.number(key, octal_as_decimal(mode).into());
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use millstream_vfs::Errno;

    use super::*;

    #[test]
    fn lines_are_gnus() {
        let line = |before, after, outcome| {
            let mut out = Vec::new();
            ModeWording.line(&Event { path: b"f", before, after, outcome }, b"'f'", &mut out);
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(
            line(Some(0o644), Some(0o4711), Outcome::Changed),
            "mode of 'f' changed from 0644 (rw-r--r--) to 4711 (rws--x--x)"
        );
        assert_eq!(
            line(Some(0o644), Some(0o644), Outcome::Retained),
            "mode of 'f' retained as 0644 (rw-r--r--)"
        );
        assert_eq!(
            line(Some(0), Some(0o644), Outcome::Failed(Problem::Set(Errno::PERM))),
            "failed to change mode of 'f' from 0000 (---------) to 0644 (rw-r--r--)"
        );
        assert_eq!(line(None, None, Outcome::Failed(Problem::Dangling)), "'f' could not be accessed");
        assert_eq!(
            line(None, None, Outcome::PassedOver),
            "neither symbolic link 'f' nor referent has been changed"
        );
    }
}
