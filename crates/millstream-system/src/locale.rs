//! The locale of the process: collation, character classes, local time, number formats.
//!
//! [`Locale::from_environment`] calls `setlocale` once, before any other thread runs; the value it returns is the proof
//! of that, and all other calls go through it. They only read the locale and are safe on any thread.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use libc::{c_char, c_int, c_void, size_t, wchar_t};

/// `mbstate_t` of every Linux C library is at most this large, and all zero at the start of a string.
#[repr(C, align(8))]
struct ConversionState([u8; 128]);

unsafe extern "C" {
    fn mbrtowc(wc: *mut wchar_t, s: *const c_char, n: size_t, state: *mut c_void) -> size_t;
    fn wcwidth(c: wchar_t) -> c_int;
    fn iswprint(c: libc::c_uint) -> c_int;
    fn __ctype_get_mb_cur_max() -> size_t;
    fn iswcntrl(c: libc::c_uint) -> c_int;
    fn tzset();
    fn dcgettext(domain: *const c_char, message: *const c_char, category: c_int) -> *const c_char;
}

/// The locale of the process.
#[derive(Debug)]
pub struct Locale {
    collation: Collation,
    encoding: Encoding,
    time: LocaleKind,
    decimal_point: Vec<u8>,
    grouping: Grouping,
    months: [Vec<u8>; 12],
}

/// How strings are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By the values of their bytes, as in the locales C, POSIX and C.UTF-8.
    Bytewise,
    /// By the rules of a language; compare what [`Locale::sort_key`] makes of them.
    Language,
}

/// How characters are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// One byte a character, as in the C locale.
    SingleByte,
    /// Whatever else the C library converts.
    Multibyte,
}

/// Whether a category of the locale is the C locale's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocaleKind {
    /// C or POSIX.
    Posix,
    /// Any other.
    Natural,
}

/// How digits of large numbers are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// What goes between groups, empty if there is none.
    pub separator: Vec<u8>,
    /// Sizes of the groups from the right; the last one repeats.
    pub sizes: Vec<u8>,
}

/// The first character of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A character.
    Character {
        /// Bytes it takes.
        len: usize,
        /// Columns it takes on a terminal.
        width: usize,
        /// What it is good for.
        class: CharacterClass,
    },
    /// The first byte is part of no character.
    Invalid,
    /// All bytes are the beginning of a character that does not end.
    Incomplete,
}

/// What a character is good for on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharacterClass {
    /// It can be shown.
    Printable,
    /// It is a control character.
    Control,
    /// Neither.
    Unprintable,
}

