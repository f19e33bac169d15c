//! Reads the lines that belong to a range of a file.
//!
//! A line belongs to the range if it starts in (start, end]; the first line belongs to the range at offset 0. With a
//! separator of several bytes, which a border may split, the separator before the line counts: it must begin in [start,
//! end). Wherever a file is cut into ranges, every line therefore belongs to exactly one of them, and lines appended
//! later belong to the last one.

use std::ops::Range;

use millstream_vfs::{Errno, Error, Operation, Result};

use crate::batch::Buffer;
use crate::lines::Separator;
use crate::source::SourceFile;

/// The UTF-8 byte order mark, which is not part of the first line.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Extra bytes read after the range: the last line usually ends within them.
const SLACK: usize = 4 << 10;
/// Size of the first read after that; later reads grow.
const MORE: usize = 64 << 10;

/// Reads the lines that belong to `[start, end)` into `buffer`, replacing its contents. Returns the part of the buffer
/// that holds them.
///
/// # Errors
/// Read errors, and `EOVERFLOW` if a line does not fit in a buffer.
pub(crate) fn read_lines<F: SourceFile>(
    file: &F,
    start: u64,
    end: u64,
    separator: &Separator,
    buffer: &mut Buffer,
) -> Result<Range<usize>> {
    buffer.clear();
    let length = usize::try_from(end - start).unwrap_or(usize::MAX);
    let mut reading = Reading { file, offset: start, buffer, at_end: false };
    reading.more(length.saturating_add(SLACK))?;
    loop {
        if let Some(found) = find_lines(reading.buffer, start, length, separator, reading.at_end) {
            return Ok(found);
        }
        let filled = reading.buffer.len();
        // Not more than there is room for: the line may end before that.
        reading.more(MORE.max(filled).min(Buffer::MAX - filled).max(1))?;
    }
}

/// The lines that belong to the range of `length` bytes at `start`, in the bytes of the file from there on. `None` if
/// that depends on bytes after `data`; with `at_end`, there are none. Otherwise, `data` contains the whole range.
pub(crate) fn find_lines(
    data: &[u8],
    start: u64,
    length: usize,
    separator: &Separator,
    at_end: bool,
) -> Option<Range<usize>> {
    let first = match start {
        0 if data.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
        0 if BYTE_ORDER_MARK.starts_with(data) && !at_end => return None,
        0 => 0,
        // A line that starts before or at the start of the range belongs to the previous range.
        _ => {
            // A separator that begins in the range ends within these.
            let limit = length.saturating_add(separator.max_overlap() + 1);
            let near = &data[..data.len().min(limit)];
            match separator.find(near, 0, at_end && near.len() == data.len()) {
                Some(found) if separator.begins_line_before(&found, length) => found.end,
                None if near.len() < limit && !at_end => return None,
                _ => return Some(0..0),
            }
        }
    };
    // If the border splits a CRLF, the search finds its LF first, so the LF is not taken for an empty line.
    match separator.find(data, length.max(first), at_end) {
        Some(found) => Some(first..found.end),
        None => at_end.then_some(first..data.len()),
    }
}

/// Appends a whole file, expected to have `length` bytes, to `buffer`.
///
/// # Errors
/// As [`read_lines`].
pub(crate) fn append_whole<F: SourceFile>(file: &F, length: u64, buffer: &mut Buffer) -> Result<()> {
    let mut done = 0;
    // One byte more than expected, so that one read reaches the end of the file.
    let mut left = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1);
    loop {
        let free = Buffer::MAX - buffer.len();
        if free == 0 {
            return Err(Error::new(Operation::Read, Errno::OVERFLOW));
        }
        let n = file.read_at(buffer.room(left.min(free)), done as u64)?;
        if n == 0 {
            return Ok(());
        }
        buffer.fill(n);
        done += n;
        left = if left > n { left - n } else { MORE.max(done) };
    }
}

/// Appends `length` bytes at `start` to `buffer`, fewer at the end of the file.
pub(crate) fn read_bytes<F: SourceFile>(
    file: &F,
    start: u64,
    length: usize,
    buffer: &mut Buffer,
) -> Result<()> {
    let mut done = 0;
    while done < length {
        let n = file.read_at(buffer.room(length - done), start + done as u64)?;
        buffer.fill(n);
        done += n;
        if n == 0 {
            break;
        }
    }
    Ok(())
}

struct Reading<'a, F> {
    file: &'a F,
    /// File offset of the start of the buffer.
    offset: u64,
    buffer: &'a mut Buffer,
    at_end: bool,
}

