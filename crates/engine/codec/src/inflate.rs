//! zlib-rs's inflate of raw deflate data, stopped and resumed between blocks.
//!
//! The library's safe interface neither reports where a block ended nor begins at a bit, so this module calls its
//! zlib-compatible interface (`inflate`, `inflatePrime`, `inflateSetDictionary`; zlib.h documents them). All unsafe
//! code of the crate is here.

use std::ffi::CStr;
use std::mem::size_of;

use libz_rs_sys as z;

/// Bytes before a deflate block that it may refer to.
pub const WINDOW: usize = 32 << 10;

/// `z_stream.data_type` after a block, and while the last block is read.
const AT_BLOCK_END: i32 = 128;
const IN_LAST_BLOCK: i32 = 64;
/// zlib documents at most 7 of them; zlib-rs may have read some bytes further.
const UNUSED_BITS: i32 = 63;

/// A decoder of successive deflate streams.
pub(crate) struct Inflater {
    // Boxed, because the library's state may refer to it.
    stream: Box<z::z_stream>,
    /// Why the data after the returned bytes is not deflate data.
    damage: Option<&'static str>,
}

// SAFETY: the stream is only used through this owner, and the library keeps no state of threads.
unsafe impl Send for Inflater {}

/// Where a call stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Input or output has run out.
    Inside,
    /// After a block that is not the last. This many bits, 0 to 63, of the used input belong to the next one.
    BlockEnd { unused_bits: u8 },
    /// After the last block.
    StreamEnd,
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Bytes of input used.
    pub(crate) read: usize,
    /// Bytes of output written.
    pub(crate) written: usize,
    pub(crate) stop: Stop,
}

impl Inflater {
    /// A decoder before a deflate stream.
    ///
    /// # Panics
    /// If there is no memory for it.
    pub(crate) fn new() -> Self {
        let mut stream = Box::new(z::z_stream::default());
        // SAFETY: the stream is alive, `zlibVersion` is a constant, and the size is that of the type. A negative number
        // of window bits means raw deflate.
        let status =
            unsafe { z::inflateInit2_(&mut *stream, -15, z::zlibVersion(), size_of::<z::z_stream>() as i32) };
        assert_eq!(status, z::Z_OK, "inflateInit2");
        Inflater { stream, damage: None }
    }

    /// Prepares for another deflate stream.
    pub(crate) fn reset(&mut self) {
        self.damage = None;
        // SAFETY: the stream was initialized and is not used elsewhere.
        let status = unsafe { z::inflateReset(&mut *self.stream) };
        debug_assert_eq!(status, z::Z_OK);
    }

    /// Prepares for the blocks after `window`; its last [`WINDOW`] bytes count. `bits` bits, at most 7, come before the
    /// next byte of input; they are the low bits of `value`.
    pub(crate) fn resume(&mut self, window: &[u8], bits: u8, value: u8) {
        self.reset();
        let window = &window[window.len().saturating_sub(WINDOW)..];
        // SAFETY: as in `reset`; both calls copy what they are given.
        unsafe {
            if bits > 0 {
                z::inflatePrime(&mut *self.stream, i32::from(bits), i32::from(value));
            }
            if !window.is_empty() {
                z::inflateSetDictionary(&mut *self.stream, window.as_ptr(), window.len() as u32);
            }
        }
    }

    /// Decodes from `input` to `output`, at most to the end of the stream, or of the block if `stops_at_blocks`. Bytes
    /// decoded before damage are returned; the next call then fails.
    ///
    /// # Errors
    /// Why the data is not deflate data.
    pub(crate) fn inflate(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        stops_at_blocks: bool,
    ) -> Result<Step, &'static str> {
        if let Some(damage) = self.damage {
            return Err(damage);
        }
        let (in_length, out_length) = (clamped(input.len()), clamped(output.len()));
        let stream = &mut *self.stream;
        (stream.next_in, stream.avail_in) = (input.as_ptr().cast_mut(), in_length);
        (stream.next_out, stream.avail_out) = (output.as_mut_ptr(), out_length);
        // SAFETY: the pointers are of slices with at least these lengths, which outlive the call; the input is not
        // written to.
        let status = unsafe { z::inflate(stream, if stops_at_blocks { z::Z_BLOCK } else { z::Z_NO_FLUSH }) };
        let read = (in_length - stream.avail_in) as usize;
        let written = (out_length - stream.avail_out) as usize;
        let stop = match status {
            z::Z_STREAM_END => Stop::StreamEnd,
            // The latter: there was nothing to do.
            z::Z_OK | z::Z_BUF_ERROR => {
                let kind = stream.data_type;
                if kind & AT_BLOCK_END != 0 && kind & IN_LAST_BLOCK == 0 {
                    Stop::BlockEnd { unused_bits: (kind & UNUSED_BITS) as u8 }
                } else {
                    Stop::Inside
                }
            }
            _ if written > 0 => {
                self.damage = Some(self.message());
                Stop::Inside
            }
            _ => return Err(self.message()),
        };
        Ok(Step { read, written, stop })
    }

    fn message(&self) -> &'static str {
        if self.stream.msg.is_null() {
            return "invalid data";
        }
        // SAFETY: zlib-rs's messages are constants that end with a NUL.
        let message: &'static CStr = unsafe { CStr::from_ptr(self.stream.msg) };
        message.to_str().unwrap_or("invalid data")
    }
}

/// A length of zlib's type; the rest is for another call.
fn clamped(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Drop for Inflater {
    fn drop(&mut self) {
        // SAFETY: the stream was initialized, and this is its last use.
        unsafe { z::inflateEnd(&mut *self.stream) };
    }
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflater").finish_non_exhaustive()
    }
}
