//! One pattern of a filter rule.
//!
//! A pattern without wildcards is compared. One with wildcards is a sequence of tokens: the set of tokens
//! that the text can have reached is carried from byte to byte, so no pattern takes longer than its length
//! times that of the text. What follows the last wildcard is compared first.
//!
//! Where a pattern is compared depends on its slashes. `/a/b` is the whole path; `a/b` is its last two
//! components, `*b` its last one. A pattern with `**` begins at any component. One that begins with `**` is
//! compared with the path and a slash before it: `**/a` matches `a`, which `/**/a` does not.
//!
//! Source: the section *PATTERN MATCHING RULES* of the manual rsync(1).

use super::literals::Anchor;

/// A pattern of a filter rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    directories_only: bool,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Literal(Anchor, Vec<u8>),
    Glob(Glob),
}

/// A pattern with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glob {
    scope: Scope,
    /// Whether a directory's path is compared with a slash at its end: the pattern ends with `***`.
    with_contents: bool,
    tokens: Vec<Token>,
    /// The bytes after the last token.
    suffix: Vec<u8>,
}

/// The part of a path that a pattern with wildcards is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The whole path.
    Path,
    /// The whole path, with a slash before it.
    SlashPath,
    /// The last component, and as many before it as there are slashes.
    Tail { slashes: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// `?`: any byte but a slash.
    One,
    /// `*`: any bytes but slashes.
    Within,
    /// `**`: any bytes.
    Across,
    /// Nothing, or any bytes up to a slash: precedes a pattern that may begin at any component.
    Directories,
    /// `[…]`: the bytes that match.
    Class(Box<[bool; 256]>),
}

/// The path of an entry, between slashes.
pub(super) struct Text {
    bytes: Vec<u8>,
    is_directory: bool,
}

impl Text {
    pub(super) fn new(parts: &[&[u8]], is_directory: bool) -> Self {
        let mut bytes = vec![b'/'];
        for part in parts.iter().filter(|part| !part.is_empty()) {
            bytes.extend_from_slice(part);
            bytes.push(b'/');
        }
        Text { bytes, is_directory }
    }

    fn path(&self) -> &[u8] {
        &self.bytes[1..self.bytes.len().max(2) - 1]
    }

    fn of(&self, scope: Scope, with_contents: bool) -> Option<&[u8]> {
        let end = if with_contents && self.is_directory { self.bytes.len() } else { self.bytes.len() - 1 };
        let start = match scope {
            Scope::Path => 1,
            Scope::SlashPath => 0,
            Scope::Tail { slashes } => 1 + self.slashes_from_end().nth(slashes)?,
        };
        self.bytes.get(start..end)
    }

    /// Where there are slashes before the last component and the others, from the end.
    fn slashes_from_end(&self) -> impl Iterator<Item = usize> {
        (0..self.bytes.len() - 1).rev().filter(|&at| self.bytes[at] == b'/')
    }
}

impl Pattern {
    /// Parses a pattern as it stands in a rule.
    pub(super) fn parse(text: &[u8]) -> Self {
        let (text, directories_only) = match text {
            [rest @ .., b'/'] if !rest.is_empty() => (rest, true),
            _ => (text, false),
        };
        let (anchored, text) = text.strip_prefix(b"/").map_or((false, text), |rest| (true, rest));
        let body = if text.iter().any(|byte| b"*?[".contains(byte)) {
            Body::Glob(Glob::parse(text, anchored))
        } else {
            Body::Literal(if anchored { Anchor::Path } else { Anchor::Tail }, text.to_vec())
        };
        Pattern { directories_only, body }
    }

    /// The text of a pattern without wildcards.
    pub(super) fn literal(&self) -> Option<(Anchor, &[u8])> {
        match &self.body {
            Body::Literal(place, text) => Some((*place, text)),
            Body::Glob(_) => None,
        }
    }

    /// Whether it can match a directory, or anything else.
    pub(super) fn admits(&self, is_directory: bool) -> bool {
        is_directory || !self.directories_only
    }

    pub(super) fn matches(&self, text: &Text) -> bool {
        self.admits(text.is_directory)
            && match &self.body {
                Body::Literal(Anchor::Path, literal) => literal == text.path(),
                Body::Literal(Anchor::Tail, literal) => text.bytes[..text.bytes.len() - 1]
                    .strip_suffix(&literal[..])
                    .is_some_and(|rest| rest.ends_with(b"/")),
                Body::Glob(glob) => glob.matches(text),
            }
    }
}

