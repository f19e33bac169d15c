//! Scans of real files, compared with plain reads.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs;
use std::hint;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use millstream_posix::PosixVolume;
use millstream_scan::{
    Batch, Cause, Compression, ConcatenateError, Damage, FileRange, Grouping, Header, Input, JoinedFiles,
    Missing, Output, Portions, Predicate, Rows, Scan, ScanError, ScanOptions, Separator, Source, SourceFile,
    Verification, VolumeSource,
};
use millstream_version::Version;
use millstream_vfs::{Errno, Error, Operation, Timestamp};

fn local() -> VolumeSource<PosixVolume> {
    VolumeSource::new(&PosixVolume)
}

fn options() -> ScanOptions {
    ScanOptions {
        rows: Rows::Lines(Separator::AnyNewline),
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

fn whole(path: &Path) -> FileRange {
    let length = fs::metadata(path).map_or(10, |metadata| metadata.len());
    FileRange {
        path: CString::new(path.as_os_str().as_bytes()).expect("no NUL"),
        start: 0,
        length,
        may_have_checksums: true,
        compression: Compression::None,
    }
}

/// The rows of a scan, each with the range of its batch.
fn rows(ranges: Vec<FileRange>, options: ScanOptions) -> Result<Vec<(usize, Vec<u8>)>, ScanError> {
    let mut scan = Scan::new(local(), ranges, options);
    let mut rows = Vec::new();
    while let Some(batch) = scan.next_batch()? {
        assert_eq!(batch.rows(), batch.lines().len() as u64);
        rows.extend(batch.iter().map(|row| (batch.range(), row.to_vec())));
    }
    Ok(rows)
}

/// A thousand small files, and a large one that is read in parts.
fn test_files() -> (tempfile::TempDir, Vec<FileRange>, Vec<Vec<u8>>) {
    let scratch = tempfile::tempdir().expect("scratch");
    let (mut ranges, mut lines) = (Vec::new(), Vec::new());
    let mut add = |name: String, count: usize, length: usize| {
        let path = scratch.path().join(&name);
        let own: Vec<_> =
            (0..count).map(|line| format!("{name} {line} {}", "z".repeat(line * 7 % length))).collect();
        fs::write(&path, own.join("\r\n")).expect("a file");
        ranges.push(whole(&path));
        lines.extend(own.into_iter().map(String::into_bytes));
    };
    for file in 0..500 {
        add(format!("small{file}"), file % 7, 40);
    }
    add("large".into(), 90_000, 100);
    for file in 500..1000 {
        add(format!("small{file}"), file % 5, 4000);
    }
    (scratch, ranges, lines)
}

fn values(rows: Vec<(usize, Vec<u8>)>) -> Vec<Vec<u8>> {
    rows.into_iter().map(|(_, row)| row).collect()
}

#[test]
fn all_rows_come_in_order_with_any_number_of_readers() {
    let (_scratch, ranges, lines) = test_files();
    for max_readers in [0, 1, 32] {
        let found = rows(ranges.clone(), ScanOptions { max_readers, ..options() }).expect("readable");
        assert!(values(found) == lines, "{max_readers} readers");
    }
}

#[test]
fn rows_that_differ_are_counted_over_all_files() {
    let (_scratch, mut ranges, lines) = test_files();
    // Each file twice, and the words of its lines besides.
    ranges.extend(ranges.clone());
    for words in [None, Some(b"z".to_vec())] {
        let mut expected = HashMap::new();
        let parts = lines.iter().flat_map(|line| match &words {
            None => vec![&line[..]],
            Some(_) => line.split(|&byte| byte == b'z').collect(),
        });
        parts.for_each(|row| *expected.entry(row.to_vec()).or_default() += 2);
        let options = ScanOptions { output: Output::Distinct, words, ..options() };
        let mut scan = Scan::new(local(), ranges.clone(), options);
        let mut counts: HashMap<_, u64> = HashMap::new();
        while let Some(batch) = scan.next_batch().expect("readable") {
            assert_eq!(batch.occurrences(), batch.counts().iter().sum());
            for (row, count) in batch.iter().zip(batch.counts()) {
                *counts.entry(row.to_vec()).or_default() += count;
            }
        }
        assert!(counts == expected);
    }
}

#[test]
fn a_count_that_fails_or_is_stopped_has_no_last_batch() {
    let (scratch, mut ranges, _) = test_files();
    ranges.push(whole(&scratch.path().join("missing")));
    let options = ScanOptions { output: Output::Distinct, ..options() };
    let mut scan = Scan::new(local(), ranges.clone(), options.clone());
    let failed = loop {
        match scan.next_batch() {
            Ok(batch) => assert!(batch.is_some(), "an error comes first"),
            Err(error) => break error,
        }
    };
    assert!(failed.cause.is_missing());
    assert!(scan.next_batch().expect("over").is_none());
    let mut stopped = Scan::new(local(), ranges, options);
    stopped.stop();
    assert!(stopped.next_batch().expect("over").is_none());
}

/// Even if every CPU is busy, a file in the page cache is read by the caller alone, unless it happens to wait for
/// something else.
#[test]
fn preemption_starts_no_readers() {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("large");
    fs::write(&path, b"a line of a large file\n".repeat(1 << 18)).expect("a file");
    let over = AtomicBool::new(false);
    let cpus = thread::available_parallelism().map_or(2, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..3 * cpus {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let _stop = Stop(&over);
        let readers = || {
            let mut scan = Scan::new(local(), vec![whole(&path)], options());
            while scan.next_batch().expect("readable").is_some() {}
            scan.progress().readers
        };
        assert!((0..5).any(|_| readers() == 0));
    });
}

#[test]
fn counting_agrees_with_reading() {
    let (_scratch, ranges, lines) = test_files();
    for (predicate, expected) in [
        (Predicate::True, lines.len()),
        (
            Predicate::contains(b" 17 "),
            lines.iter().filter(|line| Predicate::contains(b" 17 ").holds(line)).count(),
        ),
    ] {
        let mut scan =
            Scan::new(local(), ranges.clone(), ScanOptions { output: Output::Count, predicate, ..options() });
        let mut count = 0;
        while let Some(batch) = scan.next_batch().expect("readable") {
            assert!(batch.lines().is_empty());
            count += batch.rows();
        }
        assert_eq!(count, expected as u64);
        let progress = scan.progress();
        assert_eq!(progress.bytes, ranges.iter().map(|range| range.length).sum::<u64>());
        assert_eq!(progress.files, 1001);
    }
}

#[test]
fn predicates_select_rows() {
    let (_scratch, ranges, lines) = test_files();
    let literal = |letter: u8, text: &[u8]| [&[letter, text.len() as u8, 0, 0, 0], text].concat();
    for encoded in [
        literal(b'c', b"17"),
        literal(b's', b"large 89"),
        literal(b'e', b"zz"),
        literal(b'=', b"small3 2 "),
        // A literal that no line can contain, and an empty one.
        literal(b'c', b"1\r\nsmall"),
        literal(b'c', b""),
        [b"!".to_vec(), literal(b'c', b"z")].concat(),
        [b"|\x02\0\0\0".to_vec(), literal(b's', b"small1"), literal(b'e', b" 3 ")].concat(),
        [b"&\x02\0\0\0".to_vec(), literal(b's', b"small1"), literal(b'c', b"zzz")].concat(),
        b"l\x03\0\0\0\x05\0\0\0large\x02\0\0\0 4\x01\0\0\0z".to_vec(),
    ] {
        let predicate = Predicate::decode(&encoded).expect("well-formed");
        let expected: Vec<_> = lines.iter().filter(|line| predicate.holds(line)).cloned().collect();
        let found = rows(ranges.clone(), ScanOptions { predicate, ..options() }).expect("readable");
        assert!(values(found) == expected, "{encoded:?}");
    }
}

#[test]
fn batches_of_one_range_name_it() {
    let (_scratch, ranges, _) = test_files();
    let found =
        rows(ranges.clone(), ScanOptions { grouping: Grouping::ByRange, ..options() }).expect("readable");
    for (range, row) in found {
        let name = Path::new(std::ffi::OsStr::from_bytes(ranges[range].path.to_bytes()))
            .file_name()
            .expect("a name");
        assert!(row.starts_with(name.as_bytes()), "{range} {}", row.escape_ascii());
    }
}

#[test]
fn offsets_in_a_batch_of_one_range_follow_the_file() {
    let (_scratch, mut ranges, _) = test_files();
    // The large file in two ranges, the second of which starts within a line.
    let large = ranges.iter_mut().max_by_key(|range| range.length).expect("a range");
    let mut rest = large.clone();
    large.length = large.length / 2 + 5;
    (rest.start, rest.length) = (large.length, rest.length - large.length);
    ranges.push(rest);
    let mut scan =
        Scan::new(local(), ranges.clone(), ScanOptions { grouping: Grouping::ByRange, ..options() });
    let mut seen = 0;
    while let Some(batch) = scan.next_batch().expect("readable") {
        let path = std::ffi::OsStr::from_bytes(ranges[batch.range()].path.to_bytes());
        let data = fs::read(path).expect("a file");
        for (line, row) in batch.lines().iter().zip(batch.iter()) {
            let place = batch.offset() as usize + line.start as usize;
            assert_eq!(data[place..place + row.len()], *row);
            seen += 1;
        }
    }
    assert!(seen > 90_000, "{seen}");
}

#[test]
fn whole_files_are_rows_too() {
    let (_scratch, ranges, _) = test_files();
    let expected: Vec<_> = ranges
        .iter()
        .map(|range| fs::read(std::ffi::OsStr::from_bytes(range.path.to_bytes())).expect("a file"))
        .collect();
    let found = rows(ranges, ScanOptions { rows: Rows::WholeFiles, ..options() }).expect("readable");
    assert!(values(found) == expected);
}

#[test]
fn a_missing_file_fails_or_is_skipped() {
    let (_scratch, mut ranges, lines) = test_files();
    let mut gone = ranges[0].clone();
    gone.path = c"/nowhere".to_owned();
    ranges.insert(700, gone);
    let error = rows(ranges.clone(), options()).expect_err("it is not there");
    let failed = |operation, errno| Cause::Volume(Error::new(operation, errno));
    assert_eq!(error, ScanError { range: 700, cause: failed(Operation::OpenFile, Errno::NOENT) });
    let found = rows(ranges, ScanOptions { missing: Missing::Skip, ..options() }).expect("left out");
    assert!(values(found) == lines);
    let directory = FileRange {
        path: c"/usr".to_owned(),
        start: 0,
        length: 4096,
        may_have_checksums: false,
        compression: Compression::None,
    };
    let error = rows(vec![directory.clone()], options()).expect_err("no file");
    assert_eq!(error.cause, failed(Operation::Read, Errno::ISDIR));
    assert!(error.cause.is_missing());
    assert_eq!(rows(vec![directory], ScanOptions { missing: Missing::Skip, ..options() }), Ok(Vec::new()));
}

/// The checksums are those that Hadoop writes: CRC-32 of each 512 bytes.
#[test]
fn data_that_does_not_match_its_checksums_is_an_error() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    let write = |data: &[u8], sums: &[u32]| {
        let sums = sums.iter().flat_map(|sum| sum.to_be_bytes());
        fs::write(&path, data).expect("a file");
        let beside = b"crc\0\0\0\x02\0".iter().copied().chain(sums).collect::<Vec<_>>();
        fs::write(scratch.path().join(".file.crc"), beside).expect("its checksums");
    };
    let verified =
        || rows(vec![whole(&path)], ScanOptions { verification: Verification::Checksums, ..options() });
    // The check value of CRC-32, and the sum of 512 zeros.
    write(b"123456789", &[0xCBF4_3926]);
    assert_eq!(values(verified().expect("intact")), [b"123456789"]);
    write(b"123456780", &[0xCBF4_3926]);
    assert_eq!(
        verified().expect_err("changed"),
        ScanError { range: 0, cause: Cause::Checksum { offset: 0 } }
    );
    let long = [&[0; 512][..], b"123456789"].concat();
    write(&long, &[0xB2AA_7578, 0xCBF4_3926]);
    assert_eq!(verified().expect("intact").len(), 1);
    write(&long, &[0xB2AA_7578]);
    assert_eq!(verified().expect_err("a sum is missing").cause, Cause::Checksum { offset: 512 });
    fs::write(scratch.path().join(".file.crc"), "no checksums").expect("a file");
    assert_eq!(verified().expect("ignored, as Hadoop does").len(), 1);
}

/// Separators of several bytes may overlap one another and the rows around them, also in a large file.
#[test]
fn separators_of_several_bytes() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    for (separator, data, literal) in
        [("ab", "xabcabab", "bc"), ("aa", "xaaaay", "ay"), ("aa", "aaaay|", "y")]
    {
        for repeated in [1, 700_000] {
            fs::write(&path, data.repeat(repeated)).expect("a file");
            let rows_where = |predicate| {
                let lines = Rows::Lines(Separator::Bytes(separator.into()));
                values(
                    rows(vec![whole(&path)], ScanOptions { rows: lines, predicate, ..options() })
                        .expect("readable"),
                )
            };
            let all = data.repeat(repeated);
            let mut expected: Vec<_> = all.split(separator).map(|line| line.as_bytes().to_vec()).collect();
            if all.ends_with(separator) {
                expected.pop();
            }
            assert!(rows_where(Predicate::True) == expected, "{separator:?} {data:?} {repeated}");
            let predicate = Predicate::contains(literal.as_bytes());
            expected.retain(|row| predicate.holds(row));
            assert!(rows_where(predicate) == expected, "{separator:?} {data:?} {repeated} {literal:?}");
        }
    }
}

