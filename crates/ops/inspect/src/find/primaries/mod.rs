//! The table of options, tests and actions: name, help and parsing of each in one place.
//!
//! Parsers longer than a line are in modules by subject: [`options`], the tests of [`names`], [`times`] and other
//! [`attributes`], and [`actions`].

mod actions;
mod attributes;
mod names;
mod options;
mod times;

use std::ffi::CStr;

use millstream_system::pattern::CaseSensitivity;
use millstream_vfs::Permission;
use millstream_walk::FollowPolicy;

use super::arguments::AgeUnit;
use super::expression::{Expr, MountPoints, Test, VanishedFiles};
use super::moment::TimeField;
use super::refusal::Refusal;
use super::words::{DefaultOutput, Parsed, Verbosity, Warnings, Words, test, truth};
use millstream_operation::terms::FileSystems;

/// The kind of a word in the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Applies to everything, in any position.
    GlobalOption,
    /// Applies to the words after it.
    PositionalOption,
    /// Is true or false of a file.
    Test,
    /// Does something.
    Action,
}

/// A word of the expression and its properties.
pub struct Primary {
    /// The word, and others that mean the same.
    pub names: &'static [&'static str],
    /// The placeholder of its argument, empty if it takes none.
    pub argument: &'static str,
    /// Its kind.
    pub class: Class,
    /// One line of help.
    pub help: &'static str,
    pub(super) parse: Parse,
}

type Parse = fn(&mut Words<'_>, &CStr) -> Parsed;

const fn primary(
    names: &'static [&'static str],
    argument: &'static str,
    class: Class,
    help: &'static str,
    parse: Parse,
) -> Primary {
    Primary { names, argument, class, help, parse }
}

use Class::{Action, GlobalOption, PositionalOption, Test as Tests};

