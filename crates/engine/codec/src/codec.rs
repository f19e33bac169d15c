//! Names, numbers and signatures of formats. `testdata/codecs.tsv` lists the codecs; tests of every language that knows
//! them read it.

/// A compression format of text files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// gzip members (RFC 1952).
    Gzip,
    /// bzip2 streams.
    Bzip2,
    /// Zstandard frames (RFC 8878).
    Zstd,
    /// LZ4 frames, or Hadoop's blocks of LZ4.
    Lz4,
    /// Hadoop's blocks of Snappy, or Snappy's framing format.
    Snappy,
    /// zlib streams (RFC 1950), Hadoop's default.
    Deflate,
}

/// The codecs in the order of their codes, which count from 1.
const CODECS: [Codec; 6] =
    [Codec::Gzip, Codec::Bzip2, Codec::Zstd, Codec::Lz4, Codec::Snappy, Codec::Deflate];

impl Codec {
    /// The codec that Hadoop's `CompressionCodecFactory` finds for the name of a file, without its directory: by the
    /// extension, in upper or lower case; none if the name is only the extension.
    pub fn of_name(name: &[u8]) -> Option<Codec> {
        CODECS.into_iter().find(|codec| {
            let extension = codec.extension().as_bytes();
            name.len() > extension.len()
                && name[name.len() - extension.len()..].eq_ignore_ascii_case(extension)
        })
    }