#[test]
fn a_long_scan_without_matches_returns_empty_batches() {
    let (_scratch, files, _) = test_files();
    // As often as it takes to be long.
    for repeated in (0..).map(|power| 15 << power) {
        let ranges = vec![files.clone(); repeated].concat();
        let count = ranges.len() as u64;
        let options = ScanOptions { predicate: Predicate::contains(b"nowhere"), ..options() };
        let started = Instant::now();
        let mut scan = Scan::new(local(), ranges, options);
        let mut empty = 0;
        while let Some(batch) = scan.next_batch().expect("readable") {
            assert_eq!((batch.rows(), batch.lines()), (0, &[][..]));
            empty += 1;
        }
        assert_eq!(scan.progress().files, count);
        if started.elapsed() > Duration::from_millis(500) {
            assert!((1..count).contains(&empty), "{empty} batches");
            break;
        }
    }
}

#[test]
fn a_stopped_scan_is_at_its_end() {
    let (_scratch, ranges, _) = test_files();
    let mut scan = Scan::new(local(), ranges, options());
    let rows = scan.next_batch().expect("readable").map(|batch| batch.rows());
    assert!(rows.is_some_and(|rows| rows > 0));
    scan.stop();
    assert!(scan.next_batch().expect("no error").is_none());
}

