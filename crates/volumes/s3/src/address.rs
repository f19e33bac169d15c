//! Where a bucket is, and how its keys are written in a URL.

use std::fmt::Write;

/// The address of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Scheme, host and port, without a slash at the end.
    origin: String,
    /// Host, and the port if it is not the scheme's.
    host: String,
    /// What precedes a key in the path, from slash to slash.
    directory: String,
}

impl Address {
    /// The address of a bucket whose keys are appended to this `http:` or `https:` URL, which ends with a slash.
    ///
    /// `None` if it is not such a URL.
    pub fn new(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (host, directory) = rest.split_at(rest.find('/')?);
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let is_plain = !host.is_empty()
            && !host.contains('@')
            && !directory.contains(['?', '#'])
            && directory.ends_with('/');
        is_plain.then(|| Address {
            origin: format!("{scheme}://{host}"),
            host: host.strip_suffix(default_port).unwrap_or(host).to_owned(),
            directory: directory.to_owned(),
        })
    }

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.origin.starts_with("https:")
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The value of the `Host` header.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The path of the bucket.
    pub(crate) fn bucket(&self) -> &str {
        match self.directory.trim_end_matches('/') {
            "" => "/",
            bucket => bucket,
        }
    }

    /// The path of an object.
    pub(crate) fn object(&self, key: &[u8]) -> String {
        let mut path = self.directory.clone();
        encode_path(key, &mut path);
        path
    }

    /// The server that the bucket is on: the host without the bucket's name, if that is its first part, as in Amazon's
    /// addresses.
    pub(crate) fn server(&self) -> &str {
        match (self.bucket(), self.host.split_once('.')) {
            ("/", Some((_, server))) => server,
            _ => &self.host,
        }
    }
}

/// Appends a key with its slashes.
pub(crate) fn encode_path(key: &[u8], to: &mut String) {
    for (i, part) in key.split(|&b| b == b'/').enumerate() {
        if i > 0 {
            to.push('/');
        }
        encode(part, to);
    }
}

/// Appends these bytes percent-encoded, as signatures require.
pub fn encode(bytes: &[u8], to: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

/// Decodes a form-encoded value, in which a plus is a space; `None` if a percent sign is not followed by two digits.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(*rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high << 4 | low).ok()?
            }
            b'+' => b' ',
            plain => plain,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_split_where_requests_need_it() {
        for (url, host, bucket, object) in [
            ("http://127.0.0.1:99/bed/", "127.0.0.1:99", "/bed", "/bed/a/b%20c"),
            ("https://b.s3.eu-west-1.amazonaws.com/", "b.s3.eu-west-1.amazonaws.com", "/", "/a/b%20c"),
            ("https://host:443/x/b/", "host", "/x/b", "/x/b/a/b%20c"),
            ("http://host:443/b/", "host:443", "/b", "/b/a/b%20c"),
        ] {
            let address = Address::new(url).expect(url);
            assert_eq!((address.host(), address.bucket()), (host, bucket));
            assert_eq!(address.object(b"a/b c"), object);
            assert!(url.starts_with(address.origin()));
            assert_eq!(address.is_encrypted(), url.starts_with("https"));
        }
        for not in [
            "",
            "http://host",
            "ftp://host/b/",
            "http://u:p@host/b/",
            "http:///b/",
            "http://h/b?x=/",
            "http://h/b",
        ] {
            assert_eq!(Address::new(not), None, "{not}");
        }
    }

    #[test]
    fn any_bytes_are_encoded_and_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        encode(&all, &mut text);
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
        assert_eq!(decode(text.as_bytes()), Some(all));
        assert_eq!(decode(b"a+b%2Bc"), Some(b"a b+c".to_vec()));
        for broken in [&b"%"[..], b"a%2", b"%zz"] {
            assert_eq!(decode(broken), None);
        }
    }
}
