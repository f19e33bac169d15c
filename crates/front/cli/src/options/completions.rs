//! Shell completions.

use super::reference::ReferenceEntry;
use super::{Argument, Reference};

/// A supported shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// bash, with or without the bash-completion package.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

impl Shell {
    /// All of them.
    pub const ALL: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

    /// The name of the file in which the shell looks for the completions of `command`.
    pub fn file_name(self, command: &str) -> String {
        match self {
            Shell::Bash => format!("{command}.bash"),
            Shell::Zsh => format!("_{command}"),
            Shell::Fish => format!("{command}.fish"),
        }
    }
}

/// The completions of a command.
pub fn completions(command: &Reference, shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(command),
        Shell::Zsh => zsh(command),
        Shell::Fish => fish(command),
    }
}

fn bash(command: &Reference) -> String {
    let name = command.name;
    let mut words = command.words();
    words.extend(command.expression_words().iter().map(|(term, _)| first_word(term).to_owned()));
    let mut cases = String::new();
    for entry in command.entries.iter().filter(|e| !e.words.is_empty()) {
        let patterns: Vec<_> = entry.spellings().iter().map(|s| shell_quote(s)).collect();
        let choices = shell_quote(&entry.words.join(" "));
        cases.push_str(&format!(
            "        {}) COMPREPLY=($(compgen -W {choices} -- \"$cur\")); return ;;\n",
            patterns.join("|")
        ));
    }
    let commands = match &command.commands()[..] {
        [] => String::new(),
        commands => format!(
            "    elif [[ $COMP_CWORD == 1 ]]; then\n        COMPREPLY=($(compgen -W {} -- \"$cur\"))\n",
            shell_quote(&commands.join(" "))
        ),
    };
    format!(
        r#"_{name}() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    # Bash makes the equals sign of --option=value a word of its own.
    if [[ $cur == "=" ]]; then
        cur=
    elif [[ $prev == "=" ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    case $prev in
{cases}        *) ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W {words} -- "$cur"))
{commands}    else
        # A name a line: names may have blanks.
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}}
complete -o filenames -F _{name} {name}
"#,
        words = shell_quote(&words.join(" ")),
    )
}

fn zsh(command: &Reference) -> String {
    let mut text = format!("#compdef {}\n\n_arguments -s -S \\\n", command.name);
    for entry in &command.entries {
        for spelling in entry.spellings() {
            let attached = if spelling.starts_with("--") { "=" } else { "+" };
            let mark = if entry.argument == Argument::None || entry.dashes == "-" { "" } else { attached };
            let spec = format!("*{spelling}{mark}[{}]{}", zsh_text(entry.help), zsh_argument(entry));
            text.push_str(&format!("    {} \\\n", shell_quote(&spec)));
        }
    }
    for (term, definition) in command.expression_words() {
        let argument = if term.contains(' ') { ": :_files" } else { "" };
        let spec = format!("*{}[{}]{argument}", first_word(term), zsh_text(definition));
        text.push_str(&format!("    {} \\\n", shell_quote(&spec)));
    }
    if let commands @ [_, ..] = &command.commands()[..] {
        text.push_str(&format!("    '1:command:({})' \\\n", commands.join(" ")));
    }
    text.push_str("    '*:file:_files'\n");
    text
}

fn zsh_argument(entry: &ReferenceEntry) -> String {
    let Some(name) = entry.argument_name() else { return String::new() };
    let colons = if matches!(entry.argument, Argument::Optional(_)) { "::" } else { ":" };
    let action = if !entry.words.is_empty() {
        format!("({})", entry.words.join(" "))
    } else if entry.takes_file() {
        "_files".to_owned()
    } else {
        " ".to_owned()
    };
    format!("{colons}{}:{action}", zsh_text(name))
}

/// Inside an argument specification brackets and colons have a meaning.
fn zsh_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '[' | ']' | ':' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn fish(command: &Reference) -> String {
    let name = command.name;
    let mut text = String::new();
    if let commands @ [_, ..] = &command.commands()[..] {
        let commands = fish_quote(&commands.join(" "));
        text.push_str(&format!("complete -c {name} -n __fish_use_subcommand -a {commands}\n"));
    }
    for entry in &command.entries {
        text.push_str(&format!("complete -c {name}"));
        if let Some(letter) = entry.short {
            text.push_str(&format!(" -s {}", fish_quote(&char::from(letter).to_string())));
        }
        let long = if entry.dashes == "--" { "-l" } else { "-o" };
        for name in entry.long {
            text.push_str(&format!(" {long} {}", fish_quote(name)));
        }
        if matches!(entry.argument, Argument::Required(_)) {
            text.push_str(if entry.takes_file() { " -r" } else { " -x" });
        }
        if !entry.words.is_empty() {
            text.push_str(&format!(" -a {}", fish_quote(&entry.words.join(" "))));
        }
        text.push_str(&format!(" -d {}\n", fish_quote(entry.help)));
    }
    for (term, definition) in command.expression_words() {
        let word = first_word(term).trim_start_matches('-');
        let argument = if term.contains(' ') { " -r" } else { "" };
        text.push_str(&format!(
            "complete -c {name} -o {}{argument} -d {}\n",
            fish_quote(word),
            fish_quote(definition)
        ));
    }
    text
}

fn first_word(term: &str) -> &str {
    term.split_whitespace().next().unwrap_or(term)
}

fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn fish_quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::super::sample::SAMPLE;
    use super::*;

    fn run(shell: &str, script: &str) -> Output {
        Command::new(shell).args(["-c", script]).output().expect("the shell runs")
    }

    #[test]
    fn bash_completes_options_and_words() {
        let script = completions(&Reference::from(&SAMPLE), Shell::Bash);
        for (words, expected) in
            [("pls --siz", "--size"), ("pls --color = n", "never"), ("pls --js", "--json")]
        {
            let last = words.split(' ').count() - 1;
            let out = run(
                "bash",
                &format!("{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}; _pls; echo ${{COMPREPLY[@]}}"),
            );
            assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), expected, "{out:?}");
        }
        let scratch = tempfile::tempdir().expect("scratch");
        std::fs::write(scratch.path().join("my file"), "").expect("a file");
        let complete = "COMP_WORDS=(pls my); COMP_CWORD=1; _pls; printf '<%s>' \"${COMPREPLY[@]}\"";
        let out = run("bash", &format!("cd {}; {script}\n{complete}", scratch.path().display()));
        assert_eq!(String::from_utf8_lossy(&out.stdout), "<my file>", "{out:?}");
    }

    #[test]
    fn zsh_and_fish_specifications() {
        let zsh = completions(&Reference::from(&SAMPLE), Shell::Zsh);
        assert!(zsh.contains("'*--color=[color the output]::WHEN:(always auto never)'"), "{zsh}");
        assert!(zsh.contains("'*-D[it'\\''s -H]'"), "{zsh}");
        let fish = completions(&Reference::from(&SAMPLE), Shell::Fish);
        assert!(fish.contains("complete -c pls -s 'w' -l 'width' -x -d 'set output width'\n"), "{fish}");
        assert!(fish.contains("-d 'it\\'s -H'"), "{fish}");
    }
}
