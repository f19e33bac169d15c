//! Files of all formats, as the usual programs write them, whole and damaged.
//!
//! Each test prints a seed and repeats what it did with `MILLSTREAM_SEED=…`. The programs are gzip, bzip2, zstd and lz4
//! (testbed/setup test).

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use millstream_codec::{Bzip2Blocks, Codec, DecodeError, Decoder, Index, Indexer, decode_chunk};

struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let given = std::env::var("MILLSTREAM_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
        let seed: u64 = given.unwrap_or_else(clock);
        println!("MILLSTREAM_SEED={seed}");
        Random(seed | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    /// Some bytes: text, repetitions and noise, and none at times.
    fn content(&mut self, longest: usize) -> Vec<u8> {
        let length = self.below(longest + 1);
        let mut bytes = Vec::with_capacity(length + longest);
        while bytes.len() < length {
            match self.below(8) {
                0 => bytes.resize(bytes.len() + self.below(longest), b'x'),
                1 => {
                    let noise = self.below(longest / 8 + 2);
                    bytes.extend((0..noise).map(|_| self.below(256) as u8));
                }
                2 => {
                    let start = self.below(bytes.len() + 1);
                    bytes.extend_from_within(start..);
                }
                _ => bytes.extend_from_slice(format!("line {} of text\n", self.below(1000)).as_bytes()),
            }
        }
        bytes.truncate(length);
        bytes
    }
}

/// How a file is compressed.
#[derive(Clone, Copy)]
struct Variant {
    codec: Codec,
    form: Form,
    promise: Promise,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Command(&'static str),
    Zlib,
    SnappyFrames,
    HadoopLz4,
    HadoopSnappy,
}

/// The damage that the format detects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// A changed byte and a missing end.
    All,
    /// A missing end, but not if it is missing between blocks.
    Blocks,
    /// A missing end.
    End,
}

const fn command(codec: Codec, words: &'static str, promise: Promise) -> Variant {
    Variant { codec, form: Form::Command(words), promise }
}

const VARIANTS: [Variant; 22] = [
    command(Codec::Gzip, "gzip -1", Promise::All),
    command(Codec::Gzip, "gzip -9", Promise::All),
    command(Codec::Bzip2, "bzip2 -1", Promise::All),
    command(Codec::Bzip2, "bzip2 -9", Promise::All),
    command(Codec::Zstd, "zstd -qc -1", Promise::All),
    command(Codec::Zstd, "zstd -qc -19", Promise::All),
    command(Codec::Zstd, "zstd -qc --long=27", Promise::All),
    command(Codec::Zstd, "zstd -qc --no-check", Promise::End),
    command(Codec::Lz4, "lz4 -qzc", Promise::All),
    command(Codec::Lz4, "lz4 -qzc -9", Promise::All),
    command(Codec::Lz4, "lz4 -qzc -BD", Promise::All),
    command(Codec::Lz4, "lz4 -qzc -B4 -BD", Promise::All),
    command(Codec::Lz4, "lz4 -qzc -B5 -BI", Promise::All),
    command(Codec::Lz4, "lz4 -qzc -B4 -BX", Promise::All),
    command(Codec::Lz4, "lz4 -qzc -BD -BX --content-size", Promise::All),
    command(Codec::Lz4, "lz4 -qzc --no-frame-crc", Promise::End),
    command(Codec::Lz4, "lz4 -qzc --fast=9 -BD", Promise::All),
    command(Codec::Lz4, "lz4 -qzcl", Promise::Blocks),
    Variant { codec: Codec::Deflate, form: Form::Zlib, promise: Promise::All },
    Variant { codec: Codec::Snappy, form: Form::SnappyFrames, promise: Promise::Blocks },
    Variant { codec: Codec::Lz4, form: Form::HadoopLz4, promise: Promise::Blocks },
    Variant { codec: Codec::Snappy, form: Form::HadoopSnappy, promise: Promise::Blocks },
];

impl Variant {
    fn compress(self, content: &[u8]) -> Vec<u8> {
        match self.form {
            Form::Command(words) => run(words, content),
            Form::Zlib => zlib(content),
            Form::SnappyFrames => {
                let mut encoder = snap::write::FrameEncoder::new(Vec::new());
                encoder.write_all(content).expect("memory");
                encoder.into_inner().expect("memory")
            }
            Form::HadoopLz4 => hadoop(content, lz4_flex::block::compress),
            Form::HadoopSnappy => {
                hadoop(content, |chunk| snap::raw::Encoder::new().compress_vec(chunk).expect("a short chunk"))
            }
        }
    }

    /// Concatenated contents, and the offsets in the file at which the first of them end.
    fn compress_all(self, contents: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let (mut file, mut ends) = (Vec::new(), vec![0]);
        for content in contents {
            file.extend(self.compress(content));
            ends.push(file.len());
        }
        (file, ends)
    }
}

fn run(words: &str, input: &[u8]) -> Vec<u8> {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("input");
    std::fs::write(&path, input).expect("a file");
    let mut words = words.split(' ');
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).stdin(File::open(&path).expect("a file")).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; testbed/setup test installs it"));
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut file = vec![0; zlib_rs::compress_bound(content.len())];
    let mut deflate = zlib_rs::Deflate::new(6, true, 15);
    let status = deflate.compress(content, &mut file, zlib_rs::DeflateFlush::Finish);
    assert_eq!(status, Ok(zlib_rs::Status::StreamEnd));
    file.truncate(deflate.total_out() as usize);
    file
}

