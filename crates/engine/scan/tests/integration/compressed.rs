//! Compressed files have the rows of the decoded ones.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use millstream_codec::{Codec, Crc32, Decoder, Encoder, Form, Index, Indexer, SPACING};
use millstream_posix::PosixVolume;
use millstream_scan::{
    Cause, Compression, Damage, FileRange, Grouping, Missing, Output, Predicate, Rows, Scan, ScanError,
    ScanOptions, Separator, Verification, VolumeSource,
};
use millstream_vfs::Errno;
use zlib_rs::{Deflate, DeflateFlush};

/// Marsaglia's xorshift generator.
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

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Lines of all kinds, about so many bytes.
    fn text(&mut self, length: usize) -> Vec<u8> {
        let mut text = if self.below(4) == 0 { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        let longest = *self.pick(&[3, 40, 2_000, 200_000]);
        while text.len() < length {
            let (count, letters) = (self.below(longest), self.below(26) + 1);
            text.extend((0..count).map(|_| b'a' + self.below(letters) as u8));
            let separators = [&b"\n"[..], b"\n", b"\r", b"\r\n", b"\n\n", b"|", b"|\n\r"];
            let separator: &&[u8] = self.pick(&separators);
            text.extend_from_slice(separator);
        }
        text
    }

    /// `text` as gzip, of some members, empty ones too, with blocks of any length.
    fn gzip(&mut self, text: &[u8]) -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), text);
        while !rest.is_empty() || out.is_empty() {
            let count = *self.pick(&[0, 1, 50_000, rest.len()]);
            let (member, after) = rest.split_at(count.min(rest.len()));
            out.extend(self.member(member));
            rest = after;
        }
        out
    }

    /// `text` in frames.
    fn frames(&mut self, text: &[u8], form: Form) -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), text);
        while !rest.is_empty() || out.is_empty() {
            let (frame, after) = rest.split_at(rest.len().min(1 + self.below(60_000)));
            out.extend(Encoder::new(form, None).encode(frame).bytes);
            rest = after;
        }
        out
    }

    fn member(&mut self, text: &[u8]) -> Vec<u8> {
        let mut deflate = Deflate::new(*self.pick(&[0, 1, 6, 9]), false, 15);
        let mut body = vec![0; text.len() * 2 + 100_000];
        let mut rest = text;
        let flush =
            [DeflateFlush::NoFlush, DeflateFlush::Block, DeflateFlush::SyncFlush, DeflateFlush::FullFlush];
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(1 + self.below(70_000)));
            let (used, at) = (deflate.total_in(), deflate.total_out() as usize);
            deflate.compress(now, &mut body[at..], *self.pick(&flush)).expect("deflate");
            assert_eq!(deflate.total_in() - used, now.len() as u64, "there is room");
            rest = after;
        }
        let at = deflate.total_out() as usize;
        deflate.compress(&[], &mut body[at..], DeflateFlush::Finish).expect("deflate");
        body.truncate(deflate.total_out() as usize);
        let crc = Crc32::of(text).value().to_le_bytes();
        [b"\x1f\x8b\x08\0\0\0\0\0\0\xff", &body[..], &crc, &(text.len() as u32).to_le_bytes()].concat()
    }
}

/// `None` if nearly all of the file is one block, as that of a text of one letter.
fn index(codec: Codec, compressed: &[u8], spacing: u64) -> Option<Arc<Index>> {
    let mut indexer = Indexer::new(codec, compressed, spacing).expect("a codec with indexes");
    io::copy(&mut indexer, &mut io::sink()).expect("well-formed");
    let index = indexer.finish()?;
    assert_eq!(Index::decode(&index.encode()).as_ref(), Ok(&index));
    Some(Arc::new(index))
}

fn options(separator: &Separator) -> ScanOptions {
    ScanOptions {
        rows: Rows::Lines(separator.clone()),
        predicate: Predicate::True,
        words: None,
        output: Output::Values,
        grouping: Grouping::Any,
        missing: Missing::Fail,
        verification: Verification::None,
        damage: Damage::Fail,
        max_readers: 8,
    }
}