/// Lines of a version of a file, 6 MB: it is read in several parts.
fn version(name: char) -> Vec<u8> {
    (0..150_000).flat_map(|line| format!("{name}{line:037}\n\n").into_bytes()).collect()
}

#[test]
fn a_file_that_is_replaced_or_removed_is_read_to_its_end() {
    for (max_readers, change) in
        [(0, "replaced"), (8, "replaced"), (0, "shorter"), (0, "removed"), (8, "removed")]
    {
        for missing in [Missing::Fail, Missing::Skip] {
            let scratch = tempfile::tempdir().expect("scratch");
            let (path, other) = (scratch.path().join("file"), scratch.path().join("other"));
            fs::write(&path, version('a')).expect("a file");
            fs::write(&other, if change == "shorter" { b"b\n".to_vec() } else { version('b') })
                .expect("a file");
            let mut scan =
                Scan::new(local(), vec![whole(&path)], ScanOptions { max_readers, missing, ..options() });
            let mut found = Vec::new();
            while let Some(batch) = scan.next_batch().expect("readable") {
                if found.is_empty() {
                    match change {
                        "removed" => fs::remove_file(&path).expect("removed"),
                        _ => fs::rename(&other, &path).expect("replaced"),
                    }
                }
                found.extend(batch.iter().flat_map(|row| [row, b"\n"].concat()));
            }
            assert!(
                found == version('a'),
                "{change}, {missing:?}, {max_readers} readers: {} bytes",
                found.len()
            );
            let progress = scan.progress();
            assert_eq!((progress.files, progress.missing), (1, 0));
        }
    }
}

