//! Random rules, patterns and lists of files, most of which match something of a tree.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use millstream_rsync_rules::Separator;
use millstream_rsync_rules::filter::Effect;

use super::random::Random;
use super::trees::{NAMES, Tree};

const MOST_RULES: usize = 5;

/// An option of rsync.
pub enum Argument {
    Rule(Vec<u8>),
    Pattern(Effect, Vec<u8>),
    /// The name of a file of patterns.
    Patterns(Effect, String),
}

/// Options of a run, and the files that they name.
pub struct Case {
    pub arguments: Vec<Argument>,
    pub separator: Separator,
    pub deletes_excluded: bool,
    files: Vec<(String, Vec<u8>)>,
}

impl Case {
    pub fn random(random: &mut Random, tree: &Tree) -> Self {
        let mut case = Case {
            arguments: Vec::new(),
            separator: if random.below(5) == 0 { Separator::Nul } else { Separator::Line },
            deletes_excluded: random.below(5) == 0,
            files: Vec::new(),
        };
        for _ in 0..=random.below(MOST_RULES) {
            let effect = random.pick(&[Effect::Exclude, Effect::Exclude, Effect::Include]);
            let argument = match random.below(10) {
                0 => Argument::Pattern(effect, entry(random, tree)),
                1 => {
                    let patterns = (0..=random.below(4)).map(|_| entry(random, tree)).collect();
                    Argument::Patterns(effect, case.file(random, patterns))
                }
                _ => Argument::Rule(case.rule(random, tree, 0)),
            };
            case.arguments.push(argument);
        }
        case
    }

    pub fn write_files(&self, tree: &Tree) {
        for (name, content) in &self.files {
            fs::write(tree.directory().join(name), content).expect("a file of rules");
        }
    }

    pub fn options(&self) -> Vec<OsString> {
        let from0 = (self.separator == Separator::Nul).then(|| "--from0".into());
        let excluded = self.deletes_excluded.then(|| "--delete-excluded".into());
        from0.into_iter().chain(excluded).chain(self.arguments.iter().map(Argument::option)).collect()
    }

    fn rule(&mut self, random: &mut Random, tree: &Tree, depth: usize) -> Vec<u8> {
        if random.below(12) == 0 && depth < 3 {
            return self.merge(random, tree, depth);
        }
        if random.below(30) == 0 {
            return random.pick(&[&b"!"[..], b"clear", b"", b"! ", b"-", b"- ", b"foo", b"-foo"]).to_vec();
        }
        let (short, long) = random.pick(&[
            ("-", "exclude"),
            ("-", "exclude"),
            ("-", "exclude"),
            ("+", "include"),
            ("+", "include"),
            ("H", "hide"),
            ("S", "show"),
            ("P", "protect"),
            ("R", "risk"),
        ]);
        let usual = if random.below(40) == 0 { "srpw,-" } else { "/!p" };
        let sides = if "+-".contains(short) { "sr" } else { "" };
        let letters = modifiers(random, usual, 6) + &modifiers(random, sides, 6);
        [head(random, short, long, &letters), pattern(random, tree)].concat()
    }

    /// A rule that merges a file, which is written.
    fn merge(&mut self, random: &mut Random, tree: &Tree, depth: usize) -> Vec<u8> {
        let mut letters = modifiers(random, "/spen", 5);
        let is_of_patterns = random.below(3) == 0;
        if is_of_patterns {
            letters.push(random.pick(&['-', '+']));
        }
        let splits_words = random.below(4) == 0;
        if splits_words {
            letters.push('w');
        }
        let mut entries: Vec<Vec<u8>> = Vec::new();
        for _ in 0..=random.below(3) {
            entries.push(if is_of_patterns {
                entry(random, tree)
            } else {
                self.rule(random, tree, depth + 1)
            });
        }
        if splits_words {
            // rsync reads what the manual shows as one rule, "- a", as two.
            entries.iter_mut().flatten().filter(|byte| **byte == b' ').for_each(|byte| *byte = b'_');
        }
        let name = self.file(random, entries);
        [head(random, ".", "merge", &letters), name.into_bytes()].concat()
    }

    fn file(&mut self, random: &mut Random, entries: Vec<Vec<u8>>) -> String {
        let name = format!("rules{}", self.files.len());
        let end: &[u8] = match self.separator {
            Separator::Nul => b"\0",
            Separator::Line => random.pick(&[&b"\n"[..], b"\r\n", b"\r", b"\n\n", b"\n#comment\n"]),
        };
        self.files.push((name.clone(), entries.join(end)));
        name
    }
}

impl Argument {
    fn option(&self) -> OsString {
        let (option, value) = match self {
            Argument::Rule(rule) => ("--filter=", &rule[..]),
            Argument::Pattern(Effect::Exclude, pattern) => ("--exclude=", &pattern[..]),
            Argument::Pattern(Effect::Include, pattern) => ("--include=", &pattern[..]),
            Argument::Patterns(Effect::Exclude, file) => ("--exclude-from=", file.as_bytes()),
            Argument::Patterns(Effect::Include, file) => ("--include-from=", file.as_bytes()),
        };
        OsString::from_vec([option.as_bytes(), value].concat())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for option in self.options() {
            write!(f, "'{}' ", option.as_bytes().escape_ascii())?;
        }
        self.files.iter().try_for_each(|(name, content)| write!(f, "{name}='{}' ", content.escape_ascii()))
    }
}