impl Locale {
    /// Sets the locale of the process from its environment (`LC_ALL`, `LC_*`, `LANG`). To be called before other threads
    /// are started; further calls return what the first one found.
    pub fn from_environment() -> &'static Locale {
        static LOCALE: OnceLock<Locale> = OnceLock::new();
        LOCALE.get_or_init(|| {
            // SAFETY: the string is NUL-terminated; no other thread runs yet, as the contract of this function says.
            // A locale that is not installed leaves the process in the C locale.
            unsafe { libc::setlocale(libc::LC_ALL, c"".as_ptr()) };
            // SAFETY: sets the C library's time zone from the environment, which nothing changes afterwards.
            unsafe { tzset() };
            Locale::current()
        })
    }

    fn current() -> Locale {
        let (decimal_point, grouping) = number_format();
        Locale {
            collation: match category_name(libc::LC_COLLATE).as_slice() {
                b"C" | b"POSIX" | b"C.UTF-8" | b"C.utf8" => Collation::Bytewise,
                _ => Collation::Language,
            },
            encoding: current_encoding(),
            time: match category_name(libc::LC_TIME).as_slice() {
                b"C" | b"POSIX" => LocaleKind::Posix,
                _ => LocaleKind::Natural,
            },
            decimal_point,
            grouping,
            months: std::array::from_fn(|month| langinfo(libc::ABMON_1 + month as libc::nl_item)),
        }
    }

    /// How names are ordered.
    pub fn collation(&self) -> Collation {
        self.collation
    }

    /// How characters are encoded.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether dates are written the C locale's way.
    pub fn time(&self) -> LocaleKind {
        self.time
    }

    /// What goes between the whole and the fraction of a number.
    pub fn decimal_point(&self) -> &[u8] {
        &self.decimal_point
    }

    /// How digits are grouped.
    pub fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    /// The abbreviated names of the months.
    pub fn months(&self) -> &[Vec<u8>; 12] {
        &self.months
    }

    /// Appends the bytes whose order is the collation order of `text`.
    pub fn sort_key(&self, text: &CStr, key: &mut Vec<u8>) {
        let start = key.len();
        let mut room = text.to_bytes().len() * 4 + 32;
        loop {
            key.resize(start + room, 0);
            // SAFETY: writes at most `room` bytes from `start`, and `text` is NUL-terminated.
            let needed = unsafe { libc::strxfrm(key[start..].as_mut_ptr().cast(), text.as_ptr(), room) };
            if needed < room {
                key.truncate(start + needed);
                return;
            }
            room = needed + 1;
        }
    }

    /// The first character of `bytes`, which are not empty.
    pub fn decode(&self, bytes: &[u8]) -> Decoded {
        let mut state = ConversionState([0; 128]);
        let mut wide: wchar_t = 0;
        // SAFETY: the pointers are valid for the call, the length is that of `bytes`, and the state is an initial one.
        let len = unsafe {
            mbrtowc(&raw mut wide, bytes.as_ptr().cast(), bytes.len(), (&raw mut state).cast::<c_void>())
        };
        match len {
            usize::MAX => Decoded::Invalid,
            n if n == usize::MAX - 1 => Decoded::Incomplete,
            n => {
                let class = class_of(wide);
                Decoded::Character { len: n.max(1), width: width_of(wide, class), class }
            }
        }
    }

    /// Whether an answer to a question begins as a yes does in the language of messages.
    pub fn is_affirmative(&self, answer: &CStr) -> bool {
        let mut expression = MaybeUninit::<libc::regex_t>::zeroed();
        // SAFETY: the pattern is a NUL-terminated string of the C library; `regcomp` fills the expression or fails.
        let compiled = unsafe {
            let pattern = libc::nl_langinfo(libc::YESEXPR);
            libc::regcomp(expression.as_mut_ptr(), pattern, libc::REG_EXTENDED | libc::REG_NOSUB) == 0
        };
        // SAFETY: what was compiled is matched with a NUL-terminated string and freed once.
        compiled
            && unsafe {
                let result = libc::regexec(expression.as_ptr(), answer.as_ptr(), 0, ptr::null_mut(), 0);
                libc::regfree(expression.as_mut_ptr());
                result == 0
            }
    }

    /// The format of dates that coreutils uses here in place of `format`, one of its English ones: languages that order a
    /// date in another way have theirs in its catalogue of messages. `format` itself where there is no such catalogue.
    pub fn coreutils_date_format(&self, format: &CStr) -> Vec<u8> {
        // SAFETY: both strings are NUL-terminated. The answer is `format`, or a string of the catalogue, which stays in
        // memory as long as the process.
        let found =
            unsafe { CStr::from_ptr(dcgettext(c"coreutils".as_ptr(), format.as_ptr(), libc::LC_TIME)) };
        found.to_bytes().to_vec()
    }

    /// Local time of a moment in seconds since 1970, `None` if the year cannot be expressed.
    pub fn local_time(&self, seconds: i64) -> Option<LocalTime> {
        let mut fields = MaybeUninit::<libc::tm>::zeroed();
        // SAFETY: both pointers are valid for the call; the time zone was loaded by `from_environment`.
        let filled = unsafe { libc::localtime_r(&raw const seconds, fields.as_mut_ptr()) };
        // SAFETY: a `tm` of zeros is a valid one, and `localtime_r` filled it.
        (!filled.is_null()).then(|| LocalTime { fields: unsafe { fields.assume_init() } })
    }

    /// Appends `time` as the format of `strftime(3)` says.
    pub fn format_time(&self, format: &CStr, time: &LocalTime, out: &mut Vec<u8>) {
        if format.is_empty() {
            return;
        }
        // A trailing space tells an empty result from one that did not fit.
        let mut marked = format.to_bytes().to_vec();
        marked.extend_from_slice(b" ");
        let Ok(marked) = CString::new(marked) else { return };
        let start = out.len();
        let mut room = format.to_bytes().len() * 8 + 64;
        loop {
            out.resize(start + room, 0);
            // SAFETY: writes at most `room` bytes from `start`; format and time are valid for the call.
            let written = unsafe {
                libc::strftime(
                    out[start..].as_mut_ptr().cast(),
                    room,
                    marked.as_ptr(),
                    &raw const time.fields,
                )
            };
            if written > 0 {
                out.truncate(start + written - 1);
                return;
            }
            if room > (1 << 20) {
                out.truncate(start);
                return;
            }
            room *= 4;
        }
    }
}

