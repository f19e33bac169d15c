//! Arguments chosen from a list of words, which may be abbreviated, as in the GNU tools.

use crate::diagnostics::{Diagnostics, UsageError};

/// Synonyms.
#[derive(Clone, Copy, Debug)]
pub struct Choice<T: 'static> {
    /// The words; the first is the usual one.
    pub words: &'static [&'static str],
    /// Their meaning.
    pub meaning: T,
}

/// The meaning of `word`, which is exact or an abbreviation with only one meaning.
///
/// # Errors
/// A message about `context` (`--sort`) that lists the choices.
pub fn choose<T: Copy>(
    word: &[u8],
    context: &str,
    choices: &[Choice<T>],
    diagnostics: &Diagnostics,
) -> Result<T, UsageError> {
    let has = |choice: &&Choice<T>, fits: fn(&[u8], &[u8]) -> bool| {
        choice.words.iter().any(|w| fits(w.as_bytes(), word))
    };
    if let Some(exact) = choices.iter().find(|c| has(c, |w, word| w == word)) {
        return Ok(exact.meaning);
    }
    let mut possible = choices.iter().filter(|c| has(c, |w, word| w.starts_with(word)));
    match (possible.next(), possible.next()) {
        (Some(only), None) => Ok(only.meaning),
        (first, _) => Err(not_a_choice(
            if first.is_some() { "ambiguous" } else { "invalid" },
            word,
            context,
            choices,
            diagnostics,
        )),
    }
}

fn not_a_choice<T>(
    what: &str,
    word: &[u8],
    context: &str,
    choices: &[Choice<T>],
    diagnostics: &Diagnostics,
) -> UsageError {
    let quote = |text: &[u8]| diagnostics.quoted(text);
    let mut message = format!("{what} argument ").into_bytes();
    message.extend(quote(word));
    message.extend_from_slice(b" for ");
    message.extend(quote(context.as_bytes()));
    message.extend_from_slice(b"\nValid arguments are:");
    for choice in choices {
        for (i, word) in choice.words.iter().enumerate() {
            message.extend_from_slice(if i == 0 { b"\n  - " } else { b", " });
            message.extend(quote(word.as_bytes()));
        }
    }
    UsageError::argument(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: &[Choice<u8>] = &[
        Choice { words: &["atime", "access", "use"], meaning: 1 },
        Choice { words: &["ctime", "status"], meaning: 2 },
        Choice { words: &["sort", "stop"], meaning: 3 },
    ];

    #[test]
    fn abbreviations_of_one_meaning() {
        let diagnostics = Diagnostics::new("ls");
        for (word, meaning) in [("atime", 1), ("a", 1), ("u", 1), ("c", 2), ("sta", 2), ("so", 3)] {
            assert_eq!(choose(word.as_bytes(), "--time", TIMES, &diagnostics).expect(word), meaning);
        }
    }

    #[test]
    fn choices_are_listed() {
        let diagnostics = Diagnostics::new("ls");
        let error = choose(b"x", "--time", TIMES, &diagnostics).expect_err("no such word");
        let text = String::from_utf8_lossy(error.message()).replace(['‘', '’'], "'");
        assert_eq!(
            text,
            "invalid argument 'x' for '--time'\nValid arguments are:\n  - 'atime', 'access', 'use'\n  - 'ctime', 'status'\n  - 'sort', 'stop'"
        );
        let error = choose(b"s", "--time", TIMES, &diagnostics).expect_err("two meanings");
        assert!(error.message().starts_with(b"ambiguous argument "));
    }
}