#[test]
fn a_large_file_that_is_missing_is_skipped_once() {
    let range = FileRange { length: 6 << 20, ..whole(Path::new("/nonexistent")) };
    let mut scan = Scan::new(local(), vec![range], ScanOptions { missing: Missing::Skip, ..options() });
    while let Some(batch) = scan.next_batch().expect("skipped") {
        assert_eq!(batch.rows(), 0);
    }
    assert_eq!((scan.progress().files, scan.progress().missing), (0, 1));
}

#[test]
fn separators_of_several_bytes_need_no_more_memory_than_others() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    let data = version('a');
    fs::write(&path, &data).expect("a file");
    let separator = Separator::Bytes(b"\n\na".to_vec());
    let mut scan =
        Scan::new(local(), vec![whole(&path)], ScanOptions { rows: Rows::Lines(separator), ..options() });
    let mut lines = Vec::new();
    while let Some(batch) = scan.next_batch().expect("readable") {
        assert!(batch.bytes().len() < 2 << 20, "{} bytes at once", batch.bytes().len());
        lines.extend(batch.iter().map(<[u8]>::to_vec));
    }
    assert!(lines.join(&b"\n\na"[..]) == data && lines.len() == 150_000, "{} lines", lines.len());
}

/// Wherever it is cut, and into however many ranges it is divided.
#[test]
fn a_file_that_has_become_shorter_is_an_error() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("file");
    let data = version('a');
    for (length, output, parts) in
        [0, 1, data.len() / 2, data.len() - 1, data.len()].into_iter().flat_map(|length| {
            [(length, Output::Values, 1), (length, Output::Count, 1), (length, Output::Values, 7)]
        })
    {
        fs::write(&path, &data[..length]).expect("a file");
        let bounds: Vec<_> = (0..=parts).map(|part| (data.len() * part / parts) as u64).collect();
        let ranges = bounds.windows(2).map(|pair| FileRange {
            start: pair[0],
            length: pair[1] - pair[0],
            ..whole(&path)
        });
        let mut results = ranges.map(|range| {
            let mut scan = Scan::new(local(), vec![range], ScanOptions { output, ..options() });
            while scan.next_batch()?.is_some() {}
            Ok::<_, ScanError>(())
        });
        let is_shortened = |error: ScanError| matches!(error.cause, Cause::Shortened { size, end } if size == length as u64 && end > size);
        let found = results.find_map(Result::err);
        assert_eq!(found.is_some(), length < data.len(), "{length} bytes, {output:?}, {parts} ranges");
        assert!(found.is_none_or(is_shortened), "{length} bytes, {output:?}, {parts} ranges");
    }
}