impl<F: SourceFile> Reading<'_, F> {
    /// Reads `count` more bytes, fewer only at the end of the file.
    fn more(&mut self, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 && !self.at_end {
            let filled = self.buffer.len();
            if filled == Buffer::MAX {
                return Err(Error::new(Operation::Read, Errno::OVERFLOW));
            }
            let room = self.buffer.room(left.min(Buffer::MAX - filled));
            let n = self.file.read_at(room, self.offset + filled as u64)?;
            self.buffer.fill(n);
            left = left.saturating_sub(n);
            self.at_end = n == 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::time::{SystemTime, UNIX_EPOCH};

    use millstream_posix::PosixVolume;
    use millstream_vfs::{Access, Dir, SymlinkBehavior, Volume};

    use super::*;

    /// Marsaglia's xorshift generator.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 16) as usize % bound
        }
    }

    /// The lines of a file and their offsets, found byte by byte.
    fn model(data: &[u8], separator: &Separator) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Vec::new();
        let (mut start, mut at) = (0, 0);
        while at < data.len() {
            let length = match separator {
                Separator::AnyNewline if data[at..].starts_with(b"\r\n") => 2,
                Separator::AnyNewline => usize::from(matches!(data[at], b'\r' | b'\n')),
                Separator::Bytes(bytes) => {
                    if data[at..].starts_with(bytes) {
                        bytes.len()
                    } else {
                        0
                    }
                }
            };
            if length > 0 {
                lines.push((start as u64, data[start..at].to_vec()));
                start = at + length;
            }
            at += length.max(1);
        }
        if start < data.len() {
            lines.push((start as u64, data[start..].to_vec()));
        }
        if data.starts_with(BYTE_ORDER_MARK) && !lines.is_empty() {
            lines[0].1.drain(..BYTE_ORDER_MARK.len());
            // A file of nothing but a byte order mark has no lines.
            if data.len() == BYTE_ORDER_MARK.len() {
                lines.clear();
            }
        }
        lines
    }

    fn lines_of(path: &CString, start: u64, end: u64, separator: &Separator) -> Vec<Vec<u8>> {
        let file = PosixVolume.base().open_file(path, Access::Read, SymlinkBehavior::Follow).expect("a file");
        let mut buffer = Buffer::default();
        let found = read_lines(&file, start, end, separator, &mut buffer).expect("readable");
        let (data, mut lines) = (&buffer[found], Vec::new());
        separator.split(data, |start, end| lines.push(data[start..end].to_vec()));
        lines
    }

    /// Wherever a file is cut, each line belongs to exactly one range, the same one as in Hadoop.
    #[test]
    fn every_line_belongs_to_one_range() {
        let given = std::env::var("MILLSTREAM_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
        let seed: u64 = given.unwrap_or_else(clock);
        println!("MILLSTREAM_SEED={seed}");
        let mut random = Random(seed | 1);
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("file");
        let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        let mut early = 0;
        for round in 0..400 {
            let separator = match random.below(5) {
                0 => Separator::Bytes(b"|".to_vec()),
                1 => Separator::Bytes(b"\r\n".to_vec()),
                2 => Separator::Bytes(b"|\n\r".to_vec()),
                _ => Separator::AnyNewline,
            };
            // Where a line counts as starting: at the second byte of the separator before it if that has several bytes.
            let before = match &separator {
                Separator::AnyNewline => 0,
                Separator::Bytes(bytes) => bytes.len() as u64 - 1,
            };
            let mut data = if random.below(4) == 0 { BYTE_ORDER_MARK.to_vec() } else { Vec::new() };
            // In some files lines are longer than the first read.
            let longest = [3, 3, 40, 90_000][random.below(4)];
            for _ in 0..random.below(12) {
                data.extend(vec![b'x'; random.below(longest)]);
                data.extend([&b"\n"[..], b"\r", b"\r\n", b"\n\r\n", b"|", b"|\n\r"][random.below(6)]);
            }
            data.extend(vec![b'y'; random.below(3)]);
            fs::write(&path, &data).expect("a file");
            let length = data.len() as u64;
            let mut cuts: Vec<u64> =
                (0..random.below(5)).map(|_| random.below(data.len() + 1) as u64).collect();
            cuts.extend([0, length]);
            cuts.sort_unstable();
            cuts.dedup();
            for range in cuts.windows(2) {
                let (start, end) = (range[0], range[1]);
                let belongs = |begin: u64| {
                    if begin == 0 { start == 0 } else { start < begin - before && begin - before <= end }
                };
                let lines = model(&data, &separator).into_iter().filter(|(begin, _)| belongs(*begin));
                let expected: Vec<_> = lines.map(|(_, line)| line).collect();
                let found = lines_of(&name, start, end, &separator);
                assert!(
                    found == expected,
                    "round {round}: {separator:?} {start}..{end} of {length}, cuts {cuts:?}"
                );
                // What is found in the first bytes of the rest stays right when there are more.
                let (rest, size) = (&data[start as usize..], (end - start) as usize);
                let known = &rest[..size + random.below(rest.len() - size + 1)];
                if let Some(found) = find_lines(known, start, size, &separator, false) {
                    let (known, mut lines) = (&known[found], Vec::new());
                    separator.split(known, |start, end| lines.push(known[start..end].to_vec()));
                    assert!(lines == expected, "round {round}: {separator:?} {start}..{end} of {length}");
                    early += 1;
                }
            }
        }
        assert!(early > 100, "{early} ranges were found without the end of the file");
    }

    #[test]
    fn appended_lines_belong_to_the_last_range() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("file");
        let name = CString::new(path.to_str().expect("UTF-8")).expect("no NUL");
        fs::write(&path, "one\ntwo\nthree\nfour\n").expect("a file");
        let lines = |end| lines_of(&name, 0, end, &Separator::AnyNewline);
        assert_eq!(lines(4), [b"one".to_vec(), b"two".to_vec()], "it was 4 bytes long when it was listed");
        assert_eq!(lines(5), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(lines(100), [&b"one"[..], b"two", b"three", b"four"], "it has become shorter since");
    }
}