fn range(path: &Path, start: u64, length: u64, compression: Compression) -> FileRange {
    let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    FileRange { path, start, length, may_have_checksums: false, compression }
}

fn rows(ranges: Vec<FileRange>, options: ScanOptions) -> Result<Vec<Vec<u8>>, ScanError> {
    let mut scan = Scan::new(VolumeSource::new(&PosixVolume), ranges, options);
    let mut rows = Vec::new();
    while let Some(batch) = scan.next_batch()? {
        rows.extend(batch.iter().map(<[u8]>::to_vec));
    }
    Ok(rows)
}

/// The rows that come before an error, and the error.
fn rows_before_error(range: &FileRange, options: &ScanOptions) -> (Vec<Vec<u8>>, Option<ScanError>) {
    let mut scan = Scan::new(VolumeSource::new(&PosixVolume), vec![range.clone()], options.clone());
    let mut rows = Vec::new();
    loop {
        match scan.next_batch() {
            Ok(Some(batch)) => rows.extend(batch.iter().map(<[u8]>::to_vec)),
            Ok(None) => return (rows, None),
            Err(error) => return (rows, Some(error)),
        }
    }
}

/// The rows of a file, and the index that is made meanwhile.
fn rows_and_index(range: FileRange, options: &ScanOptions) -> (Vec<Vec<u8>>, Vec<(usize, Index)>) {
    let mut scan = Scan::new(VolumeSource::new(&PosixVolume), vec![range], options.clone());
    let mut rows = Vec::new();
    while let Some(batch) = scan.next_batch().expect("readable") {
        rows.extend(batch.iter().map(<[u8]>::to_vec));
    }
    (rows, scan.take_indexes())
}

fn count(ranges: Vec<FileRange>, options: ScanOptions) -> u64 {
    let mut scan =
        Scan::new(VolumeSource::new(&PosixVolume), ranges, ScanOptions { output: Output::Count, ..options });
    let mut count = 0;
    while let Some(batch) = scan.next_batch().expect("readable") {
        count += batch.rows();
    }
    count
}

