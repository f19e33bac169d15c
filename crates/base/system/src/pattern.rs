//! The C library's pattern matching: shell patterns and dialects of regular expressions.
//!
//! The C library's matchers are used because users of the original tools know their behaviour, in every locale and in
//! the corners of every dialect.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// Whether upper and lower case differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseSensitivity {
    /// They do.
    Sensitive,
    /// They do not.
    Insensitive,
}

/// Whether the whole of `text` matches the shell pattern. `*` and `?` match `/` and a leading `.` too.
pub fn matches_glob(pattern: &CStr, text: &CStr, case: CaseSensitivity) -> bool {
    let flags = match case {
        CaseSensitivity::Sensitive => 0,
        CaseSensitivity::Insensitive => libc::FNM_CASEFOLD,
    };
    // SAFETY: both strings are NUL-terminated and only read.
    unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), flags) == 0 }
}

/// A dialect of regular expressions, as the C library's syntax bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegexSyntax(c_ulong);

const ICASE: c_ulong = 0x40_0000;

impl RegexSyntax {
    /// The Emacs dialect, where `.` does not match a newline.
    pub const EMACS: Self = RegexSyntax(0);
    /// The default of `find`: the Emacs dialect, except that `.` matches a newline.
    pub const FINDUTILS_DEFAULT: Self = RegexSyntax(0x40);
    /// The dialect of `awk`.
    pub const AWK: Self = RegexSyntax(0xb_e0cd);
    /// The dialect of GNU `awk`.
    pub const GNU_AWK: Self = RegexSyntax(0x23_b24d);
    /// The dialect of POSIX `awk`.
    pub const POSIX_AWK: Self = RegexSyntax(0x2b_b2fd);
    /// The dialect of `grep`.
    pub const GREP: Self = RegexSyntax(0x1_0a46);
    /// The dialect of `grep -E`.
    pub const EGREP: Self = RegexSyntax(0x23_ba5c);
    /// Basic regular expressions, also those of `ed` and `sed`.
    pub const POSIX_BASIC: Self = RegexSyntax(0x101_02c6);
    /// Basic regular expressions without extensions.
    pub const POSIX_MINIMAL_BASIC: Self = RegexSyntax(0x1_06c4);
    /// Extended regular expressions.
    pub const POSIX_EXTENDED: Self = RegexSyntax(0x3_b2fc);
}

/// `struct re_pattern_buffer`, which is also `regex_t`.
#[repr(C)]
struct PatternBuffer {
    buffer: *mut c_void,
    allocated: c_ulong,
    used: c_ulong,
    syntax: c_ulong,
    fastmap: *mut c_char,
    translate: *mut u8,
    groups: usize,
    bits: u32,
}

unsafe extern "C" {
    fn re_set_syntax(syntax: c_ulong) -> c_ulong;
    fn re_compile_pattern(pattern: *const c_char, length: usize, buffer: *mut PatternBuffer)
    -> *const c_char;
    fn re_match(
        buffer: *mut PatternBuffer,
        text: *const c_char,
        length: c_int,
        start: c_int,
        registers: *mut c_void,
    ) -> c_int;
    fn regfree(buffer: *mut PatternBuffer);
}

/// A compiled regular expression.
pub struct Regex {
    compiled: Box<PatternBuffer>,
}

// SAFETY: the compiled pattern is owned by this value alone and is not tied to a thread.
unsafe impl Send for Regex {}
// SAFETY: the only operation on a shared reference is `re_match`, which takes the pattern's own lock.
unsafe impl Sync for Regex {}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Regex").field("syntax", &self.compiled.syntax).finish_non_exhaustive()
    }
}

