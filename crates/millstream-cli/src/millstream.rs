//! `millstream`: the commands that belong to no single tool.
//!
//! `spark-conf` prints the settings that switch Millstream on in Spark, the same block that Python's
//! `millstream.enable` sets. `compact`, `recover` and `formats` run Spark jobs with these settings, `doctor` runs one
//! without them. `index` works here, or runs a job; `recompress` works here. `man` and `completions` write texts generated
//! from the option tables.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::compact::{self, CODEC_HELP, CODECS, Compact, FORMATS};
use crate::diagnostics::{Diagnostics, FAILURE, Refused, UsageError};
use crate::formats::{self, Formats};
use crate::index::{self, EXPORTS, Index};
use crate::options::{
    Command, Occurrence, Paragraph, Reference, Section, Shell, Syntax, completions, flag, help_option,
    man_page, take_options, value, version_option,
};
use crate::recompress::{FORMS as SPLITTABLE, Recompress};
use crate::recover::{self, Recover, SUPERSEDED};
use crate::standard_output::StandardOutput;
use crate::startup::{Startup, restore_open_files, startup};
use crate::submit::{Submission, spark_defaults};
use crate::{pchmod, pchown, pcopy, pdu, pfind, pls, prm};

/// The one source of the settings, which the jar and the Python package carry too.
const SPARK_DEFAULTS: &str =
    include_str!("../../../jvm/spark/src/main/resources/millstream/spark-defaults.conf");
const JAR_PLACEHOLDER: &str = "@JAR@";
const JAR_NAME: &str = "millstream-spark.jar";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    Jar,
    TargetSize,
    Format,
    Codec,
    Header,
    InPlace,
    CopyLeft,
    AcceptLoss,
    Superseded,
    Sample,
    Codecs,
    Rounds,
    Limit,
    WorkDir,
    Also,
    Picture,
    Directory,
    MinSize,
    Prune,
    Import,
    Export,
    Spark,
    To,
    Level,
    Keep,
    DryRun,
    Json,
    Verbose,
    Master,
    Conf,
}

const GROUP: &str = "Options";
const COMPACT: &str = "Options of compact";
const RECOVER: &str = "Options of recover";
const FORMATS_GROUP: &str = "Options of formats";
const INDEX: &str = "Options of index";
const RECOMPRESS: &str = "Options of recompress";
const DRY_RUN: &str = "Options of compact, recover, index, recompress and formats";
const WORK: &str = "Options of compact, recover, index, recompress, formats and doctor";
const JOBS: &str = "Options of compact, recover, index --spark, formats and doctor";
const JAR_VARIABLE: &str = "MILLSTREAM_JAR";
/// The class of `doctor`'s job.
const DOCTOR: &str = "io.millstream.spark.Doctor";

