//! Units of work for one reader.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use millstream_codec::{Codec, Index};
use millstream_vfs::{Errno, Error, Operation, Result as VolumeResult};

use crate::batch::{Batch, Buffer, Line};
use crate::checksum::mismatch;
use crate::decoded::{self, Opened};
use crate::error::{Cause, ScanError};
use crate::file_reader::{FileReader, check_size};
use crate::lines::Separator;
use crate::pattern::Caseless;
use crate::predicate::Predicate;
use crate::range::{append_whole, read_bytes, read_lines};
use crate::shared::SharedFiles;
use crate::source::{Compression, FileRange, Portions, Source, SourceFile};
use crate::stream::{Damage, PIECE, Stream};
use crate::text::java_text;

/// The meaning of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A line. A UTF-8 byte order mark at the beginning of a file is not part of the first line.
    Lines(Separator),
    /// A whole file. Every range is a whole file.
    WholeFiles,
    /// The bytes of a range; a large range arrives in several pieces. A file shorter than its range has fewer bytes.
    Bytes,
}

/// What a scan delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The rows.
    Values,
    /// Their number.
    Count,
    /// Rows that differ, with the number of times each occurs. Over several batches a row may come several times.
    Distinct,
}

/// Which rows may be in one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Rows of several ranges.
    Any,
    /// Rows of one range.
    ByRange,
}

/// Treatment of a file that is missing or may not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Fail.
    Fail,
    /// Skip the file.
    Skip,
}

/// Treatment of checksum files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Do not look for them.
    None,
    /// Fail if the data does not match its checksum file, where there is one.
    Checksums,
}

/// Options of a scan.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// The meaning of a row.
    pub rows: Rows,
    /// The rows to keep.
    pub predicate: Predicate,
    /// Splits each kept row at these bytes, at least one, so that the parts become the rows; not if they are just
    /// counted.
    pub words: Option<Vec<u8>>,
    /// What to deliver.
    pub output: Output,
    /// Which rows may be in one batch.
    pub grouping: Grouping,
    /// Treatment of missing files.
    pub missing: Missing,
    /// Treatment of checksum files.
    pub verification: Verification,
    /// Treatment of damaged blocks.
    pub damage: Damage,
    /// Maximum number of threads that read ahead, besides the caller's.
    pub max_readers: usize,
}

/// One reader's piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes of one range.
    Part { range: usize, start: u64, end: u64 },
    /// All of some ranges.
    Group { first: usize, end: usize },
}

impl Unit {
    /// Cuts a scan into units.
    pub(crate) fn cut(ranges: &[FileRange], options: &ScanOptions, portions: Portions) -> Vec<Unit> {
        let may_cut = match &options.rows {
            Rows::Lines(separator) => separator.is_found_from_anywhere(),
            Rows::WholeFiles => false,
            Rows::Bytes => true,
        };
        let most = if options.grouping == Grouping::Any { portions.ranges } else { 1 };
        let mut units = Vec::new();
        let mut next = 0;
        while let Some(range) = ranges.get(next) {
            if range.length > portions.large() && may_cut && range.streamed().is_none() {
                units.extend(parts(next, range, portions));
                next += 1;
                continue;
            }
            let (first, mut bytes) = (next, 0);
            while let Some(range) = ranges.get(next) {
                bytes += range.length;
                if next > first && (next - first == most || bytes > portions.bytes) {
                    break;
                }
                next += 1;
            }
            units.push(Unit::Group { first, end: next });
        }
        units
    }

    /// The unit's first range.
    pub(crate) fn range(self) -> usize {
        match self {
            Unit::Part { range, .. } => range,
            Unit::Group { first, .. } => first,
        }
    }

    /// How many bytes of files it covers.
    pub(crate) fn bytes(self, ranges: &[FileRange]) -> u64 {
        match self {
            Unit::Part { start, end, .. } => end - start,
            Unit::Group { first, end } => ranges[first..end].iter().map(|range| range.length).sum(),
        }
    }

    /// The first byte of the unit in that range.
    fn start(self, ranges: &[FileRange]) -> u64 {
        match self {
            Unit::Part { start, .. } => start,
            Unit::Group { first, .. } => ranges[first].start,
        }
    }
}

