//! Pages of listings: the answers to `ListObjectsV2`.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>. Keys are requested form-encoded, since XML
//! cannot express all of them; servers that do not support this send them as they are, without `EncodingType`.

use jiff::Timestamp;
use millstream_version::{Tag, Version};
use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use crate::address::decode;
use crate::refusal::Refusal;

const NO_XML: Refusal = Refusal::Malformed("the listing is not XML");

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: String,
    /// Its version, with a time in milliseconds.
    pub version: Version,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Objects, in the order of the listing.
    pub items: Vec<Item>,
    /// Prefixes that keys have in common up to the delimiter.
    pub prefixes: Vec<String>,
    /// Continues the listing; `None` at its end.
    pub next: Option<String>,
}

/// Values as the answer has them.
#[derive(Default)]
struct Raw<'a> {
    item: Item,
    has_size: bool,
    has_time: bool,
    key: Vec<u8>,
    found: Vec<(Vec<u8>, Item)>,
    prefixes: Vec<Vec<u8>>,
    next: Option<Vec<u8>>,
    is_truncated: Option<bool>,
    is_encoded: bool,
    /// Name of the open element below the root.
    section: &'a [u8],
}

/// Parses an answer.
pub(crate) fn parse(xml: &[u8]) -> Result<Page, Refusal> {
    let mut reader = Reader::from_reader(xml);
    let mut raw = Raw::default();
    let mut text = Vec::new();
    let mut depth = 0;
    let mut is_listing = false;
    loop {
        match reader.read_event().map_err(|_| NO_XML)? {
            Event::Start(start) => {
                depth += 1;
                text.clear();
                match depth {
                    1 => is_listing = start.local_name().as_ref() == b"ListBucketResult",
                    2 => raw.section = section(start.local_name().as_ref()),
                    _ => {}
                }
            }
            Event::Text(more) => text.extend_from_slice(&more),
            Event::CData(more) => text.extend_from_slice(&more),
            Event::GeneralRef(entity) => {
                text.extend_from_slice(resolved(&entity)?.encode_utf8(&mut [0; 4]).as_bytes())
            }
            Event::End(end) => {
                raw.end(depth, end.local_name().as_ref(), &text)?;
                text.clear();
                depth -= 1;
            }
            Event::Eof if is_listing && depth == 0 => return raw.into_page(),
            Event::Eof => return Err(Refusal::Malformed("the response is not a listing, or is truncated")),
            _ => {}
        }
    }
}

/// The name as a static string; empty for names that do not matter.
fn section(name: &[u8]) -> &'static [u8] {
    match name {
        b"Contents" => b"Contents",
        b"CommonPrefixes" => b"CommonPrefixes",
        _ => b"",
    }
}

fn resolved(entity: &BytesRef<'_>) -> Result<char, Refusal> {
    if let Some(character) = entity.resolve_char_ref().map_err(|_| NO_XML)? {
        return Ok(character);
    }
    Ok(match entity.as_ref() {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        _ => return Err(NO_XML),
    })
}

impl Raw<'_> {
    fn end(&mut self, depth: u32, name: &[u8], text: &[u8]) -> Result<(), Refusal> {
        match (depth, self.section, name) {
            (2, _, b"IsTruncated") => self.is_truncated = truth(text),
            (2, _, b"NextContinuationToken") => self.next = Some(text.to_vec()),
            (2, _, b"EncodingType") => self.is_encoded = text.eq_ignore_ascii_case(b"url"),
            (2, b"Contents", _) => {
                if !(std::mem::take(&mut self.has_size) && std::mem::take(&mut self.has_time)) {
                    return Err(Refusal::Malformed("an object has no size or no time"));
                }
                self.found.push((std::mem::take(&mut self.key), std::mem::take(&mut self.item)));
            }
            (3, b"Contents", b"Key") => self.key = text.to_vec(),
            (3, b"Contents", b"Size") => {
                self.item.version.size =
                    number(text).ok_or(Refusal::Malformed("an object's size is not a number"))?;
                self.has_size = true;
            }
            (3, b"Contents", b"LastModified") => {
                let time = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Timestamp>().ok());
                let time = time.ok_or(Refusal::Malformed("an object's time is not a timestamp"))?;
                self.item.version.mtime = millstream_vfs::Timestamp::from_millis(time.as_millisecond());
                self.has_time = true;
            }
            (3, b"Contents", b"ETag") => self.item.version.tag = Tag::pack(text),
            (3, b"CommonPrefixes", b"Prefix") => self.prefixes.push(text.to_vec()),
            _ => {}
        }
        Ok(())
    }

    fn into_page(self) -> Result<Page, Refusal> {
        let is_encoded = self.is_encoded;
        let key = |bytes: Vec<u8>| {
            let plain = if is_encoded { decode(&bytes) } else { Some(bytes) };
            plain
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .ok_or(Refusal::Malformed("a key is not UTF-8"))
        };
        let items = self.found.into_iter().map(|(bytes, item)| Ok(Item { key: key(bytes)?, ..item }));
        let next = match (self.is_truncated, self.next.filter(|token| !token.is_empty())) {
            (Some(false), None) => None,
            (Some(true), Some(token)) => Some(
                String::from_utf8(token)
                    .map_err(|_| Refusal::Malformed("the continuation token is not UTF-8"))?,
            ),
            _ => {
                return Err(Refusal::Malformed(
                    "the listing does not say whether it continues, or has no continuation token",
                ));
            }
        };
        Ok(Page {
            items: items.collect::<Result<_, _>>()?,
            prefixes: self.prefixes.into_iter().map(key).collect::<Result<_, _>>()?,
            next,
        })
    }
}

