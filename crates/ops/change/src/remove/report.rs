//! The output for removals and problems.

use millstream_vfs::{Errno, Error, Operation, RemoveKind};

use super::{Cause, Execution, Problem};
use millstream_text::json::{ErrorRecord, Object};
use millstream_text::quote::{Colon, Quoter};

/// How removals are reported.
#[derive(Clone, Copy, Debug)]
pub enum ReportFormat {
    /// `removed 'file'` (`-v`), names in these quotes.
    Text(Quoter),
    /// Records.
    Json,
}

impl ReportFormat {
    /// Appends the line of a removal.
    pub(super) fn removal(&self, execution: Execution, kind: RemoveKind, path: &[u8], out: &mut Vec<u8>) {
        match self {
            ReportFormat::Text(quoter) => {
                out.extend_from_slice(match execution {
                    Execution::Real => b"removed ",
                    Execution::DryRun => b"would remove ",
                });
                if kind == RemoveKind::Directory {
                    out.extend_from_slice(b"directory ");
                }
                quoter.write(path, Colon::Plain, out);
                out.push(b'\n');
            }
            ReportFormat::Json => {
                let action = match execution {
                    Execution::Real => &b"remove"[..],
                    Execution::DryRun => b"would remove",
                };
                let kind = match kind {
                    RemoveKind::File => &b"file"[..],
                    RemoveKind::Directory => b"directory",
                };
                Object::begin(out).string("action", action).string("kind", kind).string("path", path).end();
            }
        }
    }

    /// Appends the record of a problem. Only JSON output has it: text goes to standard error.
    pub(super) fn problem(&self, problem: &Problem<'_>, out: &mut Vec<u8>) {
        if let ReportFormat::Json = self {
            let Error { operation, errno } = match problem.cause {
                Cause::Failed(error) | Cause::UnknownParent(error) => error,
                Cause::Dots => Error::new(Operation::Remove, Errno::INVAL),
                Cause::Root => Error::new(Operation::Remove, Errno::PERM),
                Cause::Cycle => Error::new(Operation::OpenDir, Errno::LOOP),
                Cause::OtherDevice | Cause::MountPoint => Error::new(Operation::Remove, Errno::XDEV),
            };
            ErrorRecord { errno, operation: &operation.to_string(), path: problem.path }.write(out);
        }
    }
}