/// Wherever the decoded bytes are cut, the rows are those of the decoded file.
#[test]
fn any_cuts_of_compressed_files_have_the_rows_of_the_decoded_ones() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let (plain, gz) = (scratch.path().join("plain"), scratch.path().join("file.gz"));
    let mut undivided = 0;
    for round in 0..30 {
        let length = *random.pick(&[0, 1, 1_000, 300_000, 3_000_000]);
        let mut text = random.text(length);
        let has_one_newline = random.below(2) == 0;
        if has_one_newline {
            text.retain(|byte| *byte != b'\r');
        }
        let mut cuts: Vec<_> = (0..random.below(5)).map(|_| random.below(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        for &cut in &cuts {
            if has_one_newline && cut > 0 && cut < text.len() && random.below(3) == 0 {
                text[cut - 1..=cut]
                    .copy_from_slice(*random.pick(&[b"\r\n", b"\rx", b"\n\n", b"x\n", b"\nx"]));
            }
        }
        let codec = *random.pick(&[Codec::Gzip, Codec::Gzip, Codec::Zstd, Codec::Lz4]);
        let compressed = match codec {
            Codec::Zstd => random.frames(&text, Form::Zstd),
            Codec::Lz4 => random.frames(&text, Form::Lz4),
            _ => random.gzip(&text),
        };
        fs::write(&plain, &text).expect("a file");
        fs::write(&gz, &compressed).expect("a file");
        let separators = [
            Separator::AnyNewline,
            Separator::Bytes(b"|".into()),
            Separator::Bytes(b"\n".into()),
            Separator::Bytes(b"\r\n".into()),
        ];
        let separator = random.pick(&separators).clone();
        let predicate = random.pick(&[Predicate::True, Predicate::contains(b"ab")]).clone();
        let options = ScanOptions { predicate, ..options(&separator) };
        let whole = range(&plain, 0, text.len() as u64, Compression::None);
        let expected = rows(vec![whole], options.clone()).expect("readable");

        let whole = range(&gz, 0, compressed.len() as u64, Compression::Whole(codec));
        let context = format!(
            "round {round}: {codec:?}, {separator:?}, {} bytes, {} compressed",
            text.len(),
            compressed.len()
        );
        assert!(
            rows(vec![whole.clone()], options.clone()) == Ok(expected.clone()),
            "decoded at once, {context}"
        );
        assert_eq!(
            count(vec![whole.clone(), whole], options.clone()),
            2 * expected.len() as u64,
            "{context}"
        );

        let whole = range(&gz, 0, compressed.len() as u64, Compression::Indexing(codec));
        let (found, made) = rows_and_index(whole, &options);
        assert!(found == expected, "decoded at once and indexed, {context}");
        let usual = index(codec, &compressed, SPACING).map(|usual| (0, Index::clone(&usual)));
        assert_eq!(made, Vec::from_iter(usual), "{context}");

        // Many short chunks, or long ones that have whole parts in them.
        let Some(index) = index(codec, &compressed, *random.pick(&[32 << 10, 32 << 10, 1 << 20, SPACING]))
        else {
            undivided += 1;
            continue;
        };
        assert_eq!((index.length(), index.size()), (text.len() as u64, compressed.len() as u64), "{context}");
        let parts: Vec<_> = cuts
            .windows(2)
            .map(|cut| {
                let cut = [cut[0] as u64, cut[1] as u64];
                let slice = Arc::new(index.slice(cut[0]..cut[1]));
                range(&gz, cut[0], cut[1] - cut[0], Compression::Indexed(slice))
            })
            .collect();
        let counted: u64 = parts.iter().map(|part| count(vec![part.clone()], options.clone())).sum();
        assert_eq!(counted, expected.len() as u64, "{context}, cuts {cuts:?}");
        let found = if random.below(2) == 0 {
            rows(parts, options)
        } else {
            parts
                .into_iter()
                .map(|part| rows(vec![part], options.clone()))
                .collect::<Result<Vec<_>, _>>()
                .map(|all| all.concat())
        };
        let found = found
            .unwrap_or_else(|error| panic!("{error:?}: {context}, {} chunks, cuts {cuts:?}", index.chunks()));
        let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(
            found == expected,
            "{differs:?}, {} and {} rows: {context}, {} chunks, cuts {cuts:?}",
            found.len(),
            expected.len(),
            index.chunks()
        );
    }
    assert!(undivided < 15, "{undivided} of 30 files cannot be divided");
}

/// Wherever a bzip2 file is cut, the rows are those of the decoded file. Its blocks have 100 kB.
#[test]
fn any_parts_of_a_bzip2_file_have_the_rows_of_the_decoded_one() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let (plain, bz2) = (scratch.path().join("plain"), scratch.path().join("file.bz2"));
    for round in 0..12 {
        let length = *random.pick(&[0, 1, 1_000, 300_000, 600_000]);
        let mut text = random.text(length);
        // Separators at the ends of blocks.
        for end in (100_000..text.len()).step_by(100_000) {
            for byte in &mut text[end - 22..end - 16] {
                *byte = *random.pick(b"\r\n|x");
            }
        }
        fs::write(&plain, &text).expect("a file");
        let compressed = bzip2(&plain);
        fs::write(&bz2, &compressed).expect("a file");
        let separators =
            [Separator::AnyNewline, Separator::Bytes(b"|".into()), Separator::Bytes(b"\r\n".into())];
        let options = options(random.pick(&separators));
        let expected = rows(vec![range(&plain, 0, text.len() as u64, Compression::None)], options.clone());
        let mut cuts: Vec<_> = (0..random.below(7)).map(|_| random.below(compressed.len()) as u64).collect();
        cuts.extend([0, compressed.len() as u64]);
        cuts.sort_unstable();
        cuts.dedup();
        let blocks = Compression::Blocks { size: compressed.len() as u64 };
        let parts = cuts.windows(2).map(|cut| range(&bz2, cut[0], cut[1] - cut[0], blocks.clone()));
        let found = rows(parts.collect(), options.clone());
        assert!(found == expected, "round {round}: {:?}, {} bytes, cuts {cuts:?}", options.rows, text.len());
    }
}

