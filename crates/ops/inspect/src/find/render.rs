//! The text that `-printf` and `-ls` print about a file.

use std::io::Write;

use millstream_system::locale::Locale;
use millstream_vfs::{Dir, Errno, Fields, FileKind, Metadata, SymlinkBehavior, Timestamp};
use rustix::fs::{major, minor};

use super::evaluate::{Evaluation, Worker};
use super::exec::split_operand;
use super::expression::StreamId;
use super::format::{Align, Attribute, Field, Format, Layout, Piece};
use super::moment::TimeField;
use super::quote::push_listed;
use millstream_text::json::{Account, EntryRecord};
use millstream_text::mode::permission_text;

impl<D: Dir> Evaluation<'_, '_, D> {
    /// Appends the text of a format for the file.
    pub(super) fn render(&mut self, format: &Format, stream: StreamId, out: &mut Vec<u8>) {
        for piece in &format.pieces {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text),
                Piece::Field { field, layout } => self.render_field(*field, *layout, stream, out),
                Piece::Stop => break,
            }
        }
    }

    fn render_field(&mut self, field: Field, layout: Layout, stream: StreamId, out: &mut Vec<u8>) {
        match field {
            Field::Path => {
                self.path();
                let path = std::mem::take(&mut self.worker.path);
                self.push_name_field(stream, &path, layout, out);
                self.worker.path = path;
            }
            Field::BaseName => {
                let name = self.subject.name.to_bytes();
                let name = if self.subject.depth == 0 { printed_base_name(name) } else { name };
                self.push_name_field(stream, name, layout, out);
            }
            Field::DirName => {
                let path = self.path().to_vec();
                self.push_name_field(stream, dir_name(&path), layout, out);
            }
            Field::PathBelowOperand => {
                let operand = self.operand().len();
                let path = self.path().to_vec();
                let below = path.get(operand..).unwrap_or_default();
                self.push_name_field(stream, below.strip_prefix(b"/").unwrap_or(below), layout, out);
            }
            Field::Operand => {
                let operand = self.operand().to_vec();
                self.push_name_field(stream, &operand, layout, out);
            }
            Field::Depth => push_integer(out, self.subject.depth.into(), layout),
            Field::Kind => {
                let letter = self.kind().map_or(b'U', kind_letter);
                push_text(out, &[letter], layout);
            }
            Field::TargetKind => self.render_target_kind(layout, out),
            Field::LinkTarget => {
                let target = self.link_target().map(std::ffi::CString::into_bytes).unwrap_or_default();
                self.push_name_field(stream, &target, layout, out);
            }
            Field::SecurityContext => self.render_context(layout, out),
            Field::Attribute(attribute) => {
                // Without attributes, which has been reported, there is nothing to print.
                if let Some(metadata) = self.metadata() {
                    self.render_attribute(attribute, metadata, layout, out);
                }
            }
        }
    }

    fn render_attribute(
        &mut self,
        attribute: Attribute,
        metadata: &Metadata,
        layout: Layout,
        out: &mut Vec<u8>,
    ) {
        let number = |value: u64, out: &mut Vec<u8>| push_text(out, value.to_string().as_bytes(), layout);
        match attribute {
            Attribute::Size => number(metadata.size, out),
            Attribute::Blocks512 => number(metadata.blocks, out),
            Attribute::Blocks1024 => number(metadata.blocks.div_ceil(2), out),
            Attribute::Sparseness => push_text(
                out,
                general_float(sparseness(metadata), layout.precision).as_bytes(),
                Layout { precision: None, ..layout },
            ),
            Attribute::Links => number(metadata.nlink, out),
            Attribute::Inode => number(metadata.ino, out),
            Attribute::Device => number(metadata.dev, out),
            Attribute::FsType => push_text(out, self.shared.mounts().type_of(metadata.dev), layout),
            Attribute::ModeOctal => push_octal(out, metadata.mode & 0o7777, layout),
            Attribute::ModeSymbolic => push_text(out, &symbolic_mode(metadata.mode), layout),
            Attribute::User => match self.worker.accounts.user(metadata.uid) {
                Some(name) => push_text(out, name, layout),
                None => number(metadata.uid.into(), out),
            },
            Attribute::Uid => number(metadata.uid.into(), out),
            Attribute::Group => match self.worker.accounts.group(metadata.gid) {
                Some(name) => push_text(out, name, layout),
                None => number(metadata.gid.into(), out),
            },
            Attribute::Gid => number(metadata.gid.into(), out),
            Attribute::Time(which) => push_ctime(out, which.of(metadata), self.shared.locale),
            Attribute::TimePart(which, part) => {
                let mut text = Vec::new();
                if which != TimeField::Birth || metadata.fields.contains(Fields::BTIME) {
                    push_time_part(&mut text, which.of(metadata), part, self.shared.locale);
                }
                push_text(out, &text, layout);
            }
        }
    }

    fn push_name_field(&self, stream: StreamId, name: &[u8], layout: Layout, out: &mut Vec<u8>) {
        let mut shown = Vec::with_capacity(name.len());
        self.shared.push_name(stream, name, &mut shown);
        push_text(out, &shown, layout);
    }

    /// The operand under which the file was found.
    fn operand(&self) -> &[u8] {
        let index = usize::try_from(self.subject.operand).unwrap_or(usize::MAX);
        self.plan.options.operands.get(index).map_or(b"", |operand| operand.as_bytes())
    }

    fn render_target_kind(&mut self, layout: Layout, out: &mut Vec<u8>) {
        let letter = match self.kind() {
            Some(FileKind::Symlink) => {
                match self.subject.handle.metadata(self.subject.name, SymlinkBehavior::Follow, Fields::KIND) {
                    Ok(target) => kind_letter(target.kind()),
                    Err(error) => match error.errno {
                        Errno::NOENT | Errno::NOTDIR => b'N',
                        Errno::LOOP => b'L',
                        errno => {
                            self.complain(errno, "stat");
                            b'?'
                        }
                    },
                }
            }
            Some(kind) => kind_letter(kind),
            None => b'U',
        };
        push_text(out, &[letter], layout);
    }

    fn render_context(&mut self, layout: Layout, out: &mut Vec<u8>) {
        let context = self.subject.security_context().unwrap_or_else(|errno| {
            self.path();
            self.shared.report_missing_context(&self.worker.path, errno);
            Vec::new()
        });
        push_text(out, &context, layout);
    }

    /// Appends the record that `--json` prints.
    pub(super) fn render_record(&mut self, metadata: &Metadata, out: &mut Vec<u8>) {
        let dirid = self.directory_inode();
        self.path();
        let Worker { accounts, path, .. } = &mut *self.worker;
        let (user, group) = accounts.both(metadata.uid, metadata.gid);
        let uid = user.map_or(Account::Id(metadata.uid), Account::Name);
        let gid = group.map_or(Account::Id(metadata.gid), Account::Name);
        EntryRecord { dirid, metadata, uid, gid, path }.write(out);
    }

    /// Inode number of the directory that holds the file, 0 if it is unknown.
    fn directory_inode(&mut self) -> u64 {
        if let Some(inode) = self.worker.directory_inode.filter(|_| self.subject.depth > 0) {
            return inode;
        }
        let metadata = if self.subject.depth == 0 {
            let (directory, _) = split_operand(self.subject.name.to_bytes());
            let directory = std::ffi::CString::new(directory).expect("part of a C string");
            let directory = if directory.is_empty() { c"." } else { &*directory };
            self.subject.handle.metadata(directory, SymlinkBehavior::Follow, Fields::INO)
        } else {
            self.subject.handle.own_metadata(Fields::INO)
        };
        let inode = metadata.map_or(0, |metadata| metadata.ino);
        self.worker.directory_inode = Some(inode);
        inode
    }

    /// Appends the line of `-ls`.
    pub(super) fn render_listing(&mut self, metadata: &Metadata, unit_blocks: u64, out: &mut Vec<u8>) {
        let (now, locale) = (self.shared.now, self.shared.locale);
        push_to(out, format_args!("{:>9} {:>6} ", metadata.ino, metadata.blocks.div_ceil(unit_blocks)));
        out.extend_from_slice(&symbolic_mode(metadata.mode));
        push_to(out, format_args!(" {:>3} ", metadata.nlink));
        push_owner(out, self.worker.accounts.user(metadata.uid), metadata.uid);
        push_owner(out, self.worker.accounts.group(metadata.gid), metadata.gid);
        match metadata.kind() {
            FileKind::CharDevice | FileKind::BlockDevice => {
                push_to(out, format_args!("{:>3}, {:>3}", major(metadata.rdev), minor(metadata.rdev)));
            }
            _ => push_to(out, format_args!("{:>8}", metadata.size)),
        }
        out.push(b' ');
        push_listing_date(out, metadata.mtime, now, locale);
        out.push(b' ');
        self.path();
        push_listed(out, &self.worker.path);
        if let Some(target) = self.link_target() {
            out.extend_from_slice(b" -> ");
            push_listed(out, target.as_bytes());
        }
        out.push(b'\n');
    }
}

