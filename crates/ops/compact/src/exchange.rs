//! Replaces a directory by another, complete one in one step: a listing shows all of the old directory or all of the
//! new one.
//!
//! A repeated exchange undoes itself, and two processes may attempt the same one: a process that hung, and a
//! second one that took it for dead. Both therefore lock a file, the token, which exists until nothing is left to do.
//! Under the lock they check whether the destination already holds the witness, a file of the new directory. The kernel
//! releases the lock of a process that ends.

use std::ffi::{CStr, CString};

use millstream_vfs::{Access, Dir, Errno, Error, Fields, File, FileKind, SymlinkBehavior, Volume};

use crate::compact::{entries, like_the_old, parent_below};

/// The directories to exchange; paths below a root, in which no component may be a symbolic link.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The token: the file that is locked.
    pub token: &'a CStr,
    /// The complete directory.
    pub new: &'a CStr,
    /// The directory that it replaces.
    pub place: &'a CStr,
    /// The witness: a name that exists only in the new directory.
    pub witness: &'a CStr,
}

/// The outcome of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Exchanged,
    /// The destination already held the witness: another process has done it.
    DoneBefore,
    /// There is no token: nothing is left to do.
    Over,
    /// Another process holds the lock.
    Busy,
}

/// Why directories cannot be exchanged; they are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The volume failed, or does not support the exchange.
    #[error("{}: {error}", path.to_string_lossy())]
    Volume {
        /// The path of the failed operation.
        path: CString,
        /// Why.
        error: Error,
    },
    /// The destination directory holds directories or symbolic links.
    #[error("{}: it contains directories or symbolic links", path.to_string_lossy())]
    NotFlat {
        /// The destination directory.
        path: CString,
    },
}

/// Exchanges two directories below `root`. The new one first gets the owner, mode and extended attributes of the old
/// one.
///
/// # Errors
/// If the exchange is not possible.
pub fn exchange<V: Volume>(volume: &V, root: &CStr, what: &Exchange<'_>) -> Result<Outcome, ExchangeError> {
    let root = volume.base().open_dir(root, SymlinkBehavior::Follow).map_err(failed(root))?;
    let _lock = match lock(&root, what.token) {
        Err(error) if error.errno == Errno::AGAIN => return Ok(Outcome::Busy),
        Err(error) if error.is_vanished() => return Ok(Outcome::Over),
        locked => locked.map_err(failed(what.token))?,
    };
    let (parent, name, old) = open(&root, what.place).map_err(failed(what.place))?;
    match old.metadata(what.witness, SymlinkBehavior::NoFollow, Fields::INO) {
        Ok(_) => return Ok(Outcome::DoneBefore),
        Err(error) if error.is_vanished() => {}
        Err(error) => return Err(failed(what.place)(error)),
    }
    let listed = entries(&old).map_err(failed(what.place))?;
    if listed.iter().any(|(_, kind)| matches!(kind, FileKind::Directory | FileKind::Symlink)) {
        return Err(ExchangeError::NotFlat { path: what.place.to_owned() });
    }
    let (new_parent, new_name, new) = open(&root, what.new).map_err(failed(what.new))?;
    old.own_metadata(Fields::STAT)
        .and_then(|metadata| like_the_old(&old, &new, &metadata))
        .and_then(|()| parent.exchange(&name, &new_parent, &new_name))
        .map_err(failed(what.place))?;
    Ok(Outcome::Exchanged)
}

fn failed(path: &CStr) -> impl Fn(Error) -> ExchangeError {
    move |error| ExchangeError::Volume { path: path.to_owned(), error }
}

/// The file, locked until it is closed.
fn lock<D: Dir>(root: &D, token: &CStr) -> Result<D::File, Error> {
    let (dir, name) = parent_below(root, token)?;
    let file = dir.open_file(&name, Access::Read, SymlinkBehavior::NoFollow)?;
    file.try_lock()?;
    // The previous owner of the lock may have removed the file.
    dir.metadata(&name, SymlinkBehavior::NoFollow, Fields::INO)?;
    Ok(file)
}

