//! `pchown`: owners and groups, as GNU `chown` and `chgrp` change them.

mod spec;
mod table;
mod wording;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use millstream_change::attributes::{Links, OwnerChange, Recursion};
use millstream_vfs::Ownership;
use millstream_walk::FollowPolicy;

use crate::attributes::{self, Id, missing_operand, reference_file};
use crate::diagnostics::{Diagnostics, FAILURE, Refused};
use crate::options::{Command, Reference, take_options};
use crate::startup::{Startup, startup};
use spec::{Mistake, Parsed, Separator, Spec};
use table::{CHGRP, From, PCHOWN};
use wording::OwnerWording;

/// The option table of `pchown`, for texts.
pub fn reference() -> Reference {
    Reference::from(&PCHOWN)
}

/// Runs `pchown` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, .. } = startup(PCHOWN.name);
    let tool = if diagnostics.is_called("chgrp") { Tool::Chgrp } else { Tool::Chown };
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = prepare(tool, arguments, &diagnostics);
    diagnostics.exit_code()
}

/// Which tool's options and wording to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Chown,
    Chgrp,
}

impl Tool {
    fn command(self) -> &'static Command<Id<From>> {
        match self {
            Tool::Chown => &PCHOWN,
            Tool::Chgrp => &CHGRP,
        }
    }

    fn parse(self, text: &[u8], diagnostics: &Diagnostics) -> Result<Spec, Refused> {
        match self {
            Tool::Chown => parse_spec(text, diagnostics),
            Tool::Chgrp => spec::parse_group(text).map_err(|mistake| refuse(mistake, text, diagnostics)),
        }
    }

    fn spec_of_file(self, name: &[u8], diagnostics: &Diagnostics) -> Result<Spec, Refused> {
        let metadata = reference_file(name, diagnostics)?;
        Ok(match self {
            Tool::Chown => spec::of_file(&metadata),
            Tool::Chgrp => spec::group_of_file(&metadata),
        })
    }
}

fn parse_spec(text: &[u8], diagnostics: &Diagnostics) -> Result<Spec, Refused> {
    let Parsed { spec, separator } =
        spec::parse(text).map_err(|mistake| refuse(mistake, text, diagnostics))?;
    if separator == Separator::Dot {
        diagnostics.warning().text("warning: '.' should be ':': ").quoted(text).send();
    }
    Ok(spec)
}

fn refuse(mistake: Mistake, text: &[u8], diagnostics: &Diagnostics) -> Refused {
    diagnostics.error(FAILURE).text(mistake.text()).quoted(text).send();
    Refused
}

#[derive(Debug)]
struct Settings {
    tool: Tool,
    shared: attributes::Settings,
    from: Ownership,
}

fn prepare(tool: Tool, arguments: Vec<OsString>, diagnostics: &Diagnostics) -> Result<(), Refused> {
    let mut settings = Settings { tool, shared: attributes::Settings::default(), from: Ownership::default() };
    let operands = take_options(tool.command(), arguments, diagnostics, FAILURE, |option| {
        let option = option.map_err(|error| diagnostics.usage_error(&error, FAILURE))?;
        match option.id {
            Id::Shared(shared) => settings.shared.take(shared, option.value, diagnostics)?,
            Id::Own(From) => settings.from = parse_spec(option.bytes(), diagnostics)?.owner,
        }
        Ok(())
    })?;
    settings.work(operands, diagnostics)
}

impl Settings {
    fn work(self, mut operands: Vec<OsString>, diagnostics: &Diagnostics) -> Result<(), Refused> {
        let (follow, links) = self.links(diagnostics)?;
        if operands.len() < 1 + usize::from(self.shared.reference.is_none()) {
            return Err(missing_operand(operands.last().map(|last| last.as_bytes()), diagnostics));
        }
        let spec = match &self.shared.reference {
            Some(file) => self.tool.spec_of_file(file, diagnostics)?,
            None => self.tool.parse(operands.remove(0).as_bytes(), diagnostics)?,
        };
        let change = OwnerChange { owner: spec.owner, from: self.from };
        let options = self.shared.options(follow, links, diagnostics)?;
        let wording = OwnerWording::new(spec);
        attributes::run(operands, &change, &options, &self.shared, wording, diagnostics)
    }

    /// Which links to traverse, and how to treat the others.
    fn links(&self, diagnostics: &Diagnostics) -> Result<(FollowPolicy, Links), Refused> {
        let follow = self.shared.follow.unwrap_or(FollowPolicy::Never);
        match (self.shared.recursion, follow, self.shared.dereference) {
            (Recursion::Operands, _, Some(false)) => Ok((FollowPolicy::Never, Links::Change)),
            (Recursion::Operands, _, _) => Ok((FollowPolicy::Operands, Links::Dereference)),
            (Recursion::Trees, FollowPolicy::Never, Some(true)) => {
                Err(attributes::Settings::refuse_dereference(diagnostics))
            }
            (Recursion::Trees, FollowPolicy::Never, _) => Ok((FollowPolicy::Never, Links::Change)),
            (Recursion::Trees, follow, Some(false)) => Ok((follow, Links::Change)),
            (Recursion::Trees, follow, _) => Ok((follow, Links::Dereference)),
        }
    }
}

/// Parses any text as `OWNER:GROUP`, for the fuzzer: a valid one must have numbers that parse to the same value.
#[cfg(any(test, feature = "fuzzing"))]
pub fn fuzz_spec(text: &[u8]) {
    if let Ok(Parsed { spec, .. }) = spec::parse(text) {
        let Ownership { uid, gid } = spec.owner;
        let number = |id: Option<u32>| id.map_or(String::new(), |id| format!("+{id}"));
        let told = format!("{}:{}", number(uid), number(gid));
        // A number before a colon would need a login group, which it does not have.
        let told = if gid.is_none() { told.trim_end_matches(':') } else { &told };
        assert_eq!(spec::parse(told.as_bytes()).map(|parsed| parsed.spec.owner), Ok(spec.owner));
    }
    // A group alone may be invalid, but must not cause a panic.
    let _ = spec::parse_group(text);
}
