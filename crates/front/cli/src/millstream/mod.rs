//! `millstream`: the commands that do not belong to a single tool.
//!
//! `spark-conf` prints the settings that switch Millstream on in Spark, the same block that Python's
//! `millstream.enable` sets. `compact`, `recover` and `formats` run Spark jobs with these settings, `doctor` runs one
//! with those of the installation. `index` runs here, or runs a job; `recompress` runs here. `man` and `completions`
//! write texts generated from the option tables.

mod table;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::compact::{self, Compact};
use crate::diagnostics::{Diagnostics, FAILURE, Refused, UsageError};
use crate::doctor;
use crate::formats::{self, Formats};
use crate::index::{self, Index};
use crate::options::{Occurrence, Reference, Shell, completions, man_page, take_options};
use crate::recompress::Recompress;
use crate::recover::{self, Recover};
use crate::standard_output::StandardOutput;
use crate::startup::{Startup, restore_open_files, startup};
use crate::submit::{Submission, jar_or_refuse, present_jar_or_refuse, spark_conf};
use crate::{pchmod, pchown, pcopy, pdu, pfind, pls, prm, psync};
use table::{Id, MILLSTREAM};

/// The option table of `millstream`, for texts.
pub fn reference() -> Reference {
    Reference::from(&MILLSTREAM)
}

/// Runs `millstream` with the arguments of the process.
pub fn run() -> ExitCode {
    let Startup { arguments, diagnostics, inherited_open_files, .. } = startup(MILLSTREAM.name);
    restore_open_files(inherited_open_files);
    let (mut jar, mut commands, mut submission) = (None, Commands::default(), Submission::default());
    let operands = take_options(&MILLSTREAM, arguments, &diagnostics, FAILURE, |option| {
        option
            .and_then(|option| match option.id {
                Id::Jar => {
                    jar = option.value;
                    Ok(())
                }
                _ => set(&mut commands, &mut submission, option, &diagnostics),
            })
            .map_err(|error| diagnostics.usage_error(&error, FAILURE))
    });
    let action = operands.and_then(|operands| {
        Action::parse(&operands, jar, commands, submission, &diagnostics)
            .map_err(|error| diagnostics.usage_error(&error, FAILURE))
    });
    // The diagnostics hold the exit code.
    let _: Result<(), Refused> = action.and_then(|action| action.carry_out(&diagnostics));
    diagnostics.exit_code()
}

/// The options that only one command has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Commands {
    compact: Compact,
    recover: Recover,
    index: Index,
    recompress: Recompress,
    formats: Formats,
}

impl Commands {
    /// The command that an option is for, if that is not the given one.
    fn of_others(&self, word: &[u8]) -> Option<&'static str> {
        let given = [
            ("compact", self.compact != Compact::default()),
            ("recover", self.recover != Recover::default()),
            ("index", self.index != Index::default()),
            ("recompress", self.recompress != Recompress::default()),
            ("formats", self.formats != Formats::default()),
        ];
        given
            .into_iter()
            .find(|(command, is_given)| *is_given && command.as_bytes() != word)
            .map(|(command, _)| command)
    }
}

