//! The options of `millstream`, and the texts of its help.

use crate::compact::{CODEC_HELP, CODECS, FORMATS};
use crate::formats;
use crate::index::EXPORTS;
use crate::options::{Command, Paragraph, Section, Syntax, flag, help_option, value, version_option};
use crate::recompress::FORMS as SPLITTABLE;
use crate::recover::SUPERSEDED;

/// Its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Jar,
    TargetSize,
    Format,
    Codec,
    Header,
    NoHeader,
    Lines,
    InPlace,
    Table,
    PlainFiles,
    KeepFor,
    Undo,
    Purge,
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

/// The command.
pub(super) const MILLSTREAM: Command<Id> = Command {
    name: "millstream",
    summary: "set up Millstream for Spark and the shell",
    usage: &[
        "compact [OPTION]... SOURCE DESTINATION",
        "compact --in-place --plain-files [OPTION]... SOURCE",
        "compact --in-place --table=NAME [OPTION]... [SOURCE]",
        "compact --undo|--purge [OPTION]... SOURCE",
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
            Id::NoHeader,
            None,
            &["no-header"],
            COMPACT,
            "the first line of each file is a line like the others; without --header and --no-header, files named \
             .csv and .tsv are not merged",
        ),
        value(
            Id::Lines,
            None,
            &["lines"],
            "LIST",
            COMPACT,
            "files whose names have these endings, such as .dat,.tbl, consist of independent lines and may be merged",
        ),
        flag(
            Id::InPlace,
            None,
            &["in-place"],
            COMPACT,
            "replace the files of SOURCE, after all outputs have been written and verified; after an \
             interruption the same command completes the work; requires --table or --plain-files",
        ),
        value(
            Id::Table,
            None,
            &["table"],
            "NAME",
            COMPACT,
            "replace the files of this table, or those in a SOURCE within it; the catalog must know it as plain text, \
             csv, json or Parquet files without buckets",
        ),
        flag(
            Id::PlainFiles,
            None,
            &["plain-files"],
            COMPACT,
            "no table format and no other program keeps a list of the files of SOURCE; directories that show \
             otherwise are refused all the same",
        ),
        value(
            Id::KeepFor,
            None,
            &["keep-for"],
            "TIME",
            COMPACT,
            "keep the replaced files for TIME, such as 12h or 7d (default), so that --undo can put them back; a later \
             run removes them",
        ),
        flag(
            Id::Undo,
            None,
            &["undo"],
            COMPACT,
            "put back the files that the latest compaction in place of SOURCE replaced, unless its outputs have \
             changed since",
        ),
        flag(
            Id::Purge,
            None,
            &["purge"],
            COMPACT,
            "remove the kept files of SOURCE; with --in-place, do not keep the replaced files",
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
            "decode the one FILE, which is gzip, on all CPUs, by its index of gztool, indexed_gzip, \
             rapidgzip or bgzip",
        ),
        value(
            Id::Export,
            None,
            &["export"],
            "PROGRAM",
            INDEX,
            "also write the index of a program beside each gzip file: 'gztool', as NAME.gzi for NAME.gz; \
             another file of that name is not replaced",
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
