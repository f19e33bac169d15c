//! The volume of the tools that work on mounted file systems.
//!
//! Only `psync` and the jobs of Spark work on URLs. A GNU tool takes `s3://b/k` for a relative path, and reports that
//! there is no such file, or nothing at all, as `rm -f` does; called by our own name, a tool refuses such an operand
//! before it begins, with one error that names the tool for it. A URL that is also the path of a file is that file.

use std::ffi::OsStr;
use std::fs::symlink_metadata;
use std::os::unix::ffi::OsStrExt;

use millstream_posix::PosixVolume;

use crate::diagnostics::{Diagnostics, Refused};
use crate::operand::is_url;

/// Why the tools refuse a URL.
pub const USE_PSYNC: &str = "this tool works on mounted file systems only; psync copies from and to URLs";

/// The volume for the operands of the tool whose own name is `tool`.
///
/// # Errors
/// If an operand is a URL, which is reported with `reason` and the exit code `failure`.
pub fn mounted<'a>(
    tool: &str,
    operands: impl IntoIterator<Item = &'a [u8]>,
    (failure, reason): (u8, &str),
    diagnostics: &Diagnostics,
) -> Result<PosixVolume, Refused> {
    if !diagnostics.is_called(tool) {
        return Ok(PosixVolume);
    }
    let is_elsewhere =
        |operand: &&[u8]| is_url(operand) && symlink_metadata(OsStr::from_bytes(operand)).is_err();
    let mut volume = Ok(PosixVolume);
    for operand in operands.into_iter().filter(is_elsewhere) {
        diagnostics.error(failure).text("cannot use the URL ").name(operand).text(": ").text(reason).send();
        volume = Err(Refused);
    }
    volume
}