/// The kernel says that a file of sysfs has a page, whatever is in it.
#[test]
fn a_file_that_never_had_its_length_is_read() {
    let path = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    let Ok(content) = fs::read(path) else { return };
    assert!(content.len() < 4096);
    let range = FileRange { length: 4096, ..whole(path) };
    let mut scan = Scan::new(local(), vec![range], options());
    let mut rows = 0;
    while let Some(batch) = scan.next_batch().expect("readable") {
        rows += batch.rows();
    }
    assert_eq!(rows, 1);
}

/// Files in memory, of which every read returns a few bytes, and which are read in tiny portions.
#[derive(Debug)]
struct Remote(Vec<u8>);

#[derive(Debug)]
struct Contents(Vec<u8>);

impl Source for Remote {
    type File = Contents;

    const PORTIONS: Portions = Portions { bytes: 16, ranges: 1, first_readers: 3 };

    fn open(&self, _index: usize, range: &FileRange) -> Result<Contents, Error> {
        match range.path.as_c_str() {
            path if path == c"hangs" => Ok(Contents(Vec::new())),
            path if path == c"gone" => Err(Error::new(Operation::OpenFile, Errno::NOENT)),
            _ => Ok(Contents(self.0.clone())),
        }
    }

    fn open_checksums(&self, _range: &FileRange) -> Result<Option<Contents>, Error> {
        Ok(None)
    }
}