/// As Hadoop's BlockCompressorStream: a long write becomes a block of several chunks.
fn hadoop(content: &[u8], mut compress: impl FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut file = Vec::new();
    if content.is_empty() {
        file.extend([0; 4]);
    }
    for block in content.chunks(100_000) {
        file.extend((block.len() as u32).to_be_bytes());
        for chunk in block.chunks(70_000) {
            let chunk = compress(chunk);
            file.extend((chunk.len() as u32).to_be_bytes());
            file.extend(chunk);
        }
    }
    file
}

/// Reads few bytes at a time, and is interrupted.
struct Trickle<'a> {
    bytes: &'a [u8],
    most: usize,
    random: Random,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.random.below(8) == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = (1 + self.random.below(self.most)).min(out.len());
        self.bytes.read(&mut out[..n])
    }
}

/// Decodes with reads of any sizes.
fn decode(codec: Codec, file: &[u8], random: &mut Random) -> io::Result<Vec<u8>> {
    let (decoded, end) = decode_to_damage(codec, file, random);
    end.map(|()| decoded)
}

/// The bytes before an error, and the error.
fn decode_to_damage(codec: Codec, file: &[u8], random: &mut Random) -> (Vec<u8>, io::Result<()>) {
    let most = [1, 7, 5000, 1 << 20][random.below(4)];
    let input = Trickle { bytes: file, most, random: Random(random.0) };
    let mut decoder = Decoder::new(codec, input);
    let mut buffer = vec![0; [1, 100, 70_000, 5 << 20][random.below(4)]];
    let mut decoded = Vec::new();
    loop {
        let room = 1 + random.below(buffer.len());
        match decoder.read(&mut buffer[..room]) {
            Ok(0) => {
                assert_eq!(decoder.read(&mut buffer).ok(), Some(0), "the end stays the end");
                return (decoded, Ok(()));
            }
            Ok(n) => decoded.extend_from_slice(&buffer[..n]),
            Err(error) => return (decoded, Err(error)),
        }
    }
}

fn damage(error: io::Error) -> DecodeError {
    assert!(matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof), "{error}");
    error.downcast().expect("a DecodeError")
}

#[test]
fn what_programs_write_is_decoded() {
    let mut random = Random::seeded();
    for variant in VARIANTS {
        for longest in [20, 2000, 30_000, 300_000] {
            let contents: Vec<_> = (0..1 + random.below(3)).map(|_| random.content(longest)).collect();
            let (file, _) = variant.compress_all(&contents);
            let decoded = decode(variant.codec, &file, &mut random).expect("decoded");
            assert!(decoded == contents.concat(), "{:?} up to {longest} bytes", variant.form);
        }
    }
}

