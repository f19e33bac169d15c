//! Paths of objects: `s3://BUCKET/KEY`.

const SCHEME: &[u8] = b"s3://";

/// The bucket of a path and what follows it, if it is one in a bucket.
pub fn split(path: &[u8]) -> Option<(&str, &[u8])> {
    let rest = path.strip_prefix(SCHEME)?;
    let end = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
    let (bucket, key) = rest.split_at(end);
    // Other characters would change the address of the bucket.
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._".contains(b);
    let bucket = std::str::from_utf8(bucket).ok().filter(|name| name.bytes().all(|b| is_plain(&b)))?;
    (!bucket.is_empty()).then_some((bucket, key))
}

/// The key of a path below a prefix, which is empty or ends with a slash: without slashes at its end, and without parts
/// that mean nothing.
pub(crate) fn below(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let mut key = prefix.strip_suffix(b"/").unwrap_or(prefix).to_vec();
    for part in path.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => key.truncate(key.iter().rposition(|&b| b == b'/').unwrap_or(0)),
            part => {
                if !key.is_empty() {
                    key.push(b'/');
                }
                key.extend_from_slice(part);
            }
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_into_bucket_and_key() {
        assert_eq!(split(b"s3://b/a/c"), Some(("b", &b"/a/c"[..])));
        assert_eq!(split(b"s3://b"), Some(("b", &b""[..])));
        for other in [
            &b"s3:/b"[..],
            b"s3://",
            b"s3:///k",
            b"S3://b",
            b"s3a://b/k",
            b"/s3://b",
            b"s3://a@b/",
            b"s3://\xff/",
        ] {
            assert_eq!(split(other), None, "{other:?}");
        }
    }

    #[test]
    fn keys_have_no_empty_parts() {
        for (prefix, path, key) in [
            ("", "/a/c/", "a/c"),
            ("a/", ".", "a"),
            ("", "", ""),
            ("a/", "..", ""),
            ("a/c/", "..//x/./y", "a/x/y"),
            ("", "../..", ""),
        ] {
            assert_eq!(below(prefix.as_bytes(), path.as_bytes()), key.as_bytes(), "{prefix} {path}");
        }
    }
}
