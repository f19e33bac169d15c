//! Scans of remote files whose readers refuse, fail, answer late or not at all.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use millstream_remote::{Cost, NativeRead, NativeReader, RemoteFile, RemoteFiles, RemoteSource};
use millstream_scan::{
    Cause, Compression, Damage, FileRange, Grouping, Input, JoinedFiles, Missing, Output, Predicate, Rows,
    Scan, ScanError, ScanOptions, Separator, Source, SourceFile, Verification,
};
use millstream_version::{Tag, Version};
use millstream_vfs::{Errno, Error, Operation, Timestamp};

const MTIME: Timestamp = Timestamp { sec: 1_600_000_000, nsec: 0 };

/// What both readers do.
#[derive(Debug, Default)]
struct Store {
    /// Of the file of each range.
    contents: Vec<Vec<u8>>,
    /// Contents of newer versions, which the other client reads.
    replaced: Option<Vec<u8>>,
    /// The native reader refuses the file of this range.
    refused: Option<usize>,
    /// The native reader does not answer.
    hangs: bool,
    /// The native reader reads nothing any more.
    is_useless: AtomicBool,
    /// The other client cannot read the file of this range.
    unreadable: Option<usize>,
    /// Most bytes of a read by the other client.
    most: Option<usize>,
    /// The first ranges are answered last.
    is_reversed: bool,
    /// What the native reader has read.
    reads: Mutex<Vec<NativeRead>>,
    /// Files that the other client has opened and closed, and the reads by it.
    opened: AtomicUsize,
    closed: AtomicUsize,
    others: AtomicUsize,
}

/// The native reader of a store, and its other client.
#[derive(Debug)]
struct Native(Arc<Store>);

#[derive(Debug)]
struct Other(Arc<Store>);

#[derive(Debug)]
struct OtherFile {
    store: Arc<Store>,
    index: usize,
}

impl NativeReader for Native {
    fn reads(&self) -> bool {
        !self.0.is_useless.load(Ordering::Relaxed)
    }

    fn read(
        &self,
        key: &[u8],
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
        cost: &mut Cost,
    ) -> Result<(), String> {
        let index: usize = std::str::from_utf8(key).expect("a key").parse().expect("a number");
        assert_eq!(version, &listed(&self.0.contents[index]));
        // The first attempt was turned away.
        *cost = Cost { requests: 2, retries: 1, throttled: 1 };
        if self.0.hangs {
            thread::sleep(Duration::from_secs(600));
        }
        if self.0.is_reversed {
            thread::sleep(Duration::from_millis(5 * (self.0.contents.len() - index) as u64));
        }
        if self.0.refused == Some(index) {
            buffer.fill(b'?');
            return Err("refused".into());
        }
        buffer.copy_from_slice(&self.0.contents[index][offset as usize..][..buffer.len()]);
        Ok(())
    }
}

impl RemoteFiles for Other {
    type File = OtherFile;

    fn open(&self, index: usize) -> Result<OtherFile, Error> {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
        Ok(OtherFile { store: Arc::clone(&self.0), index })
    }

    fn has_read_natively(&self, read: NativeRead) {
        self.0.reads.lock().expect("no panic").push(read);
    }
}

impl RemoteFile for OtherFile {
    fn accept(&self) -> bool {
        self.store.replaced.is_none()
    }
}

impl OtherFile {
    fn contents(&self) -> &[u8] {
        self.store.replaced.as_ref().unwrap_or(&self.store.contents[self.index])
    }
}

impl SourceFile for OtherFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.store.others.fetch_add(1, Ordering::Relaxed);
        if self.store.unreadable == Some(self.index) {
            return Err(Error::new(Operation::OpenFile, Errno::IO));
        }
        let rest = self.contents().get(offset as usize..).unwrap_or_default();
        let some = rest.len().min(buffer.len()).min(self.store.most.unwrap_or(usize::MAX));
        buffer[..some].copy_from_slice(&rest[..some]);
        Ok(some)
    }

    fn last_start(&self) -> Result<u64, Error> {
        Ok(self.contents().len() as u64)
    }

    fn version(&self) -> Result<Version, Error> {
        Ok(Version::at(self.last_start()?, MTIME))
    }
}

impl Drop for OtherFile {
    fn drop(&mut self) {
        self.store.closed.fetch_add(1, Ordering::Relaxed);
    }
}