/// Blocks of LZ4 have up to 8 MiB.
#[test]
fn long_files_are_decoded() {
    let mut random = Random::seeded();
    let piece = random.content(1_000_000);
    let content: Vec<u8> = (0..10_000_000_u32)
        .map(|n| {
            if n % 1000 < 8 {
                (n >> 10) as u8
            } else {
                piece.get(n as usize % 900_001).copied().unwrap_or(b'.')
            }
        })
        .collect();
    for variant in VARIANTS {
        // The library is slow without optimization.
        if variant.codec == Codec::Bzip2 {
            continue;
        }
        let file = variant.compress(&content);
        let mut decoded = Vec::new();
        Decoder::new(variant.codec, &file[..]).read_to_end(&mut decoded).expect("decoded");
        assert!(decoded == content, "{:?}", variant.form);
    }
}

#[test]
fn a_file_that_is_cut_off_is_an_error() {
    let mut random = Random::seeded();
    for variant in VARIANTS {
        let contents = [random.content(60), random.content(200), vec![b'.'; 3]];
        let (file, ends) = variant.compress_all(&contents);
        for cut in 0..file.len() {
            let decoded = match decode(variant.codec, &file[..cut], &mut random) {
                Ok(decoded) => decoded,
                Err(error) => {
                    assert!(!ends.contains(&cut), "{:?} at {cut}: {error}", variant.form);
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{:?} at {cut}", variant.form);
                    assert_eq!(damage(error).offset, cut as u64);
                    continue;
                }
            };
            let parts = ends.partition_point(|&end| end <= cut) - 1;
            let is_between = variant.promise == Promise::Blocks || ends[parts] == cut;
            assert!(is_between, "{:?} {file:x?} cut at {cut} of {ends:?}", variant.form);
            assert_eq!(decoded, contents[..parts].concat(), "{:?} cut at {cut} of {ends:?}", variant.form);
        }
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let mut random = Random::seeded();
    for variant in VARIANTS {
        let contents = [random.content(3000), random.content(1000)];
        let (file, _) = variant.compress_all(&contents);
        for _ in 0..200 {
            let mut damaged = file.clone();
            let at = random.below(file.len());
            damaged[at] ^= 1 + random.below(255) as u8;
            match decode(variant.codec, &damaged, &mut random) {
                Err(error) => assert!(damage(error).offset <= file.len() as u64),
                Ok(decoded) if variant.promise == Promise::All => {
                    assert!(decoded == contents.concat(), "{:?} changed at {at}", variant.form);
                }
                Ok(_) => {}
            }
        }
    }
}

/// Members, frames and blocks are whole before the damage, whatever it is.
#[test]
fn what_ends_before_damage_is_decoded() {
    let mut random = Random::seeded();
    for variant in VARIANTS {
        let contents = [random.content(300_000), random.content(3000), random.content(1000)];
        let (file, ends) = variant.compress_all(&contents);
        for _ in 0..60 {
            let mut damaged = file.clone();
            let at = random.below(file.len());
            match random.below(3) {
                0 => damaged[at] ^= 1 + random.below(255) as u8,
                1 => damaged.truncate(at),
                _ => damaged.splice(at.., random.content(300)).for_each(drop),
            }
            let (decoded, _) = decode_to_damage(variant.codec, &damaged, &mut random);
            let whole = contents[..ends.partition_point(|&end| end <= at).saturating_sub(1)].concat();
            assert!(decoded.starts_with(&whole), "{:?} changed at {at} of {ends:?}", variant.form);
        }
    }
}

/// A checksum is compared after all of its bytes have been returned.
#[test]
fn what_has_a_wrong_checksum_is_decoded_before_the_error() {
    let mut random = Random::seeded();
    for (codec, form, from_end) in [
        (Codec::Gzip, "gzip -c", 8),
        (Codec::Bzip2, "bzip2 -c", 3),
        (Codec::Zstd, "zstd -qc --check", 4),
        (Codec::Lz4, "lz4 -qzc", 4),
    ] {
        let content = random.content(500_000);
        let mut file = run(form, &content);
        let at = file.len() - from_end;
        file[at] ^= 1;
        let (decoded, end) = decode_to_damage(codec, &file, &mut random);
        assert!(decoded == content && end.is_err(), "{form}: {end:?}");
    }
    let content = random.content(500_000);
    let mut file = run("bzip2 -c", &content);
    file[10] ^= 1;
    let (decoded, end) = decode_to_damage(Codec::Bzip2, &file, &mut random);
    assert!(decoded == content && end.is_err(), "a block: {end:?}");
    let mut file = zlib(&content);
    *file.last_mut().expect("not empty") ^= 1;
    let (decoded, end) = decode_to_damage(Codec::Deflate, &file, &mut random);
    assert!(decoded == content && end.is_err(), "zlib: {end:?}");
}

/// As by the `gzip` command; tapes and some copying programs fill their last block with zeros.
#[test]
fn zeros_after_the_last_gzip_member_are_padding() {
    let mut random = Random::seeded();
    let text: Vec<_> =
        (0..60_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_string().into_bytes()).collect();
    let contents = [random.content(3000), text];
    let members = contents.each_ref().map(|content| run("gzip -c", content)).concat();
    for zeros in [1, 7, 512, 300_000] {
        let padded = [&members[..], &vec![0; zeros]].concat();
        assert_eq!(decode(Codec::Gzip, &padded, &mut random).expect("padded"), contents.concat());
        let index = index(Codec::Gzip, &padded).expect("short blocks");
        assert_eq!((index.size(), index.length()), (padded.len() as u64, contents.concat().len() as u64));
        let twice = [&padded[..], &padded].concat();
        assert_eq!(decode(Codec::Gzip, &twice, &mut random).expect("padded"), contents.concat().repeat(2));
        let with_text = [&padded[..], b"some text"].concat();
        let (decoded, end) = decode_to_damage(Codec::Gzip, &with_text, &mut random);
        assert_eq!(decoded, contents.concat());
        damage(end.expect_err("more than zeros"));
    }
    assert!(decode(Codec::Gzip, &[0; 1000], &mut random).is_err());
}

/// Minimum bytes of a chunk of an index.
const SHORTEST_CHUNK: u64 = 32 << 10;

/// The index of a file; none if it is (nearly) one frame or deflate block.
fn index(codec: Codec, file: &[u8]) -> Option<Index> {
    let mut indexer = Indexer::new(codec, file, SHORTEST_CHUNK).expect("a codec with indexes");
    io::copy(&mut indexer, &mut io::sink()).expect("decoded");
    indexer.finish()
}

fn chunk(index: &Index, number: usize, file: &[u8]) -> io::Result<Vec<u8>> {
    let range = index.compressed(number);
    let mut decoded = Vec::new();
    let result =
        decode_chunk(index, number, &file[range.start as usize..range.end as usize], &[], &mut decoded);
    assert!(result.is_ok() || decoded.is_empty());
    result.map(|()| decoded)
}

#[test]
fn every_chunk_of_an_index_is_decoded_by_itself() {
    let mut random = Random::seeded();
    for variant in VARIANTS.into_iter().filter(|variant| variant.codec.has_index()) {
        let contents: Vec<_> = (0..3 + random.below(5)).map(|_| random.content(200_000)).collect();
        let (file, _) = variant.compress_all(&contents);
        let (Some(index), content) = (index(variant.codec, &file), contents.concat()) else { continue };
        assert_eq!((index.size(), index.length()), (file.len() as u64, content.len() as u64));
        assert_eq!(index.lines(), content.iter().filter(|&&byte| byte == b'\n').count() as u64);
        let decoded: io::Result<Vec<_>> = (0..index.chunks()).map(|i| chunk(&index, i, &file)).collect();
        assert!(decoded.expect("decoded").concat() == content, "{:?}", variant.form);
        assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(&index));
        if index.length() > 0 {
            let (start, end) = (random.below(content.len()) as u64, random.below(content.len()) as u64);
            let cut = index.cut(start.min(end), start.max(end));
            let begins = (0..index.chunks()).map(|i| index.range(i).start).chain([index.length()]);
            assert!(cut > start.min(end) && begins.into_iter().any(|begin| begin == cut), "{cut}");
            let place = random.below(content.len()) as u64;
            let part = index.slice(place..place + 1);
            let bytes = chunk(&part, 0, &file).expect("the part has its window");
            assert_eq!(bytes[(place - part.range(0).start) as usize], content[place as usize]);
        }
    }
}