/// The text of each stream, which is one block, and the streams. The last line has no end.
fn bzip2_streams(random: &mut Random, path: &Path) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut text = random.text(300_000);
    text.retain(|byte| byte.is_ascii());
    text.truncate(300_000);
    text.extend_from_slice(b"the last line");
    let mut ends: Vec<_> = (0..5).map(|part| (part * text.len() / 4) + random.below(100)).collect();
    for end in &mut ends {
        // At the end of a line, or within one.
        if random.below(2) == 0 {
            let next = text.iter().skip(*end).take(1000).position(|byte| *byte == b'\n');
            *end += next.map_or(0, |at| at + 1);
        }
    }
    (ends[0], ends[4]) = (0, text.len());
    let texts: Vec<_> = ends.windows(2).map(|ends| text[ends[0]..ends[1]].to_vec()).collect();
    let compress = |text: &Vec<u8>| {
        fs::write(path, text).expect("a file");
        bzip2(path)
    };
    let streams = texts.iter().map(compress).collect();
    (texts, streams)
}

/// The rows of a file that is divided anywhere, or not at all, and whether there was an error.
fn bzip2_parts(random: &mut Random, path: &Path, options: &ScanOptions) -> (Vec<Vec<u8>>, bool) {
    let size = fs::metadata(path).expect("a file").len();
    let mut cuts: Vec<_> = (0..random.below(12)).map(|_| random.below(size as usize) as u64).collect();
    cuts.extend([0, size]);
    cuts.sort_unstable();
    cuts.dedup();
    let part = |cut: &[u64]| range(path, cut[0], cut[1] - cut[0], Compression::Blocks { size });
    let parts: Vec<_> = match cuts.len() {
        2 => vec![range(path, 0, size, Compression::Whole(Codec::Bzip2))],
        _ => cuts.windows(2).map(part).collect(),
    };
    let mut found = Vec::new();
    let mut has_failed = false;
    for part in parts {
        let (rows, error) = rows_before_error(&part, options);
        found.extend(rows);
        has_failed |= error.is_some_and(|error| matches!(error.cause, Cause::Damaged(_)));
    }
    (found, has_failed)
}

/// As in Hadoop, which reads the blocks wherever they are.
#[test]
fn damage_between_bzip2_blocks_takes_no_row() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    for round in 0..16 {
        let (texts, mut streams) = bzip2_streams(&mut random, &path);
        let at = random.below(4);
        match round % 4 {
            0 => streams[at].extend(b"garbage"),
            1 => streams[at].splice(..0, vec![0; 512]).for_each(drop),
            2 => streams[at][3] ^= 1 << 6,
            _ => {
                let end = streams[at].len();
                streams[at][end - 3] ^= 1;
            }
        }
        fs::write(&path, streams.concat()).expect("a file");
        let separator = random.pick(&[Separator::AnyNewline, Separator::Bytes(b"|".into())]).clone();
        let options = options(&separator);
        let expected = lines(&texts.concat(), &separator);
        for _ in 0..3 {
            let (found, has_failed) = bzip2_parts(&mut random, &path, &options);
            let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
            assert!(
                found == expected,
                "round {round}: {differs:?} of {} and {} rows",
                found.len(),
                expected.len()
            );
            // Bytes after the last stream are no damage, and the checksum of a stream is compared by a part that has
            // its beginning.
            let is_noticed = match round % 4 {
                0 => at < 3,
                3 => false,
                _ => true,
            };
            assert!(has_failed || !is_noticed, "round {round}");
        }
    }
}

