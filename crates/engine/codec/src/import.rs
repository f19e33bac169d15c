//! Builds the index of a gzip file in parallel, from the points of another program's index.
//!
//! Such an index has no checksums, so it is only a hint of where threads may begin. Each thread decodes a *part*, from
//! one point to the next, with the window from the other index. A wrong point or window is noticed: a part that does
//! not end where the next one begins is an error, and so is a member whose checksum, combined from those of its parts,
//! differs from the one in its trailer.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::codec::Codec;
use crate::compressed::STEP;
use crate::error::DecodeError;
use crate::gzip::{Check, Members, Trailer};
use crate::index::{Index, Window};
use crate::indexer::{Chunks, Tail};
use crate::inflate::Stop;
use crate::points::{PointWindow, Points};

/// Decodes a gzip file of `size` bytes from these points, on up to `threads` threads, and builds its index with chunks
/// of at least `spacing` bytes; `open` opens the file at an offset. The index is like that of an
/// [`Indexer`](crate::Indexer), but chunks may begin elsewhere. `None` if a deflate block is too long for a chunk.
///
/// # Errors
/// Those of a [`DecodeError`] if the file is damaged, or the points are not of this file; and those of the input.
pub fn import<R: Read>(
    points: &Points<'_>,
    size: u64,
    spacing: u64,
    threads: usize,
    open: impl Fn(u64) -> io::Result<R> + Sync,
) -> io::Result<Option<Index>> {
    let spacing = Chunks::usable_spacing(spacing);
    let starts = starts(points, size, spacing, &open)?;
    let (next, is_over, parts) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
    let work = || {
        while !is_over.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(start) = starts.get(i) else { return };
            let part =
                open(start.bit / 8).and_then(|input| Part::decode(start, starts.get(i + 1), spacing, input));
            let should_continue = part.as_ref().is_ok_and(|part| !part.chunks.is_undivided);
            is_over.fetch_or(!should_continue, Ordering::Relaxed);
            parts.lock().unwrap_or_else(PoisonError::into_inner).push((i, part));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(starts.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut parts = parts.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_by_key(|(i, _)| *i);
    let parts = parts.into_iter().map(|(_, part)| part).collect::<io::Result<Vec<_>>>()?;
    if parts.iter().any(|part| part.chunks.is_undivided) {
        return Ok(None);
    }
    // A chunk joined from two parts may have become too long.
    join(parts, size).map(|index| index.is_plausible().then_some(index))
}

/// The start of a part.
struct Start {
    bit: u64,
    start: u64,
    /// The bytes before it; empty after the header of a member, `None` before it.
    window: Option<Vec<u8>>,
}

/// The points that can be used, at least a chunk apart; the first is the beginning of the file.
fn starts<R: Read>(
    points: &Points<'_>,
    size: u64,
    spacing: u64,
    open: impl Fn(u64) -> io::Result<R>,
) -> io::Result<Vec<Start>> {
    if points.size.is_some_and(|other| other != size) {
        return Err(DecodeError::invalid(
            Codec::Gzip,
            0,
            "the imported index belongs to a file of a different size",
        ));
    }
    let mut starts = vec![Start { bit: 0, start: 0, window: None }];
    let mut last = 0;
    for point in &points.points {
        // rapidgzip has a point at the end.
        let is_within = point.bit / 8 < size && points.length.is_none_or(|length| point.start < length);
        if !is_within || point.start - last < spacing {
            continue;
        }
        let window = match point.window {
            PointWindow::Nothing if point.bit % 8 != 0 => continue,
            PointWindow::Nothing if has_header(open(point.bit / 8)?)? => None,
            window => match window.decoded() {
                Some(window) => Some(window),
                None => continue,
            },
        };
        last = point.start;
        starts.push(Start { bit: point.bit, start: point.start, window });
    }
    Ok(starts)
}

/// Whether the next bytes are the header of a member. Raw deflate data cannot begin like one.
fn has_header(mut input: impl Read) -> io::Result<bool> {
    let mut magic = [0; 2];
    match input.read_exact(&mut magic) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| magic == crate::gzip::MAGIC),
    }
}

/// Compares all bytes of a member with its trailer.
fn check(member: Check, trailer: Trailer) -> io::Result<()> {
    member.compare(trailer).map_err(|reason| DecodeError::invalid(Codec::Gzip, trailer.offset, reason))
}