impl Glob {
    /// Parses a pattern without its first slash if it is anchored, and without its last.
    fn parse(text: &[u8], anchored: bool) -> Self {
        let crosses = text.windows(2).any(|pair| pair == b"**");
        let (scope, start) = match text {
            _ if anchored => (Scope::Path, None),
            [b'*', b'*', ..] => (Scope::SlashPath, None),
            _ if crosses => (Scope::Path, Some(Token::Directories)),
            _ => (Scope::Tail { slashes: text.iter().filter(|&&byte| byte == b'/').count() }, None),
        };
        let mut tokens: Vec<Token> = start.into_iter().chain(tokens(text)).collect();
        let literals = tokens.iter().rev().map_while(|token| match token {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        });
        let mut suffix: Vec<u8> = literals.collect();
        suffix.reverse();
        tokens.truncate(tokens.len() - suffix.len());
        Glob { scope, with_contents: text.ends_with(b"***"), tokens, suffix }
    }

    fn matches(&self, text: &Text) -> bool {
        let rest =
            text.of(self.scope, self.with_contents).and_then(|text| text.strip_suffix(&self.suffix[..]));
        rest.is_some_and(|text| match self.tokens[..] {
            [] => text.is_empty(),
            [Token::Within] => !text.contains(&b'/'),
            [Token::Across] => true,
            _ => matches(&self.tokens, text),
        })
    }
}

/// Whether the tokens match all of the text.
fn matches(tokens: &[Token], text: &[u8]) -> bool {
    // `reached[i]`: the first `i` tokens match the bytes read so far.
    let (mut reached, mut next) = (vec![false; tokens.len() + 1], vec![false; tokens.len() + 1]);
    reached[0] = true;
    reached[1] = matches!(tokens.first(), Some(Token::Directories));
    pass_stars(tokens, &mut reached);
    for &byte in text {
        next.fill(false);
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| reached[*at]) {
            let (stays, passes) = match token {
                Token::Byte(wanted) => (false, *wanted == byte),
                Token::One => (false, byte != b'/'),
                Token::Class(members) => (false, members[usize::from(byte)]),
                Token::Within => (byte != b'/', false),
                Token::Across => (true, false),
                Token::Directories => (true, byte == b'/'),
            };
            next[at] |= stays;
            next[at + 1] |= passes;
        }
        pass_stars(tokens, &mut next);
        std::mem::swap(&mut reached, &mut next);
        if !reached.contains(&true) {
            return false;
        }
    }
    reached[tokens.len()]
}

/// Stars match nothing, too.
fn pass_stars(tokens: &[Token], reached: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token, Token::Within | Token::Across) {
            reached[at + 1] |= reached[at];
        }
    }
}

fn tokens(mut text: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    while let Some((&first, rest)) = text.split_first() {
        text = rest;
        let token = match first {
            b'?' => Some(Token::One),
            b'*' => {
                let more = text.iter().take_while(|&&byte| byte == b'*').count();
                text = &text[more..];
                Some(if more == 0 { Token::Within } else { Token::Across })
            }
            b'[' => class(&mut text).map(Token::Class),
            b'\\' => take(&mut text).map(Token::Byte),
            byte => Some(Token::Byte(byte)),
        };
        // A class without an end matches nothing, nor does a backslash at the end.
        let Some(token) = token else { return vec![Token::Class(Box::new([false; 256]))] };
        tokens.push(token);
    }
    tokens
}

/// The bytes that a class matches; `text` begins after the bracket.
fn class(text: &mut &[u8]) -> Option<Box<[bool; 256]>> {
    let mut members = Box::new([false; 256]);
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    *text = &text[usize::from(is_negated)..];
    let mut is_first = true;
    loop {
        let first = take(text)?;
        if first == b']' && !is_first {
            break;
        }
        is_first = false;
        if first == b'['
            && let Some((name, rest)) = class_name(text)
        {
            let is_member = named_class(name)?;
            (0..=255).filter(is_member).for_each(|byte| members[usize::from(byte)] = true);
            *text = rest;
            continue;
        }
        let first = unescaped(first, text)?;
        members[usize::from(first)] = true;
        if let [b'-', last, rest @ ..] = *text
            && *last != b']'
        {
            *text = rest;
            let last = unescaped(*last, text)?;
            (first..=last).for_each(|byte| members[usize::from(byte)] = true);
        }
    }
    if is_negated {
        members.iter_mut().for_each(|member| *member = !*member);
    }
    members[usize::from(b'/')] = false;
    Some(members)
}

fn take(text: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = text.split_first()?;
    *text = rest;
    Some(first)
}

/// A byte of a class, or the one after it if it is a backslash.
fn unescaped(byte: u8, text: &mut &[u8]) -> Option<u8> {
    if byte == b'\\' { take(text) } else { Some(byte) }
}

/// The name in `:name:]` at the beginning, and the text after it. A bracket that no such name follows is
/// itself.
fn class_name(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b":")?;
    let end = text.iter().position(|&byte| byte == b']')?;
    Some((text[..end].strip_suffix(b":")?, &text[end + 1..]))
}

