//! The format of `-printf`, compiled once.

use super::moment::TimeField;

/// A compiled format.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    /// The parts to print, in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a format.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text as it is.
    Literal(Vec<u8>),
    /// A property of the file.
    Field {
        /// The field.
        field: Field,
        /// Width and the like.
        layout: Layout,
    },
    /// `\c`: print no more, and flush the output.
    Stop,
}

/// Flags, width and precision of a directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Columns to fill.
    pub width: usize,
    /// Digits, or most characters of a text.
    pub precision: Option<usize>,
    /// `-`, or spaces to the left.
    pub align: Align,
    /// The width begins with `0`: numbers are filled with zeros.
    pub zeros: bool,
    /// `+`: numbers always have a sign.
    pub plus: bool,
    /// A space: numbers have one instead of a sign.
    pub space: bool,
    /// `#`: octal numbers begin with a zero.
    pub alternate: bool,
}

/// The alignment of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Align {
    /// The text is on the right.
    #[default]
    Right,
    /// The text is on the left.
    Left,
}

/// A printable property of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// `%p`
    Path,
    /// `%f`
    BaseName,
    /// `%h`
    DirName,
    /// `%P`
    PathBelowOperand,
    /// `%H`
    Operand,
    /// `%d`
    Depth,
    /// `%y`
    Kind,
    /// `%Y`
    TargetKind,
    /// `%l`
    LinkTarget,
    /// `%Z`
    SecurityContext,
    /// A field that needs the attributes of the file.
    Attribute(Attribute),
}

/// A field that shows attributes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// `%s`
    Size,
    /// `%b`
    Blocks512,
    /// `%k`
    Blocks1024,
    /// `%S`
    Sparseness,
    /// `%n`
    Links,
    /// `%i`
    Inode,
    /// `%D`
    Device,
    /// `%F`
    FsType,
    /// `%m`
    ModeOctal,
    /// `%M`
    ModeSymbolic,
    /// `%u`
    User,
    /// `%U`
    Uid,
    /// `%g`
    Group,
    /// `%G`
    Gid,
    /// `%a`, `%c`, `%t`, and `%B` alike
    Time(TimeField),
    /// `%Ak`, `%Bk`, `%Ck`, `%Tk` with the format `k`
    TimePart(TimeField, u8),
}

/// An error in a format.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatError {
    /// It ends in a `%`.
    PercentAtEnd,
    /// A directive that is reserved.
    Reserved(u8),
}

impl Format {
    /// Compiles a format; oddities that can still be printed as they are, are reported to `warn`.
    pub fn compile(text: &[u8], warn: &mut dyn FnMut(&[u8])) -> Result<Self, FormatError> {
        let mut compiler = Compiler { rest: text, format: Format::default(), warn };
        while let Some((&byte, rest)) = compiler.rest.split_first() {
            compiler.rest = rest;
            match byte {
                b'\\' => compiler.escape(),
                b'%' => compiler.directive()?,
                other => compiler.literal(&[other]),
            }
        }
        Ok(compiler.format)
    }

    /// The fields that are printed.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field { field, .. } => Some(*field),
            Piece::Literal(_) | Piece::Stop => None,
        })
    }
}

struct Compiler<'a> {
    rest: &'a [u8],
    format: Format,
    warn: &'a mut dyn FnMut(&[u8]),
}

impl Compiler<'_> {
    fn literal(&mut self, text: &[u8]) {
        match self.format.pieces.last_mut() {
            Some(Piece::Literal(literal)) => literal.extend_from_slice(text),
            _ => self.format.pieces.push(Piece::Literal(text.to_vec())),
        }
    }

    fn escape(&mut self) {
        let Some((&letter, rest)) = self.rest.split_first() else {
            (self.warn)(b"escape `\\' followed by nothing at all");
            return self.literal(b"\\");
        };
        if (b'0'..=b'7').contains(&letter) {
            return self.octal_escape();
        }
        self.rest = rest;
        let byte = match letter {
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'\\' => b'\\',
            b'c' => {
                self.format.pieces.push(Piece::Stop);
                self.rest = b"";
                return;
            }
            other => {
                (self.warn)(&[b"unrecognized escape `\\", &[other][..], b"'"].concat());
                return self.literal(&[b'\\', other]);
            }
        };
        self.literal(&[byte]);
    }

    fn octal_escape(&mut self) {
        let len = self.rest.iter().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
        self.literal(&[value as u8]);
    }

    fn directive(&mut self) -> Result<(), FormatError> {
        let start = self.rest;
        if start.is_empty() {
            return Err(FormatError::PercentAtEnd);
        }
        let layout = self.layout();
        let spec = &start[..start.len() - self.rest.len()];
        let Some((&letter, rest)) = self.rest.split_first() else {
            return Err(FormatError::Reserved(0));
        };
        self.rest = rest;
        match letter {
            b'%' => {
                self.literal(b"%");
                self.literal(spec);
            }
            b'{' | b'[' | b'(' => return Err(FormatError::Reserved(letter)),
            b'A' | b'B' | b'C' | b'T' => self.time(letter, spec, layout),
            _ => match field_of(letter) {
                Some(field) => self.format.pieces.push(Piece::Field { field, layout }),
                None => self.unrecognized(spec, letter),
            },
        }
        Ok(())
    }

    fn unrecognized(&mut self, spec: &[u8], letter: u8) {
        let directive = [b"%", spec, &[letter]].concat();
        (self.warn)(&[b"unrecognized format directive `%", &[letter][..], b"'"].concat());
        self.literal(&directive);
    }

    fn time(&mut self, letter: u8, spec: &[u8], layout: Layout) {
        let which = match letter {
            b'A' => TimeField::Access,
            b'B' => TimeField::Birth,
            b'C' => TimeField::Change,
            _ => TimeField::Modification,
        };
        match self.rest.split_first() {
            Some((&part, rest)) => {
                self.rest = rest;
                self.format
                    .pieces
                    .push(Piece::Field { field: Field::Attribute(Attribute::TimePart(which, part)), layout });
            }
            None => {
                let directive = [b"%", spec, &[letter]].concat();
                let message =
                    [b"format directive `", &directive[..], b"' should be followed by another character"]
                        .concat();
                (self.warn)(&message);
                self.literal(&directive);
            }
        }
    }

    fn layout(&mut self) -> Layout {
        let mut layout = Layout::default();
        while let Some((&flag, rest)) = self.rest.split_first() {
            match flag {
                b'-' => layout.align = Align::Left,
                b'+' => layout.plus = true,
                b'#' => layout.alternate = true,
                b' ' => layout.space = true,
                _ => break,
            }
            self.rest = rest;
        }
        layout.zeros = self.rest.starts_with(b"0");
        layout.width = self.number();
        if let [b'.', rest @ ..] = self.rest {
            self.rest = rest;
            layout.precision = Some(self.number());
        }
        layout
    }

    /// A width, bounded so that a mistyped one does not fill the memory.
    fn number(&mut self) -> usize {
        const MOST: usize = 1 << 16;
        let mut value = 0;
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            value = (value * 10 + usize::from(digit - b'0')).min(MOST);
            self.rest = rest;
        }
        value
    }
}

