#![no_main]
//! Any name is quoted in every style, never with a panic; what a shell is to read holds no bare control character.

use libfuzzer_sys::fuzz_target;
use millstream_system::locale::Locale;
use millstream_text::quote::{Colon, ControlCharacters, Quoter, QuotingStyle};

const STYLES: [QuotingStyle; 10] = [
    QuotingStyle::Literal,
    QuotingStyle::Shell,
    QuotingStyle::ShellAlways,
    QuotingStyle::ShellEscape,
    QuotingStyle::ShellEscapeAlways,
    QuotingStyle::C,
    QuotingStyle::CMaybe,
    QuotingStyle::Escape,
    QuotingStyle::Locale,
    QuotingStyle::Clocale,
];

fuzz_target!(|name: &[u8]| {
    for style in STYLES {
        for control in [ControlCharacters::Show, ControlCharacters::Hide] {
            for colon in [Colon::Plain, Colon::Special] {
                let mut written = Vec::new();
                Quoter { style, control, locale: Locale::from_environment() }.write(
                    name,
                    colon,
                    &mut written,
                );
                let escapes = matches!(
                    style,
                    QuotingStyle::ShellEscape
                        | QuotingStyle::ShellEscapeAlways
                        | QuotingStyle::C
                        | QuotingStyle::CMaybe
                        | QuotingStyle::Escape
                        | QuotingStyle::Locale
                        | QuotingStyle::Clocale
                );
                assert!(!escapes || !written.iter().any(u8::is_ascii_control), "{style:?}");
            }
        }
    }
});