impl SourceFile for Contents {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        if self.0.is_empty() {
            thread::sleep(Duration::from_secs(600));
        }
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let some = rest.len().min(buffer.len()).min(5);
        buffer[..some].copy_from_slice(&rest[..some]);
        Ok(some)
    }

    fn last_start(&self) -> Result<u64, Error> {
        Ok(self.0.len() as u64)
    }

    fn version(&self) -> Result<Version, Error> {
        Ok(Version::at(self.last_start()?, Timestamp::default()))
    }
}

#[test]
fn any_source_has_files_to_join() {
    let data = "a line of text\n".repeat(20).into_bytes();
    let input = |path: &str, size: usize| Input {
        path: CString::new(path).expect("no NUL"),
        version: Version::at(size as u64, Timestamp::default()),
    };
    let joined = |inputs| {
        let mut files = JoinedFiles::new(Remote(data.clone()), inputs, Header::None, 4);
        let mut bytes = Vec::new();
        let mut put = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        while files.next(&mut || true, &mut put)? {}
        Ok(bytes)
    };
    assert_eq!(joined(vec![input("one", data.len()), input("two", data.len())]), Ok(data.repeat(2)));
    let shorter = vec![input("one", data.len()), input("two", data.len() - 1)];
    assert_eq!(
        joined(shorter),
        Err(ConcatenateError::Changed { input: 1 }),
        "it is longer than when it was listed"
    );
    let error = joined(vec![input("one", data.len()), input("gone", 3)]).expect_err("missing");
    assert_eq!(error.input(), Some(1));
}

#[test]
fn any_source_has_the_same_rows_whatever_its_portions() {
    let lines: Vec<_> = (0..200).map(|i| format!("{i}{}", "x".repeat(i % 23))).collect();
    let data = lines.join("\n").into_bytes();
    let range = |path: &str, start: usize, end: usize| FileRange {
        path: CString::new(path).expect("no NUL"),
        start: start as u64,
        length: (end - start) as u64,
        may_have_checksums: true,
        compression: Compression::None,
    };
    let ranges = vec![range("one", 0, 700), range("gone", 0, 9), range("one", 700, data.len())];
    for verification in [Verification::None, Verification::Checksums] {
        let options = ScanOptions { missing: Missing::Skip, verification, ..options() };
        let mut scan = Scan::new(Remote(data.clone()), ranges.clone(), options);
        let mut found = Vec::new();
        while let Some(batch) = scan.next_batch().expect("readable") {
            found.extend(batch.iter().map(|row| String::from_utf8_lossy(row).into_owned()));
        }
        assert!(found == lines, "{found:?}");
        let progress = scan.progress();
        assert_eq!((progress.files, progress.missing, progress.bytes), (2, 1, data.len() as u64));
    }
}

#[test]
fn a_caller_can_stop_though_the_source_does_not_answer() {
    let range = FileRange {
        path: c"hangs".into(),
        start: 0,
        length: 9,
        may_have_checksums: false,
        compression: Compression::None,
    };
    let mut scan = Scan::new(Remote(Vec::new()), vec![range], options());
    let mut answers = [true, true, false].into_iter();
    let start = Instant::now();
    loop {
        match scan.next_batch_while(&mut || answers.next().unwrap_or(false)) {
            Ok(batch) => assert_eq!(batch.map(Batch::rows), Some(0)),
            Err(error) => {
                assert!(error.is_interrupted());
                break;
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(scan.progress().readers, 1, "one for each range at most");
}