/// Takes an option of a command.
fn set(
    Commands { compact, recover, index, recompress, formats }: &mut Commands,
    submission: &mut Submission,
    option: Occurrence<Id>,
    diagnostics: &Diagnostics,
) -> Result<(), UsageError> {
    match option.id {
        Id::TargetSize => compact.set_target_size(option.bytes(), diagnostics)?,
        Id::Format => compact.set_format(option.bytes(), diagnostics)?,
        Id::Codec => compact.set_codec(option.bytes(), diagnostics)?,
        Id::Header => compact.header = true,
        Id::NoHeader => compact.no_header = true,
        Id::Lines => compact.lines = option.value,
        Id::Table => compact.table = option.value,
        Id::PlainFiles => compact.plain_files = true,
        Id::KeepFor => compact.keep_for = option.value,
        Id::Undo => compact.undo = true,
        Id::Purge => compact.purge = true,
        Id::InPlace => compact.in_place = true,
        Id::CopyLeft => compact.copy_left = true,
        Id::AcceptLoss => recover.accept_loss = true,
        Id::Superseded => recover.set_superseded(option.bytes(), diagnostics)?,
        Id::Sample => formats.set_sample(option.bytes(), diagnostics)?,
        Id::Codecs => formats.set_codecs(option.bytes(), diagnostics)?,
        Id::Rounds => formats.set_rounds(option.bytes(), diagnostics)?,
        Id::Limit => formats.set_other("limit", option.value),
        Id::WorkDir => formats.set_other("work-dir", option.value),
        Id::Also => formats.set_other("also", option.value),
        Id::Picture => formats.set_other("picture", option.value),
        Id::Directory => index.directory = option.value,
        Id::MinSize => index.set_min_size(option.bytes(), diagnostics)?,
        Id::Prune => index.prune = true,
        Id::Import => index.import = option.value,
        Id::Export => index.set_export(option.bytes(), diagnostics)?,
        Id::Spark => index.spark = true,
        Id::To => recompress.set_form(option.bytes(), diagnostics)?,
        Id::Level => recompress.set_level(option.bytes(), diagnostics)?,
        Id::Keep => recompress.keep = true,
        Id::DryRun => submission.dry_run = true,
        Id::Json => submission.json = true,
        Id::Verbose => submission.verbose = true,
        Id::Master => submission.master = option.value,
        Id::Conf => submission.spark_settings.extend(option.value),
        Id::Jar => {}
    }
    Ok(())
}

/// The request of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    SparkConf {
        jar: Option<OsString>,
    },
    /// A job of a class, with its settings.
    Job {
        class: &'static str,
        settings: Vec<OsString>,
        jar: Option<OsString>,
        submission: Submission,
    },
    /// Building or removing indexes here.
    Index {
        index: Index,
        operands: Vec<OsString>,
        submission: Submission,
    },
    /// Recompressing files.
    Recompress {
        recompress: Recompress,
        operands: Vec<OsString>,
        submission: Submission,
    },
    /// Checks of the installed Spark.
    Doctor {
        jar: Option<OsString>,
        submission: Submission,
    },
    Manuals(PathBuf),
    Completions(PathBuf),
}

impl Action {
    fn parse(
        operands: &[OsString],
        jar: Option<OsString>,
        commands: Commands,
        submission: Submission,
        diagnostics: &Diagnostics,
    ) -> Result<Self, UsageError> {
        let only_for = |commands: &str| {
            Err(UsageError::argument(format!("an option was given that applies only to {commands}").into()))
        };
        let (word, rest) =
            operands.split_first().map_or((&b""[..], operands), |(word, rest)| (word.as_bytes(), rest));
        if let Some(command) = commands.of_others(word) {
            return only_for(command);
        }
        match word {
            b"compact" => {
                let settings = commands.compact.settings(rest)?;
                return Ok(Action::Job { class: compact::CLASS, settings, jar, submission });
            }
            b"recover" => {
                let [target] = rest else { return Err(not_one(rest, "table or path", diagnostics)) };
                let settings = commands.recover.settings(target);
                return Ok(Action::Job { class: recover::CLASS, settings, jar, submission });
            }
            b"formats" => {
                let [path] = rest else { return Err(not_one(rest, "path", diagnostics)) };
                let settings = commands.formats.settings(path, &submission);
                return Ok(Action::Job { class: formats::CLASS, settings, jar, submission });
            }
            b"index" => {
                let index = commands.index;
                index.check(rest, &submission)?;
                if !index.spark {
                    return Ok(Action::Index { index, operands: rest.to_vec(), submission });
                }
                let settings = index.settings(rest, &submission);
                return Ok(Action::Job { class: index::CLASS, settings, jar, submission });
            }
            b"recompress" => {
                let recompress = commands.recompress;
                recompress.check(rest, &submission)?;
                return Ok(Action::Recompress { recompress, operands: rest.to_vec(), submission });
            }
            _ => {}
        }
        if operands == ["doctor"] && submission.dry_run {
            return only_for("compact, recover, index, recompress and formats");
        } else if operands == ["doctor"] {
            return Ok(Action::Doctor { jar, submission });
        }
        if submission != Submission::default() {
            return only_for("compact, recover, index, recompress, formats and doctor");
        }
        match operands.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()[..] {
            [b"spark-conf"] => Ok(Action::SparkConf { jar }),
            [b"man", directory] => Ok(Action::Manuals(OsStr::from_bytes(directory).into())),
            [b"completions", directory] => Ok(Action::Completions(OsStr::from_bytes(directory).into())),
            [] => Err(UsageError::argument(b"missing command".to_vec())),
            [b"man" | b"completions"] => Err(UsageError::argument(b"missing directory".to_vec())),
            [b"spark-conf" | b"doctor", extra, ..] | [b"man" | b"completions", _, extra, ..] => {
                Err(UsageError::argument([b"extra operand ", &diagnostics.quoted(extra)[..]].concat()))
            }
            [other, ..] => {
                Err(UsageError::argument([b"unknown command ", &diagnostics.quoted(other)[..]].concat()))
            }
        }
    }