/// The beginning of a rule, up to its pattern or file.
fn head(random: &mut Random, short: &str, long: &str, letters: &str) -> Vec<u8> {
    let kind = match (random.below(4), letters) {
        (0, "") => long.to_owned(),
        (0, _) => format!("{long},{letters}"),
        (1, _) => format!("{short},{letters}"),
        _ => format!("{short}{letters}"),
    };
    (kind + random.pick(&[" ", " ", "_"])).into_bytes()
}

/// Each of the letters, with a chance of one in `odds`.
fn modifiers(random: &mut Random, letters: &str, odds: usize) -> String {
    letters.chars().filter(|_| random.below(odds) == 0).collect()
}

/// A pattern as of an option or in a file of patterns.
fn entry(random: &mut Random, tree: &Tree) -> Vec<u8> {
    let before = random.pick(&["", "", "", "", "", "- ", "+ ", "-", "#", ";", "!"]);
    if before == "!" { b"!".to_vec() } else { [before.as_bytes(), &pattern(random, tree)].concat() }
}

fn pattern(random: &mut Random, tree: &Tree) -> Vec<u8> {
    let nodes: Vec<_> = tree.all().collect();
    let path = if nodes.is_empty() || random.below(8) == 0 {
        random.pick(&NAMES).to_vec()
    } else {
        nodes[random.below(nodes.len())].path.clone()
    };
    let components: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let start = if random.below(3) == 0 { 0 } else { random.below(components.len()) };
    let end = if random.below(2) == 0 {
        components.len()
    } else {
        start + 1 + random.below(components.len() - start)
    };
    let parts: Vec<Vec<u8>> = components[start..end].iter().map(|name| wild(random, name)).collect();
    let before = random.pick(&["", "", "", "", "/", "/", "**/", "/**/", "*/", "**", "*", "./", "s/", "/s/"]);
    let after =
        random.pick(&["", "", "", "", "/", "/", "/**", "/***", "/*", "*", "**", "***", "//", "\\", "/***/"]);
    [before.as_bytes(), &parts.join(&b'/'), after.as_bytes()].concat()
}

/// A name with some of its bytes as wildcards.
fn wild(random: &mut Random, name: &[u8]) -> Vec<u8> {
    match random.below(12) {
        0 => return b"*".to_vec(),
        1 => return b"**".to_vec(),
        2..8 => return name.to_vec(),
        _ => {}
    }
    let mut pattern = Vec::new();
    for &byte in name {
        match random.below(12) {
            0 => pattern.push(b'?'),
            1 => pattern.push(b'*'),
            2 => pattern.extend_from_slice(b"**"),
            3 => pattern.extend([b'[', byte, b']']),
            4 => pattern.extend([b'[', byte.saturating_sub(2), b'-', byte, b']']),
            5 => pattern.extend_from_slice(random.pick(&[
                &b"[[:alpha:]]"[..],
                b"[![:digit:]]",
                b"[^/]",
                b"[a/]",
                b"[!z]",
                b"[]a-]",
                b"[\\a-c]",
                b"[[:alpha:]",
                b"[z-a]",
                b"[[:none:]a]",
                b"[a-[:digit:]]",
                b"[[:punct:]A-Z]",
                b"[",
                b"[a-b-f]",
            ])),
            6 => pattern.extend([b'\\', byte]),
            _ => pattern.push(byte),
        }
    }
    pattern
}

/// Paths for `--files-from`: of entries, of none, and written in more than one way.
pub fn list(random: &mut Random, tree: &Tree, separator: Separator) -> Vec<u8> {
    let end = if separator == Separator::Nul { b'\0' } else { b'\n' };
    let nodes: Vec<_> = tree.all().collect();
    let mut list = Vec::new();
    for _ in 0..random.below(6) {
        let mut path = if random.below(5) == 0 || nodes.is_empty() {
            random
                .pick(&[
                    &b"none"[..],
                    b"a/none",
                    b"a",
                    b"foo/bar",
                    b"",
                    b"#a",
                    b"../foo",
                    b"a/..",
                    b"a/none/b",
                ])
                .to_vec()
        } else {
            nodes[random.below(nodes.len())].path.clone()
        };
        if random.below(4) == 0 && path.contains(&b'/') {
            let doubled = path.iter().flat_map(|&byte| [byte].repeat(if byte == b'/' { 2 } else { 1 }));
            path = doubled.collect();
        }
        list.extend_from_slice(random.pick(&["", "", "", "/", "./", "././/", "../", "none/../"]).as_bytes());
        list.append(&mut path);
        list.extend_from_slice(random.pick(&["", "", "", "/", "/."]).as_bytes());
        list.push(end);
    }
    list
}
