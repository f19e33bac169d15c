//! Manual pages, in the `man(7)` macros.

use super::reference::ReferenceEntry;
use super::{Paragraph, Reference};

/// The manual page in section 1.
pub fn man_page(command: &Reference) -> String {
    let mut page = format!(
        ".TH {} 1 \"\" \"Millstream {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
        roff(&command.name.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        roff(command.name),
        roff(command.summary),
    );
    for (i, usage) in command.usage.iter().enumerate() {
        let line_break = if i == 0 { "" } else { ".br\n" };
        page.push_str(&format!("{line_break}\\fB{}\\fR {}\n", roff(command.name), roff(usage)));
    }
    page.push_str(".SH DESCRIPTION\n");
    for paragraph in command.description {
        page.push_str(&format!(".PP\n{}\n", roff(paragraph)));
    }
    page.push_str(".SH OPTIONS\n");
    for (group, entries) in command.groups() {
        page.push_str(&format!(".SS {}\n", roff(group)));
        for entry in entries {
            page.push_str(&format!(".TP\n{}\n{}\n", tag(entry), roff(entry.help)));
        }
    }
    for section in command.sections {
        page.push_str(&format!(".SH {}\n", roff(&section.title.to_uppercase())));
        for paragraph in section.body {
            push_paragraph(&mut page, paragraph);
        }
    }
    page
}

fn push_paragraph(page: &mut String, paragraph: &Paragraph) {
    match paragraph {
        Paragraph::Text(text) => page.push_str(&format!(".PP\n{}\n", roff(text))),
        Paragraph::Terms(terms) => {
            for (term, definition) in *terms {
                page.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", roff(term), roff(definition)));
            }
        }
    }
}

/// `\fB\-a\fR, \fB\-\-all\fR`
fn tag(entry: &ReferenceEntry) -> String {
    let names: Vec<_> = entry.spellings().iter().map(|s| format!("\\fB{}\\fR", roff(s))).collect();
    let suffix = roff(&entry.argument_suffix());
    let suffix = match entry.argument_name() {
        Some(name) => suffix.replace(name, &format!("\\fI{name}\\fR")),
        None => suffix,
    };
    names.join(", ") + &suffix
}

/// Escapes text that roff would interpret as a command. A dash becomes a minus, so that it can be pasted into a shell.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let guarded: Vec<_> = escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() })
        .collect();
    guarded.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::sample::SAMPLE;
    use super::*;

    #[test]
    fn options_and_sections_are_there() {
        let page = man_page(&Reference::from(&SAMPLE));
        for part in [
            ".SH NAME\npls \\- list directory contents\n",
            ".TP\n\\fB\\-w\\fR, \\fB\\-\\-width\\fR=\\fICOLS\\fR\nset output width\n",
            "\\fB\\-\\-colour\\fR[=\\fIWHEN\\fR]\n",
            ".SH EXIT STATUS\n.PP\n0 if all went well.\n.TP\n\\fB1\\fR\nminor problems\n",
        ] {
            assert!(page.contains(part), "{part:?} is not in:\n{page}");
        }
    }

    #[test]
    fn text_is_not_taken_for_commands() {
        assert_eq!(roff(".hidden"), "\\&.hidden");
        assert_eq!(roff("'tis"), "\\&'tis");
        assert_eq!(roff("a\\-b"), "a\\e\\-b");
    }
}