const MILLSTREAM: Command<Id> = Command {
    name: "millstream",
    summary: "set up Millstream for Spark and the shell",
    usage: &[
        "compact [OPTION]... SOURCE DESTINATION",
        "compact --in-place [OPTION]... SOURCE",
        "recover [OPTION]... TABLE|PATH",
        "index [OPTION]... FILE|DIRECTORY...",
        "recompress [OPTION]... FILE...",
        "formats [OPTION]... PATH",
        "spark-conf [--jar=PATH]",
        "doctor [OPTION]...",
        "man DIRECTORY",
        "completions DIRECTORY",
    ],
    description: &[
        "compact merges the small files of each directory below SOURCE into a few larger ones, on Spark. \
         recover finishes or undoes writes whose drivers have died, to a table or to a directory (an argument \
         with a slash is a path). index makes the indexes by which several tasks of Spark share a compressed file, \
         before Spark first reads it. recompress compresses files again so that several tasks can share \
         them. formats measures in which compression format the text below PATH is best stored, in stock Spark \
         and with Millstream. spark-conf prints the settings that switch Millstream on in Spark. doctor checks \
         whether Millstream works in the installed Spark, and says how to fix what does not. man and \
         completions write the manual pages or shell completions of all tools to DIRECTORY, and create it if \
         needed.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        value(
            Id::Jar,
            None,
            &["jar"],
            "PATH",
            GROUP,
            "the jar's path on the driver; by default the value of the environment variable MILLSTREAM_JAR, or \
             the jar of the Python package that contains this program",
        ),
        help_option(GROUP),
        version_option(GROUP),
        value(
            Id::TargetSize,
            None,
            &["target-size"],
            "SIZE",
            COMPACT,
            "merge files into outputs of about SIZE bytes, 128M by default; files of three quarters of \
             that size or more stay as they are",
        ),
        value(
            Id::Format,
            None,
            &["format"],
            "WORD",
            COMPACT,
            "the format of the outputs: 'same', the default, keeps lines as lines and Parquet as Parquet; \
             'text' writes lines; 'parquet' writes Parquet, with lines in a column 'value'",
        )
        .words(FORMATS),
        value(
            Id::Codec,
            None,
            &["codec"],
            "CODEC",
            COMPACT,
            CODEC_HELP,
        )
        .words(CODECS),
        flag(
            Id::Header,
            None,
            &["header"],
            COMPACT,
            "the first line of each file is a header: keep it once; it must be the same in all files that are \
             merged",
        ),
        flag(
            Id::InPlace,
            None,
            &["in-place"],
            COMPACT,
            "replace the files of SOURCE, after all outputs have been written and verified; after an \
             interruption the same command completes the work",
        ),
        flag(
            Id::CopyLeft,
            None,
            &["copy-left"],
            COMPACT,
            "copy files that cannot be merged to DESTINATION unchanged; without this option DESTINATION lacks \
             them",
        ),
        flag(
            Id::AcceptLoss,
            None,
            &["accept-loss"],
            RECOVER,
            "give up committed writes that cannot be completed, and list the lost files; without this option \
             they are errors",
        ),
        value(
            Id::Superseded,
            None,
            &["superseded"],
            "WORD",
            RECOVER,
            "what to do with an overwrite's files if another program has overwritten the directory meanwhile: \
             'apply' replaces the current files by them, 'drop' removes them; by default they are kept, hidden",
        )
        .words(SUPERSEDED),
        value(
            Id::Sample,
            None,
            &["sample"],
            "SIZE",
            FORMATS_GROUP,
            "measure with the first SIZE bytes of text, 256M by default, to the end of a line",
        ),
        value(
            Id::Codecs,
            None,
            &["codecs"],
            "LIST",
            FORMATS_GROUP,
            "the formats, separated by commas: none, gz, bz2, zst, lz4 (these by default), snappy",
        )
        .words(formats::CODECS),
        value(
            Id::Rounds,
            None,
            &["rounds"],
            "N",
            FORMATS_GROUP,
            "read N times in each run, and report the median; 3 by default",
        ),
        value(
            Id::Limit,
            None,
            &["limit"],
            "TIME",
            FORMATS_GROUP,
            "stop a run that takes longer, and report that; 10m by default, or for example 90s",
        ),
        value(
            Id::WorkDir,
            None,
            &["work-dir"],
            "DIR",
            FORMATS_GROUP,
            "write the sample to a new directory in DIR, which is removed at the end; by default in the \
             directory for temporary files. Executors on other machines must see DIR too",
        ),
        value(
            Id::Also,
            None,
            &["also"],
            "URL",
            FORMATS_GROUP,
            "also measure with copies of the sample in this directory on S3 or HDFS, which are removed at the \
             end",
        ),
        value(
            Id::Picture,
            None,
            &["picture"],
            "FILE",
            FORMATS_GROUP,
            "draw the times in FILE as well, whose name ends in .svg or .png",
        ),
        value(
            Id::Directory,
            None,
            &["directory"],
            "DIR",
            INDEX,
            "keep indexes in DIR, the value of spark.millstream.index.directory in Spark; by default in a \
             directory _millstream beside each file",
        ),
        value(
            Id::MinSize,
            None,
            &["min-size"],
            "SIZE",
            INDEX,
            "of the files in directories, take those of SIZE bytes or more, 4M by default, as \
             spark.millstream.index.minSize in Spark",
        ),
        flag(
            Id::Prune,
            None,
            &["prune"],
            INDEX,
            "make no index, but remove those whose files are gone or have changed, and what interrupted runs \
             left more than a day ago",
        ),
        value(
            Id::Import,
            None,
            &["import"],
            "INDEX",
            INDEX,
            "decode the one FILE on all CPUs, by its index of gztool, indexed_gzip, rapidgzip or bgzip",
        ),
        value(
            Id::Export,
            None,
            &["export"],
            "PROGRAM",
            INDEX,
            "also write the index of a program beside each file: 'gztool', as NAME.gzi for NAME.gz",
        )
        .words(EXPORTS),
        flag(
            Id::Spark,
            None,
            &["spark"],
            INDEX,
            "run a Spark job, for files on S3 or HDFS and for more files than one machine should read",
        ),
        value(
            Id::To,
            None,
            &["to"],
            "FORM",
            RECOMPRESS,
            "compress as FORM: 'gz' (bgzf), 'zst' (seekable Zstandard) or 'lz4' (frames of 8 MiB); by default as \
             the file is compressed, or else 'gz'",
        )
        .words(SPLITTABLE),
        value(
            Id::Level,
            None,
            &["level"],
            "N",
            RECOMPRESS,
            "the level of compression, 1 to 9 for gz (6 by default) and 1 to 19 for zst (3)",
        ),
        flag(Id::Keep, None, &["keep"], RECOMPRESS, "keep the old file, if the new one has another name"),
        flag(
            Id::DryRun,
            None,
            &["dry-run"],
            DRY_RUN,
            "report what would be done; compact reads the beginnings of files and schemas for this",
        ),
        flag(Id::Json, None, &["json"], WORK, "write the result as JSON; index and recompress write a line for each file"),
        flag(
            Id::Verbose,
            Some(b'v'),
            &["verbose"],
            WORK,
            "show Spark's log, with its stack traces; index and recompress: report each file",
        ),
        value(Id::Master, None, &["master"], "URL", JOBS, "Spark's master, as for spark-submit"),
        value(
            Id::Conf,
            None,
            &["conf"],
            "KEY=VALUE",
            JOBS,
            "a Spark setting, as for spark-submit; may be repeated",
        ),
    ],
    long_order: &[],
    sections: &[
        Section {
            title: "Examples",
            body: &[
                Paragraph::Text("millstream spark-conf >> $SPARK_HOME/conf/spark-defaults.conf"),
                Paragraph::Text("millstream compact --target-size=256M /mnt/filer/logs /mnt/filer/logs-compact"),
                Paragraph::Text("millstream recover --dry-run sales.orders"),
                Paragraph::Text("millstream formats --picture=formats.svg /mnt/filer/logs"),
                Paragraph::Text("millstream index -v /mnt/filer/logs"),
                Paragraph::Text("millstream recompress --to=zst /mnt/filer/logs/*.bz2"),
                Paragraph::Text("millstream index --spark --master=yarn s3a://lake/logs"),
                Paragraph::Text("millstream doctor --master=yarn"),
            ],
        },
        Section {
            title: "Doctor",
            body: &[Paragraph::Text(
                "Starts Spark with the settings of its installation, not with those of spark-conf or of \
                 millstream.enable in a program, and checks the jar, the class path, the native library, the \
                 file system of file:, the session extension, the executors and each switch. It prints one \
                 line per check, with a fix for each failure.",
            )],
        },
        Section {
            title: "Recover",
            body: &[Paragraph::Text(
                "Completes committed writes, and removes the files of uncommitted ones. An uncommitted write \
                 is left alone until its driver has been silent for its lease time, two minutes by default. \
                 For a table in a metastore, give its name, and the metastore's settings with --conf.",
            )],
        },
        Section {
            title: "Formats",
            body: &[Paragraph::Text(
                "Writes the sample once in each format, as one file, as the usual command (gzip, bzip2, zstd, \
                 lz4) writes it. Each run counts its lines in a new JVM: a read, or a read with a repartition, \
                 in stock Spark or with Millstream. A number of rows that is wrong is shown as such. At the end \
                 it recommends a format for this data, by the product of size and read time.",
            )],
        },
        Section {
            title: "Index",
            body: &[Paragraph::Text(
                "Takes the files among the operands whose formats have indexes (.gz, .zst, .lz4, .snappy), and in \
                 directories those of a sufficient size at any depth; names that begin with _ or . are passed over. Files that have a valid index are left \
                 alone.",
            )],
        },
        Section {
            title: "Recompress",
            body: &[Paragraph::Text(
                "Takes text, by names also compressed text, and writes NAME.gz, NAME.zst or NAME.lz4 beside it. The \
                 new file replaces the old one after it has been read back and compared. After an interruption \
                 the same command completes the work. Files in the right form are left alone.",
            )],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 on success, 1 otherwise; 3 if recover has left a write alone whose driver may still run. \
                 Files that could not be merged stay unchanged, are reported and count as a failure. Files \
                 copied by --copy-left are reported, but are no failure. formats fails if a run with Millstream \
                 did; what stock Spark fails at is a result.",
            )],
        },
    ],
};

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
    /// The command, other than that of the word, which an option is for.
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