fn push_to(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

fn push_owner(out: &mut Vec<u8>, name: Option<&[u8]>, id: u32) {
    let start = out.len();
    match name {
        Some(name) => out.extend_from_slice(name),
        None => push_to(out, format_args!("{id}")),
    }
    let width = (out.len() - start).max(8);
    out.resize(start + width + 1, b' ');
}

/// Appends text, cut and filled up as the directive says.
fn push_text(out: &mut Vec<u8>, text: &[u8], layout: Layout) {
    let text = &text[..layout.precision.map_or(text.len(), |most| most.min(text.len()))];
    let fill = layout.width.saturating_sub(text.len());
    if layout.align == Align::Right {
        out.resize(out.len() + fill, b' ');
    }
    out.extend_from_slice(text);
    if layout.align == Align::Left {
        out.resize(out.len() + fill, b' ');
    }
}

/// Appends a number as `printf(3)` does: sign, least digits, zeros.
fn push_integer(out: &mut Vec<u8>, value: u64, layout: Layout) {
    let digits = if value == 0 { String::new() } else { value.to_string() };
    let sign = match layout {
        Layout { plus: true, .. } => "+",
        Layout { space: true, .. } => " ",
        _ => "",
    };
    push_digits(out, digits, sign, layout);
}

fn push_octal(out: &mut Vec<u8>, value: u32, layout: Layout) {
    let digits = if value == 0 { String::new() } else { format!("{value:o}") };
    let prefix = if layout.alternate { "0" } else { "" };
    push_digits(out, format!("{prefix}{digits}"), "", layout);
}

/// For the value 0 `digits` is empty; as many zeros as the precision are printed, one without a precision.
fn push_digits(out: &mut Vec<u8>, digits: String, sign: &str, layout: Layout) {
    let least = match layout.precision {
        Some(least) => least,
        None if layout.zeros && layout.align == Align::Right => {
            layout.width.saturating_sub(sign.len()).max(1)
        }
        None => 1,
    };
    let text = format!("{sign}{digits:0>least$}");
    push_text(out, text.as_bytes(), Layout { precision: None, ..layout });
}

/// `%f` of an operand: its last component, with one of its trailing slashes.
fn printed_base_name(operand: &[u8]) -> &[u8] {
    let (_, last) = split_operand(operand);
    match last.iter().position(|&b| b == b'/') {
        Some(slash) => &last[..=slash],
        None => last,
    }
}

/// `%h`: everything before the last component; for an operand of one character and slashes, everything before the last
/// slash.
fn dir_name(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
    let visible = if end > 1 { &path[..end] } else { path };
    visible.iter().rposition(|&b| b == b'/').map_or(b".", |slash| &path[..slash])
}

fn sparseness(metadata: &Metadata) -> f64 {
    let allocated = metadata.blocks as f64 * 512.0;
    match metadata.size {
        0 if metadata.blocks == 0 => 1.0,
        size => allocated / size as f64,
    }
}

/// A number as `%g` prints it: this many significant digits, no trailing zeros, an exponent if it is large or small.
fn general_float(value: f64, precision: Option<usize>) -> String {
    if !value.is_finite() {
        return if value > 0.0 { "inf".to_owned() } else { "nan".to_owned() };
    }
    let digits = precision.unwrap_or(6).clamp(1, 40);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}"))
}

