//! Why a request has no result.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Why a request has no result; the caller then asks the bucket's other client, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The server's answer is not the result.
    #[error("the server answered {status}{}{code}", if .code.is_empty() { "" } else { " " })]
    Answer {
        /// HTTP status.
        status: u16,
        /// S3's error code; empty if there is none.
        code: String,
    },
    /// No attempt got a complete answer.
    #[error("{0}")]
    Lost(String),
    /// A connection of the requested kind cannot be made.
    #[error("{0}")]
    Connection(String),
    /// The answer is not what S3 sends.
    #[error("{0}")]
    Malformed(&'static str),
    /// There are no credentials.
    #[error("no S3 credentials found")]
    Credentials,
    /// The caller has not taken the bytes that it requested.
    #[error("what was read could not be stored")]
    NotTaken,
    /// Requests of this kind are no longer made, since too many were refused.
    #[error("too many requests were refused")]
    Unused,
}

/// The error code in the body of an answer; empty if there is none.
pub(crate) fn code(xml: &[u8]) -> String {
    let text = element(xml, b"Code").unwrap_or_default();
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// The text of the first non-empty element of this name in an XML answer, up to the first markup or character
/// reference.
pub fn element(xml: &[u8], name: &[u8]) -> Option<String> {
    let mut reader = Reader::from_reader(xml);
    let mut inside = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => inside = start.local_name().as_ref() == name,
            Ok(Event::Text(text)) if inside => return Some(String::from_utf8_lossy(&text).into_owned()),
            // Quotation marks of an ETag.
            Ok(Event::GeneralRef(_)) if inside => return Some(String::new()),
            Ok(Event::End(_)) => inside = false,
            Ok(Event::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_code() {
        let body = b"<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>x</Message></Error>";
        assert_eq!(code(body), "SlowDown");
        for none in [&b""[..], b"<Error>", b"<html>busy</html>", b"\xff<Code", b"<Code></Code>"] {
            assert_eq!(code(none), "", "{none:?}");
        }
    }
}
