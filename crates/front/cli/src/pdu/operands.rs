//! The operands: from the command line, or from the file of `--files0-from`.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use millstream_vfs::Errno;

use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::operand::trimmed;

/// The maximum length of a path in a system call, including its NUL.
const PATH_MAX: usize = 4096;

/// The operands that can be measured. The others are reported.
pub(super) fn operands(
    given: Vec<OsString>,
    files0_from: Option<&[u8]>,
    diagnostics: &Diagnostics,
) -> Result<Vec<CString>, Refused> {
    let names = match files0_from {
        None if given.is_empty() => vec![b".".to_vec()],
        None => {
            given.into_iter().map(OsString::into_vec).filter(|name| is_named(name, diagnostics)).collect()
        }
        Some(file) => match given.first() {
            None => read_names(file, diagnostics)?,
            Some(extra) => {
                let message = diagnostics.error(FAILURE).text("extra operand ").quoted(extra.as_bytes());
                message.text("\nfile operands cannot be combined with --files0-from").send_with_hint();
                return Err(Refused);
            }
        },
    };
    let fits = |name: &Vec<u8>| {
        if name.len() >= PATH_MAX {
            diagnostics.error(FAILURE).text("cannot access ").name(name).errno(Errno::NAMETOOLONG).send();
        }
        name.len() < PATH_MAX
    };
    // Names hold no NUL: they come from arguments, or from between NULs.
    Ok(names.into_iter().filter(fits).filter_map(|name| CString::new(trimmed(name)).ok()).collect())
}

fn is_named(name: &[u8], diagnostics: &Diagnostics) -> bool {
    if name.is_empty() {
        diagnostics.error(FAILURE).text("invalid zero-length file name").send();
    }
    !name.is_empty()
}

fn read_names(file: &[u8], diagnostics: &Diagnostics) -> Result<Vec<Vec<u8>>, Refused> {
    let opened: Result<Box<dyn Read>, _> = match file {
        b"-" => Ok(Box::new(io::stdin())),
        file => File::open(Path::new(std::ffi::OsStr::from_bytes(file)))
            .map(|file| Box::new(file) as Box<dyn Read>),
    };
    let mut input = opened.map_err(|error| {
        diagnostics.error(FAILURE).text("cannot open ").name(file).text(" for reading").cause(&error).send();
        Refused
    })?;
    let mut text = Vec::new();
    if let Err(error) = input.read_to_end(&mut text) {
        diagnostics.error(FAILURE).name_before_colon(file).text(": read error").cause(&error).send();
    }
    let mut names: Vec<_> = text.split(|&b| b == 0).enumerate().collect();
    if names.last().is_some_and(|(_, name)| name.is_empty()) {
        names.pop();
    }
    let wanted = names.into_iter().filter(|(index, name)| is_usable(file, *index, name, diagnostics));
    Ok(wanted.map(|(_, name)| name.to_vec()).collect())
}

fn is_usable(file: &[u8], index: usize, name: &[u8], diagnostics: &Diagnostics) -> bool {
    if file == b"-" && name == b"-" {
        let text = "when reading file names from standard input, no file name of ";
        diagnostics.error(FAILURE).text(text).name(name).text(" allowed").send();
        return false;
    }
    if name.is_empty() {
        let place = format!(":{}: invalid zero-length file name", index + 1);
        diagnostics.error(FAILURE).name_before_colon(file).text(&place).send();
        return false;
    }
    true
}