/// A moment broken down into the fields of the local calendar.
#[derive(Clone, Copy)]
pub struct LocalTime {
    fields: libc::tm,
}

// SAFETY: the only pointer in a `tm` is the name of the time zone, a string that the C library neither changes nor frees.
unsafe impl Send for LocalTime {}
// SAFETY: as above.
unsafe impl Sync for LocalTime {}

impl std::fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (date, time) =
            ((self.year(), self.month() + 1, self.day()), (self.hour(), self.minute(), self.second()));
        write!(f, "LocalTime({date:?} {time:?} {})", self.utc_offset_seconds())
    }
}

impl LocalTime {
    /// Year of the Christian era.
    pub fn year(&self) -> i64 {
        i64::from(self.fields.tm_year) + 1900
    }

    /// Month, 0 is January.
    pub fn month(&self) -> u32 {
        self.fields.tm_mon.unsigned_abs()
    }

    /// Day of the month, from 1.
    pub fn day(&self) -> u32 {
        self.fields.tm_mday.unsigned_abs()
    }

    /// Hour, 0 to 23.
    pub fn hour(&self) -> u32 {
        self.fields.tm_hour.unsigned_abs()
    }

    /// Minute, 0 to 59.
    pub fn minute(&self) -> u32 {
        self.fields.tm_min.unsigned_abs()
    }

    /// Second, 0 to 60.
    pub fn second(&self) -> u32 {
        self.fields.tm_sec.unsigned_abs()
    }

    /// Seconds that local time is ahead of UTC.
    pub fn utc_offset_seconds(&self) -> i64 {
        self.fields.tm_gmtoff
    }

    /// The same time a few minutes and seconds later, within the hour.
    #[must_use]
    pub fn later_in_hour(mut self, minutes: u32, seconds: u32) -> LocalTime {
        self.fields.tm_min += minutes as c_int;
        self.fields.tm_sec += seconds as c_int;
        self
    }
}

/// The name of a category's locale.
fn category_name(category: c_int) -> Vec<u8> {
    // SAFETY: a null second argument asks for the name without setting anything.
    let name = unsafe { libc::setlocale(category, ptr::null()) };
    if name.is_null() {
        return b"C".to_vec();
    }
    // SAFETY: the C library returned a NUL-terminated string, valid until the locale is set again.
    unsafe { CStr::from_ptr(name) }.to_bytes().to_vec()
}

fn langinfo(item: libc::nl_item) -> Vec<u8> {
    // SAFETY: `nl_langinfo` returns a NUL-terminated string for every item, an empty one for unknown items.
    unsafe { CStr::from_ptr(libc::nl_langinfo(item)) }.to_bytes().to_vec()
}

fn current_encoding() -> Encoding {
    // SAFETY: takes and returns plain values; the locale is not being changed.
    match unsafe { __ctype_get_mb_cur_max() } {
        1 => Encoding::SingleByte,
        _ if langinfo(libc::CODESET) == b"UTF-8" => Encoding::Utf8,
        _ => Encoding::Multibyte,
    }
}

fn number_format() -> (Vec<u8>, Grouping) {
    // SAFETY: returns a pointer to a static structure of NUL-terminated strings; no other thread runs yet.
    let convention = unsafe { &*libc::localeconv() };
    // SAFETY: as above.
    let text = |p: *const c_char| unsafe { CStr::from_ptr(p) }.to_bytes().to_vec();
    let grouping = Grouping { separator: text(convention.thousands_sep), sizes: text(convention.grouping) };
    (text(convention.decimal_point), grouping)
}

/// Columns of a character; the unprintable ones that are not control characters are shown as one.
fn width_of(wide: wchar_t, class: CharacterClass) -> usize {
    // SAFETY: takes and returns plain values; the locale is not being changed.
    let width = unsafe { wcwidth(wide) };
    usize::try_from(width).unwrap_or(if class == CharacterClass::Control { 0 } else { 1 })
}

fn class_of(wide: wchar_t) -> CharacterClass {
    let code = wide as libc::c_uint;
    // SAFETY: takes and returns plain values; the locale is not being changed.
    if unsafe { iswprint(code) } != 0 {
        CharacterClass::Printable
    // SAFETY: as above.
    } else if unsafe { iswcntrl(code) } != 0 {
        CharacterClass::Control
    } else {
        CharacterClass::Unprintable
    }
}
