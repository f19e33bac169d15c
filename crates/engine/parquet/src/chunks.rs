//! Facts about column chunks that are in a footer, but that the library that parses it does not report.
//!
//! The library matches the chunks of a row group with the columns of the schema by order. Parquet's Java reader looks
//! them up by path, so it reads files differently, or not at all, if chunks are in another order, duplicated or not in
//! the schema. It also selects row groups by their position in the file, since it may read only a part.

use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use crate::thrift::{COLUMN_CHUNK, COLUMN_METADATA, FOOTER, ROW_GROUP, Visit, Walk, footer};

/// A row group.
#[derive(Debug, Default)]
struct Group<'a> {
    chunks: Vec<Chunk<'a>>,
    compressed_bytes: Option<i64>,
}

/// A column chunk.
#[derive(Debug, Default)]
struct Chunk<'a> {
    path: Vec<&'a [u8]>,
    physical_type: i64,
    /// It is in another file, or encrypted.
    is_elsewhere: bool,
}

/// Whether the chunks of a well-formed footer are those of the schema's columns, in order, and a read of the whole file
/// selects all row groups; `metadata` is the footer as the library parsed it.
pub(crate) fn are_in_order(file: &[u8], metadata: &ParquetMetaData) -> bool {
    groups(file).is_some_and(|groups| {
        groups.len() == metadata.num_row_groups()
            && groups
                .iter()
                .zip(metadata.row_groups())
                .all(|(group, known)| group.is_in_order(known) && group.is_of_file(known, file.len()))
    })
}

impl Group<'_> {
    fn is_in_order(&self, known: &RowGroupMetaData) -> bool {
        self.chunks.len() == known.num_columns()
            && self.chunks.iter().zip(known.columns()).all(|(chunk, column)| {
                let path = column.column_path().parts();
                !chunk.is_elsewhere
                    && chunk.path.iter().copied().eq(path.iter().map(String::as_bytes))
                    && chunk.physical_type == column.column_type() as i64
            })
    }

    /// The rule of Parquet's Java reader: a row group belongs to the part of a file (here the whole file) that contains
    /// its middle.
    fn is_of_file(&self, known: &RowGroupMetaData, length: usize) -> bool {
        let sizes = known.columns().iter().map(|column| column.compressed_size());
        let compressed_bytes = sizes.fold(0_i64, i64::saturating_add);
        let first = known.columns().first().map_or(0, |column| {
            column.dictionary_page_offset().unwrap_or(i64::MAX).min(column.data_page_offset())
        });
        let middle = first.saturating_add(compressed_bytes / 2);
        self.compressed_bytes.is_none_or(|bytes| bytes == compressed_bytes)
            && usize::try_from(middle).is_ok_and(|middle| middle < length)
    }
}

/// The row groups of a file; `None` if it is malformed or encrypted.
fn groups(file: &[u8]) -> Option<Vec<Group<'_>>> {
    let mut groups = Vec::new();
    footer(file)?.structure(FOOTER, |walk, field| match field {
        4 => walk.list(|walk| group(walk).map(|group| groups.push(group))).map(|()| Visit::Taken),
        // The encryption algorithm, and the key that signs the footer.
        8 | 9 => None,
        _ => Some(Visit::Skip),
    })?;
    Some(groups)
}

fn group<'a>(walk: &mut Walk<'a>) -> Option<Group<'a>> {
    let mut group = Group::default();
    walk.structure(ROW_GROUP, |walk, field| {
        match field {
            1 => walk.list(|walk| chunk(walk).map(|chunk| group.chunks.push(chunk)))?,
            6 => group.compressed_bytes = Some(walk.integer()?),
            _ => return Some(Visit::Skip),
        }
        Some(Visit::Taken)
    })?;
    Some(group)
}

fn chunk<'a>(walk: &mut Walk<'a>) -> Option<Chunk<'a>> {
    let mut chunk = Chunk::default();
    walk.structure(COLUMN_CHUNK, |walk, field| {
        match field {
            3 => return metadata(walk, &mut chunk).map(|()| Visit::Taken),
            // A path of a file, keys, encrypted metadata.
            1 | 8 | 9 => chunk.is_elsewhere = true,
            _ => (),
        }
        Some(Visit::Skip)
    })?;
    Some(chunk)
}

fn metadata<'a>(walk: &mut Walk<'a>, chunk: &mut Chunk<'a>) -> Option<()> {
    walk.structure(COLUMN_METADATA, |walk, field| {
        match field {
            1 => chunk.physical_type = walk.integer()?,
            3 => walk.list(|walk| walk.binary().map(|name| chunk.path.push(name)))?,
            _ => return Some(Visit::Skip),
        }
        Some(Visit::Taken)
    })
}
