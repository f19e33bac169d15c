//! Operands in S3 buckets, `s3://BUCKET/KEY`: the needs of their volume, and the options that have no meaning there.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};

use millstream_bucket::aws::Access;
use millstream_bucket::{Buckets, Reads};
use millstream_storage::{Storage, capabilities, is_bucket};
use millstream_transfer::sync::{Options, Sparse, Verification, Xattrs};
use millstream_vfs::Capabilities;

use super::{NO_PLACE, USAGE};
use crate::diagnostics::{Diagnostics, Refused};

/// The servers' messages about failures that have not been written.
#[derive(Clone, Debug, Default)]
pub(super) struct Remarks(Arc<Mutex<Vec<String>>>);

impl Remarks {
    /// Writes them, before the messages about the resulting failures.
    pub(super) fn write(&self, diagnostics: &Diagnostics) {
        let remarks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for remark in remarks {
            diagnostics.warning().text(&remark).send();
        }
    }
}

/// Whether any operand is in a bucket.
pub(super) fn has_bucket(operands: &[OsString]) -> bool {
    operands.iter().any(|operand| is_bucket(operand.as_bytes()))
}

fn are_all_buckets(operands: &[OsString]) -> bool {
    operands.iter().all(|operand| is_bucket(operand.as_bytes()))
}

/// The volume of the machine and its buckets. Between buckets, the servers copy.
pub(super) fn storage(
    operands: &[OsString],
    remarks: &Remarks,
    diagnostics: &Diagnostics,
) -> Result<Storage, Refused> {
    let reads = if are_all_buckets(operands) { Reads::Rarely } else { Reads::AtOnce };
    let remarks = Arc::clone(&remarks.0);
    let tell = move |remark: &str| {
        remarks.lock().unwrap_or_else(PoisonError::into_inner).push(remark.to_owned());
    };
    match Access::from_environment() {
        Ok(access) => Ok(Storage::new(Buckets::new(access, reads, Arc::new(tell)))),
        Err(error) => {
            diagnostics.error(NO_PLACE).text(&error.to_string()).send();
            Err(Refused)
        }
    }
}

/// Refuses explicit options for which a volume lacks the capability; those implied by `-a` are ignored.
pub(super) fn adapt(
    options: &mut Options,
    operands: &[OsString],
    diagnostics: &Diagnostics,
) -> Result<(), Refused> {
    let can = |operand: &OsString, capability| capabilities(operand.as_bytes()).contains(capability);
    let all_can = |capability| operands.iter().all(|operand| can(operand, capability));
    let destination_can = |capability| operands.last().is_none_or(|last| can(last, capability));
    let preserve = &mut options.preserve;
    let lacking = [
        (!all_can(Capabilities::LINKS) && preserve.links, "-H: S3 objects have no hard links"),
        (
            !all_can(Capabilities::XATTRS) && preserve.acls,
            "-A: S3 objects have no POSIX access control lists",
        ),
        (
            !all_can(Capabilities::XATTRS) && preserve.xattrs != Xattrs::Ignore,
            "-X: S3 objects have no extended attributes",
        ),
        (
            !destination_can(Capabilities::REWRITE) && options.sparse == Sparse::Always,
            "-S: S3 objects have no holes",
        ),
        (
            !destination_can(Capabilities::REWRITE) && options.verification == Verification::Checksum,
            "--verify: S3 itself verifies the checksum of everything it receives; psync --spark --verify with s3a:// reads objects again",
        ),
    ];
    if let Some((_, reason)) = lacking.iter().find(|(is_asked, _)| *is_asked) {
        diagnostics.error(USAGE).text(reason).send();
        return Err(Refused);
    }
    if !all_can(Capabilities::PERMISSIONS) {
        (preserve.mode, preserve.owner, preserve.group) = (false, false, false);
    }
    if !all_can(Capabilities::DIRECTORIES) {
        options.untimed.directories = true;
    }
    if !destination_can(Capabilities::SPECIAL_FILES) {
        (options.kinds.devices, options.kinds.specials) = (false, false);
    }
    if !destination_can(Capabilities::REWRITE)
        && operands.iter().any(|operand| can(operand, Capabilities::REWRITE))
    {
        options.sparse = Sparse::Never;
    }
    Ok(())
}
