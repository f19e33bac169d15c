//! Request signatures: AWS Signature Version 4, in S3's form for requests whose body is known before they are sent.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>. The method, path, query, headers
//! and the hash of the body are hashed, and that is signed with a key that is derived from the secret, the day and the
//! region.

use std::fmt::{self, Debug, Formatter, Write};

use jiff::Timestamp;
use ring::{digest, hmac};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Provides the credentials for each request, and renews them.
pub trait CredentialSource: Send + Sync {
    /// The current credentials; `None` if there are none.
    fn credentials(&self) -> Option<Credentials>;
}

/// Who makes a request.
#[derive(Clone)]
pub enum Credentials {
    /// An anonymous user.
    Anonymous,
    /// The owner of a key.
    Key {
        /// Access key.
        id: String,
        /// Secret key.
        secret: String,
        /// Token of a session; empty for none.
        token: String,
    },
}

/// Secrets are never shown.
impl Debug for Credentials {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credentials::Anonymous => "Anonymous",
            Credentials::Key { .. } => "Key",
        })
    }
}

/// A request to be signed.
#[derive(Debug)]
pub(crate) struct Unsigned<'a> {
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    /// Encoded path.
    pub(crate) path: &'a str,
    /// Encoded query, in the order of its names.
    pub(crate) query: &'a str,
    /// Other headers, with names in lower case.
    pub(crate) headers: &'a [(&'a str, String)],
    pub(crate) body: &'a [u8],
}

/// The headers to add to a request, including the signature; none if it is anonymous.
pub(crate) fn sign(
    request: &Unsigned<'_>,
    credentials: &Credentials,
    region: &str,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let Credentials::Key { id, secret, token } = credentials else {
        return Vec::new();
    };
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = &time[..8];
    let body = hex(digest::digest(&digest::SHA256, request.body).as_ref());
    let mut added = vec![("x-amz-content-sha256", body.clone()), ("x-amz-date", time.clone())];
    if !token.is_empty() {
        added.push(("x-amz-security-token", token.clone()));
    }
    let mut signed: Vec<(&str, &str)> = vec![("host", request.host)];
    signed.extend(added.iter().chain(request.headers).map(|(name, value)| (*name, value.as_str())));
    signed.sort_unstable();
    let names = signed.iter().map(|&(name, _)| name).collect::<Vec<_>>().join(";");
    let one_space =
        |value: &str| value.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", one_space(value))).collect();
    let Unsigned { method, path, query, .. } = request;
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}");

    let scope = format!("{day}/{region}/s3/aws4_request");
    let hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let first = format!("AWS4{secret}").into_bytes();
    let key = [day, region, "s3", "aws4_request"].iter().fold(first, |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &format!("{ALGORITHM}\n{time}\n{scope}\n{hash}")));
    let value = format!("{ALGORITHM} Credential={id}/{scope},SignedHeaders={names},Signature={signature}");
    added.push(("authorization", value));
    added
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Credentials {
        Credentials::Key {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: String::new(),
        }
    }

    fn signature(path: &str, query: &str, headers: &[(&'static str, String)]) -> String {
        signature_of("GET", path, query, headers, b"")
    }

    fn signature_of(
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&'static str, String)],
        body: &[u8],
    ) -> String {
        let request = Unsigned { method, host: "examplebucket.s3.amazonaws.com", path, query, headers, body };
        let now = "2013-05-24T00:00:00Z".parse().expect("a time");
        let added = sign(&request, &example(), "us-east-1", now);
        let (_, value) = added.last().expect("a signature");
        value.rsplit_once("Signature=").expect("its value").1.to_owned()
    }

    /// The examples of the page linked above.
    #[test]
    fn signatures_are_those_of_the_documentation() {
        assert_eq!(
            signature("/test.txt", "", &[("range", "bytes=0-9".into())]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature("/", "max-keys=2&prefix=J", &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        assert_eq!(
            signature("/", "lifecycle=", &[]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT".into()),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY".into()),
        ];
        assert_eq!(
            signature_of("PUT", "/test%24file.text", "", &put, b"Welcome to Amazon S3."),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
    }

    #[test]
    fn a_token_is_sent_and_signed() {
        let credentials = Credentials::Key { id: "a".into(), secret: "b".into(), token: "t".into() };
        let request = Unsigned { method: "GET", host: "h", path: "/", query: "", headers: &[], body: &[] };
        let added = sign(&request, &credentials, "r", Timestamp::UNIX_EPOCH);
        assert!(added.contains(&("x-amz-security-token", "t".into())));
        assert!(added.last().expect("a signature").1.contains("x-amz-date;x-amz-security-token,"));
        assert!(sign(&request, &Credentials::Anonymous, "r", Timestamp::UNIX_EPOCH).is_empty());
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", example()), "Key");
    }
}