fn parts(range: usize, whole: &FileRange, portions: Portions) -> impl Iterator<Item = Unit> {
    let end = whole.end();
    let mut next = whole.start;
    std::iter::from_fn(move || {
        let start = next;
        next = if end - start > portions.large() { start + portions.bytes } else { end };
        (start < end).then_some(Unit::Part { range, start, end: next })
    })
}

/// Where the reader of a unit stopped because the batch was large enough, as with compressed files, whose length is not
/// known.
#[derive(Debug)]
pub(crate) struct Rest<F: SourceFile> {
    /// The next range.
    range: usize,
    /// Its file, if some of it has been read.
    stream: Option<Stream<F>>,
}

/// Counters of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) bytes: u64,
    pub(crate) files: u64,
    pub(crate) missing: u64,
}

/// What is searched for in a buffer of lines before a predicate is evaluated.
#[derive(Debug)]
enum Search<'a> {
    /// Nothing.
    None,
    /// A literal that every matching line contains. The flag tells whether the predicate only asks for it.
    Literal(Box<memmem::Finder<'a>>, bool),
    /// If the buffer is of ASCII, a literal that every matching line contains in upper or lower case.
    Caseless(&'a Caseless),
}

impl<'a> Search<'a> {
    fn of(options: &'a ScanOptions) -> Self {
        let (Rows::Lines(separator), predicate) = (&options.rows, &options.predicate) else {
            return Search::None;
        };
        if !separator.is_one_byte() {
            return Search::None;
        }
        if let Some(literal) = predicate.literal() {
            let suffices = matches!(predicate, Predicate::Contains(_)) && separator.may_contain(literal);
            return Search::Literal(Box::new(memmem::Finder::new(literal)), suffices);
        }
        predicate.caseless().map_or(Search::None, Search::Caseless)
    }

    /// A function that finds it in parts of `data`; `None` if every line must be looked at.
    fn in_data(&self, data: &[u8]) -> Option<impl Fn(&[u8]) -> Option<usize>> {
        match self {
            Search::None => None,
            Search::Caseless(_) if !data.is_ascii() => None,
            search => Some(|part: &[u8]| match search {
                Search::None => None,
                Search::Literal(literal, _) => literal.find(part),
                Search::Caseless(literal) => literal.find(part),
            }),
        }
    }
}

/// Reads units into batches.
#[derive(Debug)]
pub(crate) struct UnitReader<'a> {
    options: &'a ScanOptions,
    search: Search<'a>,
    pub(crate) scratch: Buffer,
    pub(crate) counts: Counts,
    /// Indexes of files that have been read, with their ranges.
    pub(crate) indexes: Vec<(usize, Index)>,
}

impl<'a> UnitReader<'a> {
    /// A reader for a scan with these options; `scratch` is a buffer to reuse.
    pub(crate) fn new(options: &'a ScanOptions, scratch: Buffer) -> Self {
        UnitReader {
            options,
            search: Search::of(options),
            scratch,
            counts: Counts::default(),
            indexes: Vec::new(),
        }
    }

    /// Reads `unit`, or the rest of it, into `batch`, replacing its contents. Returns what is left of it then. After
    /// each file, `should_continue` decides whether to read the next.
    pub(crate) fn read<S: Source>(
        &mut self,
        files: (&S, &SharedFiles<S::File>),
        ranges: &[FileRange],
        unit: Unit,
        rest: Option<Rest<S::File>>,
        batch: &mut Batch,
        mut should_continue: impl FnMut() -> bool,
    ) -> Result<Option<Rest<S::File>>, ScanError> {
        batch.clear();
        let (range, offset) = match &rest {
            Some(Rest { range, stream }) => (*range, stream.as_ref().map_or(0, Stream::offset)),
            None => (unit.range(), unit.start(ranges)),
        };
        (batch.range, batch.offset) = (range, offset);
        let (source, shared) = files;
        let rest = match unit {
            Unit::Part { range, start, end } => {
                self.read_part(source, shared, ranges, (range, start..end), batch)?;
                None
            }
            Unit::Group { first, end } => {
                let rest = rest.unwrap_or(Rest { range: first, stream: None });
                self.read_group(source, ranges, (rest, end), batch, &mut should_continue)?
            }
        };
        if let Some(separator) = &self.options.words {
            split_words(batch, separator).map_err(|cause| ScanError { range, cause: cause.into() })?;
        }
        Ok(rest)
    }