fn truth(text: &[u8]) -> Option<bool> {
    match text {
        text if text.eq_ignore_ascii_case(b"true") => Some(true),
        text if text.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bed</Name><Prefix>a%2F</Prefix><MaxKeys>1000</MaxKeys>
  <EncodingType>url</EncodingType><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>1/a+&amp;=</NextContinuationToken>
  <Contents><Key>a/b+c%2B%C3%A9</Key><LastModified>2024-02-29T12:00:00.250Z</LastModified>
    <ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><Size>0</Size><Owner><ID>x</ID><Key>no</Key></Owner><StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>a/d</Key><Size>18446744073709551615</Size><LastModified>1969-12-31T23:59:59Z</LastModified><ETag>"m&#45;2"</ETag></Contents>
  <CommonPrefixes><Prefix>a%2Fe/</Prefix></CommonPrefixes>
</ListBucketResult>"#;

    #[test]
    fn a_page_has_objects_prefixes_and_a_continuation() {
        let version = |size, mtime_ms, etag: &str| Version {
            tag: Tag::pack(etag.as_bytes()),
            ..Version::at(size, millstream_vfs::Timestamp::from_millis(mtime_ms))
        };
        let sum = "d41d8cd98f00b204e9800998ecf8427e";
        let expected = Page {
            items: vec![
                Item { key: "a/b c+\u{e9}".into(), version: version(0, 1_709_208_000_250, sum) },
                Item { key: "a/d".into(), version: version(u64::MAX, -1000, "m-2") },
            ],
            prefixes: vec!["a/e/".into()],
            next: Some("1/a+&=".into()),
        };
        assert_eq!(parse(PAGE.as_bytes()), Ok(expected));
    }

    #[test]
    fn keys_that_are_not_encoded_stay_as_they_are() {
        let page = parse(PAGE.replace("<EncodingType>url</EncodingType>", "").as_bytes()).expect("a page");
        assert_eq!(page.items[0].key, "a/b+c%2B%C3%A9");
    }

    #[test]
    fn truth_has_no_case() {
        let page = parse(PAGE.replace(">true<", ">True<").as_bytes()).expect("a page");
        assert_eq!(page.next.as_deref(), Some("1/a+&="));
    }

    #[test]
    fn an_empty_page_is_the_end() {
        for text in [
            "<ListBucketResult/>",
            "<ListBucketResult><IsTruncated>false</IsTruncated><Prefix/></ListBucketResult>",
        ] {
            // No server sends a root without content; it is not a listing.
            assert_eq!(parse(text.as_bytes()).ok(), text.contains("Prefix").then(Page::default), "{text}");
        }
    }

    #[test]
    fn a_page_that_is_cut_off_or_damaged_is_refused() {
        for length in 0..PAGE.len() {
            if PAGE.is_char_boundary(length) {
                assert!(parse(&PAGE.as_bytes()[..length]).is_err(), "{length}");
            }
        }
        for (what, with) in [
            ("<Size>0", "<Size>x"),
            ("2024-02-29", "2024-02-30"),
            ("%C3%A9", "%C3"),
            ("%C3%A9", "%C"),
            ("ListBucketResult", "Error"),
            ("<NextContinuationToken>1/a+&amp;=</NextContinuationToken>", ""),
            ("<IsTruncated>true</IsTruncated>", ""),
            ("<IsTruncated>true</IsTruncated>", "<IsTruncated>false</IsTruncated>"),
            ("<IsTruncated>true</IsTruncated>", "<IsTruncated>1</IsTruncated>"),
            ("<Size>0</Size>", ""),
            ("<LastModified>1969-12-31T23:59:59Z</LastModified>", ""),
            ("&amp;", "&nosuch;"),
        ] {
            assert!(PAGE.contains(what));
            assert!(parse(PAGE.replace(what, with).as_bytes()).is_err(), "{what} {with}");
        }
    }
}