/// However the file is divided, all lines are rows but that which begins in the damaged block and that which begins
/// before it, and the rest of the former, which ends in the next block.
#[test]
fn a_damaged_bzip2_block_takes_no_line_of_another_one() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    for round in 0..16 {
        let (texts, mut streams) = bzip2_streams(&mut random, &path);
        let damaged = random.below(4);
        // The block's checksum, or some of what it is decoded from.
        let is_checksum = round % 2 == 0;
        let at =
            if is_checksum { 10 + random.below(4) } else { 40 + random.below(streams[damaged].len() - 60) };
        streams[damaged][at] ^= 1 << random.below(8);
        fs::write(&path, streams.concat()).expect("a file");
        let separator = Separator::AnyNewline;
        let options = ScanOptions { damage: Damage::PassOver, ..options(&separator) };
        let whole = |text: &[u8]| {
            let mut lines = lines(text, &separator);
            if !text.ends_with(b"\n") {
                lines.pop();
            }
            lines
        };
        let before = whole(&texts[..damaged].concat());
        let of_damaged = whole(&texts[..=damaged].concat());
        let after = texts[damaged + 1..].concat();
        // A CR at the end of the block before it may or may not be a line end of its own.
        let after = after.iter().position(|byte| matches!(byte, b'\r' | b'\n')).map_or(&after[..0], |at| {
            let length = if after[at..].starts_with(b"\r\n") { 2 } else { 1 };
            &after[at + length..]
        });
        let after = lines(after, &separator);
        for _ in 0..3 {
            let (found, has_failed) = bzip2_parts(&mut random, &path, &options);
            let context = format!(
                "round {round}: {} rows, {} before, {} after",
                found.len(),
                before.len(),
                after.len()
            );
            assert!(has_failed, "{context}");
            assert!(found.starts_with(&before) && found.ends_with(&after), "{context}");
            if is_checksum {
                assert!(
                    found == [&of_damaged[..], &after].concat(),
                    "{context}, {} of the damaged one",
                    of_damaged.len()
                );
            }
        }
    }
}