/// Blocks of 64 KiB to 8 MiB that are decoded without those before them.
#[test]
fn a_frame_of_independent_blocks_is_divided() {
    let mut random = Random::seeded();
    let content: Vec<u8> = (0..40).flat_map(|_| random.content(1 << 20)).collect();
    for variant in VARIANTS.into_iter().filter(|variant| matches!(variant.codec, Codec::Lz4 | Codec::Snappy))
    {
        let is_divided = match variant.form {
            Form::Command(words) => !words.contains("-BD"),
            Form::HadoopLz4 | Form::HadoopSnappy => true,
            Form::Zlib | Form::SnappyFrames => false,
        };
        let index = index(variant.codec, &variant.compress(&content));
        assert_eq!(index.is_some_and(|index| index.chunks() > 1), is_divided, "{:?}", variant.form);
    }
}

/// Also if its blocks refer to those before them, and it ends with checksums.
#[test]
fn a_file_is_divided_between_frames() {
    let mut random = Random::seeded();
    for variant in VARIANTS.into_iter().filter(|variant| variant.codec.has_index()) {
        let contents: Vec<_> = (0..6).map(|_| [random.content(9_000), vec![b'.'; 60_000]].concat()).collect();
        let (file, _) = variant.compress_all(&contents);
        if let Form::SnappyFrames = variant.form {
            continue;
        }
        let index = index(variant.codec, &file).expect("divided");
        assert!(index.chunks() >= contents.len() - 1, "{:?}: {}", variant.form, index.chunks());
    }
}