    fn read_part<S: Source>(
        &mut self,
        source: &S,
        shared: &SharedFiles<S::File>,
        ranges: &[FileRange],
        (range, part): (usize, Range<u64>),
        batch: &mut Batch,
    ) -> Result<(), ScanError> {
        let (whole, parts) = (&ranges[range], S::PORTIONS.parts(ranges[range].length));
        let read = shared.with(source, (range, whole), parts, |file| {
            let is_first = part.start == whole.start;
            let read = file
                .as_ref()
                .map_err(|error| Cause::from(*error))
                .and_then(|file| self.read_file(source, file, whole, part, batch));
            self.unless_missing(read, is_first)
        });
        read.map_err(|cause| ScanError { range, cause })
    }

    /// Reads the files of a group from where an earlier batch ended.
    fn read_group<S: Source>(
        &mut self,
        source: &S,
        ranges: &[FileRange],
        (mut rest, end): (Rest<S::File>, usize),
        batch: &mut Batch,
        should_continue: &mut impl FnMut() -> bool,
    ) -> Result<Option<Rest<S::File>>, ScanError> {
        let mut decoded = 0;
        while rest.range < end {
            let (index, range) = (rest.range, &ranges[rest.range]);
            let read = if let Some(codec) = range.streamed() {
                let is_first = rest.stream.is_none();
                let stream = match rest.stream.take() {
                    Some(stream) => Ok(stream),
                    None => self.open_stream(source, (index, range), codec),
                };
                let read = stream.and_then(|mut stream| {
                    decoded += self.read_stream(&mut stream, batch)?;
                    if stream.is_at_end() {
                        self.indexes.extend(stream.take_index().map(|made| (index, made)));
                    }
                    rest.stream = (!stream.is_at_end()).then_some(stream);
                    Ok(())
                });
                if read.is_ok() && is_first {
                    self.counts.files += 1;
                    self.counts.bytes += range.length;
                }
                self.unless_missing(read, is_first)
            } else {
                let read = decoded::open(source, index, range)
                    .map_err(Cause::from)
                    .and_then(|file| self.read_file(source, &file, range, range.start..range.end(), batch));
                self.unless_missing(read, true)
            };
            let should_continue = should_continue();
            read.map_err(|cause| ScanError { range: index, cause })?;
            if !should_continue {
                return Err(ScanError::interrupted(index));
            }
            rest.range += usize::from(rest.stream.is_none());
            // Rows of a file that goes on are delivered before more of it is read: an error there would discard them.
            if rest.stream.is_some() || decoded >= PIECE as u64 && rest.range < end {
                return Ok(Some(rest));
            }
        }
        Ok(None)
    }

    fn open_stream<S: Source>(
        &mut self,
        source: &S,
        (index, range): (usize, &FileRange),
        codec: Codec,
    ) -> Result<Stream<S::File>, Cause> {
        let file = source.open(index, range)?;
        self.verify(source, range, &file, range.start..range.end())?;
        // One byte more than expected, so that one request reaches the end of the file.
        let portion = range.length.saturating_add(1).min(S::PORTIONS.bytes);
        let portion = usize::try_from(portion).unwrap_or(usize::MAX);
        let most_ahead = S::PORTIONS.first_readers.min(self.options.max_readers);
        let reader = FileReader::new(file, range.start..range.end(), range.size(), portion, most_ahead);
        let damage = self.options.damage;
        let stream = match (&range.compression, &self.options.rows) {
            (Compression::Blocks { .. }, Rows::Lines(separator)) if separator.is_found_from_anywhere() => {
                Some(Stream::divided(reader, range.start..range.end(), separator, damage))
            }
            (Compression::Whole(Codec::Bzip2), Rows::Lines(separator))
                if damage == Damage::PassOver && separator.is_found_from_anywhere() =>
            {
                Some(Stream::divided(reader, 0..u64::MAX, separator, damage))
            }
            (Compression::Blocks { .. }, _) => None,
            (Compression::Indexing(_), _) => Stream::indexing(reader, codec),
            (Compression::None | Compression::Whole(_) | Compression::Indexed(_), _) => {
                Some(Stream::new(reader, codec))
            }
        };
        stream.ok_or_else(|| Error::new(Operation::Read, Errno::NOTSUP).into())
    }

