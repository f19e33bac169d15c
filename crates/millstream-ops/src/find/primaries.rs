//! The table of options, tests and actions: name, help and parsing of each in one place.

use std::ffi::{CStr, CString};

use millstream_vfs::posix::pattern::{CaseSensitivity, RegexSyntax};
use millstream_vfs::{FileKind, Timestamp};
use millstream_walk::{FollowPolicy, Threads};
use rustix::fs::Access;

use super::actions;
use super::arguments::{self, AgeUnit, KindsError, SizeError};
use super::environment::Severity;
use super::expression::{
    Comparison, Devices, Expr, Number, Test, TimeField, VanishedFiles, VisitOrder, Window, nanoseconds,
};
use super::glob::Glob;
use super::mode::{ModeRelation, ModeTest};
use super::parser::{DefaultOutput, Parser, Refusal, Verbosity, Warnings};

/// What a word of the expression is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Applies to everything, wherever it stands.
    GlobalOption,
    /// Applies to what comes after it.
    PositionalOption,
    /// Is true or false of a file.
    Test,
    /// Does something.
    Action,
}

/// A word of the expression, with everything there is to know about it.
pub struct Primary {
    /// The word, and others that mean the same.
    pub names: &'static [&'static str],
    /// What its argument stands for, empty if it takes none.
    pub argument: &'static str,
    /// What it is good for.
    pub class: Class,
    /// One line of help.
    pub help: &'static str,
    pub(super) parse: Parse,
}

