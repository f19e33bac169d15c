//! What can go wrong with a copy.

use millstream_text::json::ErrorRecord;
use millstream_vfs::{Errno, Operation};
use millstream_walk::Fault;

/// A failure that has already been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

/// The outcome of an operation that reports its own errors.
pub(crate) type Done<T> = Result<T, Reported>;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The source could not be examined.
    StatSource,
    /// The destination could not be examined.
    StatDestination,
    /// The source directory could not be opened or read.
    ReadDirectory,
    /// The destination directory could not be opened, or not be read.
    OpenDestinationDirectory,
    /// The source could not be opened.
    OpenSource,
    /// The source was replaced while it was examined.
    SourceReplaced,
    /// The source symbolic link could not be read.
    ReadLink,
    /// Data could not be read.
    Read,
    /// Data could not be written.
    Write,
    /// The copy could not be closed: its data may not all be there.
    Close,
    /// Data could not be shared.
    Clone,
    /// A file could not be created or opened for writing.
    CreateFile,
    /// A directory could not be created.
    CreateDirectory,
    /// A directory of `--parents` could not be created.
    CreateParent,
    /// A symbolic link to `source` could not be created.
    CreateSymlink,
    /// The copy of a symbolic link could not be created.
    CopySymlink,
    /// A pipe could not be created.
    CreateFifo,
    /// A device or socket could not be created.
    CreateSpecial,
    /// A hard link to `source` could not be created.
    CreateHardLink,
    /// An existing file could not be removed.
    Remove,
    /// An existing file could not be renamed to its backup.
    Backup,
    /// A backup could not be renamed back.
    PutBack,
    /// A temporary file could not be renamed.
    Rename,
    /// Times could not be set.
    Times,
    /// The mode could not be set.
    Mode,
    /// The owner could not be set.
    Ownership,
    /// An extended attribute could not be copied.
    Xattr,
    /// The kind of the file is unknown.
    UnknownKind,
    /// Directories are skipped.
    OmittedDirectory,
    /// Both are the same file.
    SameFile,
    /// A directory would be copied into itself; `destination` is inside it.
    IntoItself,
    /// The destination exists and must not be replaced.
    NotReplaced,
    /// This command created the destination from another source.
    JustCreated,
    /// The destination is a link created by this command.
    ThroughJustCreatedLink,
    /// A directory is in the way of a file.
    DirectoryInTheWay,
    /// A directory is in the way of a file, and has more in it than may be deleted.
    DirectoryKept,
    /// A file is in the way of a directory.
    FileInTheWay,
    /// The destination is a dangling symbolic link.
    ThroughDanglingLink,
    /// The backup would overwrite the source.
    BackupIsSource,
    /// A followed symbolic link leads to a directory that contains it.
    Cycle,
    /// A directory given twice would need a hard link to a directory.
    DirectoryHardLink,
    /// Source and copy differ after copying.
    Differs,
    /// A path component of `--parents` exists and is not a directory.
    ParentNotDirectory,
    /// A directory of `--parents` could not be examined.
    ParentAttributes,
    /// A relative symbolic link would be created in a directory other than the current one.
    RelativeSymlink,
}

/// A failure to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    /// What.
    pub trouble: Trouble,
    /// Path of the source.
    pub source: &'a [u8],
    /// Path of the destination.
    pub destination: &'a [u8],
    /// The error of the call that failed, if any.
    pub errno: Option<Errno>,
}

impl Trouble {
    /// What went wrong with the traversal of the source, and the error of the call that failed, if any.
    pub(crate) fn of_fault(fault: &Fault) -> (Self, Option<Errno>) {
        match fault {
            Fault::Volume(error) if error.operation == Operation::Stat => {
                (Trouble::StatSource, Some(error.errno))
            }
            Fault::Volume(error) => (Trouble::ReadDirectory, Some(error.errno)),
            Fault::Loop { .. } => (Trouble::Cycle, None),
        }
    }

    /// The operation that failed, for records.
    pub fn operation(self) -> &'static str {
        match self {
            Trouble::StatSource | Trouble::StatDestination | Trouble::ParentAttributes => "stat",
            Trouble::ReadDirectory => "read directory",
            Trouble::OpenDestinationDirectory => "open directory",
            Trouble::OpenSource | Trouble::SourceReplaced => "open",
            Trouble::ReadLink => "read symbolic link",
            Trouble::Read => "read",
            Trouble::Write => "write",
            Trouble::Close => "close",
            Trouble::Clone => "clone",
            Trouble::CreateFile => "create file",
            Trouble::CreateDirectory | Trouble::CreateParent => "create directory",
            Trouble::CreateSymlink | Trouble::CopySymlink => "create symbolic link",
            Trouble::CreateFifo | Trouble::CreateSpecial => "create special file",
            Trouble::CreateHardLink | Trouble::DirectoryHardLink => "create hard link",
            Trouble::Remove => "remove",
            Trouble::Backup | Trouble::PutBack | Trouble::Rename => "rename",
            Trouble::Times => "set times",
            Trouble::Mode => "change mode",
            Trouble::Ownership => "change owner",
            Trouble::Xattr => "set extended attribute",
            Trouble::Differs => "verify",
            Trouble::UnknownKind
            | Trouble::OmittedDirectory
            | Trouble::SameFile
            | Trouble::IntoItself
            | Trouble::NotReplaced
            | Trouble::JustCreated
            | Trouble::ThroughJustCreatedLink
            | Trouble::DirectoryInTheWay
            | Trouble::DirectoryKept
            | Trouble::FileInTheWay
            | Trouble::ThroughDanglingLink
            | Trouble::BackupIsSource
            | Trouble::Cycle
            | Trouble::RelativeSymlink
            | Trouble::ParentNotDirectory => "copy",
        }
    }

    /// The closest error number, if no call has failed.
    pub fn nearest_errno(self) -> Errno {
        match self {
            Trouble::OmittedDirectory | Trouble::DirectoryInTheWay | Trouble::DirectoryKept => Errno::ISDIR,
            Trouble::FileInTheWay | Trouble::ParentNotDirectory => Errno::NOTDIR,
            Trouble::SameFile | Trouble::NotReplaced | Trouble::JustCreated | Trouble::BackupIsSource => {
                Errno::EXIST
            }
            Trouble::Cycle | Trouble::ThroughJustCreatedLink => Errno::LOOP,
            Trouble::ThroughDanglingLink => Errno::NOENT,
            Trouble::DirectoryHardLink => Errno::PERM,
            Trouble::Differs => Errno::IO,
            _ => Errno::INVAL,
        }
    }
}

impl Problem<'_> {
    /// Whether the problem concerns the path of the source.
    pub fn is_about_source(&self) -> bool {
        matches!(
            self.trouble,
            Trouble::StatSource
                | Trouble::ReadDirectory
                | Trouble::OpenSource
                | Trouble::SourceReplaced
                | Trouble::ReadLink
                | Trouble::Read
                | Trouble::UnknownKind
                | Trouble::OmittedDirectory
                | Trouble::Cycle
                | Trouble::ParentAttributes
        )
    }

    /// Appends the JSON record of the problem.
    pub(crate) fn write_record(&self, out: &mut Vec<u8>) {
        let path = if self.is_about_source() { self.source } else { self.destination };
        let errno = self.errno.unwrap_or(self.trouble.nearest_errno());
        ErrorRecord { errno, operation: self.trouble.operation(), path }.write(out);
    }
}