impl Regex {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// The C library's description of the error.
    pub fn new(pattern: &[u8], syntax: RegexSyntax, case: CaseSensitivity) -> Result<Self, Vec<u8>> {
        /// The syntax is a global of the C library.
        static SYNTAX: Mutex<()> = Mutex::new(());
        let bits = match case {
            CaseSensitivity::Sensitive => syntax.0,
            CaseSensitivity::Insensitive => syntax.0 | ICASE,
        };
        let mut regex = Regex {
            compiled: Box::new(PatternBuffer {
                buffer: ptr::null_mut(),
                allocated: 0,
                used: 0,
                syntax: 0,
                fastmap: ptr::null_mut(),
                translate: ptr::null_mut(),
                groups: 0,
                bits: 0,
            }),
        };
        let _held = SYNTAX.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: sets a global variable that only this function uses, under a lock.
        unsafe { re_set_syntax(bits) };
        // SAFETY: the pointer and length describe `pattern`; a zeroed buffer is what the function expects.
        let message =
            unsafe { re_compile_pattern(pattern.as_ptr().cast(), pattern.len(), &raw mut *regex.compiled) };
        if message.is_null() {
            return Ok(regex);
        }
        // SAFETY: a message is a static NUL-terminated string.
        Err(unsafe { CStr::from_ptr(message) }.to_bytes().to_vec())
    }

    /// Whether the whole of `text` matches: its longest match at the beginning must reach the end.
    pub fn matches(&self, text: &[u8]) -> bool {
        let Ok(length) = c_int::try_from(text.len()) else { return false };
        // SAFETY: the pointer and length describe `text`; the pattern was compiled, and `re_match` changes it under its
        // own lock only, which is why a shared reference suffices; no registers are asked for.
        let matched = unsafe {
            re_match((&raw const *self.compiled).cast_mut(), text.as_ptr().cast(), length, 0, ptr::null_mut())
        };
        matched == length
    }
}

impl Drop for Regex {
    fn drop(&mut self) {
        // SAFETY: the buffer was zeroed and then compiled, or failed to; either way it may be freed once.
        unsafe { regfree(&raw mut *self.compiled) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CaseSensitivity::{Insensitive, Sensitive};

    #[test]
    fn stars_match_slashes_and_leading_dots() {
        for (pattern, text, case, expected) in [
            (c"*.txt", c".hidden.txt", Sensitive, true),
            (c"*", c"a/b", Sensitive, true),
            (c"[a-c]?", c"bz", Sensitive, true),
            (c"\\*", c"x", Sensitive, false),
            (c"README*", c"readme.md", Insensitive, true),
            (c"README*", c"readme.md", Sensitive, false),
        ] {
            assert_eq!(matches_glob(pattern, text, case), expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn the_longest_alternative_decides_in_every_dialect() {
        for (pattern, syntax) in [
            (&b".*\\(a\\|ab\\)"[..], RegexSyntax::EMACS),
            (b".*\\(a\\|ab\\)", RegexSyntax::POSIX_BASIC),
            (b".*(a|ab)", RegexSyntax::POSIX_EXTENDED),
            (b".*(a|ab)", RegexSyntax::EGREP),
            (b".*(a|ab)", RegexSyntax::AWK),
        ] {
            let regex = Regex::new(pattern, syntax, Sensitive).expect("valid");
            assert!(regex.matches(b"./xab"), "{pattern:?}");
            assert!(!regex.matches(b"./xabc"), "{pattern:?}");
        }
    }

    #[test]
    fn dot_matches_a_newline_only_where_the_dialect_says_so() {
        for (syntax, expected) in [
            (RegexSyntax::EMACS, false),
            (RegexSyntax::FINDUTILS_DEFAULT, true),
            (RegexSyntax::POSIX_EXTENDED, true),
        ] {
            assert_eq!(Regex::new(b"a.b", syntax, Sensitive).expect("valid").matches(b"a\nb"), expected);
        }
    }

    #[test]
    fn a_bad_pattern_is_described() {
        let message = Regex::new(b"\\(", RegexSyntax::EMACS, Sensitive).expect_err("unmatched");
        assert_eq!(message, b"Unmatched ( or \\(");
    }

    #[test]
    fn case_may_be_ignored() {
        assert!(Regex::new(b"ABC", RegexSyntax::EMACS, Insensitive).expect("valid").matches(b"abc"));
    }
}