pub(super) type Parsed = Result<Expr, Refusal>;
type Parse = fn(&mut Parser<'_>, &CStr) -> Parsed;

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
    primary(&["-follow"], "", PositionalOption, "follow symbolic links, as -L", |p, _| {
        p.options.follow = FollowPolicy::Always;
        truth()
    }),
    primary(
        &["-regextype"],
        "TYPE",
        PositionalOption,
        "dialect of the regular expressions after it",
        regextype,
    ),
    primary(&["-warn"], "", PositionalOption, "warn of oddities", |p, _| {
        p.warnings = Warnings::On;
        truth()
    }),
    primary(&["-nowarn"], "", PositionalOption, "do not warn of oddities", |p, _| {
        p.warnings = Warnings::Off;
        truth()
    }),
    primary(&["-noleaf"], "", GlobalOption, "accepted and ignored", |_, _| truth()),
    primary(&["-depth"], "", GlobalOption, "evaluate a directory after its contents", |p, _| post_order(p)),
    primary(&["-d"], "", GlobalOption, "as -depth", |p, _| {
        p.warn(&[b"the -d option is deprecated; please use -depth instead, because the latter is a POSIX-compliant feature."]);
        post_order(p)
    }),
    primary(
        &["-files0-from"],
        "FILE",
        GlobalOption,
        "read the starting points from FILE, each ended by a NUL",
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
            p.options.max_depth = depth(p, name)?;
            truth()
        },
    ),
    primary(
        &["-mindepth"],
        "LEVELS",
        GlobalOption,
        "evaluate nothing at levels less than LEVELS",
        |p, name| {
            p.options.min_depth = depth(p, name)?;
            truth()
        },
    ),
    primary(&["-xdev", "-mount"], "", GlobalOption, "do not descend into other file systems", |p, _| {
        p.options.devices = Devices::One;
        truth()
    }),
    primary(
        &["-ignore_readdir_race"],
        "",
        GlobalOption,
        "say nothing about files that vanish meanwhile",
        |p, _| {
            p.options.vanished = VanishedFiles::Ignore;
            truth()
        },
    ),
    primary(&["-noignore_readdir_race"], "", GlobalOption, "report files that vanish meanwhile", |p, _| {
        p.options.vanished = VanishedFiles::Report;
        truth()
    }),
    primary(
        &["--json"],
        "",
        PositionalOption,
        "print a JSON record for every match in place of its path",
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
        threads,
    ),
    primary(&["--verbose"], "", PositionalOption, "say at the end what was done", |p, _| {
        p.verbosity = Verbosity::Statistics;
        truth()
    }),
    primary(&["-help", "--help"], "", PositionalOption, "print help and exit", |_, _| Err(Refusal::Help)),
    primary(&["-version", "--version"], "", PositionalOption, "print the version and exit", |_, _| {
        Err(Refusal::Version)
    }),
    primary(&["-amin"], "N", Tests, "last accessed N minutes ago", |p, n| {
        age(p, n, TimeField::Access, AgeUnit::Minutes)
    }),
    primary(&["-anewer"], "FILE", Tests, "last accessed after FILE was modified", |p, n| {
        newer(p, n, TimeField::Access, TimeField::Modification)
    }),
    primary(&["-atime"], "N", Tests, "last accessed N days ago", |p, n| {
        age(p, n, TimeField::Access, AgeUnit::Days)
    }),
    primary(&["-cmin"], "N", Tests, "attributes last changed N minutes ago", |p, n| {
        age(p, n, TimeField::Change, AgeUnit::Minutes)
    }),
    primary(&["-cnewer"], "FILE", Tests, "attributes last changed after FILE was modified", |p, n| {
        newer(p, n, TimeField::Change, TimeField::Modification)
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
        age(p, n, TimeField::Change, AgeUnit::Days)
    }),
    primary(&["-empty"], "", Tests, "an empty file or directory", |_, _| test(Test::Empty)),
    primary(
        &["-executable"],
        "",
        Tests,
        "a file that may be executed, or a directory that may be searched",
        |_, _| test(Test::Access(Access::EXEC_OK)),
    ),
    primary(&["-false"], "", Tests, "always false", |_, _| test(Test::False)),
    primary(&["-fstype"], "TYPE", Tests, "on a file system of type TYPE", |p, name| {
        let kind = p.argument(name)?.to_bytes().to_vec();
        test(Test::FsType(kind))
    }),
    primary(&["-gid"], "N", Tests, "group identifier is N", |p, name| test(Test::Gid(number(p, name)?))),
    primary(&["-group"], "NAME", Tests, "belongs to the group NAME", group),
    primary(&["-ilname"], "PATTERN", Tests, "as -lname, regardless of case", |p, n| {
        link_target(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-iname"], "PATTERN", Tests, "as -name, regardless of case", |p, n| {
        base_name(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-inum"], "N", Tests, "inode number is N", |p, name| test(Test::Inode(number(p, name)?))),
    primary(&["-ipath", "-iwholename"], "PATTERN", Tests, "as -path, regardless of case", |p, n| {
        whole_path(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-iregex"], "PATTERN", Tests, "as -regex, regardless of case", |p, n| {
        regex(p, n, CaseSensitivity::Insensitive)
    }),
    primary(&["-links"], "N", Tests, "has N hard links", |p, name| test(Test::Links(number(p, name)?))),
    primary(
        &["-lname"],
        "PATTERN",
        Tests,
        "a symbolic link whose contents match the shell pattern",
        |p, n| link_target(p, n, CaseSensitivity::Sensitive),
    ),
    primary(&["-mmin"], "N", Tests, "last modified N minutes ago", |p, n| {
        age(p, n, TimeField::Modification, AgeUnit::Minutes)
    }),
    primary(&["-mtime"], "N", Tests, "last modified N days ago", |p, n| {
        age(p, n, TimeField::Modification, AgeUnit::Days)
    }),
    primary(&["-name"], "PATTERN", Tests, "last component matches the shell pattern", |p, n| {
        base_name(p, n, CaseSensitivity::Sensitive)
    }),
    primary(&["-newer"], "FILE", Tests, "modified after FILE was", |p, n| {
        newer(p, n, TimeField::Modification, TimeField::Modification)
    }),
    primary(
        &["-newerXY"],
        "REFERENCE",
        Tests,
        "time X (a, B, c or m) is after time Y (or t: a date) of REFERENCE",
        newer_xy,
    ),
    primary(&["-nogroup"], "", Tests, "the group has no name", |_, _| test(Test::NoGroup)),
    primary(&["-nouser"], "", Tests, "the owner has no name", |_, _| test(Test::NoUser)),
    primary(&["-path", "-wholename"], "PATTERN", Tests, "whole path matches the shell pattern", |p, n| {
        whole_path(p, n, CaseSensitivity::Sensitive)
    }),
    primary(
        &["-perm"],
        "[-/]MODE",
        Tests,
        "permission bits are MODE, include all (-) or one (/) of MODE",
        permissions,
    ),
    primary(&["-readable"], "", Tests, "may be read", |_, _| test(Test::Access(Access::READ_OK))),
    primary(&["-regex"], "PATTERN", Tests, "whole path matches the regular expression", |p, n| {
        regex(p, n, CaseSensitivity::Sensitive)
    }),
    primary(&["-samefile"], "FILE", Tests, "is the same file as FILE", same_file),
    primary(
        &["-size"],
        "N[bcwkMG]",
        Tests,
        "takes N units, rounded up; blocks of 512 bytes unless a letter follows",
        size,
    ),
    primary(&["-true"], "", Tests, "always true", |_, _| truth()),
    primary(&["-type"], "[bcdpfls],...", Tests, "is of one of the types", |p, name| {
        Ok(Expr::Test(Test::Kind(kinds(p, name)?)))
    }),
    primary(&["-uid"], "N", Tests, "user identifier is N", |p, name| test(Test::Uid(number(p, name)?))),
    primary(&["-used"], "N", Tests, "last accessed N days after its attributes changed", |p, name| {
        let argument = p.argument(name)?;
        arguments::span_of_days(argument.to_bytes())
            .map(|window| Expr::Test(Test::Used(window)))
            .ok_or_else(|| Refusal::mistake(&[b"Invalid argument ", argument.to_bytes(), b" to -used"]))
    }),
    primary(&["-user"], "NAME", Tests, "belongs to the user NAME", user),
    primary(&["-writable"], "", Tests, "may be written", |_, _| test(Test::Access(Access::WRITE_OK))),
    primary(
        &["-xtype"],
        "[bcdpfls],...",
        Tests,
        "as -type, for the other side of a symbolic link",
        |p, name| Ok(Expr::Test(Test::OtherKind(kinds(p, name)?))),
    ),
    primary(&["-delete"], "", Action, "remove the file; implies -depth", actions::delete),
    primary(
        &["-exec"],
        "COMMAND ;",
        Action,
        "run COMMAND, or with {} + at its end on many files at a time",
        actions::exec,
    ),
    primary(
        &["-execdir"],
        "COMMAND ;",
        Action,
        "as -exec, in the directory that holds the file",
        actions::execdir,
    ),
    primary(&["-fls"], "FILE", Action, "as -ls, to FILE", actions::fls),
    primary(&["-fprint"], "FILE", Action, "as -print, to FILE", actions::fprint),
    primary(&["-fprint0"], "FILE", Action, "as -print0, to FILE", actions::fprint0),
    primary(&["-fprintf"], "FILE FORMAT", Action, "as -printf, to FILE", actions::fprintf),
    primary(&["-ls"], "", Action, "print a line as ls -dils does", actions::ls),
    primary(&["-ok"], "COMMAND ;", Action, "as -exec, after asking", actions::ok),
    primary(&["-okdir"], "COMMAND ;", Action, "as -execdir, after asking", actions::okdir),
    primary(&["-print"], "", Action, "print the path and a newline", actions::print),
    primary(&["-print0"], "", Action, "print the path and a NUL", actions::print0),
    primary(&["-printf"], "FORMAT", Action, "print what FORMAT says", actions::printf),
    primary(&["-prune"], "", Action, "do not descend into the directory", actions::prune),
    primary(&["-quit"], "", Action, "end at once", actions::quit),
];

/// Looks a word up; `-newerXY` stands for all its forms.
pub(super) fn find(word: &[u8]) -> Option<&'static Primary> {
    let word: &[u8] = match word {
        [b'-', b'n', b'e', b'w', b'e', b'r', _, _] => b"-newerXY",
        [b'-', b'-', b't', b'h', b'r', b'e', b'a', b'd', b's', b'=', ..] => b"--threads",
        word => word,
    };
    PRIMARIES.iter().find(|primary| primary.names.iter().any(|name| name.as_bytes() == word))
}

/// Whether a word is one of the options that may also stand before the operands.
pub(super) fn is_leading(word: &[u8]) -> bool {
    word.starts_with(b"--") && find(word).is_some()
}

pub(super) fn test(test: Test) -> Parsed {
    Ok(Expr::Test(test))
}

pub(super) fn truth() -> Parsed {
    test(Test::True)
}

pub(super) fn post_order(p: &mut Parser<'_>) -> Parsed {
    p.depth_asked = true;
    p.options.visits = VisitOrder::PostOrder;
    truth()
}

/// ``invalid argument `x' to `-name'``
pub(super) fn invalid(argument: &CStr, name: &CStr) -> Refusal {
    Refusal::mistake(&[b"invalid argument `", argument.to_bytes(), b"' to `", name.to_bytes(), b"'"])
}

fn number(p: &mut Parser<'_>, name: &CStr) -> Result<Number, Refusal> {
    let argument = p.next().ok_or_else(|| invalid(name, name))?;
    arguments::number(argument.to_bytes()).ok_or_else(|| invalid(argument, name))
}

fn depth(p: &mut Parser<'_>, name: &CStr) -> Result<u32, Refusal> {
    let argument = p.argument(name)?;
    arguments::integer(argument.to_bytes()).unwrap_or_else(|| {
        let quoted = p.quote(argument);
        Err(Refusal::mistake(&[
            b"Expected a positive decimal integer argument to ",
            name.to_bytes(),
            b", but got ",
            &quoted,
        ]))
    })
}

fn threads(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let argument = match name.to_bytes().strip_prefix(b"--threads=") {
        Some(value) => value,
        None => p.argument(name)?.to_bytes(),
    };
    p.threads = match arguments::decimal(argument).and_then(|n| usize::try_from(n).ok()) {
        Some(0) => Threads::default(),
        Some(n) => Threads::Fixed(n),
        None => return Err(Refusal::mistake(&[b"invalid number of threads: ", &p.env.quote(argument)])),
    };
    truth()
}

fn age(p: &mut Parser<'_>, name: &CStr, which: TimeField, unit: AgeUnit) -> Parsed {
    let argument = p.argument(name)?;
    let window = arguments::age(argument.to_bytes(), unit, p.age_origin);
    window.map(|window| Expr::Test(Test::Time { which, window })).ok_or_else(|| invalid(argument, name))
}

fn newer(p: &mut Parser<'_>, name: &CStr, which: TimeField, of_reference: TimeField) -> Parsed {
    let reference = p.argument(name)?;
    let metadata = p.argument_metadata(reference)?;
    later_than(which, of_reference.of(&metadata))
}

fn later_than(which: TimeField, moment: Timestamp) -> Parsed {
    test(Test::Time { which, window: Window::later_than(nanoseconds(moment)) })
}

fn newer_xy(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let refused = || Refusal::mistake(&[b"invalid predicate `", name.to_bytes(), b"'"]);
    let field = |letter| match letter {
        b'a' => Some(TimeField::Access),
        b'B' => Some(TimeField::Birth),
        b'c' => Some(TimeField::Change),
        b'm' => Some(TimeField::Modification),
        _ => None,
    };
    let [x, y] = name.to_bytes()["-newer".len()..] else { return Err(refused()) };
    let which = field(x).ok_or_else(refused)?;
    if y != b't' && field(y).is_none() {
        return Err(refused());
    }
    let Some(reference) = p.next() else {
        return Err(Refusal::mistake(&[b"The ", &p.quote(name), b" test needs an argument"]));
    };
    match field(y) {
        Some(y) => {
            let metadata = p.argument_metadata(reference)?;
            later_than(which, y.of(&metadata))
        }
        None => match p.env.parse_date(reference) {
            Some(moment) => later_than(which, moment),
            None => Err(Refusal::mistake(&[
                b"I cannot figure out how to interpret ",
                &p.quote(reference),
                b" as a date or time",
            ])),
        },
    }
}

fn group(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let group = p.argument(name)?;
    if group.is_empty() {
        return Err(Refusal::mistake(&[b"argument to -group is empty, but should be a group name"]));
    }
    let id = p.env.group_id(group).map(Ok).or_else(|| arguments::integer(group.to_bytes())).transpose()?;
    match id.map(u64::from) {
        Some(value) => test(Test::Gid(Number { comparison: Comparison::Equal, value })),
        None => Err(Refusal::mistake(&[&p.quote(group), b" is not the name of an existing group"])),
    }
}

fn user(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let user = p.argument(name)?;
    if user.is_empty() {
        return Err(Refusal::mistake(&[b"The argument to -user should not be empty"]));
    }
    let id = p.env.user_id(user).map(Ok).or_else(|| arguments::integer(user.to_bytes())).transpose()?;
    match id.map(u64::from) {
        Some(value) => test(Test::Uid(Number { comparison: Comparison::Equal, value })),
        None => Err(Refusal::mistake(&[&p.quote(user), b" is not the name of a known user"])),
    }
}

fn base_name(p: &mut Parser<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern = p.argument(name)?;
    if pattern.to_bytes().contains(&b'/') {
        let instead: &CStr = if case == CaseSensitivity::Sensitive { c"-wholename" } else { c"-iwholename" };
        let (this, slash, instead) = (p.quote(name), p.quote(c"/"), p.quote(instead));
        p.warn(&[
            &this,
            b" matches against basenames only, but the given pattern contains a directory separator (",
            &slash,
            b"), thus the expression will evaluate to false all the time.  Did you mean ",
            &instead,
            b"?",
        ]);
    }
    test(Test::Name(Glob::new(pattern.to_owned(), case)))
}

fn whole_path(p: &mut Parser<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern = p.argument(name)?;
    let bytes = pattern.to_bytes();
    if bytes.len() > 1 && bytes.ends_with(b"/") {
        let message = [name.to_bytes(), b" ", bytes, b" will not match anything because it ends with /."];
        p.env.complain(Severity::Warning, &message.concat());
    }
    test(Test::Path(Glob::new(pattern.to_owned(), case)))
}

fn link_target(p: &mut Parser<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern: CString = p.argument(name)?.to_owned();
    test(Test::LinkTarget(Glob::new(pattern, case)))
}

/// The dialects of `-regextype`.
const DIALECTS: [(&str, RegexSyntax); 13] = [
    ("findutils-default", RegexSyntax::FINDUTILS_DEFAULT),
    ("ed", RegexSyntax::POSIX_BASIC),
    ("emacs", RegexSyntax::EMACS),
    ("gnu-awk", RegexSyntax::GNU_AWK),
    ("grep", RegexSyntax::GREP),
    ("posix-awk", RegexSyntax::POSIX_AWK),
    ("awk", RegexSyntax::AWK),
    ("posix-basic", RegexSyntax::POSIX_BASIC),
    ("posix-egrep", RegexSyntax::EGREP),
    ("egrep", RegexSyntax::EGREP),
    ("posix-extended", RegexSyntax::POSIX_EXTENDED),
    ("posix-minimal-basic", RegexSyntax::POSIX_MINIMAL_BASIC),
    ("sed", RegexSyntax::POSIX_BASIC),
];

fn regextype(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let wanted = p.argument(name)?;
    if let Some((_, syntax)) = DIALECTS.iter().find(|(name, _)| name.as_bytes() == wanted.to_bytes()) {
        p.regex_syntax = *syntax;
        return truth();
    }
    let names: Vec<_> = DIALECTS.iter().map(|(name, _)| p.env.quote(name.as_bytes())).collect();
    Err(Refusal::mistake(&[
        b"Unknown regular expression type ",
        &p.quote(wanted),
        b"; valid types are ",
        &names.join(&b", "[..]),
        b".",
    ]))
}

fn regex(p: &mut Parser<'_>, name: &CStr, case: CaseSensitivity) -> Parsed {
    let pattern = p.argument(name)?;
    match p.env.regex(pattern, p.regex_syntax, case) {
        Ok(Some(regex)) => test(Test::Regex(regex)),
        Ok(None) => test(Test::False),
        Err(reason) => Err(Refusal::mistake(&[
            b"failed to compile regular expression '",
            pattern.to_bytes(),
            b"': ",
            &reason,
        ])),
    }
}

fn permissions(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let argument = p.argument(name)?;
    let Some(mode) = ModeTest::parse(argument.to_bytes()) else {
        return Err(Refusal::mistake(&[b"invalid mode ", &p.quote(argument)]));
    };
    if mode.relation == ModeRelation::Any && mode.file == 0 && mode.directory == 0 {
        let message = [
            b"you have specified a mode pattern ",
            argument.to_bytes(),
            b" (which is equivalent to /000). The meaning of -perm /000 has now been changed to be consistent with -perm -000; that is, while it used to match no files, it now matches all files.",
        ];
        p.env.complain(Severity::Warning, &message.concat());
    }
    test(Test::Mode(mode))
}

fn same_file(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let file = p.argument(name)?;
    let metadata = p.argument_metadata(file)?;
    test(Test::SameFile { dev: metadata.dev, ino: metadata.ino })
}

fn size(p: &mut Parser<'_>, name: &CStr) -> Parsed {
    let argument = p.argument(name)?;
    match arguments::size(argument.to_bytes()) {
        Ok((number, unit_bytes)) => test(Test::Size { number, unit_bytes }),
        Err(SizeError::Empty) => Err(Refusal::mistake(&[b"invalid null argument to -size"])),
        Err(SizeError::Unit) => Err(Refusal::mistake(&[
            b"invalid -size type `",
            &argument.to_bytes()[argument.count_bytes() - 1..],
            b"'",
        ])),
        Err(SizeError::Digits) => {
            Err(Refusal::mistake(&[b"Invalid argument `", argument.to_bytes(), b"' to -size"]))
        }
    }
}

fn kinds(p: &mut Parser<'_>, name: &CStr) -> Result<super::expression::KindSet, Refusal> {
    let argument = p.argument(name)?;
    let name = name.to_bytes();
    arguments::kinds(argument.to_bytes()).map_err(|error| match error {
        KindsError::Empty => {
            Refusal::mistake(&[b"Arguments to ", name, b" should contain at least one letter"])
        }
        KindsError::Unknown(letter) => Refusal::mistake(&[b"Unknown argument to ", name, b": ", &[letter]]),
        KindsError::Door => Refusal::mistake(&[
            name,
            b" D is not supported because Solaris doors are not supported on the platform find was compiled on.",
        ]),
        KindsError::Separator => {
            Refusal::mistake(&[b"Must separate multiple arguments to ", name, b" using: ','"])
        }
        KindsError::Trailing => Refusal::mistake(&[
            b"Last file type in list argument to ",
            name,
            b" is missing, i.e., list is ending on: ','",
        ]),
        KindsError::Duplicate(letter) => Refusal::mistake(&[
            b"Duplicate file type '",
            &[letter],
            b"' in the argument list to ",
            name,
            b".",
        ]),
    })
}

/// The letter of a type, as `%y` prints it.
pub(super) fn kind_letter(kind: FileKind) -> u8 {
    match kind {
        FileKind::Unknown => b'U',
        FileKind::Fifo => b'p',
        FileKind::CharDevice => b'c',
        FileKind::Directory => b'd',
        FileKind::BlockDevice => b'b',
        FileKind::File => b'f',
        FileKind::Symlink => b'l',
        FileKind::Socket => b's',
    }
}