    /// Adds the rows of the next piece of a stream. Returns how many bytes were decoded for it.
    fn read_stream<F: SourceFile>(
        &mut self,
        stream: &mut Stream<F>,
        batch: &mut Batch,
    ) -> Result<u64, Cause> {
        let Rows::Lines(separator) = &self.options.rows else {
            let start = batch.buffer.len();
            stream.append_whole(&mut batch.buffer)?;
            let decoded = batch.buffer.len() - start;
            self.take_whole(start, batch);
            return Ok(decoded as u64);
        };
        let before = stream.offset();
        if self.takes_all() && self.options.output != Output::Count {
            let found = stream.next_lines(separator, &mut batch.buffer)?;
            batch.add_lines(found, separator);
        } else {
            self.scratch.clear();
            let found = stream.next_lines(separator, &mut self.scratch)?;
            batch.check_room(found.len())?;
            self.take_lines(&self.scratch[found], separator, batch);
        }
        Ok(stream.offset() - before)
    }

    /// Skips a missing file if that is asked for, and counts it once.
    fn unless_missing(&mut self, read: Result<(), Cause>, is_first: bool) -> Result<(), Cause> {
        match read {
            Err(cause) if cause.is_missing() && self.options.missing == Missing::Skip => {
                self.counts.missing += u64::from(is_first);
                Ok(())
            }
            read => read,
        }
    }

    /// Compares a part of a file with its checksums, if that is asked for.
    fn verify<S: Source>(
        &mut self,
        source: &S,
        range: &FileRange,
        file: &S::File,
        part: Range<u64>,
    ) -> Result<(), Cause> {
        if self.options.verification == Verification::Checksums && range.may_have_checksums {
            let differs = mismatch(source, range, file, part, &mut self.scratch)?;
            differs.map_or(Ok(()), |offset| Err(Cause::Checksum { offset }))?;
        }
        Ok(())
    }

    fn read_file<S: Source>(
        &mut self,
        source: &S,
        file: &Opened<S::File>,
        range: &FileRange,
        part: Range<u64>,
        batch: &mut Batch,
    ) -> Result<(), Cause> {
        // Of what an index decodes, it has checksums as well.
        if range.compression == Compression::None {
            self.verify(source, range, file.raw(), part.clone())?;
        }
        let read = self.read_opened(file, range, part.clone(), batch);
        let bytes = file.finish(part.clone());
        read.map_err(|cause| file.damage().unwrap_or(cause))?;
        self.counts.files += u64::from(part.start == range.start);
        self.counts.bytes += bytes.unwrap_or(part.end - part.start);
        Ok(())
    }

    fn read_opened<F: SourceFile>(
        &mut self,
        file: &Opened<F>,
        range: &FileRange,
        part: Range<u64>,
        batch: &mut Batch,
    ) -> Result<(), Cause> {
        let bytes = part.end - part.start;
        match &self.options.rows {
            Rows::Lines(separator) => {
                if self.takes_all()
                    && self.options.output == Output::Count
                    && let Some(lines) = file.count_lines(part.clone(), separator)?
                {
                    batch.rows += lines;
                    return Ok(());
                }
                let copies = self.takes_all() && self.options.output != Output::Count;
                if !copies && let Some(lines) = file.lines(part.clone(), separator)? {
                    batch.check_room(lines.bytes().len())?;
                    self.take_lines(lines.bytes(), separator, batch);
                    return Ok(());
                }
                let read = self.lines(file, part, separator, batch)?;
                // However the file is cut up, one of the parts finds it.
                if (read as u64) < bytes {
                    check_size(file, range.end())?;
                }
            }
            Rows::WholeFiles => {
                let start = batch.buffer.len();
                append_whole(file, range.length, &mut batch.buffer)?;
                self.take_whole(start, batch);
            }
            Rows::Bytes => {
                if part.start == range.start {
                    batch.versions.push(file.version()?);
                }
                let length = usize::try_from(bytes).unwrap_or(usize::MAX);
                batch.check_room(length)?;
                let start = batch.buffer.len();
                read_bytes(file, part.start, length, &mut batch.buffer)?;
                if part.start > range.start && part.end == range.end() {
                    batch.last_versions.push(file.version()?);
                }
                batch.rows += 1;
                batch.add_in_place(start, batch.buffer.len());
            }
        }
        Ok(())
    }