fn listed(contents: &[u8]) -> Version {
    Version { tag: Tag::pack(b"v"), ..Version::at(contents.len() as u64, MTIME) }
}

fn path(index: usize) -> CString {
    CString::new(format!("/{index}")).expect("no NUL")
}

fn source(store: &Arc<Store>) -> RemoteSource<Native, Other> {
    let listed = store.contents.iter().map(|contents| listed(contents)).collect();
    RemoteSource::new(Other(Arc::clone(store)), Some((Native(Arc::clone(store)), listed)))
}

/// The scan of all files.
fn scan<S: Source>(store: &Store, source: S) -> Scan<S> {
    let range = |(index, contents): (usize, &Vec<u8>)| FileRange {
        path: path(index),
        start: 0,
        length: contents.len() as u64,
        may_have_checksums: true,
        compression: Compression::None,
    };
    let options = ScanOptions {
        rows: Rows::Lines(Separator::AnyNewline),
        predicate: Predicate::True,
        words: None,
        output: Output::Values,
        grouping: Grouping::ByRange,
        missing: Missing::Fail,
        verification: Verification::None,
        damage: Damage::Fail,
        max_readers: 8,
    };
    Scan::new(source, store.contents.iter().enumerate().map(range).collect(), options)
}

/// The rows up to the first error, and that.
fn rows_until<S: Source>(mut scan: Scan<S>) -> (Vec<String>, Option<ScanError>) {
    let mut rows = Vec::new();
    loop {
        match scan.next_batch() {
            Ok(None) => return (rows, None),
            Ok(Some(batch)) => rows.extend(batch.iter().map(|row| String::from_utf8_lossy(row).into_owned())),
            Err(error) => return (rows, Some(error)),
        }
    }
}

fn rows(store: &Arc<Store>) -> Vec<String> {
    let (rows, error) = rows_until(scan(store, source(store)));
    assert_eq!(error, None);
    rows
}

/// Some lines for each of so many files.
fn files(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|file| (0..3).map(|line| format!("{file} {line}\n")).collect::<String>().into()).collect()
}

fn lines(files: &[Vec<u8>]) -> Vec<String> {
    let text = |file| String::from_utf8_lossy(file).lines().map(str::to_owned).collect::<Vec<_>>();
    files.iter().flat_map(|file| text(file)).collect()
}

#[test]
fn whole_objects_are_read_natively_in_order_and_what_they_cost_is_counted() {
    let store = Arc::new(Store { contents: files(20), is_reversed: true, ..Store::default() });
    assert_eq!(rows(&store), lines(&store.contents));
    let reads = store.reads.lock().expect("no panic");
    let cost = Cost { requests: 2, retries: 1, throttled: 1 };
    assert_eq!(reads.len(), 20, "one read a file");
    assert!(reads.iter().all(|read| read.cost == cost && read.refusal.is_none()), "{reads:?}");
    let bytes: usize = store.contents.iter().map(Vec::len).sum();
    assert_eq!(reads.iter().map(|read| read.bytes).sum::<usize>(), bytes);
    assert_eq!(store.opened.load(Ordering::Relaxed), 0, "the other client opens nothing");
}

#[test]
fn a_refused_file_is_read_by_the_other_client_and_the_rest_natively() {
    let store = Arc::new(Store { contents: files(3), refused: Some(1), ..Store::default() });
    assert_eq!(rows(&store), lines(&store.contents));
    let reads = store.reads.lock().expect("no panic");
    let refusals: Vec<_> =
        reads.iter().filter_map(|read| Some((read.bytes, read.refusal.clone()?))).collect();
    assert_eq!(
        (reads.len(), refusals),
        (3, vec![(0, "refused".to_owned())]),
        "it is asked once for the file"
    );
    assert_eq!(store.opened.load(Ordering::Relaxed), 1);
    assert_eq!(store.closed.load(Ordering::Relaxed), 1);
}

#[test]
fn partial_reads_of_the_other_client_are_continued() {
    let store = Arc::new(Store { contents: files(3), most: Some(2), ..Store::default() });
    store.is_useless.store(true, Ordering::Relaxed);
    assert_eq!(rows(&store), lines(&store.contents));
    assert!(store.reads.lock().expect("no panic").is_empty(), "a useless reader is not asked");
    assert!(store.others.load(Ordering::Relaxed) >= 3 * 6);
}