fn field_of(letter: u8) -> Option<Field> {
    Some(match letter {
        b'd' => Field::Depth,
        b'f' => Field::BaseName,
        b'h' => Field::DirName,
        b'H' => Field::Operand,
        b'l' => Field::LinkTarget,
        b'p' => Field::Path,
        b'P' => Field::PathBelowOperand,
        b'y' => Field::Kind,
        b'Y' => Field::TargetKind,
        b'Z' => Field::SecurityContext,
        _ => return attribute_of(letter).map(Field::Attribute),
    })
}

fn attribute_of(letter: u8) -> Option<Attribute> {
    Some(match letter {
        b'a' => Attribute::Time(TimeField::Access),
        b'b' => Attribute::Blocks512,
        b'c' => Attribute::Time(TimeField::Change),
        b'D' => Attribute::Device,
        b'F' => Attribute::FsType,
        b'g' => Attribute::Group,
        b'G' => Attribute::Gid,
        b'i' => Attribute::Inode,
        b'k' => Attribute::Blocks1024,
        b'm' => Attribute::ModeOctal,
        b'M' => Attribute::ModeSymbolic,
        b'n' => Attribute::Links,
        b's' => Attribute::Size,
        b'S' => Attribute::Sparseness,
        b't' => Attribute::Time(TimeField::Modification),
        b'u' => Attribute::User,
        b'U' => Attribute::Uid,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(text: &[u8]) -> (Result<Format, FormatError>, Vec<String>) {
        let mut warnings = Vec::new();
        let format = Format::compile(text, &mut |warning| {
            warnings.push(String::from_utf8_lossy(warning).into_owned())
        });
        (format, warnings)
    }

    fn literal(text: &[u8]) -> Vec<Piece> {
        vec![Piece::Literal(text.to_vec())]
    }

    #[test]
    fn text_and_escapes() {
        for (format, text) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"a\\tb\\n\\\\", b"a\tb\n\\"),
            (b"\\0\\101\\1234", b"\0AS4"),
            (b"100%%", b"100%"),
        ] {
            assert_eq!(compile(format), (Ok(Format { pieces: literal(text) }), vec![]));
        }
        assert_eq!(compile(b"x\\cy").0.expect("valid").pieces[1..], [Piece::Stop]);
    }

    #[test]
    fn layouts() {
        let (format, _) = compile(b"%-#010.3m");
        let layout = Layout {
            width: 10,
            precision: Some(3),
            align: Align::Left,
            zeros: true,
            plus: false,
            space: false,
            alternate: true,
        };
        assert_eq!(
            format.expect("valid").pieces,
            [Piece::Field { field: Field::Attribute(Attribute::ModeOctal), layout }]
        );
    }

    #[test]
    fn oddities_are_printed_with_a_warning() {
        for (format, text, warning) in [
            (&b"%Q"[..], &b"%Q"[..], "unrecognized format directive `%Q'"),
            (b"%#o", b"%#o", "unrecognized format directive `%o'"),
            (b"\\q", b"\\q", "unrecognized escape `\\q'"),
            (b"x\\", b"x\\", "escape `\\' followed by nothing at all"),
            (b"%A", b"%A", "format directive `%A' should be followed by another character"),
        ] {
            let expected = (Ok(Format { pieces: literal(text) }), vec![warning.to_owned()]);
            assert_eq!(compile(format), expected);
        }
    }

    #[test]
    fn some_formats_are_errors() {
        assert_eq!(compile(b"x%").0, Err(FormatError::PercentAtEnd));
        assert_eq!(compile(b"%{").0, Err(FormatError::Reserved(b'{')));
        assert_eq!(compile(b"%5").0, Err(FormatError::Reserved(0)));
    }

    #[test]
    fn times_take_a_second_letter() {
        let (format, _) = compile(b"%T@%Bk");
        let fields: Vec<_> = format.expect("valid").fields().collect();
        assert_eq!(
            fields,
            [
                Field::Attribute(Attribute::TimePart(TimeField::Modification, b'@')),
                Field::Attribute(Attribute::TimePart(TimeField::Birth, b'k'))
            ]
        );
    }
}
