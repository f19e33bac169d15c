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
        "compact uses Spark to merge the small files in each directory below SOURCE into a few larger ones. \
         recover finishes or undoes writes whose drivers have died, to a table or to a directory (an \
         argument with a slash is a path). index creates the indexes that let several Spark tasks share a \
         compressed file, before Spark first reads it. recompress compresses files again so that several \
         tasks can share each of them. formats measures which compression format is best for the text below \
         PATH, in stock Spark and with Millstream. spark-conf prints the settings that enable Millstream in \
         Spark. doctor checks whether Millstream works in the installed Spark, and says how to fix what \
         does not. man and completions write the manual pages or shell completions of all tools to \
         DIRECTORY, and create it if needed.",
    ],
    syntax: Syntax::Getopt,
    options: &[
        value(
            Id::Jar,
            None,
            &["jar"],
            "PATH",
            GROUP,
            "the jar's path on the driver; by default the value of the environment variable MILLSTREAM_JAR, \
             or the jar in the Python package that contains this program",
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
            "the output format: 'same', the default, keeps lines as lines and Parquet as Parquet; 'text' \
             writes lines; 'parquet' writes Parquet, with lines in a column 'value'",
        )
        .words(FORMATS),
        value(Id::Codec, None, &["codec"], "CODEC", COMPACT, CODEC_HELP).words(CODECS),
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
            "the first line of each file is data; without --header or --no-header, .csv and .tsv files are \
             not merged",
        ),
        value(
            Id::Lines,
            None,
            &["lines"],
            "LIST",
            COMPACT,
            "files whose names have one of these extensions, such as .dat,.tbl, consist of independent \
             lines and may be merged",
        ),
        flag(
            Id::InPlace,
            None,
            &["in-place"],
            COMPACT,
            "replace the files in SOURCE once all outputs have been written and verified; after an \
             interruption, the same command completes the work; requires --table or --plain-files",
        ),
        value(
            Id::Table,
            None,
            &["table"],
            "NAME",
            COMPACT,
            "replace the files of this table, or only those in SOURCE, a directory within it; in the \
             catalog it must be a table of plain text, csv, json or Parquet files without buckets",
        ),
        flag(
            Id::PlainFiles,
            None,
            &["plain-files"],
            COMPACT,
            "confirm that no table format and no other program keeps a list of the files in SOURCE; \
             directories with signs of such a list are refused even so",
        ),
        value(
            Id::KeepFor,
            None,
            &["keep-for"],
            "TIME",
            COMPACT,
            "keep the replaced files for TIME, such as 12h or 7d (default), so that --undo can restore \
             them; a later run removes them",
        ),
        flag(
            Id::Undo,
            None,
            &["undo"],
            COMPACT,
            "restore the files that the latest in-place compaction of SOURCE replaced, unless its outputs \
             have changed since",
        ),
        flag(
            Id::Purge,
            None,
            &["purge"],
            COMPACT,
            "remove the files of SOURCE that are kept for --undo; with --in-place, do not keep the replaced \
             files",
        ),
        flag(
            Id::CopyLeft,
            None,
            &["copy-left"],
            COMPACT,
            "copy files that cannot be merged to DESTINATION unchanged; without this option, they are \
             missing there",
        ),
        flag(
            Id::AcceptLoss,
            None,
            &["accept-loss"],
            RECOVER,
            "give up committed writes that cannot be completed, and list the lost files; without this \
             option, such writes are errors",
        ),
        value(
            Id::Superseded,
            None,
            &["superseded"],
            "WORD",
            RECOVER,
            "what to do with an overwrite's files if another program has overwritten the directory in the \
             meantime: 'apply' replaces the current files with them, 'drop' removes them; by default, they \
             are kept as hidden files",
        )
        .words(SUPERSEDED),
        value(
            Id::Sample,
            None,
            &["sample"],
            "SIZE",
            FORMATS_GROUP,
            "use the first SIZE bytes of text, 256M by default, as the sample, up to the end of a line",
        ),
        value(
            Id::Codecs,
            None,
            &["codecs"],
            "LIST",
            FORMATS_GROUP,
            "the formats, separated by commas: any of none, gz, bz2, zst, lz4 and snappy; by default, all \
             but snappy",
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
            "stop and report a run that takes longer than TIME, such as 90s; 10m by default",
        ),
        value(
            Id::WorkDir,
            None,
            &["work-dir"],
            "DIR",
            FORMATS_GROUP,
            "write the sample to a new directory in DIR, which is removed at the end; by default, in the \
             temporary directory. Executors on other machines must be able to access DIR, too",
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
            "also draw the times as a picture in FILE, whose name must end in .svg or .png",
        ),
        value(
            Id::Directory,
            None,
            &["directory"],
            "DIR",
            INDEX,
            "keep indexes in DIR, the value of spark.millstream.index.directory in Spark; by default, in a \
             directory _millstream next to each file",
        ),
        value(
            Id::MinSize,
            None,
            &["min-size"],
            "SIZE",
            INDEX,
            "in directories, take only files of SIZE bytes or more, 4M by default, like \
             spark.millstream.index.minSize in Spark",
        ),
        flag(
            Id::Prune,
            None,
            &["prune"],
            INDEX,
            "create no indexes; remove those whose files are gone or have changed, and leftovers of \
             interrupted runs that are more than a day old",
        ),
        value(
            Id::Import,
            None,
            &["import"],
            "INDEX",
            INDEX,
            "decode FILE, a single gzip file, on all CPUs, using its gztool, indexed_gzip, rapidgzip or \
             bgzip index",
        ),
        value(
            Id::Export,
            None,
            &["export"],
            "PROGRAM",
            INDEX,
            "also write an index for another program next to each gzip file: 'gztool' writes NAME.gzi for \
             NAME.gz; a different file of that name is not replaced",
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
            "compress as FORM: 'gz' (bgzf), 'zst' (seekable Zstandard) or 'lz4' (frames of 8 MiB); by \
             default, the file's own format if it is one of these, or else 'gz'",
        )
        .words(SPLITTABLE),
        value(
            Id::Level,
            None,
            &["level"],
            "N",
            RECOMPRESS,
            "the compression level, 1 to 9 for gz (6 by default) and 1 to 19 for zst (3)",
        ),
        flag(Id::Keep, None, &["keep"], RECOMPRESS, "keep the old file, if the new one has another name"),
        flag(
            Id::DryRun,
            None,
            &["dry-run"],
            DRY_RUN,
            "report what would be done; for this, compact reads the beginnings of files, and schemas",
        ),
        flag(
            Id::Json,
            None,
            &["json"],
            WORK,
            "write the result as JSON; index and recompress write one line per file",
        ),
        flag(
            Id::Verbose,
            Some(b'v'),
            &["verbose"],
            WORK,
            "show Spark's log, with its stack traces; index and recompress: report each file",
        ),
        value(Id::Master, None, &["master"], "URL", JOBS, "the Spark master URL, as for spark-submit"),
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
                Paragraph::Text(
                    "millstream compact --target-size=256M /mnt/filer/logs /mnt/filer/logs-compact",
                ),
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
                "Writes the sample once in each format, as a single file like one from the usual command \
                 (gzip, bzip2, zstd, lz4). Each run counts its lines in a new JVM: a read, or a read with a \
                 repartition, in stock Spark or with Millstream. A wrong number of rows is shown as such. \
                 At the end, it recommends a format for this data, by the product of size and read time.",
            )],
        },
        Section {
            title: "Index",
            body: &[Paragraph::Text(
                "Takes those operands that are files of formats with indexes (.gz, .zst, .lz4, .snappy), \
                 and in directories such files of at least the minimum size, at any depth; names that begin \
                 with _ or . are skipped. Files that already have a valid index are left alone.",
            )],
        },
        Section {
            title: "Recompress",
            body: &[Paragraph::Text(
                "Takes text files, plain or compressed as the extension says, and writes NAME.gz, \
                 NAME.zst or NAME.lz4 beside it. The new file replaces the old one after it has been read \
                 back and compared. After an interruption, the same command completes the work. Files that \
                 already have the right form are left alone.",
            )],
        },
        Section {
            title: "Exit status",
            body: &[Paragraph::Text(
                "0 on success, 1 otherwise; 3 if recover has left alone a write whose driver may still be \
                 running. Files that could not be merged stay unchanged, are reported and count as a \
                 failure. Files copied by --copy-left are reported, but do not count as a failure. formats \
                 fails if a run with Millstream fails; a failure of stock Spark is a result.",
            )],
        },
    ],
};