/// A block belongs to the part in which it begins, wherever a file is split.
#[test]
fn parts_of_a_bzip2_file_have_each_block_once() {
    let mut random = Random::seeded();
    for _ in 0..10 {
        let contents: Vec<_> = (0..1 + random.below(3)).map(|_| random.content(400_000)).collect();
        let file = contents.iter().flat_map(|content| run("bzip2 -1", content)).collect::<Vec<_>>();
        let mut cuts: Vec<_> = (0..random.below(6)).map(|_| random.below(file.len()) as u64).collect();
        cuts.extend([0, file.len() as u64]);
        cuts.sort_unstable();
        let mut decoded = Vec::new();
        for cut in cuts.windows(2) {
            let mut blocks = Bzip2Blocks::new(&file[cut[0] as usize..], cut[0], cut[1]);
            let mut block = Vec::new();
            while blocks.next_block(&mut block).expect("decoded") == Some(true) {
                decoded.extend_from_slice(&block);
            }
        }
        assert!(decoded == contents.concat(), "{cuts:?} of {} bytes", file.len());
    }
}

/// The index has checksums also for formats without them.
#[test]
fn no_changed_byte_leaves_a_chunk() {
    let mut random = Random::seeded();
    for variant in VARIANTS.into_iter().filter(|variant| variant.codec.has_index()) {
        let contents: Vec<_> = (0..4).map(|_| random.content(60_000)).collect();
        let (file, _) = variant.compress_all(&contents);
        let (Some(index), content) = (index(variant.codec, &file), contents.concat()) else { continue };
        for _ in 0..100 {
            let mut damaged = file.clone();
            damaged[random.below(file.len())] ^= 1 + random.below(255) as u8;
            for i in 0..index.chunks() {
                let range = index.range(i);
                if let Ok(decoded) = chunk(&index, i, &damaged) {
                    assert!(
                        decoded == content[range.start as usize..range.end as usize],
                        "{:?}",
                        variant.form
                    );
                }
            }
        }
    }
}

#[test]
fn errors_of_the_input_are_passed_on() {
    struct Failing<'a>(&'a [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            match self.0.read(out)? {
                0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the disk is gone")),
                n => Ok(n),
            }
        }
    }

    let mut random = Random::seeded();
    for variant in VARIANTS {
        let file = variant.compress(&random.content(100));
        for cut in 0..=file.len() {
            let mut decoder = Decoder::new(variant.codec, Failing(&file[..cut]));
            let error = decoder.read_to_end(&mut Vec::new()).expect_err("the input fails");
            assert_eq!(error.to_string(), "the disk is gone", "{:?} at {cut}", variant.form);
            assert!(decoder.read(&mut [0]).is_err(), "{:?} at {cut}", variant.form);
        }
    }
}