/// What the command line asks for.
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
    /// Indexes that are made or removed here.
    Index {
        index: Index,
        operands: Vec<OsString>,
        submission: Submission,
    },
    /// Files that are compressed again.
    Recompress {
        recompress: Recompress,
        operands: Vec<OsString>,
        submission: Submission,
    },
    /// A job in Spark as it is without the conf block.
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
            Err(UsageError::argument(format!("an option that is only for {commands}").into()))
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
                let arguments =
                    submission.arguments(class, settings, &jar, &spark_conf(&jar), &spark_defaults());
                Err(Submission::submit(arguments, diagnostics))
            }
            Action::Index { index, operands, submission } => {
                index.carry_out(operands, &submission, diagnostics)
            }
            Action::Recompress { recompress, operands, submission } => {
                recompress.carry_out(operands, &submission, diagnostics);
                Ok(())
            }
            Action::Doctor { jar, submission } => {
                let jar = present_jar_or_refuse(jar, diagnostics)?;
                let arguments = submission.arguments(DOCTOR, Vec::new(), &jar, b"", b"");
                Err(Submission::submit(arguments, diagnostics))
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

/// The mistake of operands that are not one.
fn not_one(operands: &[OsString], what: &str, diagnostics: &Diagnostics) -> UsageError {
    UsageError::argument(match operands {
        [_, extra, ..] => [b"extra operand ", &diagnostics.quoted(extra.as_bytes())[..]].concat(),
        _ => format!("missing {what}").into(),
    })
}

/// The absolute path of the jar that was named, or is found.
fn jar_or_refuse(named: Option<OsString>, diagnostics: &Diagnostics) -> Result<OsString, Refused> {
    let of_environment = || std::env::var_os(JAR_VARIABLE).filter(|jar| !jar.is_empty());
    let found = named.or_else(of_environment).or_else(|| jar_of_installation().map(PathBuf::into_os_string));
    let Some(jar) = found else {
        let text =
            format!("cannot find {JAR_NAME} beside this program: name it with --jar=PATH or {JAR_VARIABLE}");
        diagnostics.error(FAILURE).text(&text).send();
        return Err(Refused);
    };
    if jar.as_bytes().windows(2).any(|pair| pair == b":/") {
        // A URI, which Spark understands.
        return Ok(jar);
    }
    // Spark may be started elsewhere. The jar need not be here: it may be for other machines.
    std::path::absolute(jar).map(PathBuf::into_os_string).map_err(|error| {
        diagnostics.error(FAILURE).text("--jar").cause(&error).send();
        Refused
    })
}

/// As [`jar_or_refuse`], for a job that is started here and needs the jar here, unless a URI says otherwise.
fn present_jar_or_refuse(named: Option<OsString>, diagnostics: &Diagnostics) -> Result<OsString, Refused> {
    let jar = jar_or_refuse(named, diagnostics)?;
    if jar.as_bytes().starts_with(b"/") && !Path::new(&jar).is_file() {
        let text = format!(": there is no such jar; correct --jar or {JAR_VARIABLE}");
        diagnostics
            .error(FAILURE)
            .bytes(&[&diagnostics.quoted(jar.as_bytes())[..], text.as_bytes()].concat())
            .send();
        return Err(Refused);
    }
    Ok(jar)
}

/// The conf block for a jar at `jar`, whose path need not be UTF-8.
fn spark_conf(jar: &OsStr) -> Vec<u8> {
    let parts: Vec<_> = SPARK_DEFAULTS.split(JAR_PLACEHOLDER).map(str::as_bytes).collect();
    parts.join(jar.as_bytes())
}

/// The jar of the Python package that was installed together with this program: `PREFIX/bin/millstream` goes with
/// `PREFIX/lib/python3.N/site-packages`.
fn jar_of_installation() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let library = program.parent()?.parent()?.join("lib");
    let pythons = std::fs::read_dir(library).ok()?;
    let jar_below = |python: PathBuf| python.join("site-packages/millstream/jars").join(JAR_NAME);
    let mut jars: Vec<_> = pythons.flatten().map(|python| jar_below(python.path())).collect();
    jars.retain(|jar| jar.is_file());
    jars.sort();
    jars.pop()
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
    fn a_job_needs_its_jar() {
        let diagnostics = Diagnostics::new("millstream");
        let present = |jar: &OsStr| present_jar_or_refuse(Some(jar.to_owned()), &diagnostics).is_ok();
        assert!(!present(OsStr::new("/nonexistent/millstream.jar")));
        assert!(present(OsStr::new("hdfs:///jars/millstream.jar")), "Spark fetches it");
        assert!(present(std::env::current_exe().expect("a path").as_os_str()));
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
            "an option that is only for formats"
        );
        let mut recover = Recover::default();
        recover.accept_loss = true;
        assert_eq!(
            refused("formats", Commands { recover, ..Commands::default() }),
            "an option that is only for recover"
        );
    }

    #[test]
    fn every_placeholder_becomes_the_jar() {
        let block = String::from_utf8(spark_conf("/opt/m.jar".as_ref())).expect("UTF-8");
        assert!(!block.contains(JAR_PLACEHOLDER));
        let settings: Vec<_> = block.lines().filter(|line| line.starts_with("spark.")).collect();
        assert!(settings.iter().any(|line| line.starts_with("spark.jars") && line.ends_with("/opt/m.jar")));
        assert!(settings.iter().all(|line| line.split_whitespace().count() == 2), "{settings:?}");
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
        for tool in ["pls", "pfind", "pdu", "prm", "pchmod", "pchown", "pcopy", "millstream"] {
            let manual = std::fs::read_to_string(directory.join(format!("{tool}.1"))).expect("a manual");
            assert!(
                manual.contains("--help") || manual.contains("\\-\\-help") || manual.contains("help"),
                "{tool}"
            );
            for shell in Shell::ALL {
                assert!(directory.join(shell.file_name(tool)).is_file(), "{tool} {shell:?}");
            }
        }
    }
}