/// Type and permissions as `ls -l` shows them.
pub(super) fn symbolic_mode(mode: u32) -> [u8; 10] {
    let kind = match FileKind::from_mode(mode) {
        FileKind::File => b'-',
        FileKind::Unknown => b'?',
        kind => kind_letter(kind),
    };
    let mut text = [kind; 10];
    text[1..].copy_from_slice(&permission_text(mode));
    text
}

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Appends a time as `ctime(3)` does, with the fraction of the second.
fn push_ctime(out: &mut Vec<u8>, time: Timestamp, locale: &Locale) {
    let Some(local) = locale.local_time(time.sec) else {
        return push_to(out, format_args!("{}.{:09}0", time.sec, time.nsec));
    };
    let days = (time.sec + local.utc_offset_seconds()).div_euclid(86_400);
    let weekday = WEEKDAYS[usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0)];
    let month = MONTHS[local.month() as usize % 12];
    push_to(
        out,
        format_args!(
            "{weekday} {month} {:>2} {:02}:{:02}:{:02}.{:09}0 {}",
            local.day(),
            local.hour(),
            local.minute(),
            local.second(),
            time.nsec,
            local.year()
        ),
    );
}

/// Appends one part of a time; seconds come with their fraction.
fn push_time_part(out: &mut Vec<u8>, time: Timestamp, part: u8, locale: &Locale) {
    if part == b'@' {
        return push_to(out, format_args!("{}.{:09}0", time.sec, time.nsec));
    }
    let Some(local) = locale.local_time(time.sec) else {
        return push_to(out, format_args!("{}", time.sec));
    };
    if part == b'+' {
        locale.format_time(c"%Y-%m-%d+%H:%M:%S", &local, out);
        return push_to(out, format_args!(".{:09}0", time.nsec));
    }
    let start = out.len();
    let format = [b'%', part, 0];
    let Ok(format) = std::ffi::CStr::from_bytes_until_nul(&format) else { return };
    locale.format_time(format, &local, out);
    if let b'S' | b'T' | b'X' = part {
        let fraction = format!(".{:09}0", time.nsec);
        let at = end_of_seconds(&out[start..]).map_or(out.len(), |end| start + end);
        out.splice(at..at, fraction.into_bytes());
    }
}

