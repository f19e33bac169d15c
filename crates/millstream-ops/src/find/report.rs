//! Messages about what went wrong.

use rustix::io::Errno;

/// What an error number means, in the locale's language.
pub(super) fn describe(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    // The standard library appends the number.
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_described_without_their_number() {
        assert_eq!(describe(Errno::NOENT), "No such file or directory");
    }
}
