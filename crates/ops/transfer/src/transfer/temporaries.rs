//! Temporary files, and their removal if the process must end early.
//!
//! A name is recorded from before the file is created until after it is gone. The code that
//! ends the process on a signal can therefore remove all of them at any moment, whatever calls the other threads are
//! in.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fmt;
use std::num::NonZeroI32;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use crc_fast::{CrcAlgorithm, checksum};
use millstream_vfs::{Dir, Errno, RemoveKind, Result, Timestamp};
use rustix::process::{Pid, test_kill_process};

type Removal = Box<dyn FnOnce() + Send>;

/// The existing temporary files. Clones share the same set.
#[derive(Clone)]
pub struct Temporaries {
    shared: Arc<Shared>,
    /// What names begin with, after a dot.
    prefix: &'static str,
}

#[derive(Default)]
struct Shared {
    /// Held for reading while one is created.
    gate: RwLock<()>,
    removals: Mutex<HashMap<u64, Removal>>,
}

impl fmt::Debug for Temporaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Temporaries").field("count", &self.lock().len()).finish()
    }
}

/// Blocks the creation of temporary files while it exists.
#[derive(Debug)]
pub struct NoMore<'a> {
    _gate: RwLockWriteGuard<'a, ()>,
}

/// A temporary name in use.
#[derive(Debug)]
pub(crate) struct Temporary {
    pub(crate) name: CString,
    serial: u64,
    all: Temporaries,
}

