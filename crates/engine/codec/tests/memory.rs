//! Memory is not allocated for sizes that a file only claims.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_codec::{Codec, Decoder};

/// Counts bytes that are in use, and the most that were.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are passed to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

/// Decodes a file and discards it. Returns how many bytes it has, or the error, and how much memory was used.
fn measured(codec: Codec, file: impl Read) -> (io::Result<u64>, usize) {
    let before = USED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let decoded = io::copy(&mut Decoder::new(codec, file), &mut io::sink());
    (decoded, MOST.load(Ordering::Relaxed) - before)
}

/// In one test, because others would allocate at the same time. Zstandard's memory is allocated by C, and not counted.
#[test]
fn memory_is_bounded() {
    // Hadoop blocks of 2 GiB, with chunks of 64 MiB, that do not exist.
    for codec in [Codec::Lz4, Codec::Snappy] {
        let claims = [0x7f, 0xff, 0xff, 0xff, 0x04, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f];
        let (decoded, used) = measured(codec, &claims[..]);
        assert_eq!(decoded.expect_err("cut off").kind(), io::ErrorKind::UnexpectedEof);
        assert!(used < MIB, "{codec:?}: {used}");
    }
    // A Snappy chunk claims to be 4 GiB long.
    let claims = [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    let (decoded, used) = measured(Codec::Snappy, &claims[..]);
    assert_eq!(decoded.expect_err("too long").kind(), io::ErrorKind::InvalidData);
    assert!(used < MIB, "{used}");

    // A gigabyte of the same byte, in 4 MB.
    let block = [&[0x1f, b'x', 1, 0][..], &[255; 16_000], &[0, 0x50], b"xxxxx"].concat();
    let length = (1 + 19 + 255 * 16_000 + 5) as u32;
    let (length, size) = (length.to_be_bytes(), (block.len() as u32).to_be_bytes());
    let bomb = [&length[..], &size, &block].concat().repeat(256);
    let (decoded, used) = measured(Codec::Lz4, &bomb[..]);
    assert_eq!(decoded.expect("decoded"), 256 * u64::from(u32::from_be_bytes(length)));
    assert!(used < 8 * MIB, "twice a block: {used}");

    // Empty bzip2 streams, for each of which the library would allocate 4 MB.
    let empty = b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0".repeat(100_000);
    let (decoded, used) = measured(Codec::Bzip2, &empty[..]);
    assert_eq!(decoded.expect("decoded"), 0);
    assert!(used < MIB, "{used}");

    // A skippable frame, and a header field of gzip without an end.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff];
    let name = [0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0];
    for (codec, first) in [(Codec::Lz4, &skippable[..]), (Codec::Zstd, &skippable), (Codec::Gzip, &name)] {
        let file = first.chain(io::repeat(b'x').take(64 * MIB as u64));
        let (decoded, used) = measured(codec, file);
        assert_eq!(decoded.expect_err("cut off").kind(), io::ErrorKind::UnexpectedEof);
        assert!(used < MIB, "{codec:?}: {used}");
    }
}