/// A directory and its path.
fn open<D: Dir>(root: &D, path: &CStr) -> Result<(D, CString, D), Error> {
    let (parent, name) = parent_below(root, path)?;
    let dir = parent.open_dir(&name, SymlinkBehavior::NoFollow)?;
    Ok((parent, name, dir))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use millstream_posix::PosixVolume;

    use super::*;

    const WHAT: Exchange<'_> =
        Exchange { token: c"journal/j.begin", new: c"swap/k=1", place: c"k=1", witness: c"new" };

    fn bed() -> tempfile::TempDir {
        let bed = tempfile::tempdir().expect("scratch");
        for directory in ["journal", "swap/k=1", "k=1"] {
            fs::create_dir_all(bed.path().join(directory)).expect("mkdir");
        }
        for file in ["journal/j.begin", "swap/k=1/new", "swap/k=1/new too", "k=1/old", "k=1/old too"] {
            fs::write(bed.path().join(file), "").expect("write");
        }
        bed
    }

    fn c_path(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).expect("no NUL")
    }

    /// Retries while the lock is held: a command that another test starts inherits it between fork and exec.
    fn patiently(bed: &Path, what: &Exchange<'_>) -> Result<Outcome, ExchangeError> {
        let mut outcomes = (0..10_000).map(|_| exchange(&PosixVolume, &c_path(bed), what));
        outcomes.find(|outcome| *outcome != Ok(Outcome::Busy)).unwrap_or(Ok(Outcome::Busy))
    }

    fn run(bed: &Path) -> Result<Outcome, ExchangeError> {
        patiently(bed, &WHAT)
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .expect("readdir")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn is_done_once() {
        let bed = bed();
        fs::set_permissions(bed.path().join("k=1"), fs::Permissions::from_mode(0o2750)).expect("chmod");
        for outcome in [Outcome::Exchanged, Outcome::DoneBefore] {
            assert_eq!(run(bed.path()), Ok(outcome));
            assert_eq!(names(&bed.path().join("k=1")), ["new", "new too"]);
            assert_eq!(names(&bed.path().join("swap/k=1")), ["old", "old too"]);
        }
        let mode = fs::metadata(bed.path().join("k=1")).expect("stat").permissions().mode();
        assert_eq!(mode & 0o7777, 0o2750);
    }

    #[test]
    fn is_not_done_while_another_may_or_when_all_is_over() {
        let bed = bed();
        let token = bed.path().join("journal/j.begin");
        let root = PosixVolume.base().open_dir(&c_path(bed.path()), SymlinkBehavior::Follow).expect("opens");
        let held = lock(&root, WHAT.token);
        assert_eq!(exchange(&PosixVolume, &c_path(bed.path()), &WHAT), Ok(Outcome::Busy));
        drop(held.expect("locked"));
        fs::remove_file(&token).expect("removed");
        assert_eq!(run(bed.path()), Ok(Outcome::Over));
        assert_eq!(names(&bed.path().join("k=1")), ["old", "old too"]);
    }

    #[test]
    fn is_refused_where_paths_lead_elsewhere() {
        for what in ["k=1/below", "k=1/link"] {
            let bed = bed();
            if what.ends_with("below") {
                fs::create_dir(bed.path().join(what)).expect("mkdir");
            } else {
                symlink("old", bed.path().join(what)).expect("a link");
            }
            assert_eq!(run(bed.path()), Err(ExchangeError::NotFlat { path: c"k=1".into() }));
        }
        let bed = bed();
        fs::rename(bed.path().join("k=1"), bed.path().join("elsewhere")).expect("renamed");
        symlink("elsewhere", bed.path().join("k=1")).expect("a link");
        assert!(matches!(run(bed.path()), Err(ExchangeError::Volume { .. })));
        assert_eq!(names(&bed.path().join("swap/k=1")), ["new", "new too"]);
    }

    /// One thread lists the directory all the time, while two directories are exchanged back and forth.
    #[test]
    fn is_seen_as_a_whole() {
        let bed = bed();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let lists = scope.spawn(|| {
                let mut seen = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let listed = names(&bed.path().join("k=1"));
                    if !seen.contains(&listed) {
                        seen.push(listed);
                    }
                }
                seen
            });
            let back = Exchange { witness: c"old", ..WHAT };
            let outcomes: Vec<_> =
                (0..4000).map(|turn| patiently(bed.path(), [&WHAT, &back][turn % 2])).collect();
            over.store(true, Ordering::Relaxed);
            let seen = lists.join().expect("ended");
            assert!(outcomes.iter().all(|outcome| *outcome == Ok(Outcome::Exchanged)));
            assert!(
                seen.iter().all(|one| one == &["new", "new too"] || one == &["old", "old too"]),
                "{seen:?}"
            );
        });
    }
}