/// Where the last two digits of a time end, before the name of the half of the day.
fn end_of_seconds(time: &[u8]) -> Option<usize> {
    time.windows(2).rposition(|pair| pair.iter().all(u8::is_ascii_digit)).map(|at| at + 2)
}

/// Appends the date of a listing: with the time of day if it is less than half a year ago, else with the year.
fn push_listing_date(out: &mut Vec<u8>, time: Timestamp, now: Timestamp, locale: &Locale) {
    const HALF_A_YEAR: i64 = 6 * 30 * 86_400;
    const CLOCK_SKEW: i64 = 3600;
    let Some(local) = locale.local_time(time.sec) else {
        return push_to(out, format_args!("{:>12}", time.sec));
    };
    let recent = now.sec - HALF_A_YEAR <= time.sec && time.sec <= now.sec + CLOCK_SKEW;
    locale.format_time(if recent { c"%b %e %H:%M" } else { c"%b %e  %Y" }, &local, out);
}

/// The letter of a type, as `%y` prints it.
fn kind_letter(kind: FileKind) -> u8 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_printed_as_percent_g_does() {
        for (value, precision, text) in [
            (1.0, None, "1"),
            (1_365.333_333, None, "1365.33"),
            (1_365.333_333, Some(3), "1.37e+03"),
            (0.5, None, "0.5"),
            (0.0, None, "0"),
            (1_234_567.0, None, "1.23457e+06"),
            (0.000_012_34, None, "1.234e-05"),
            (f64::INFINITY, None, "inf"),
        ] {
            assert_eq!(general_float(value, precision), text);
        }
    }

    #[test]
    fn modes_are_shown_in_letters() {
        for (mode, text) in [
            (0o100_644, "-rw-r--r--"),
            (0o104_755, "-rwsr-xr-x"),
            (0o102_644, "-rw-r-Sr--"),
            (0o041_777, "drwxrwxrwt"),
            (0o041_776, "drwxrwxrwT"),
            (0o120_777, "lrwxrwxrwx"),
            (0o140_000, "s---------"),
            (0o010_600, "prw-------"),
        ] {
            assert_eq!(std::str::from_utf8(&symbolic_mode(mode)), Ok(text));
        }
    }

    #[test]
    fn names_are_cut_as_documented() {
        for (path, dir, base) in [
            (&b"a/b"[..], &b"a"[..], &b"b"[..]),
            (b"a", b".", b"a"),
            (b"t/d/", b"t", b"d/"),
            (b"t//d//", b"t/", b"d/"),
            (b"/", b"", b"/"),
            (b"/etc", b"", b"etc"),
            (b"//", b"/", b"/"),
            (b"..", b".", b".."),
            (b"t/", b"t", b"t/"),
            (b"t///", b"t//", b"t/"),
            (b"foo/", b".", b"foo/"),
            (b"./foo//", b".", b"foo/"),
        ] {
            assert_eq!((dir_name(path), printed_base_name(path)), (dir, base), "{}", path.escape_ascii());
        }
    }

    #[test]
    fn numbers_are_laid_out_as_printf_does() {
        let layout = |width, zeros, align| Layout { width, zeros, align, ..Layout::default() };
        for (layout, text) in [
            (layout(6, true, Align::Right), "000755"),
            (layout(6, false, Align::Right), "   755"),
            (layout(6, true, Align::Left), "755   "),
            (Layout { alternate: true, ..Layout::default() }, "0755"),
            (Layout { precision: Some(5), width: 7, ..Layout::default() }, "  00755"),
        ] {
            let mut out = Vec::new();
            push_octal(&mut out, 0o755, layout);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
        let precise =
            |precision, alternate| Layout { precision: Some(precision), alternate, ..Layout::default() };
        for (layout, text) in [
            (Layout::default(), "0"),
            (layout(3, true, Align::Right), "000"),
            (precise(0, false), ""),
            (precise(0, true), "0"),
            (precise(2, false), "00"),
        ] {
            let mut out = Vec::new();
            push_octal(&mut out, 0, layout);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }
}
