//! Indexes of other programs. testdata/foreign-indexes has a text of 3 MB and its indexes: `text.gz`, of two members,
//! with those of gztool 1.5.1 (`-s 1`, and `-z` for version 0), indexed_gzip 1.10.3 (spacing 512 KiB) and rapidgzip
//! 0.16.1; `text.bgz` with that of bgzip 1.16.

use std::io::{self, Cursor, Read};
use std::path::Path;

use millstream_codec::{Codec, Decoder, Index, Indexer, Points, decode_chunk, import, to_gztool};

const SPACING: u64 = 256 << 10;

fn sample(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/foreign-indexes");
    std::fs::read(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn decoded(file: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    Decoder::new(Codec::Gzip, file).read_to_end(&mut decoded).expect("well-formed");
    decoded
}

fn at<'a>(file: &'a [u8]) -> impl Fn(u64) -> io::Result<Cursor<&'a [u8]>> + Sync {
    |offset| Ok(Cursor::new(&file[usize::try_from(offset).expect("small").min(file.len())..]))
}

fn imported(index: &[u8], file: &[u8], threads: usize) -> io::Result<Index> {
    let points = Points::parse(index).map_err(io::Error::other)?;
    let index = import(&points, file.len() as u64, SPACING, threads, at(file))?;
    Ok(index.expect("short blocks"))
}

fn indexed(file: &[u8], spacing: u64) -> Index {
    let mut indexer = Indexer::new(Codec::Gzip, file, spacing).expect("a codec with indexes");
    io::copy(&mut indexer, &mut io::sink()).expect("well-formed");
    indexer.finish().expect("short blocks")
}

/// The index has all bytes of the file, and each chunk can be decoded alone.
fn check(index: &Index, file: &[u8], text: &[u8]) {
    assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(index));
    assert_eq!((index.size(), index.length()), (file.len() as u64, text.len() as u64));
    assert_eq!(index.lines(), text.iter().filter(|&&b| b == b'\n').count() as u64);
    let mut all = Vec::new();
    for chunk in 0..index.chunks() {
        let compressed = index.compressed(chunk);
        let mut decoded = Vec::new();
        let compressed = &file[compressed.start as usize..compressed.end as usize];
        decode_chunk(index, chunk, compressed, &[], &mut decoded).expect("a chunk");
        all.extend(decoded);
    }
    assert!(all == text, "{} of {} bytes, or others", all.len(), text.len());
}

#[test]
fn indexes_of_all_programs_are_imported() {
    let unzipped = |name| decoded(&sample(name));
    for (file, program, index, points) in [
        ("text.gz", "gztool", sample("text.gzi"), 3),
        ("text.gz", "gztool, version 0", sample("text.v0.gzi"), 3),
        ("text.gz", "indexed_gzip", unzipped("text.gzidx.gz"), 6),
        ("text.gz", "rapidgzip", unzipped("text.rapidgzip.gzidx.gz"), 5),
        ("text.bgz", "bgzip", sample("text.bgz.gzi"), 46),
    ] {
        println!("{program}");
        let file = sample(file);
        let text = decoded(&file);
        for threads in [1, 3] {
            let index = imported(&index, &file, threads).expect(program);
            check(&index, &file, &text);
            assert!(index.chunks() >= 5, "{}", index.chunks());
        }
        let debugged = format!("{:?}", Points::parse(&index));
        assert_eq!(debugged.matches("Point {").count(), points, "{program}");
    }
}

#[test]
fn an_index_that_gztool_could_use_is_the_same_when_it_is_imported() {
    for name in ["text.gz", "text.bgz"] {
        let file = sample(name);
        let index = indexed(&file, SPACING);
        let foreign = to_gztool(&index, at(&file)).expect("the file's");
        assert_eq!(imported(&foreign, &file, 2).expect(name), index, "{name}");
    }
}

#[test]
fn an_index_of_another_file_is_refused() {
    let (file, index) = (sample("text.gz"), decoded(&sample("text.gzidx.gz")));
    let mut other = file.clone();
    other.extend_from_slice(&file);
    let error = imported(&index, &other, 2).expect_err("of another size");
    assert!(error.to_string().contains("belongs to a file of a different size"), "{error}");
    // gztool's index has no size.
    let shifted = [&file[..34_388], &file].concat();
    let error = imported(&sample("text.gzi"), &shifted, 2).expect_err("of another file");
    assert!(error.to_string().starts_with("damaged gzip data at byte "), "{error}");
}

#[test]
fn damaged_files_and_windows_are_found() {
    let (file, index) = (sample("text.gz"), decoded(&sample("text.gzidx.gz")));
    for at in (10..file.len()).step_by(997) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        assert!(imported(&index, &damaged, 2).is_err(), "byte {at}");
    }
    // The last of the four windows belongs to the end of the file, where no thread begins.
    let windows = index.len() - 4 * (32 << 10);
    for at in (windows + 32_000..index.len()).step_by(32 << 10).take(3) {
        let mut damaged = index.clone();
        damaged[at..at + 700].iter_mut().for_each(|byte| *byte ^= 0x55);
        assert!(imported(&damaged, &file, 2).is_err(), "window with byte {at}");
    }
}

#[test]
fn other_bytes_are_no_index() {
    for name in ["text.gzi", "text.v0.gzi", "text.bgz.gzi"] {
        let index = sample(name);
        // Eight zeros are bgzip's index of a file of one member.
        for length in (0..index.len().min(200)).filter(|&length| length != 8) {
            assert!(Points::parse(&index[..length]).is_err(), "{length} bytes of {name}");
        }
    }
    let huge = [&b"GZIDX\x01\0"[..], &[0; 16], &[0, 0, 1, 0, 0, 0x80, 0, 0, 0xff, 0xff, 0xff, 0xff]].concat();
    assert!(Points::parse(&huge).is_err());
    for other in [&b""[..], b"\x1f\x8b\x08\0\0\0\0\0", b"MSINDEX1", &[0; 7], &[0, 0, 0, 0, 0, 0, 0, 1]] {
        assert!(Points::parse(other).is_err(), "{other:?}");
    }
}