/// The lines of a text, found byte by byte.
fn lines(text: &[u8], separator: &Separator) -> Vec<Vec<u8>> {
    let (mut lines, mut line, mut rest) = (Vec::new(), Vec::new(), text);
    while let [byte, after @ ..] = rest {
        rest = after;
        let is_end = match separator {
            Separator::AnyNewline => {
                rest = if *byte == b'\r' { rest.strip_prefix(b"\n").unwrap_or(rest) } else { rest };
                matches!(byte, b'\r' | b'\n')
            }
            Separator::Bytes(bytes) => bytes == &[*byte],
        };
        if is_end {
            lines.push(std::mem::take(&mut line));
        } else {
            line.push(*byte);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// As the `bzip2` command compresses a file (testbed/setup test installs it).
fn bzip2(path: &Path) -> Vec<u8> {
    let output = Command::new("bzip2").arg("-1kc").arg(path).output().expect("bzip2 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_bzip2_file_is_not_divided_where_separators_overlap() {
    let part = FileRange {
        path: c"/dev/null".into(),
        start: 0,
        length: 1,
        may_have_checksums: false,
        compression: Compression::Blocks { size: 1 },
    };
    let error = rows(vec![part], options(&Separator::Bytes(b"||".into()))).expect_err("not divided");
    assert!(matches!(error.cause, Cause::Volume(cause) if cause.errno == Errno::NOTSUP), "{error:?}");
}

/// Also where what is left is a well-formed file: nothing, or whole members, frames or streams. Whole lines before the
/// end are rows.
#[test]
fn a_compressed_file_that_has_become_shorter_is_an_error() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let (plain, path) = (scratch.path().join("plain"), scratch.path().join("file"));
    for (codec, form) in [
        (Codec::Gzip, None),
        (Codec::Bzip2, None),
        (Codec::Zstd, Some(Form::Zstd)),
        (Codec::Lz4, Some(Form::Lz4)),
    ] {
        // The border of the pieces is within a line.
        let text = b"a line of text\n".repeat(100_000);
        let (first, second) = text.split_at(700_007);
        let mut compress = |piece: &[u8]| match (codec, form) {
            (Codec::Bzip2, _) => {
                fs::write(&plain, piece).expect("a file");
                bzip2(&plain)
            }
            (_, Some(form)) => Encoder::new(form, None).encode(piece).bytes,
            (_, None) => random.gzip(piece),
        };
        let border = compress(first);
        let file = [border.clone(), compress(second)].concat();
        let size = file.len() as u64;
        let mut ways = vec![
            vec![range(&path, 0, size, Compression::Whole(codec))],
            vec![range(&path, 0, size, Compression::Indexing(codec))],
        ];
        if codec == Codec::Bzip2 {
            let cuts = [0, size / 3, border.len() as u64, size - 40, size];
            let part = |cut: &[u64]| range(&path, cut[0], cut[1] - cut[0], Compression::Blocks { size });
            ways[1] = cuts.windows(2).map(part).collect();
        } else if let Some(index) = index(codec, &file, 100_000) {
            let length = text.len() as u64;
            let part = |start: u64, end: u64| {
                let slice = Compression::Indexed(Arc::new(index.slice(start..end)));
                range(&path, start, end - start, slice)
            };
            ways.push(vec![part(0, length / 2), part(length / 2, length)]);
        }
        for left in [0, 1, border.len(), file.len() - 1] {
            fs::write(&path, &file[..left]).expect("a file");
            let options = options(&Separator::AnyNewline);
            let counting = ScanOptions { output: Output::Count, ..options.clone() };
            let whole_files = ScanOptions { rows: Rows::WholeFiles, ..options.clone() };
            for (way, options) in ways.iter().flat_map(|way| [(way, &options), (way, &counting)]) {
                let read = rows(way.clone(), options.clone());
                if let (Ok(rows), Compression::Indexed(_)) = (&read, &way[0].compression)
                    && left + 1 == file.len()
                {
                    // The last byte may be one of a trailer, which an index does not need.
                    assert_eq!(rows.len(), if options.output == Output::Count { 0 } else { 100_000 });
                    continue;
                }
                let error = read.err().unwrap_or_else(|| panic!("{codec:?}, {left} bytes, {}", way.len()));
                let shortened = Cause::Shortened { size: left as u64, end: size };
                assert_eq!(error.cause, shortened, "{codec:?}, {left} bytes, {way:?}, {:?}", options.output);
            }
            let error = rows(ways[0].clone(), whole_files).expect_err("shorter");
            assert!(matches!(error.cause, Cause::Shortened { .. }), "{codec:?}, {left} bytes: {error:?}");
            for part in ways.iter().flatten() {
                let (found, _) = rows_before_error(part, &options);
                assert!(
                    found.iter().all(|row| row == b"a line of text"),
                    "{codec:?}, {left} bytes, {part:?}"
                );
            }
        }
        fs::write(&path, &file).expect("a file");
        for way in ways {
            assert_eq!(
                rows(way.clone(), options(&Separator::AnyNewline)).map(|rows| rows.len()),
                Ok(100_000),
                "{codec:?} {way:?}"
            );
        }
    }
}

/// Whatever byte is wrong, there is an error, or the rows are right.
#[test]
fn damaged_files_never_give_wrong_rows() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let gz = scratch.path().join("file.gz");
    let separator = Separator::AnyNewline;
    let text = random.text(400_000);
    let compressed = random.gzip(&text);
    let index = index(Codec::Gzip, &compressed, 64 << 10).expect("short blocks");
    fs::write(&gz, &compressed).expect("a file");
    let indexed = range(&gz, 0, text.len() as u64, Compression::Indexed(Arc::clone(&index)));
    let whole = range(&gz, 0, compressed.len() as u64, Compression::Whole(Codec::Gzip));
    let expected = rows(vec![indexed.clone()], options(&separator)).expect("readable");
    // The rows of an index are right whenever they come, however they are read.
    let ways = [Predicate::True, Predicate::contains(b"ab")]
        .map(|predicate| ScanOptions { predicate, ..options(&separator) });
    let found =
        ways.each_ref().map(|options| rows(vec![indexed.clone()], options.clone()).expect("readable"));
    assert!(
        found[0] == expected
            && found[1]
                == Vec::from_iter(
                    expected.iter().filter(|row| row.windows(2).any(|pair| pair == b"ab")).cloned()
                )
    );
    let mut errors = 0;
    for round in 0..100 {
        let mut damaged = compressed.clone();
        let at = random.below(damaged.len());
        if round % 4 == 0 {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << random.below(8);
        }
        fs::write(&gz, &damaged).expect("a file");
        for (options, found) in ways.iter().zip(&found) {
            let (rows, error) = rows_before_error(&indexed, options);
            assert!(found.starts_with(&rows) && (error.is_some() || rows == *found), "byte {at}, {error:?}");
        }
        for range in [&indexed, &whole] {
            match rows(vec![range.clone()], options(&separator)) {
                Ok(rows) => assert!(rows == expected, "byte {at} of {}, {range:?}", damaged.len()),
                Err(error) => {
                    let is_cut = damaged.len() < compressed.len();
                    let is_expected = match error.cause {
                        Cause::Shortened { size, .. } => is_cut && size == damaged.len() as u64,
                        Cause::Damaged(_) => !is_cut,
                        _ => false,
                    };
                    assert!(is_expected, "{error:?}");
                    errors += 1;
                }
            }
        }
    }
    assert!(errors > 100, "{errors}: headers and trailers are not all of a file");
}

/// Of a file that is cut off, has other bytes after it or a wrong checksum at its end come all lines that are decoded
/// whole, and then the error.
#[test]
fn lines_before_damage_are_rows() {
    let mut random = Random::seeded();
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    let separator = Separator::AnyNewline;
    for (codec, form) in [(Codec::Gzip, None), (Codec::Zstd, Some(Form::Zstd)), (Codec::Lz4, Some(Form::Lz4))]
    {
        let text: Vec<_> =
            (0..random.below(300_000)).flat_map(|i| format!("line {i}\r\n").into_bytes()).collect();
        let compressed =
            form.map_or_else(|| random.gzip(&text), |form| Encoder::new(form, None).encode(&text).bytes);
        for round in 0..20 {
            let (mut damaged, end) = (compressed.clone(), compressed.len());
            match round {
                0..4 => damaged.truncate(end - 1 - round),
                4..8 => damaged[end - 1] ^= 1,
                8..12 => damaged.extend(b"some other bytes"),
                _ => damaged.truncate(random.below(end)),
            }
            let (cut, mut decoded) = (&damaged[..], Vec::new());
            let read = Decoder::new(codec, cut).read_to_end(&mut decoded);
            // gzip's checksum and length, and the end and checksum of the content of an LZ4 frame.
            let is_in_trailer = round < 12 && codec != Codec::Zstd;
            assert!(
                text.starts_with(&decoded) && (decoded.len() == text.len() || !is_in_trailer),
                "{codec:?}"
            );
            fs::write(&path, cut).expect("a file");
            let whole = range(&path, 0, cut.len() as u64, Compression::Whole(codec));
            let mut scan = Scan::new(VolumeSource::new(&PosixVolume), vec![whole], options(&separator));
            let mut rows = 0;
            let error = loop {
                match scan.next_batch() {
                    Ok(Some(batch)) => rows += batch.rows(),
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            assert_eq!(error.is_some(), read.is_err(), "{codec:?}, {} bytes", cut.len());
            let lines = decoded.iter().filter(|byte| **byte == b'\n').count() as u64;
            assert_eq!(rows, lines, "{codec:?}, {} bytes of {}: {error:?}", cut.len(), compressed.len());
        }
    }
}

/// Data of which a few bytes become very many does not have to fit in memory.
#[test]
fn a_bomb_is_read_in_pieces() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gz = scratch.path().join("file.gz");
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    let text = line.repeat(64 << 10);
    let mut random = Random(1);
    let compressed = random.member(&text);
    fs::write(&gz, &compressed).expect("a file");
    let whole = range(&gz, 0, compressed.len() as u64, Compression::Whole(Codec::Gzip));
    let mut scan = Scan::new(VolumeSource::new(&PosixVolume), vec![whole], options(&Separator::AnyNewline));
    let (mut rows, mut longest) = (0, 0);
    while let Some(batch) = scan.next_batch().expect("readable") {
        rows += batch.rows();
        longest = longest.max(batch.bytes().len());
    }
    assert_eq!(rows, 64 << 10);
    assert!(longest <= 4 << 20, "{longest}");
}
