//! The methods of directories and files, by how the router finds the volume that a call is for.

/// Calls the macro `$with` with the methods of [`millstream_vfs::Dir`], except those whose forms occur once:
/// `read_entries`, `create_staged`, `capabilities` and `beside_files`.
///
/// `named` methods take a name first, which may be an operand of another volume; `own` ones are about the directory
/// itself; `paired` ones take a name, the given arguments, another directory and a name there, and give `EXDEV` for
/// another volume.
macro_rules! with_dir_methods {
    ($with:ident) => {
        $with! {
            named to dir {
                open_dir(symlinks: SymlinkBehavior);
                open_dir_for_names(symlinks: SymlinkBehavior);
                open_below(mounts: MountBehavior);
            }
            named to file {
                open_file(access: Access, symlinks: SymlinkBehavior);
                create_file(mode: u32);
            }
            named {
                metadata(symlinks: SymlinkBehavior, fields: Fields) -> Metadata;
                device_within(symlinks: SymlinkBehavior) -> u64;
                read_link() -> Vec<u8>;
                list_xattr(names: &mut Vec<u8>) -> ();
                get_xattr(attribute: &CStr, symlinks: SymlinkBehavior) -> Vec<u8>;
                set_xattr(attribute: &CStr, value: &[u8]) -> ();
                remove_xattr(attribute: &CStr) -> ();
                remove(kind: RemoveKind) -> ();
                create_dir(mode: u32) -> ();
                create_symlink(target: &CStr) -> ();
                create_node(kind: NodeKind, mode: u32) -> ();
                set_times(atime: Timestamp, mtime: Timestamp) -> ();
                permits(permission: Permission, user: User) -> bool;
                set_mode(mode: u32, symlinks: SymlinkBehavior) -> ();
                set_owner(owner: Ownership, symlinks: SymlinkBehavior) -> ();
            }
            own to dir {
                open_parent;
            }
            own to file {
                as_file;
            }
            own {
                identity() -> (u64, u64);
                own_metadata(fields: Fields) -> Metadata;
                complete() -> ();
                path_for_children() -> CString;
            }
            paired {
                hard_link(symlinks: SymlinkBehavior): Operation::HardLink;
                rename_new(): Operation::Rename;
                rename(): Operation::Rename;
                exchange(): Operation::Rename;
            }
        }
    };
}

/// Calls the macro `$with` with the methods of [`millstream_vfs::File`], except `close`. `paired` ones take another
/// file first.
macro_rules! with_file_methods {
    ($with:ident) => {
        $with! {
            own {
                metadata(fields: Fields) -> Metadata;
                read(buffer: &mut [u8], at: At) -> usize;
                write_all(bytes: &[u8], at: At) -> ();
                next_data(offset: u64) -> Option<u64>;
                next_hole(offset: u64) -> u64;
                set_len(length: u64) -> ();
                allocate(length: u64) -> ();
                flush() -> ();
                sync() -> ();
                sync_volume() -> ();
                try_lock() -> ();
                list_xattr(names: &mut Vec<u8>) -> ();
                xattr(name: &CStr) -> Vec<u8>;
                set_xattr(name: &CStr, value: &[u8]) -> ();
                remove_xattr(name: &CStr) -> ();
                set_mode(mode: u32) -> ();
                set_owner(uid: Option<u32>, gid: Option<u32>) -> ();
                set_times(atime: Timestamp, mtime: Timestamp) -> ();
            }
            paired {
                copy_range(offset: u64, length: u64) -> u64: Operation::Write;
                clone_from() -> (): Operation::Clone;
            }
        }
    };
}

pub(crate) use {with_dir_methods, with_file_methods};
