//! The records of `--json`.

/// Appends the record of an error.
pub(super) fn push_error(out: &mut Vec<u8>, path: &[u8], reason: &str, operation: &str) {
    out.extend_from_slice(b"{\"error\":");
    push_string(out, reason.as_bytes());
    out.extend_from_slice(b",\"path\":");
    push_string(out, path);
    out.extend_from_slice(b",\"operation\":");
    push_string(out, operation.as_bytes());
    out.extend_from_slice(b"}\n");
}