impl Temporaries {
    /// No files yet; the names of all begin with a dot and `prefix`.
    pub(crate) fn with_prefix(prefix: &'static str) -> Self {
        Temporaries { shared: Arc::default(), prefix }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Removal>> {
        self.shared.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes all temporary files. Failures are ignored, because the process is about to end.
    pub fn remove_all(&self) -> NoMore<'_> {
        let gate = self.shared.gate.write().unwrap_or_else(PoisonError::into_inner);
        let removals = std::mem::take(&mut *self.lock());
        for remove in removals.into_values() {
            remove();
        }
        NoMore { _gate: gate }
    }

    /// Creates something in `dir` under an unused name next to `name`.
    pub(crate) fn make<D: Dir, T>(
        &self,
        dir: &Arc<D>,
        name: &CStr,
        make: impl Fn(&CStr) -> Result<T>,
    ) -> Result<(Temporary, T)> {
        let _gate = self.shared.gate.read().unwrap_or_else(PoisonError::into_inner);
        loop {
            let temporary = self.name(name);
            let known = (Arc::clone(dir), temporary.name.clone());
            let remove: Removal = Box::new(move || {
                let _ = known.0.remove(&known.1, RemoveKind::File);
            });
            self.lock().insert(temporary.serial, remove);
            match make(&temporary.name) {
                // Left over from a killed process with the same process ID.
                Err(error) if error.errno == Errno::EXIST => {}
                made => return made.map(|made| (temporary, made)),
            }
        }
    }

    /// A name that is unique among the processes of all machines.
    fn name(&self, name: &CStr) -> Temporary {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = name.to_bytes();
        let base = path.iter().rposition(|&b| b == b'/').map_or(0, |at| at + 1);
        let process = process();
        let name = format!(".{}-{:08x}-{process}-{serial}.tmp", self.prefix, machine());
        let name = [&path[..base], name.as_bytes()].concat();
        Temporary { name: CString::new(name).unwrap_or_default(), serial, all: self.clone() }
    }

    /// Whether a name has the form of those made here.
    pub(crate) fn is_temporary(&self, name: &CStr) -> bool {
        self.maker(name).is_some()
    }

    /// Whether the maker of a temporary file is gone: a process of this machine that has ended, or one of another
    /// machine whose file has not been touched for a day. `changed` is when the file's attributes last changed.
    pub(crate) fn is_abandoned(&self, name: &CStr, changed: Timestamp) -> bool {
        const DAY: i64 = 24 * 60 * 60;
        let Some((machine_of_it, process)) = self.maker(name) else { return false };
        if machine_of_it == machine() {
            return has_ended(process);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
        now - changed.sec > DAY
    }

    /// The machine and the process that made a temporary name. `psync --spark` makes and reads the same names
    /// (`TemporaryNames.scala`); `testdata/temporary-names.tsv` has examples for both.
    fn maker(&self, name: &CStr) -> Option<(u32, i32)> {
        let text = name.to_str().ok()?.strip_prefix('.')?.strip_prefix(self.prefix)?;
        let mut parts = text.strip_prefix('-')?.strip_suffix(".tmp")?.split('-');
        let is_hex =
            |part: &&str| part.len() == 8 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let machine = u32::from_str_radix(parts.next().filter(is_hex)?, 16).ok()?;
        let is_decimal = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        let process = parts.next().filter(is_decimal)?.parse().ok()?;
        let _serial: u64 = parts.next().filter(is_decimal)?.parse().ok()?;
        parts.next().is_none().then_some((machine, process))
    }
}

/// This process.
fn process() -> NonZeroI32 {
    static PROCESS: OnceLock<NonZeroI32> = OnceLock::new();
    *PROCESS.get_or_init(|| rustix::process::getpid().as_raw_nonzero())
}

/// This machine, or container: process IDs have a meaning in one PID namespace of one machine, until it is restarted.
/// Two machines may have the same name. What cannot be read is replaced by something unique.
fn machine() -> u32 {
    static MACHINE: OnceLock<u32> = OnceLock::new();
    *MACHINE.get_or_init(|| {
        let unique = || {
            let name = rustix::system::uname();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("{}/{}/{}", name.nodename().to_string_lossy(), process(), now.as_nanos()).into_bytes()
        };
        let boot_id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_else(|_| unique());
        let namespace = std::fs::read_link("/proc/self/ns/pid")
            .map_or_else(|_| unique(), |link| link.as_os_str().as_bytes().to_vec());
        machine_of(&boot_id, &namespace)
    })
}

/// The machine with this boot ID and PID namespace, as procfs shows them.
fn machine_of(boot_id: &[u8], namespace: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, &[boot_id, namespace].concat()) as u32
}

impl Drop for Temporary {
    /// Its file has been renamed or removed.
    fn drop(&mut self) {
        self.all.lock().remove(&self.serial);
    }
}

/// Whether a process of this machine can do nothing any more: one that nobody has waited for has a number, and no more.
fn has_ended(process: i32) -> bool {
    let is_gone = Pid::from_raw(process).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    is_gone || std::fs::read(format!("/proc/{process}/stat")).is_ok_and(|stat| is_zombie(&stat))
}

/// Whether a process is a zombie by its `/proc/PID/stat`. The program's name, in parentheses, can contain any bytes.
/// The first thread can end before the others; the 20th field is the number of threads.
fn is_zombie(stat: &[u8]) -> bool {
    let Some(name_end) = stat.iter().rposition(|&b| b == b')') else { return false };
    let mut fields = stat[name_end + 1..].split(|&b| b == b' ').skip(1);
    fields.next() == Some(b"Z") && fields.nth(16).is_none_or(|threads| matches!(threads, b"0" | b"1"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use millstream_posix::PosixVolume;
    use millstream_vfs::{Error, Operation, SymlinkBehavior, Volume};

    use super::*;

    fn open(path: &Path) -> Arc<<PosixVolume as Volume>::Dir> {
        let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        Arc::new(PosixVolume.base().open_dir(&path, SymlinkBehavior::Follow).expect("opens"))
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).expect("readable").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_in_use_is_removed_and_nothing_else() {
        let scratch = tempfile::tempdir().expect("scratch");
        let dir = open(scratch.path());
        let all = Temporaries::with_prefix("test");
        let make = |name: &CStr| dir.create_file(name, 0o600);
        let (renamed, _) = all.make(&dir, c"a", make).expect("made");
        dir.rename(&renamed.name, &dir, c"a").expect("renamed");
        drop(renamed);
        let (_kept, _) = all.make(&dir, c"b", make).expect("made");
        let failed = all.make(&dir, c"c", |_| Err::<(), _>(Error::new(Operation::CreateFile, Errno::NOSPC)));
        assert_eq!(failed.err().map(|error| error.errno), Some(Errno::NOSPC));
        assert_eq!(names(scratch.path()).len(), 2);
        drop(all.remove_all());
        assert_eq!(names(scratch.path()), ["a"]);
        assert!(all.lock().is_empty());
    }

    #[test]
    fn names_are_those_of_the_shared_vector() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata/temporary-names.tsv");
        let lines =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let maker =
            |name: &str| Temporaries::with_prefix("psync").maker(&CString::new(name).expect("no NUL"));
        for line in lines.lines() {
            match *line.split('\t').collect::<Vec<_>>() {
                ["machine", boot_id, namespace, expected] => {
                    let found = machine_of(format!("{boot_id}\n").as_bytes(), namespace.as_bytes());
                    assert_eq!(format!("{found:08x}"), expected);
                }
                ["temporary", name, machine, process] => {
                    let found =
                        maker(name).map(|(machine, process)| (format!("{machine:08x}"), process.to_string()));
                    assert_eq!(found, Some((machine.to_owned(), process.to_owned())), "{name}");
                }
                ["other", name] => assert_eq!(maker(name), None, "{name}"),
                _ => panic!("{line}"),
            }
        }
    }

    #[test]
    fn names_left_over_are_passed_by() {
        let scratch = tempfile::tempdir().expect("scratch");
        let dir = open(scratch.path());
        let taken = Mutex::new(Vec::new());
        let (made, _) = Temporaries::with_prefix("test")
            .make(&dir, c"x", |name| {
                let mut taken = taken.lock().expect("not poisoned");
                if taken.len() < 3 {
                    taken.push(name.to_owned());
                    drop(dir.create_file(name, 0o600)?);
                }
                dir.create_file(name, 0o600)
            })
            .expect("made");
        assert!(!taken.lock().expect("not poisoned").contains(&made.name));
        assert_eq!(names(scratch.path()).len(), 4);
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let pid = child.id() as i32;
        assert!(!has_ended(pid));
        child.kill().expect("killed");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !has_ended(pid) {
            assert!(std::time::Instant::now() < deadline, "it is a zombie");
            std::thread::yield_now();
        }
        child.wait().expect("waited for");
        assert!(has_ended(pid));
        assert!(is_zombie(b"7 (a) R) Z 1") && !is_zombie(b"7 (a) Z) R 1") && !is_zombie(b""));
    }
}