    /// Makes the bytes of the batch from `start` a row, if it is wanted.
    fn take_whole(&self, start: usize, batch: &mut Batch) {
        let is_wanted = self.options.predicate.holds(&batch.buffer[start..]);
        batch.rows += u64::from(is_wanted);
        if is_wanted && self.options.output != Output::Count {
            batch.add_in_place(start, batch.buffer.len());
        } else {
            batch.buffer.truncate(start);
        }
    }

    fn takes_all(&self) -> bool {
        matches!(self.options.predicate, Predicate::True)
    }

    /// Returns how many bytes of the file were read from the start of `part` on, fewer than it has only at the end of
    /// the file.
    fn lines<F: SourceFile>(
        &mut self,
        file: &F,
        part: Range<u64>,
        separator: &Separator,
        batch: &mut Batch,
    ) -> VolumeResult<usize> {
        if self.takes_all() && batch.buffer.is_empty() && self.options.output != Output::Count {
            // All rows are wanted, so they are read straight into the batch.
            let found = read_lines(file, part.start, part.end, separator, &mut batch.buffer)?;
            batch.add_lines(found, separator);
            return Ok(batch.buffer.len());
        }
        let found = read_lines(file, part.start, part.end, separator, &mut self.scratch)?;
        batch.check_room(found.len())?;
        self.take_lines(&self.scratch[found], separator, batch);
        Ok(self.scratch.len())
    }

    /// Adds or counts some lines.
    fn take_lines(&self, data: &[u8], separator: &Separator, batch: &mut Batch) {
        match (self.takes_all(), self.options.output) {
            (true, Output::Count) => batch.rows += separator.count(data),
            _ => self.filter(data, separator, batch),
        }
    }

    /// Adds the lines of `data` that match the predicate.
    fn filter(&self, data: &[u8], separator: &Separator, batch: &mut Batch) {
        let mut take = |row: &[u8]| {
            batch.rows += 1;
            if self.options.output != Output::Count {
                batch.add(row);
            }
        };
        let Some(find) = self.search.in_data(data) else {
            separator.split(data, |start, end| {
                if self.options.predicate.holds(&data[start..end]) {
                    take(&data[start..end]);
                }
            });
            return;
        };
        let suffices = matches!(self.search, Search::Literal(_, true));
        let mut from = 0;
        while let Some(at) = find(&data[from..]).map(|at| from + at) {
            let start = separator.line_start(data, from, at);
            let (end, next) =
                separator.find(data, at, true).map_or((data.len(), data.len()), |s| (s.start, s.end));
            let row = &data[start..end];
            if suffices || self.options.predicate.holds(row) {
                take(row);
            }
            from = next;
        }
    }
}

/// Splits the rows of a batch like Spark's `split(row, separator)`: empty words count, and where a row is not UTF-8,
/// its words are those of the text that Java makes of it.
fn split_words(batch: &mut Batch, separator: &[u8]) -> VolumeResult<()> {
    let rows = std::mem::take(&mut batch.lines);
    let finder = memmem::Finder::new(separator);
    let all_valid = std::str::from_utf8(&batch.buffer).is_ok();
    for row in rows {
        let (mut start, mut length) = (row.start as usize, row.length as usize);
        if !all_valid && let Cow::Owned(text) = java_text(&batch.buffer[start..start + length]) {
            batch.check_room(text.len())?;
            (start, length) = (batch.buffer.len(), text.len());
            batch.buffer.extend(&text);
        }
        let (mut word, end) = (start, start + length);
        let Batch { buffer, lines, .. } = &mut *batch;
        for at in finder.find_iter(&buffer[start..end]) {
            lines.push(Line::new(word, start + at));
            word = start + at + separator.len();
        }
        lines.push(Line::new(word, end));
    }
    batch.rows = batch.lines.len() as u64;
    Ok(())
}