    fn carry_out(self, diagnostics: &Diagnostics) -> Result<(), Refused> {
        match self {
            Action::SparkConf { jar } => {
                let jar = jar_or_refuse(jar, diagnostics)?;
                print(&spark_conf(&jar), diagnostics)
            }
            Action::Job { class, settings, jar, submission } => {
                let jar = present_jar_or_refuse(jar, diagnostics)?;
                Err(submission.run(class, settings, &jar, diagnostics))
            }
            Action::Index { index, operands, submission } => {
                index.carry_out(operands, &submission, diagnostics)
            }
            Action::Recompress { recompress, operands, submission } => {
                recompress.carry_out(operands, &submission, diagnostics)
            }
            Action::Doctor { jar, submission } => {
                let jar = present_jar_or_refuse(jar, diagnostics)?;
                doctor::run(&submission, &jar, diagnostics)
            }
            Action::Manuals(directory) => {
                write_all(&directory, diagnostics, |tool| vec![(format!("{}.1", tool.name), man_page(tool))])
            }
            Action::Completions(directory) => write_all(&directory, diagnostics, |tool| {
                Shell::ALL.map(|shell| (shell.file_name(tool.name), completions(tool, shell))).to_vec()
            }),
        }
    }
}

/// The mistake if there is not exactly one operand.
fn not_one(operands: &[OsString], what: &str, diagnostics: &Diagnostics) -> UsageError {
    UsageError::argument(match operands {
        [_, extra, ..] => [b"extra operand ", &diagnostics.quoted(extra.as_bytes())[..]].concat(),
        _ => format!("missing {what}").into(),
    })
}

fn print(text: &[u8], diagnostics: &Diagnostics) -> Result<(), Refused> {
    StandardOutput.write_text(text).map_err(|error| {
        diagnostics.write_error(&error, FAILURE);
        Refused
    })
}