/// The test of a class that has a name.
fn named_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| b" \t".contains(byte),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| (b' '..=b'~').contains(byte),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| b" \t\n\x0b\x0c\r".contains(byte),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &[u8], path: &[u8], is_directory: bool) -> bool {
        Pattern::parse(pattern).matches(&Text::new(&[path], is_directory))
    }

    #[test]
    fn patterns_match_as_the_manual_says() {
        for (pattern, path, is_directory, expected) in [
            ("foo", "foo", false, true),
            ("foo", "a/foo", false, true),
            ("foo", "foo/a", false, false),
            ("foo/", "foo", false, false),
            ("foo/", "a/foo", true, true),
            ("/foo", "foo", false, true),
            ("/foo", "a/foo", false, false),
            ("foo/bar", "a/foo/bar", false, true),
            ("foo/bar", "xfoo/bar", false, false),
            ("*.o", "a/b.o", false, true),
            ("*.o", "a.o/b", false, false),
            ("foo/*/bar", "foo/x/bar", false, true),
            ("foo/*/bar", "foo/x/y/bar", false, false),
            ("/foo/**/bar", "foo/bar", false, false),
            ("/foo/**/bar", "foo/x/y/bar", false, true),
            ("/foo/**", "foo", true, false),
            ("foo/**", "a/foo/x/y", false, true),
            ("foo/**", "afoo/x/y", false, false),
            ("foo/***", "a/foo", true, true),
            ("foo/***", "a/foo", false, false),
            ("foo/***", "foo/x/y", false, true),
            ("/***", "foo", false, true),
            ("***", "foo", false, true),
            ("foo***", "foobar/x", false, true),
            ("foo/****", "foo", true, true),
            ("foo\\bar", "foo\\bar", false, true),
            ("foo\\bar*", "foobarx", false, true),
            ("foo\\\\bar*", "foo\\barx", false, true),
            ("foo\\*", "foo*", false, true),
            ("*\\", "a\\", false, false),
            ("?", "\u{e9}", false, false),
            ("??", "\u{e9}", false, true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), path.as_bytes(), is_directory),
                expected,
                "{pattern} {path}"
            );
        }
    }

    #[test]
    fn patterns_with_slashes_match_as_rsync_does() {
        for (pattern, path, expected) in [
            ("**/foo", "foo", true),
            ("**/foo", "a/b/foo", true),
            ("**foo", "a/xfoo", true),
            ("/**/foo", "foo", false),
            ("**?foo", "foo", false),
            ("*/**/foo", "a/foo", false),
            ("*/**/foo", "x/a/b/foo", true),
            ("a**foo", "x/a/b/foo", true),
            ("/", "foo", false),
            ("//foo", "foo", false),
            ("./foo", "foo", false),
            ("a//foo", "a/foo", false),
            ("a[/]foo", "a/foo", false),
            ("a?foo", "a/foo", false),
            ("a[!x]foo", "a/foo", false),
            ("a\\/foo*", "a/foo", true),
            ("[b/]", "a/b", false),
            ("/[b/]", "b", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), path.as_bytes(), false), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn classes_match_as_in_rsync() {
        for (pattern, members) in [
            ("[a-c]", "abc"),
            ("[c-a]", "c"),
            ("[!\x01-`c-\u{7f}]", "ab"),
            ("[]]", "]"),
            ("[]-a]", "]^_`a"),
            ("[-a]", "-a"),
            ("[a-]", "-a"),
            ("[\\-a]", "-a"),
            ("[a-\\d]", "abcd"),
            ("[\\]]", "]"),
            ("[a-c--.]", "-.abc"),
            ("[[:digit:]-x]", "-0123456789x"),
            ("[[:digit]", ":[dgit"),
            ("[[:foo:]]", ""),
            ("[[:digit:]", ""),
            ("[]", ""),
            ("[a", ""),
            ("[a-", ""),
            ("[\\", ""),
            ("a[", ""),
        ] {
            let found = (1..128u8).filter(|&byte| matches(pattern.as_bytes(), &[byte], false));
            let mut members = members.as_bytes().to_vec();
            members.sort_unstable();
            assert_eq!(found.collect::<Vec<u8>>(), members, "{pattern}");
        }
    }

    #[test]
    fn names_need_not_be_text() {
        assert!(matches(b"a?*", b"a\n\xff", false));
        assert!(matches(b"[\xf0-\xff]", b"\xfe", false));
        assert!(matches(b"\xff\n", b"d/\xff\n", false));
    }

    #[test]
    fn no_pattern_takes_long() {
        let name = b"a".repeat(1_000);
        assert!(!matches(&[&b"*a".repeat(1_000)[..], b"b*"].concat(), &name, false));
        assert!(!matches(&[&b"**/a".repeat(200)[..], b"b*"].concat(), &b"a/".repeat(1_000)[..1_999], false));
    }
}