/// Filters arbitrary bytes both ways, line by line and by literal, which must find the same rows. The first byte
/// selects the separator; the second is the length of the literal, which follows it.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_lines(bytes: &[u8]) {
    let [kind, length, rest @ ..] = bytes else { return };
    let (literal, data) = rest.split_at((*length as usize).min(rest.len()));
    let separator = match kind {
        0 => Separator::AnyNewline,
        1 => Separator::Bytes(b"ab".to_vec()),
        2 => Separator::Bytes(b"aa".to_vec()),
        byte => Separator::Bytes(vec![*byte]),
    };
    let mut all = Vec::new();
    separator.split(data, |start, end| all.push(&data[start..end]));
    assert_eq!(separator.count(data), all.len() as u64);
    let caseless = Caseless::new(literal).map(|literal| Predicate::MayContainIgnoringCase(Box::new(literal)));
    for predicate in [Some(Predicate::contains(literal)), caseless].into_iter().flatten() {
        let expected = all.iter().copied().filter(|row| predicate.holds(row));
        let options = ScanOptions {
            rows: Rows::Lines(separator.clone()),
            predicate: predicate.clone(),
            words: None,
            output: Output::Values,
            grouping: Grouping::Any,
            missing: Missing::Fail,
            verification: Verification::None,
            damage: Damage::Fail,
            max_readers: 0,
        };
        let mut batch = Batch::default();
        UnitReader::new(&options, Buffer::default()).filter(data, &separator, &mut batch);
        assert!(batch.iter().eq(expected));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_as_they_are_cut() {
        let portions = Portions { bytes: 1 << 20, ranges: 64, first_readers: 0 };
        let (part, large) = (portions.bytes, portions.large());
        for length in [large + 1, 2 * part, large + part, large + part + 1, 100 * part - 1, 100 * part] {
            let whole = FileRange {
                path: c"file".into(),
                start: 7,
                length,
                may_have_checksums: false,
                compression: Compression::None,
            };
            assert_eq!(parts(0, &whole, portions).count() as u64, portions.parts(length), "{length}");
        }
    }

    #[test]
    fn rows_are_split_into_words_like_javas() {
        for (row, separator, expected) in [
            (&b""[..], " ", &[""][..]),
            (b" ", " ", &["", ""]),
            (b"a b  c ", " ", &["a", "b", "", "c", ""]),
            (b"abc", " ", &["abc"]),
            (b"a, b,c", ", ", &["a", "b,c"]),
            (b"aaa", "aa", &["", "a"]),
            (b"caf\xe9 x", " ", &["caf\u{fffd}", "x"]),
        ] {
            let mut batch = Batch::default();
            batch.add(b"kept");
            batch.add(row);
            split_words(&mut batch, separator.as_bytes()).expect("room");
            let words: Vec<_> = batch.iter().skip(1).collect();
            assert_eq!(words, expected.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(), "{row:?}");
            assert_eq!(batch.rows(), expected.len() as u64 + 1);
        }
    }

    #[test]
    fn both_ways_of_filtering_find_the_same_rows() {
        for bytes in [
            &b"\0\x02bca\r\nbc\rxbcbc\nb\rc"[..],
            b"\x01\x02bcxabcabab",
            b"\0\x02bcaBC\r\nBc\rxbCbc\nb\rc\n\xe9\n",
            b"|\x02b|ab|B|b",
            b"\x02\x02ayxaaaay",
            b"|\x02|a|a||a",
            b"\0\0\n\r",
            b"\0",
        ] {
            fuzz_lines(bytes);
        }
    }
}