/// The result of a thread between two points.
struct Part {
    /// Its offsets count from its start.
    chunks: Chunks,
    tail: Tail,
    /// The bit of the file that it ends at.
    end: u64,
    /// The trailer of the member that it begins in, and its bytes of this member.
    first: Option<(Check, Trailer)>,
    /// Its bytes of the member that it ends in.
    last: Check,
}

impl Part {
    /// Decodes from `start` to `end`, or to the end of the file.
    fn decode(start: &Start, end: Option<&Start>, spacing: u64, input: impl Read) -> io::Result<Part> {
        let mut members = match &start.window {
            None => Members::at(start.bit / 8, input),
            Some(window) => Members::inside(start.bit / 8, input, window, (start.bit % 8) as u8)?,
        };
        let mut part = Part {
            chunks: Chunks::new(Codec::Gzip, spacing),
            tail: Tail::default(),
            end: start.bit,
            first: None,
            last: Check::default(),
        };
        part.tail.add(start.window.as_deref().unwrap_or_default());
        part.chunks.begin(start.bit, part.tail.window());
        part.end = part.decode_to(&mut members, end.map_or(u64::MAX, |end| end.bit))?;
        part.chunks.end(part.end);
        let is_as_told = end.is_none_or(|end| {
            let is_at_member = end.window.as_ref().is_none_or(Vec::is_empty);
            part.chunks.index.length == end.start - start.start && (!is_at_member || part.tail.is_empty())
        });
        if is_as_told || part.chunks.is_undivided { Ok(part) } else { Err(of_another_file(&members)) }
    }

    /// Decodes until a bit of the file, at which a block or a member must begin. Returns the bit at which the next part
    /// begins: that may also be after the header of a member.
    fn decode_to(&mut self, members: &mut Members<impl Read>, end: u64) -> io::Result<u64> {
        let (mut buffer, mut bit) = (vec![0; STEP], self.end);
        while bit < end && !self.chunks.is_undivided {
            if !members.is_inside() {
                if !members.enter()? {
                    return if end == u64::MAX { Ok(bit) } else { Err(members.input.truncated()) };
                }
                let header = std::mem::replace(&mut bit, members.input.offset() * 8);
                if bit == end {
                    return Ok(header);
                }
                continue;
            }
            let (written, stop) = members.inflate(&mut buffer, true)?;
            self.add(&buffer[..written]);
            let unused_bits = match stop {
                Stop::Inside => continue,
                Stop::BlockEnd { unused_bits } => unused_bits,
                Stop::StreamEnd => {
                    self.end_member(members.trailer()?)?;
                    0
                }
            };
            bit = members.input.offset() * 8 - u64::from(unused_bits);
            if bit < end && self.chunks.is_long_enough() {
                self.chunks.end_chunk(bit, self.tail.window());
            }
        }
        if bit > end && !self.chunks.is_undivided { Err(of_another_file(members)) } else { Ok(bit) }
    }

    /// Records decoded bytes, all of one member.
    fn add(&mut self, bytes: &[u8]) {
        self.chunks.add(bytes);
        self.last.add(bytes);
        self.tail.add(bytes);
    }

    fn end_member(&mut self, trailer: Trailer) -> io::Result<()> {
        self.tail.clear();
        let share = std::mem::take(&mut self.last);
        if self.first.is_some() {
            return check(share, trailer);
        }
        self.first = Some((share, trailer));
        Ok(())
    }
}

fn of_another_file(members: &Members<impl Read>) -> io::Error {
    members.input.invalid("no block begins at a position given in the imported index")
}

/// Joins the parts of a file.
fn join(parts: Vec<Part>, size: u64) -> io::Result<Index> {
    let mut index = Index::of_nothing(Codec::Gzip, size);
    let (mut member, mut next) = (Check::default(), 0);
    for part in parts {
        if let Some((share, trailer)) = part.first {
            member.append(&share);
            check(std::mem::take(&mut member), trailer)?;
        }
        member.append(&part.last);
        let found = part.chunks.index;
        let (before, is_empty) = (index.windows.len(), found.chunks.is_empty());
        index.windows.extend(found.windows);
        index.chunks.extend(found.chunks.into_iter().enumerate().map(|(i, mut chunk)| {
            chunk.start += index.length;
            if i == 0 {
                chunk.bit = next;
            }
            if let Window::Stored(at) = &mut chunk.window {
                *at = before + at.start..before + at.end;
            }
            chunk
        }));
        index.length += found.length;
        index.lines += found.lines;
        next = part.end;
        if !is_empty {
            index.end = (index.length, part.end);
        }
    }
    Ok(index)
}