#[test]
fn an_error_is_that_of_its_range_and_earlier_rows_are_delivered() {
    let unreadable = Store { contents: files(4), refused: Some(2), unreadable: Some(2), ..Store::default() };
    let store = Arc::new(unreadable);
    let (found, error) = rows_until(scan(&store, source(&store)));
    assert_eq!(found, lines(&store.contents[..2]));
    let cause = Cause::Volume(Error::new(Operation::OpenFile, Errno::IO));
    assert_eq!(error, Some(ScanError { range: 2, cause }));
}

#[test]
fn a_caller_can_stop_though_the_native_reader_does_not_answer() {
    let store = Arc::new(Store { contents: files(2), hangs: true, ..Store::default() });
    let mut scan = scan(&store, source(&store));
    let (start, deadline) = (Instant::now(), Duration::from_millis(50));
    let error = loop {
        match scan.next_batch_while(&mut || start.elapsed() < deadline) {
            Ok(batch) => assert_eq!(batch.map(|batch| batch.rows()), Some(0)),
            Err(error) => break error,
        }
    };
    assert!(error.is_interrupted(), "{error}");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// A file of several portions, each of which is a request.
fn large() -> Vec<u8> {
    (0..250_000).map(|line| format!("{line:099}\n")).collect::<String>().into()
}

#[test]
fn parts_of_a_replaced_file_are_all_of_the_new_version() {
    let contents = large();
    let replaced = contents.iter().map(|&byte| if byte == b'0' { b'x' } else { byte }).collect::<Vec<_>>();
    let expected = lines(std::slice::from_ref(&replaced));
    let contents = vec![contents];
    let store = Arc::new(Store { contents, replaced: Some(replaced), ..Store::default() });
    assert!(rows(&store) == expected, "no row is of the version that was listed");
    assert_eq!(store.opened.load(Ordering::Relaxed), store.closed.load(Ordering::Relaxed));
}

#[test]
fn parts_of_an_unchanged_file_are_read_natively() {
    let store = Arc::new(Store { contents: vec![large()], ..Store::default() });
    assert!(rows(&store) == lines(&store.contents));
    let reads = store.reads.lock().expect("no panic");
    assert!(reads.len() > 1 && reads.iter().all(|read| read.refusal.is_none()), "{}", reads.len());
    assert_eq!(store.others.load(Ordering::Relaxed), 0, "the other client accepts, and reads nothing");
}

#[test]
fn empty_objects_and_unknown_versions_are_left_to_the_other_client() {
    let store = Arc::new(Store { contents: vec![b"a\n".to_vec(), Vec::new()], ..Store::default() });
    for (versions, read) in [
        (vec![Version::at(2, MTIME), listed(b"")], 0),
        (Vec::new(), 0),
        (vec![listed(b"a\n"), listed(b"")], 1),
    ] {
        let native = Some((Native(Arc::clone(&store)), versions));
        let source = RemoteSource::new(Other(Arc::clone(&store)), native);
        let file = |index| {
            let range = FileRange {
                path: path(index),
                start: 0,
                length: 2,
                may_have_checksums: false,
                compression: Compression::None,
            };
            source.open(index, &range).expect("opened")
        };
        let mut buffer = [0; 4];
        assert_eq!(file(0).read_at(&mut buffer, 0), Ok(2));
        assert_eq!(file(1).read_at(&mut buffer, 0), Ok(0));
        assert_eq!(std::mem::take(&mut *store.reads.lock().expect("no panic")).len(), read);
    }
    let without = RemoteSource::<Native, _>::new(Other(Arc::clone(&store)), None);
    let (found, error) = rows_until(scan(&store, without));
    assert_eq!((found, error), (vec!["a".to_owned()], None));
}

#[test]
fn joined_files_are_those_that_were_listed_whoever_reads() {
    for refused in [None, Some(1)] {
        let store = Arc::new(Store { contents: files(3), refused, ..Store::default() });
        let input =
            |(index, contents): (usize, &Vec<u8>)| Input { path: path(index), version: listed(contents) };
        let inputs = store.contents.iter().enumerate().map(input).collect();
        let mut joined = JoinedFiles::new(source(&store), inputs, millstream_scan::Header::None, 4);
        let mut bytes = Vec::new();
        let mut put = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        while joined.next(&mut || true, &mut put).expect("unchanged") {}
        assert_eq!(bytes, store.contents.concat());
    }
}
