//! The locale of the process: collation, character classes, local time, number formats.
//!
//! [`Locale::from_environment`] calls `setlocale` once, before any other thread runs. The value that it returns proves
//! this, so all other calls are its methods: they only read the locale and are safe on any thread.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use libc::{c_char, c_int, c_void, size_t, wchar_t};

/// `mbstate_t` is at most this large in every Linux C library, and all zeros at the start of a string.
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

/// The order of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By the values of their bytes, as in the locales C, POSIX and C.UTF-8.
    Bytewise,
    /// By the rules of a language; compare keys from [`Locale::sort_key`].
    Language,
}

/// The encoding of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// One byte per character, as in the C locale.
    SingleByte,
    /// Any other encoding that the C library converts.
    Multibyte,
}

/// Whether a category of the locale is that of the C locale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocaleKind {
    /// C or POSIX.
    Posix,
    /// Any other.
    Natural,
}

/// The grouping of digits in large numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouping {
    /// The separator between groups, possibly empty.
    pub separator: Vec<u8>,
    /// Sizes of the groups from the right; the last one repeats.
    pub sizes: Vec<u8>,
}

/// The first character of a byte string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A character.
    Character {
        /// Length in bytes.
        len: usize,
        /// Width in columns on a terminal.
        width: usize,
        /// How a terminal shows it.
        class: CharacterClass,
    },
    /// The first byte does not start a character.
    Invalid,
    /// The bytes are an incomplete character.
    Incomplete,
}

/// How a terminal shows a character.
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
    /// Sets the locale of the process from its environment (`LC_ALL`, `LC_*`, `LANG`). Call it before starting other
    /// threads; further calls return the result of the first.
    pub fn from_environment() -> &'static Locale {
        static LOCALE: OnceLock<Locale> = OnceLock::new();
        LOCALE.get_or_init(|| {
            // SAFETY: the string is NUL-terminated; by this function's contract no other thread runs yet.
            // A locale that is not installed leaves the process in the C locale.
            unsafe { libc::setlocale(libc::LC_ALL, c"".as_ptr()) };
            // SAFETY: sets the C library's time zone from the environment, which does not change afterwards.
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

    /// The order of names.
    pub fn collation(&self) -> Collation {
        self.collation
    }

    /// The encoding of characters.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Whether dates have the format of the C locale.
    pub fn time(&self) -> LocaleKind {
        self.time
    }

    /// The decimal separator.
    pub fn decimal_point(&self) -> &[u8] {
        &self.decimal_point
    }

    /// The grouping of digits.
    pub fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    /// The abbreviated names of the months.
    pub fn months(&self) -> &[Vec<u8>; 12] {
        &self.months
    }

    /// Appends a sort key for `text`: keys compared byte by byte give the collation order.
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

    /// The first character of `bytes`, which must not be empty.
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

    /// Whether the answer to a question means yes in the language of messages.
    pub fn is_affirmative(&self, answer: &CStr) -> bool {
        let mut expression = MaybeUninit::<libc::regex_t>::zeroed();
        // SAFETY: the pattern is a NUL-terminated string of the C library; `regcomp` fills the expression or fails.
        let compiled = unsafe {
            let pattern = libc::nl_langinfo(libc::YESEXPR);
            libc::regcomp(expression.as_mut_ptr(), pattern, libc::REG_EXTENDED | libc::REG_NOSUB) == 0
        };
        // SAFETY: the compiled expression is matched with a NUL-terminated string and freed once.
        compiled
            && unsafe {
                let result = libc::regexec(expression.as_ptr(), answer.as_ptr(), 0, ptr::null_mut(), 0);
                libc::regfree(expression.as_mut_ptr());
                result == 0
            }
    }

    /// Translates `format`, one of coreutils' English date formats, by its message catalogue, which has the formats of
    /// languages that order dates differently. Returns `format` itself if there is no catalogue.
    pub fn coreutils_date_format(&self, format: &CStr) -> Vec<u8> {
        // SAFETY: both strings are NUL-terminated. The answer is `format`, or a string of the catalogue, which stays in
        // memory as long as the process.
        let found =
            unsafe { CStr::from_ptr(dcgettext(c"coreutils".as_ptr(), format.as_ptr(), libc::LC_TIME)) };
        found.to_bytes().to_vec()
    }

    /// Local time for seconds since 1970; `None` if the year cannot be represented.
    pub fn local_time(&self, seconds: i64) -> Option<LocalTime> {
        let mut fields = MaybeUninit::<libc::tm>::zeroed();
        // SAFETY: both pointers are valid for the call; the time zone was loaded by `from_environment`.
        let filled = unsafe { libc::localtime_r(&raw const seconds, fields.as_mut_ptr()) };
        // SAFETY: a `tm` of zeros is a valid one, and `localtime_r` filled it.
        (!filled.is_null()).then(|| LocalTime { fields: unsafe { fields.assume_init() } })
    }

    /// Seconds since 1970 of a local time: year, month and day from 1, and hour, minute and second. If clocks show a
    /// time twice, the C library picks one; if they skip it, another time.
    pub fn seconds_of_local_time(&self, date: [i32; 3], time: [i32; 3]) -> (i64, ClockReading) {
        // SAFETY: a `tm` of zeros is a valid one.
        let mut fields: libc::tm = unsafe { MaybeUninit::zeroed().assume_init() };
        (fields.tm_year, fields.tm_mon, fields.tm_mday) = (date[0] - 1900, date[1] - 1, date[2]);
        (fields.tm_hour, fields.tm_min, fields.tm_sec) = (time[0], time[1], time[2]);
        fields.tm_isdst = -1;
        let asked =
            [fields.tm_year, fields.tm_mon, fields.tm_mday, fields.tm_hour, fields.tm_min, fields.tm_sec];
        // SAFETY: reads and fills `fields`; the time zone was loaded by `from_environment`.
        let seconds = unsafe { libc::mktime(&raw mut fields) };
        let meant =
            [fields.tm_year, fields.tm_mon, fields.tm_mday, fields.tm_hour, fields.tm_min, fields.tm_sec];
        (seconds, if asked == meant { ClockReading::Shown } else { ClockReading::Skipped })
    }

    /// Appends `time` in a format of `strftime(3)`.
    pub fn format_time(&self, format: &CStr, time: &LocalTime, out: &mut Vec<u8>) {
        if format.is_empty() {
            return;
        }
        // A trailing space distinguishes an empty result from one that did not fit.
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

/// Whether clocks show a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockReading {
    /// They do, once or twice.
    Shown,
    /// They skip it.
    Skipped,
}

/// A time in the fields of the local calendar.
#[derive(Clone, Copy)]
pub struct LocalTime {
    fields: libc::tm,
}

// SAFETY: the only pointer in a `tm` is the name of the time zone, a string that the C library neither changes nor
// frees.
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

    /// Offset of local time from UTC in seconds, positive east of it.
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
    // SAFETY: a null second argument queries the name without setting anything.
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

/// Width of a character in columns; unprintable characters other than control characters take one.
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