    /// The codec that Spark finds for the name of a file, and the name without its extension. Since 4.3 Spark knows two
    /// more extensions than Hadoop ([`Codec::of_name`]).
    pub fn split_name(name: &[u8]) -> Option<(Codec, &[u8])> {
        let stem = |extension: &str| {
            let (stem, end) = name.split_at_checked(name.len().checked_sub(extension.len())?)?;
            (!stem.is_empty() && end.eq_ignore_ascii_case(extension.as_bytes())).then_some(stem)
        };
        let extensions = CODECS.into_iter().map(|codec| (codec, codec.extension()));
        let others = [(Codec::Gzip, ".gzip"), (Codec::Zstd, ".zstd")];
        extensions.chain(others).find_map(|(codec, extension)| Some((codec, stem(extension)?)))
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Bzip2 => "bzip2",
            Codec::Zstd => "zstd",
            Codec::Lz4 => "lz4",
            Codec::Snappy => "snappy",
            Codec::Deflate => "deflate",
        }
    }

    /// The extension, as in Hadoop.
    pub fn extension(self) -> &'static str {
        match self {
            Codec::Gzip => ".gz",
            Codec::Bzip2 => ".bz2",
            Codec::Zstd => ".zst",
            Codec::Lz4 => ".lz4",
            Codec::Snappy => ".snappy",
            Codec::Deflate => ".deflate",
        }
    }

    /// Whether its files can have an [`Index`](crate::Index).
    pub fn has_index(self) -> bool {
        match self {
            Codec::Gzip | Codec::Zstd | Codec::Lz4 | Codec::Snappy => true,
            Codec::Bzip2 | Codec::Deflate => false,
        }
    }

    /// Whether programs of the format take a file of no bytes for a whole one; others call it truncated, even though
    /// readers find no text in it.
    pub fn may_be_empty(self) -> bool {
        match self {
            Codec::Lz4 | Codec::Snappy => true,
            Codec::Gzip | Codec::Bzip2 | Codec::Zstd | Codec::Deflate => false,
        }
    }

    /// The codec's number where it is encoded, 1 to 6.
    pub fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The codec with a number.
    pub fn from_code(code: u8) -> Option<Codec> {
        CODECS.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// Bytes at the start of a file that decide whether it is text.
const BEGINNING: usize = 512;

/// Signatures of formats that are not text. Formats with a NUL near their beginning need no entry.
const SIGNATURES: [(&[u8], &str); 14] = [
    (b"PAR1", "Parquet"),
    (b"PARE", "encrypted Parquet"),
    (b"ORC", "ORC"),
    (b"Obj\x01", "Avro"),
    (b"SEQ\x06", "a Hadoop sequence file"),
    (b"\x1f\x8b", "gzip"),
    (b"\x1f\x9d", "compress"),
    (b"BZh", "bzip2"),
    (b"%PDF-", "PDF"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
    (b"\x04\x22\x4d\x18", "LZ4"),
    (b"PK\x03\x04", "zip"),
    (b"\xff\xfe", "UTF-16 or UTF-32"),
    (b"\xfe\xff", "UTF-16"),
];

/// The format whose signature a file starts with; `None` for text, even if it starts with the same letters.
pub fn recognize(first_bytes: &[u8]) -> Option<&'static str> {
    let (magic, format) = SIGNATURES.iter().find(|(magic, _)| first_bytes.starts_with(magic))?;
    // A line of text may start with letters like "ORC".
    let may_be_text = magic.iter().all(u8::is_ascii_alphanumeric);
    (!may_be_text || !is_text(first_bytes)).then_some(format)
}

/// Whether the bytes look like text: no control characters other than those of text files.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(BEGINNING).any(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CompressionCodecFactory.getCodec` of Hadoop 3.4 and 3.5.
    #[test]
    fn extensions_are_those_of_hadoop() {
        for (name, codec) in [
            ("a.gz", Some(Codec::Gzip)),
            ("a.GZ", Some(Codec::Gzip)),
            ("a.b.bz2", Some(Codec::Bzip2)),
            ("a.Bz2", Some(Codec::Bzip2)),
            ("a.zst", Some(Codec::Zstd)),
            ("a.lz4", Some(Codec::Lz4)),
            ("a.snappy", Some(Codec::Snappy)),
            ("a.deflate", Some(Codec::Deflate)),
            (".gz", None),
            ("gz", None),
            ("xgz", None),
            ("a.gz.tmp", None),
            ("a.gzip", None),
            ("a.zstd", None),
            ("a.sz", None),
            ("", None),
        ] {
            assert_eq!(Codec::of_name(name.as_bytes()), codec, "{name}");
            let split = Codec::split_name(name.as_bytes());
            match name {
                "a.gzip" => assert_eq!(split, Some((Codec::Gzip, &b"a"[..]))),
                "a.zstd" => assert_eq!(split, Some((Codec::Zstd, &b"a"[..]))),
                _ => assert_eq!(split.map(|(codec, _)| codec), codec, "{name}"),
            }
        }
    }

    #[test]
    fn codecs_are_those_of_the_shared_table() {
        let lines = millstream_wire::lines("codecs.tsv");
        let mut found = Vec::new();
        for line in &lines[1..] {
            let columns: Vec<_> = line.split('\t').collect();
            let [code, name, extension, of_spark, signature, indexed, ..] = columns[..] else {
                panic!("{line}")
            };
            let codec = Codec::from_code(code.parse().expect("a number")).expect("a codec");
            assert_eq!(
                (codec.code().to_string().as_str(), codec.name(), codec.extension()),
                (code, name, extension)
            );
            assert_eq!(codec.has_index(), indexed == "yes", "{name}");
            for extension in [extension, of_spark].into_iter().filter(|&extension| extension != "-") {
                let file = format!("a{extension}");
                assert_eq!(Codec::split_name(file.as_bytes()), Some((codec, &b"a"[..])), "{file}");
            }
            if signature != "-" {
                let beginning = u32::from_str_radix(signature, 16).expect("hexadecimal").to_be_bytes();
                let beginning: Vec<u8> =
                    beginning.into_iter().skip_while(|&byte| byte == 0).chain([1]).collect();
                assert!(recognize(&beginning).is_some(), "{name}");
            }
            found.push(codec);
        }
        assert_eq!(found, CODECS);
    }

    #[test]
    fn codes_count_from_one() {
        assert_eq!(CODECS.map(Codec::code), [1, 2, 3, 4, 5, 6]);
        for codec in CODECS {
            assert_eq!(Codec::from_code(codec.code()), Some(codec));
        }
        assert_eq!((Codec::from_code(0), Codec::from_code(7)), (None, None));
    }

    #[test]
    fn text_is_not_taken_for_a_format() {
        assert_eq!(recognize(b"\x1f\x8b\x08"), Some("gzip"));
        assert_eq!(recognize(b"BZh9\x31\x41"), None);
        assert_eq!(recognize(b"BZh91AY&SY\x01"), Some("bzip2"));
        assert_eq!(recognize(b"ORC\x0a\x00"), Some("ORC"));
        assert_eq!(recognize(b"ORCHESTRA\n"), None);
        assert_eq!(recognize(b""), None);
    }
}
