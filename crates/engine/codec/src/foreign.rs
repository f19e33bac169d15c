//! Recognises the indexes of other programs.
//!
//! | program | file begins with | module |
//! |---|---|---|
//! | gztool (`.gzi`) | 8 zeros, `gzipindx` or `gzipindX` | `gztool.rs` |
//! | indexed_gzip, rapidgzip (`.gzidx`) | `GZIDX` | `gzidx.rs` |
//! | bgzip (`.gzi`) | the number of pairs that follow | `bgzip.rs` |
//!
//! The contents of such an index are not trusted: see [`import`](crate::import()).

use crate::index::NotAnIndex;
use crate::points::Points;
use crate::{bgzip, gzidx, gztool};

impl<'a> Points<'a> {
    /// The index of another program.
    ///
    /// # Errors
    /// [`NotAnIndex`] for other bytes.
    pub fn parse(index: &'a [u8]) -> Result<Self, NotAnIndex> {
        let points = if index.starts_with(gzidx::MAGIC) {
            gzidx::parse(index)
        } else if gztool::is_index(index) {
            gztool::parse(index)
        } else {
            bgzip::parse(index)
        }?;
        let pairs = points.points.iter().zip(points.points.iter().skip(1));
        let is_increasing =
            pairs.into_iter().all(|(one, next)| one.bit < next.bit && one.start <= next.start);
        if is_increasing { Ok(points) } else { Err(NotAnIndex) }
    }
}

/// Treats arbitrary bytes as an index of another program, and as the file. The first two give the length of the index.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_points(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let Some((index, file)) = rest.split_at_checked(u16::from_le_bytes(*length).into()) else { return };
    let Ok(points) = Points::parse(index) else { return };
    let open = |offset: u64| Ok(&file[file.len().min(offset as usize)..]);
    if let Ok(Some(index)) = crate::import(&points, file.len() as u64, 1, 2, open) {
        assert_eq!(crate::Index::decode(&index.encode()).as_ref(), Ok(&index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Codec;
    use crate::crc::Crc32;
    use crate::deflate::{Wrapper, deflated};
    use crate::{Indexer, to_gztool};

    /// Two members, each with 100 KB of text.
    fn file() -> Vec<u8> {
        let text: Vec<u8> =
            (0..12_000).flat_map(|n| format!("{} words\n", n * 7919 % 9973).into_bytes()).collect();
        let length = (text.len() as u32).to_le_bytes();
        let member = [
            &b"\x1f\x8b\x08\0\0\0\0\0\0\xff"[..],
            &deflated(&text, 1, Wrapper::None),
            &Crc32::of(&text).value().to_le_bytes(),
            &length,
        ];
        member.concat().repeat(2)
    }

    #[test]
    fn wrong_indexes_of_other_programs_never_panic() {
        let file = file();
        let mut indexer = Indexer::new(Codec::Gzip, &file[..], 1).expect("an index");
        std::io::copy(&mut indexer, &mut std::io::sink()).expect("well-formed");
        let index = indexer.finish().expect("short blocks");
        assert!(index.chunks() > 1, "{}", index.chunks());
        let foreign = to_gztool(&index, |offset| Ok(&file[offset as usize..])).expect("the file's");
        let run =
            |foreign: &[u8]| fuzz_points(&[&(foreign.len() as u16).to_le_bytes(), foreign, &file].concat());
        run(&foreign);
        for at in 8..foreign.len().min(120) {
            for flipped in [1, 0x80, 0xff] {
                let mut bad = foreign.clone();
                bad[at] ^= flipped;
                run(&bad);
            }
        }
    }
}