/// All of them, in the order of the manual.
pub static PRIMARIES: &[Primary] = &[
    primary(&["-daystart"], "", PositionalOption, "count ages from the end of today", |p, _| {
        p.age_origin = i128::from(p.env.next_midnight()) * 1_000_000_000;
        truth()
    }),
    primary(&["-follow"], "", PositionalOption, "follow symbolic links, like -L", |p, _| {
        p.options.follow = FollowPolicy::Always;
        truth()
    }),
    primary(
        &["-regextype"],
        "TYPE",
        PositionalOption,
        "the dialect of the regular expressions that follow",
        options::regextype,
    ),
    primary(&["-warn"], "", PositionalOption, "warn about unusual usage", |p, _| {
        p.warnings = Warnings::On;
        truth()
    }),
    primary(&["-nowarn"], "", PositionalOption, "do not warn about unusual usage", |p, _| {
        p.warnings = Warnings::Off;
        truth()
    }),
    primary(&["-noleaf"], "", GlobalOption, "accepted and ignored", |_, _| truth()),
    primary(&["-depth"], "", GlobalOption, "evaluate a directory after its contents", |p, _| {
        options::post_order(p)
    }),
    primary(&["-d"], "", GlobalOption, "like -depth", |p, _| {
        p.warn(&[b"the -d option is deprecated; please use -depth instead, because the latter is a POSIX-compliant feature."]);
        options::post_order(p)
    }),
    primary(
        &["-files0-from"],
        "FILE",
        GlobalOption,
        "read the starting points from FILE, each terminated by a NUL",
        |p, name| {
            p.files_from = Some(p.argument(name)?.to_owned());
            truth()
        },
    ),
    primary(
        &["-maxdepth"],
        "LEVELS",
        GlobalOption,
        "descend at most LEVELS levels below the starting points",
        |p, name| {
            p.options.max_depth = options::depth(p, name)?;
            truth()
        },
    ),
    primary(
        &["-mindepth"],
        "LEVELS",
        GlobalOption,
        "evaluate nothing at levels less than LEVELS",
        |p, name| {
            p.options.min_depth = options::depth(p, name)?;
            truth()
        },
    ),
    primary(&["-xdev"], "", GlobalOption, "do not descend into other file systems", |p, _| {
        p.options.file_systems = FileSystems::One;
        truth()
    }),
    primary(&["-mount"], "", GlobalOption, "like -xdev, but also skip the mount points", |p, _| {
        p.options.file_systems = FileSystems::One;
        p.options.mount_points = MountPoints::LeaveOut;
        truth()
    }),
    primary(
        &["-ignore_readdir_race"],
        "",
        GlobalOption,
        "ignore files that vanish during the search",
        |p, _| {
            p.options.vanished = VanishedFiles::Ignore;
            truth()
        },
    ),
    primary(
        &["-noignore_readdir_race"],
        "",
        GlobalOption,
        "report files that vanish during the search",
        |p, _| {
            p.options.vanished = VanishedFiles::Report;
            truth()
        },
    ),
    primary(
        &["--json"],
        "",
        PositionalOption,
        "print a JSON record for every match instead of its path",
        |p, _| {
            p.output = DefaultOutput::Record;
            truth()
        },
    ),
    primary(
        &["--threads"],
        "N",
        PositionalOption,
        "use up to N threads; 0, the default, adapts their number",
        options::threads,
    ),
    primary(&["--verbose"], "", PositionalOption, "print a summary at the end", |p, _| {
        p.verbosity = Verbosity::Statistics;
        truth()
    }),
    primary(&["-help", "--help"], "", PositionalOption, "print help and exit", |_, _| Err(Refusal::Help)),
    primary(&["-version", "--version"], "", PositionalOption, "print the version and exit", |_, _| {
        Err(Refusal::Version)
    }),
    primary(&["-amin"], "N", Tests, "last accessed N minutes ago", |p, n| {
        times::age(p, n, TimeField::Access, AgeUnit::Minutes)
    }),
    primary(&["-anewer"], "FILE", Tests, "last accessed after FILE was modified", |p, n| {
        times::newer(p, n, TimeField::Access, TimeField::Modification)
    }),
    primary(&["-atime"], "N", Tests, "last accessed N days ago", |p, n| {
        times::age(p, n, TimeField::Access, AgeUnit::Days)
    }),
    primary(&["-cmin"], "N", Tests, "attributes last changed N minutes ago", |p, n| {
        times::age(p, n, TimeField::Change, AgeUnit::Minutes)
    }),
    primary(&["-cnewer"], "FILE", Tests, "attributes last changed after FILE was modified", |p, n| {
        times::newer(p, n, TimeField::Change, TimeField::Modification)
    }),
    primary(
        &["-context"],
        "PATTERN",
        Tests,
        "the security context matches PATTERN (needs SELinux)",
        |p, name| {
            p.argument(name)?;
            Err(Refusal::mistake(&[b"invalid predicate -context: SELinux is not enabled."]))
        },
    ),
    primary(&["-ctime"], "N", Tests, "attributes last changed N days ago", |p, n| {
        times::age(p, n, TimeField::Change, AgeUnit::Days)
    }),
    primary(&["-empty"], "", Tests, "an empty file or directory", |_, _| test(Test::Empty)),
    primary(
        &["-executable"],
        "",
        Tests,
        "executable, or for a directory searchable, by this user",
        |_, _| test(Test::Permission(Permission::Execute)),
    ),
    primary(&["-false"], "", Tests, "always false", |_, _| test(Test::False)),
    primary(&["-fstype"], "TYPE", Tests, "on a file system of type TYPE", |p, name| {
        let kind = p.argument(name)?.to_bytes().to_vec();
        test(Test::FsType(kind))
    }),
    primary(&["-gid"], "N", Tests, "the group ID is N", |p, name| {
        test(Test::Gid(attributes::number(p, name)?))
    }),
    primary(&["-group"], "NAME", Tests, "belongs to the group NAME", attributes::group),
    primary(&["-ilname"], "PATTERN", Tests, "like -lname, ignoring case", |p, n| {
        names::link_target(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-iname"], "PATTERN", Tests, "like -name, ignoring case", |p, n| {
        names::base_name(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-inum"], "N", Tests, "the inode number is N", |p, name| {
        test(Test::Inode(attributes::number(p, name)?))
    }),
    primary(&["-ipath", "-iwholename"], "PATTERN", Tests, "like -path, ignoring case", |p, n| {
        names::whole_path(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-iregex"], "PATTERN", Tests, "like -regex, ignoring case", |p, n| {
        names::regex(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-links"], "N", Tests, "has N hard links", |p, name| {
        test(Test::Links(attributes::number(p, name)?))
    }),
    primary(
        &["-lname"],
        "PATTERN",
        Tests,
        "a symbolic link whose target matches the shell pattern",
        |p, n| names::link_target(p, n, CaseSensitivity::Sensitive),
    ),
    primary(&["-mmin"], "N", Tests, "last modified N minutes ago", |p, n| {
        times::age(p, n, TimeField::Modification, AgeUnit::Minutes)
    }),
    primary(&["-mtime"], "N", Tests, "last modified N days ago", |p, n| {
        times::age(p, n, TimeField::Modification, AgeUnit::Days)
    }),
    primary(&["-name"], "PATTERN", Tests, "the last component matches the shell pattern", |p, n| {
        names::base_name(p, n, CaseSensitivity::Sensitive)
    }),
    primary(&["-newer"], "FILE", Tests, "modified after FILE was", |p, n| {
        times::newer(p, n, TimeField::Modification, TimeField::Modification)
    }),
    primary(
        &["-newerXY"],
        "REFERENCE",
        Tests,
        "time X (a, B, c or m) is after time Y (or t: a date) of REFERENCE",
        times::newer_xy,
    ),
    primary(&["-nogroup"], "", Tests, "the group has no name", |_, _| test(Test::NoGroup)),
    primary(&["-nouser"], "", Tests, "the owner has no name", |_, _| test(Test::NoUser)),
    primary(
        &["-path", "-wholename"],
        "PATTERN",
        Tests,
        "the whole path matches the shell pattern",
        |p, n| names::whole_path(p, n, CaseSensitivity::Sensitive),
    ),
    primary(
        &["-perm"],
        "[-/]MODE",
        Tests,
        "permission bits are exactly MODE, include all bits of MODE (-), or any of them (/)",
        attributes::permissions,
    ),
    primary(&["-readable"], "", Tests, "readable by this user", |_, _| {
        test(Test::Permission(Permission::Read))
    }),
    primary(&["-regex"], "PATTERN", Tests, "the whole path matches the regular expression", |p, n| {
        names::regex(p, n, CaseSensitivity::Sensitive)
    }),
    primary(&["-samefile"], "FILE", Tests, "is the same file as FILE", attributes::same_file),
    primary(
        &["-size"],
        "N[bcwkMG]",
        Tests,
        "the size is N units, rounded up; 512-byte blocks unless a letter follows",
        attributes::size,
    ),
    primary(&["-true"], "", Tests, "always true", |_, _| truth()),
    primary(&["-type"], "[bcdpfls],...", Tests, "is of one of the types", |p, name| {
        Ok(Expr::Test(Test::Kind(attributes::kinds(p, name)?)))
    }),
    primary(&["-uid"], "N", Tests, "the user ID is N", |p, name| {
        test(Test::Uid(attributes::number(p, name)?))
    }),
    primary(&["-used"], "N", Tests, "last accessed N days after its attributes changed", times::used),
    primary(&["-user"], "NAME", Tests, "belongs to the user NAME", attributes::user),
    primary(&["-writable"], "", Tests, "writable by this user", |_, _| {
        test(Test::Permission(Permission::Write))
    }),
    primary(
        &["-xtype"],
        "[bcdpfls],...",
        Tests,
        "like -type, but for a symbolic link, checks its target; with -L, the link itself",
        |p, name| Ok(Expr::Test(Test::OtherKind(attributes::kinds(p, name)?))),
    ),
    primary(&["-delete"], "", Action, "remove the file; implies -depth", actions::delete),
    primary(
        &["-exec"],
        "COMMAND ;",
        Action,
        "run COMMAND; if it ends in {} +, on many files at a time",
        actions::exec,
    ),
    primary(
        &["-execdir"],
        "COMMAND ;",
        Action,
        "like -exec, but run in the directory of the file",
        actions::execdir,
    ),
    primary(&["-fls"], "FILE", Action, "like -ls, but write to FILE", actions::fls),
    primary(&["-fprint"], "FILE", Action, "like -print, but write to FILE", actions::fprint),
    primary(&["-fprint0"], "FILE", Action, "like -print0, but write to FILE", actions::fprint0),
    primary(&["-fprintf"], "FILE FORMAT", Action, "like -printf, but write to FILE", actions::fprintf),
    primary(&["-ls"], "", Action, "print a line in the format of ls -dils", actions::ls),
    primary(&["-ok"], "COMMAND ;", Action, "like -exec, but ask first", actions::ok),
    primary(&["-okdir"], "COMMAND ;", Action, "like -execdir, but ask first", actions::okdir),
    primary(&["-print"], "", Action, "print the path and a newline", actions::print),
    primary(&["-print0"], "", Action, "print the path and a NUL", actions::print0),
    primary(&["-printf"], "FORMAT", Action, "print according to FORMAT", actions::printf),
    primary(&["-prune"], "", Action, "do not descend into the directory", actions::prune),
    primary(&["-quit"], "", Action, "exit immediately", actions::quit),
];

/// Looks up a word; `-newerXY` stands for all its forms.
pub(super) fn find(word: &[u8]) -> Option<&'static Primary> {
    let word: &[u8] = match word {
        [b'-', b'n', b'e', b'w', b'e', b'r', _, _] => b"-newerXY",
        [b'-', b'-', b't', b'h', b'r', b'e', b'a', b'd', b's', b'=', ..] => b"--threads",
        word => word,
    };
    PRIMARIES.iter().find(|primary| primary.names.iter().any(|name| name.as_bytes() == word))
}

/// Whether a word is an option that may also precede the operands.
pub(super) fn is_leading(word: &[u8]) -> bool {
    word.starts_with(b"--") && find(word).is_some()
}
