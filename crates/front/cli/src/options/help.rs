//! The text of `--help`, wrapped to 80 columns.

use super::reference::ReferenceEntry;
use super::{Paragraph, Reference};

const COLUMNS: usize = 79;
/// The column of the explanations.
const HELP_COLUMN: usize = 26;
/// The titles of sections that [`help_on`] knows.
const EXAMPLES: &str = "Examples";
const EXIT_STATUS: &str = "Exit status";

/// The text of `--help` for a tool called as `program`.
pub fn help(command: &Reference, program: &str) -> String {
    let mut text = String::new();
    write_usage(&mut text, program, command.usage);
    for paragraph in command.description {
        wrap(&mut text, "", 0, paragraph);
    }
    for (group, entries) in command.groups() {
        write_group(&mut text, group, entries);
    }
    for section in command.sections {
        write_section(&mut text, section.title, section.body);
    }
    text
}

/// The part of the `--help` text about the command `word` of a tool: its sentence of the description, the groups of
/// options whose titles name it, the section with its name, its examples.
pub fn help_on(word: &str, command: &Reference, program: &str) -> String {
    let names = |text: &str| text.split([' ', ',']).any(|other| other == word);
    let mut text = String::new();
    let usage: Vec<_> =
        command.usage.iter().copied().filter(|usage| usage.split(' ').next() == Some(word)).collect();
    write_usage(&mut text, program, &usage);
    for sentence in
        command.description.iter().flat_map(|text| text.split(". ")).filter(|sentence| names(sentence))
    {
        wrap(&mut text, "", 0, &format!("{}.", sentence.trim_end_matches('.')));
    }
    let groups = command.groups().filter(|(group, _)| names(group) || !group.contains(" of "));
    // Those of the command alone come first.
    let (own, shared): (Vec<_>, Vec<_>) =
        groups.partition(|(group, _)| *group == format!("Options of {word}"));
    for (group, entries) in own.into_iter().chain(shared) {
        write_group(&mut text, group, entries);
    }
    for section in command.sections {
        let is_example = |paragraph: &&Paragraph| matches!(paragraph, Paragraph::Text(text) if names(text));
        if section.title.eq_ignore_ascii_case(word) || section.title == EXIT_STATUS {
            write_section(&mut text, section.title, section.body);
        } else if section.title == EXAMPLES && section.body.iter().any(|paragraph| is_example(&paragraph)) {
            write_section(&mut text, section.title, section.body.iter().filter(is_example));
        }
    }
    text.push_str(&format!("\n'{program} --help' explains all commands.\n"));
    text
}

fn write_usage(text: &mut String, program: &str, usage: &[&str]) {
    for (i, usage) in usage.iter().enumerate() {
        text.push_str(if i == 0 { "Usage: " } else { "  or:  " });
        text.push_str(&format!("{program} {usage}\n"));
    }
}

fn write_group(text: &mut String, group: &str, entries: &[ReferenceEntry]) {
    text.push_str(&format!("\n{group}:\n"));
    for entry in entries {
        wrap(text, &label(entry), HELP_COLUMN, entry.help);
    }
}

fn write_section<'a>(text: &mut String, title: &str, body: impl IntoIterator<Item = &'a Paragraph>) {
    text.push_str(&format!("\n{title}:\n"));
    for paragraph in body {
        match paragraph {
            Paragraph::Text(paragraph) => wrap(text, "", 0, paragraph),
            Paragraph::Terms(terms) => {
                for (term, definition) in *terms {
                    wrap(text, &format!("  {term}"), HELP_COLUMN, definition);
                }
            }
        }
    }
}

/// The text of `--version`.
pub fn version(command: &Reference, program: &str) -> String {
    let name = command.name;
    let also = if program == name { String::new() } else { format!(" as {program}") };
    format!("{name} (Millstream) {}{also}\nLicense Apache-2.0.\n", env!("CARGO_PKG_VERSION"))
}

/// `  -B, --block-size=SIZE`
fn label(entry: &ReferenceEntry) -> String {
    let indent = if entry.short.is_none() && entry.dashes == "--" { "      " } else { "  " };
    format!("{indent}{}{}", entry.spellings().join(", "), entry.argument_suffix())
}

/// Appends `text`, wrapped, from `column` on, after `label`; it starts on a new line if the label leaves no room.
fn wrap(out: &mut String, label: &str, column: usize, text: &str) {
    out.push_str(label);
    let mut at = label.chars().count();
    if at + 2 > column && column > 0 {
        out.push('\n');
        at = 0;
    }
    out.push_str(&" ".repeat(column.saturating_sub(at)));
    at = column;
    let mut first = true;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if !first && at + 1 + width > COLUMNS {
            out.push('\n');
            out.push_str(&" ".repeat(column));
            at = column;
        } else if !first {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += width;
        first = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::sample::SAMPLE;
    use super::*;

    #[test]
    fn options_are_listed_by_group() {
        let text = help(&Reference::from(&SAMPLE), "ls");
        for line in [
            "Usage: ls [OPTION]... [FILE]...\n",
            "\nOptions:\n  -a, --all               do not ignore entries starting with .\n",
            "\n      --color, --colour[=WHEN]\n                          color the output\n",
            "\nNot in GNU's tool:\n      --json              write one JSON object per line, also for errors; see\n                          docs/json.md\n",
            "\nExit status:\n0 if all went well.\n  1                       minor problems\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in:\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() < 80));
    }
}
