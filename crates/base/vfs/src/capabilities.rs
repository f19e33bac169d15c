//! What a volume can do.

bitflags::bitflags! {
    /// What a volume can do, and what may be assumed of it. Every volume has all that the contract demands besides; a
    /// call for which a volume lacks the capability fails with `EOPNOTSUPP`.
    ///
    /// The kernel's file systems have all of these, as far as anyone can tell: whether a certain one has links is known
    /// when one is made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Capabilities: u32 {
        /// Files and directories can be renamed and exchanged. Otherwise [`crate::Dir::rename`] only completes a file
        /// of [`crate::Dir::create_staged`], whose first name is never an entry.
        const RENAME = 1 << 0;
        /// Directories exist even if nothing is in them, and must exist before something is made in them.
        const DIRECTORIES = 1 << 1;
        /// A name means either a file or a directory. Otherwise there can be both of the same name: see
        /// [`crate::Dir::beside_files`].
        const UNIQUE_NAMES = 1 << 2;
        /// Names are any bytes; otherwise they are UTF-8.
        const ANY_NAME = 1 << 3;
        /// There are symbolic and hard links.
        const LINKS = 1 << 4;
        /// There are pipes, sockets and devices.
        const SPECIAL_FILES = 1 << 5;
        /// Files have owners and permissions, which are enforced.
        const PERMISSIONS = 1 << 6;
        /// An existing file can be opened for writing and changed at any offset. Otherwise a file is written from its
        /// beginning to its end, without holes, and appears when all of it is written; it cannot be read before.
        const REWRITE = 1 << 7;
        /// Files can be locked.
        const LOCKS = 1 << 8;
        /// Files and directories have extended attributes, and access control lists among them.
        const XATTRS = 1 << 9;
        /// Calls are not known to wait for a server. Otherwise many at once are worth having from the beginning.
        const PROMPT = 1 << 10;
    }
}
