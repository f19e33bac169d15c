//! What may have to be deleted in the destination, noted while the trees are compared.
//!
//! A record is a directory of the destination and names in it that the source does not have. Records are kept in memory
//! up to [`KEPT`] bytes, and in a file without a name beyond that, so that a destination with millions of them does not
//! take the memory.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of records that are kept in memory.
const KEPT: usize = 16 << 20;

/// Names of one directory of the destination that are to be deleted, unless the source has them after all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) operand: usize,
    /// Path of the directory below the operand.
    pub(super) below: Vec<u8>,
    /// The names; [`None`] if the directory has too many to be known, so that it is to be listed.
    pub(super) names: Option<Vec<Vec<u8>>>,
}

/// What may be deleted, and how much of it.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    records: Mutex<Records>,
    /// Entries that may still be deleted; [`None`] if there is no bound.
    left: Option<AtomicU64>,
}

#[derive(Debug, Default)]
struct Records {
    kept: Vec<u8>,
    file: Option<File>,
    /// Why records could not be kept.
    error: Option<io::Error>,
}

impl Deletions {
    /// At most `most` entries may be deleted, if there is a bound.
    pub(super) fn new(most: Option<u64>) -> Self {
        Deletions { records: Mutex::default(), left: most.map(AtomicU64::new) }
    }

    /// Whether one more entry may be deleted, which is counted.
    pub(super) fn take(&self) -> bool {
        let Some(left) = &self.left else { return true };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Notes names that the source does not have.
    pub(super) fn note(&self, operand: usize, below: &[u8], names: Option<&[Box<CStr>]>) {
        let mut record = Vec::new();
        write_bytes(&mut record, &operand.to_le_bytes());
        write_bytes(&mut record, below);
        match names {
            None => write_bytes(&mut record, b""),
            Some(names) => {
                write_bytes(&mut record, &names.len().to_le_bytes());
                names.iter().for_each(|name| write_bytes(&mut record, name.to_bytes()));
            }
        }
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.kept.extend_from_slice(&record);
        if records.kept.len() >= KEPT
            && let Err(error) = records.spill()
        {
            records.error.get_or_insert(error);
            records.kept.clear();
        }
    }

    /// Takes out all records, in the order in which they were noted.
    ///
    /// # Errors
    /// If some could not be kept.
    pub(super) fn take_records(&self) -> io::Result<Reader> {
        let mut records = std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner));
        match records.error.take() {
            Some(error) => Err(error),
            None => Ok(Reader::new(records.file, records.kept)?),
        }
    }
}

impl Records {
    /// Moves what is in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.kept)?;
        }
        self.kept.clear();
        Ok(())
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads records.
pub(super) struct Reader {
    source: Box<dyn Read + Send>,
}

impl Reader {
    fn new(file: Option<File>, kept: Vec<u8>) -> io::Result<Self> {
        let kept = io::Cursor::new(kept);
        let source: Box<dyn Read + Send> = match file {
            None => Box::new(kept),
            Some(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                Box::new(BufReader::with_capacity(1 << 20, file).chain(kept))
            }
        };
        Ok(Reader { source })
    }

    /// The next record, or the end.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        self.record().inspect_err(|_| {
            // What follows is in the middle of a record.
            self.source = Box::new(io::empty());
        })
    }

    fn record(&mut self) -> io::Result<Option<Record>> {
        let Some(operand) = self.bytes()? else { return Ok(None) };
        let below = self.bytes()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let count = self.bytes()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let names = match number(&count) {
            None => None,
            Some(count) => {
                let name = |_| self.bytes()?.ok_or(io::ErrorKind::UnexpectedEof.into());
                Some((0..count).map(name).collect::<io::Result<_>>()?)
            }
        };
        let operand = number(&operand).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Record { operand, below, names }))
    }

    fn bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; 8];
        if self.source.read(&mut length[..1])? == 0 {
            return Ok(None);
        }
        self.source.read_exact(&mut length[1..])?;
        let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
        self.source.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }
}

fn number(bytes: &[u8]) -> Option<usize> {
    bytes.try_into().ok().map(usize::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order_from_memory_and_file() {
        let deletions = Deletions::new(None);
        let name = |number: usize| {
            Box::<CStr>::from(std::ffi::CString::new(format!("{number:0200}")).expect("no NUL"))
        };
        let count = 3 * KEPT / 200 / 10;
        for number in 0..count {
            let names: Vec<_> = (0..10).map(|_| name(number)).collect();
            deletions.note(number % 3, format!("d{number}").as_bytes(), (number != 7).then_some(&names));
        }
        let mut reader = deletions.take_records().expect("kept");
        for number in 0..count {
            let record = reader.next().expect("read").expect("a record");
            assert_eq!((record.operand, record.below), (number % 3, format!("d{number}").into_bytes()));
            let expected = (number != 7).then(|| vec![name(number).to_bytes().to_vec(); 10]);
            assert_eq!(record.names, expected);
        }
        assert_eq!(reader.next().expect("read"), None);
        assert_eq!(deletions.take_records().expect("empty").next().expect("read"), None);
    }

    #[test]
    fn a_bound_is_kept() {
        let deletions = Deletions::new(Some(2));
        assert_eq!([deletions.take(), deletions.take(), deletions.take()], [true, true, false]);
        assert!(Deletions::new(None).take());
    }
}