fn write_all(
    directory: &Path,
    diagnostics: &Diagnostics,
    texts: impl Fn(&Reference) -> Vec<(String, String)>,
) -> Result<(), Refused> {
    let fail = |what: &str, path: &Path, error: &io::Error| {
        let quoted = diagnostics.quoted(path.as_os_str().as_bytes());
        diagnostics.error(FAILURE).text(what).bytes(&quoted).cause(error).send();
        Refused
    };
    std::fs::create_dir_all(directory)
        .map_err(|error| fail("cannot create directory ", directory, &error))?;
    let tools = [
        pls::reference(),
        pfind::reference(),
        pdu::reference(),
        prm::reference(),
        psync::reference(),
        pchmod::reference(),
        pchown::reference(),
        pcopy::reference(),
        reference(),
    ];
    for tool in tools {
        for (name, text) in texts(&tool) {
            let path = directory.join(OsString::from_vec(name.into_bytes()));
            std::fs::write(&path, text).map_err(|error| fail("cannot write ", &path, &error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str], jar: Option<&str>) -> Result<Action, UsageError> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        let diagnostics = Diagnostics::new("millstream");
        Action::parse(
            &words,
            jar.map(OsString::from),
            Commands::default(),
            Submission::default(),
            &diagnostics,
        )
    }

    #[test]
    fn commands() {
        assert_eq!(parsed(&["spark-conf"], None), Ok(Action::SparkConf { jar: None }));
        assert_eq!(
            parsed(&["spark-conf"], Some("/x.jar")),
            Ok(Action::SparkConf { jar: Some("/x.jar".into()) })
        );
        assert_eq!(
            parsed(&["recover", "a.b"], None),
            Ok(Action::Job {
                class: recover::CLASS,
                settings: vec!["target=a.b".into()],
                jar: None,
                submission: Submission::default()
            })
        );
        assert_eq!(
            parsed(&["doctor"], None),
            Ok(Action::Doctor { jar: None, submission: Submission::default() })
        );
        assert_eq!(parsed(&["man", "d"], None), Ok(Action::Manuals("d".into())));
        assert_eq!(parsed(&["completions", "d"], None), Ok(Action::Completions("d".into())));
    }

    #[test]
    fn mistakes_name_the_word() {
        for (words, message) in [
            (&[][..], "missing command"),
            (&["man"], "missing directory"),
            (&["recover"], "missing table or path"),
            (&["index"], "missing file or directory"),
            (&["recompress"], "missing file"),
            (&["recover", "a", "more"], "extra operand 'more'"),
            (&["formats"], "missing path"),
            (&["formats", "a", "more"], "extra operand 'more'"),
            (&["nonsense"], "unknown command 'nonsense'"),
            (&["spark-conf", "more"], "extra operand 'more'"),
            (&["doctor", "more"], "extra operand 'more'"),
            (&["man", "d", "more"], "extra operand 'more'"),
        ] {
            let error = parsed(words, None).expect_err("a mistake");
            // The quotes are those of the locale.
            let told = String::from_utf8_lossy(error.message()).replace(['\u{2018}', '\u{2019}'], "'");
            assert_eq!(told, message);
        }
    }

    #[test]
    fn an_option_of_one_job_is_for_no_other() {
        let diagnostics = Diagnostics::new("millstream");
        let refused = |command: &str, jobs: Commands| {
            let operands = [command.into(), "a".into()];
            let parsed = Action::parse(&operands, None, jobs, Submission::default(), &diagnostics);
            String::from_utf8(parsed.expect_err("not its option").message().to_vec()).expect("UTF-8")
        };
        let mut formats = Formats::default();
        formats.set_rounds(b"2", &diagnostics).expect("a number");
        assert_eq!(
            refused("recover", Commands { formats, ..Commands::default() }),
            "an option was given that applies only to formats"
        );
        let mut recover = Recover::default();
        recover.accept_loss = true;
        assert_eq!(
            refused("formats", Commands { recover, ..Commands::default() }),
            "an option was given that applies only to recover"
        );
    }

    #[test]
    fn completions_have_the_commands() {
        let bash = completions(&reference(), Shell::Bash);
        let script = format!(
            "{bash}\nCOMP_WORDS=(millstream reco); COMP_CWORD=1; _millstream; echo ${{COMPREPLY[@]}}"
        );
        let out = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        assert_eq!(String::from_utf8_lossy(&out.stdout), "recover recompress\n");
        let zsh = completions(&reference(), Shell::Zsh);
        assert!(
            zsh.contains(
                "'1:command:(compact recover index recompress formats spark-conf doctor man completions)'"
            ),
            "{zsh}"
        );
        let fish = completions(&reference(), Shell::Fish);
        assert!(
            fish.contains(
                "-a 'compact recover index recompress formats spark-conf doctor man completions'\n"
            ),
            "{fish}"
        );
    }

    #[test]
    fn manuals_and_completions_of_every_tool_are_written() {
        let scratch = tempfile::tempdir().expect("scratch");
        let directory = scratch.path().join("new");
        let diagnostics = Diagnostics::new("millstream");
        assert_eq!(Action::Manuals(directory.clone()).carry_out(&diagnostics), Ok(()));
        assert_eq!(Action::Completions(directory.clone()).carry_out(&diagnostics), Ok(()));
        for tool in ["pls", "pfind", "pdu", "prm", "pchmod", "pchown", "pcopy", "psync", "millstream"] {
            let manual = std::fs::read_to_string(directory.join(format!("{tool}.1"))).expect("a manual");
            assert!(manual.contains("\\fB\\-\\-help\\fR"), "{tool}");
            for shell in Shell::ALL {
                assert!(directory.join(shell.file_name(tool)).is_file(), "{tool} {shell:?}");
            }
        }
    }
}
