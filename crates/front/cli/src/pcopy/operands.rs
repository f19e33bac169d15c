//! Splits the operands into sources and destination.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;

use millstream_posix::PosixVolume;
use millstream_text::json::ErrorRecord;
use millstream_transfer::copy::Destination;
use millstream_vfs::{Dir, Errno, Fields, FileKind, SymlinkBehavior, Volume};

use super::settings::Settings;
use crate::diagnostics::{Diagnostics, Refused};
use crate::screen::Screen;
use crate::standard_output::Lines;

/// The sources and their destination.
pub(super) fn operands(
    volume: &PosixVolume,
    given: Vec<OsString>,
    settings: &Settings<'_>,
    diagnostics: &Diagnostics,
) -> Result<(Vec<CString>, Destination), Refused> {
    // Arguments hold no NUL.
    let mut paths: Vec<CString> =
        given.into_iter().filter_map(|path| CString::new(path.into_vec()).ok()).collect();
    let target = settings.target_directory.clone();
    if paths.is_empty() || (paths.len() == 1 && target.is_none()) {
        let message = match paths.first() {
            None => diagnostics.error(1).text("missing file operand"),
            Some(path) => {
                diagnostics.error(1).text("missing destination file operand after ").name(path.to_bytes())
            }
        };
        message.send_with_hint();
        return Err(Refused);
    }
    let into = into_directory(volume, &mut paths, target, settings, diagnostics)?;
    // Without a directory GNU cp leaves the operands as they are.
    if settings.strip_trailing_slashes && into.is_some() {
        paths.iter_mut().for_each(strip);
    }
    let destination = match into {
        Some(directory) if settings.parents => Destination::IntoWithParents(directory),
        Some(directory) => Destination::Into(directory),
        None if settings.parents => {
            let text = "with --parents, the destination must be a directory";
            diagnostics.error(1).text(text).send_with_hint();
            return Err(Refused);
        }
        None => Destination::Exactly(paths.pop().unwrap_or_default()),
    };
    Ok((paths, destination))
}

/// The destination directory, taken from the operands; [`None`] if the last operand is the copy itself.
fn into_directory(
    volume: &PosixVolume,
    paths: &mut Vec<CString>,
    target: Option<Vec<u8>>,
    settings: &Settings<'_>,
    diagnostics: &Diagnostics,
) -> Result<Option<CString>, Refused> {
    let refuse = |what: &str, path: &CStr, errno: Errno| {
        diagnostics.error(1).text(what).name(path.to_bytes()).errno(errno).send();
        if settings.writes_records() {
            let mut record = Vec::new();
            ErrorRecord { errno, operation: "open directory", path: path.to_bytes() }.write(&mut record);
            let lines = Lines::new(Screen::default());
            lines.write(&record);
            lines.finish(diagnostics, 1);
        }
        Refused
    };
    if settings.no_target_directory {
        if target.is_some() {
            let text = "cannot combine --target-directory (-t) and --no-target-directory (-T)";
            diagnostics.error(1).text(text).send();
            return Err(Refused);
        }
        if let Some(extra) = paths.get(2) {
            diagnostics.error(1).text("extra operand ").name(extra.to_bytes()).send_with_hint();
            return Err(Refused);
        }
        return Ok(None);
    }
    if let Some(target) = target {
        let target = CString::new(target).unwrap_or_default();
        return match directory(volume, &target) {
            Ok(()) => Ok(Some(target)),
            Err(errno) => Err(refuse("target directory ", &target, errno)),
        };
    }
    let Some(last) = paths.last().cloned() else { return Ok(None) };
    match directory(volume, &last) {
        Ok(()) => {
            paths.pop();
            Ok(Some(last))
        }
        Err(errno) if paths.len() > 2 => Err(refuse("target ", &last, errno)),
        Err(_) => Ok(None),
    }
}

/// Whether `path` is a directory, and if not, why.
fn directory(volume: &PosixVolume, path: &CStr) -> Result<(), Errno> {
    match volume.base().metadata(path, SymlinkBehavior::Follow, Fields::KIND) {
        Ok(found) if found.kind() == FileKind::Directory => Ok(()),
        Ok(_) => Err(Errno::NOTDIR),
        Err(error) => Err(error.errno),
    }
}

fn strip(path: &mut CString) {
    let bytes = path.to_bytes();
    let end = bytes.iter().rposition(|&b| b != b'/').map_or(bytes.len().min(1), |at| at + 1);
    *path = CString::new(&bytes[..end]).unwrap_or_default();
}

/// Whether two operands have the same spelling; then, with `-f` and a backup, the copy is the backup.
pub(super) fn is_own_backup(volume: &PosixVolume, sources: &[CString], destination: &Destination) -> bool {
    let is_file = |path: &CStr| {
        volume
            .base()
            .metadata(path, SymlinkBehavior::Follow, Fields::KIND)
            .is_ok_and(|found| found.kind() == FileKind::File)
    };
    matches!((sources, destination), ([source], Destination::Exactly(path)) if source == path && is_file(path))
}
