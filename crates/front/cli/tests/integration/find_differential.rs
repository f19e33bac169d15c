//! `pfind` against GNU find on the same trees: output (in any order), messages, exit codes, and what is left of the
//! tree.
//!
//! Both are called by the name `find`, so messages must agree to the letter. Random parts print their seed; set
//! `MILLSTREAM_SEED` to repeat one, `FIND_ROUNDS` for more of them.

use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::find::bed::{Bed, Outcome, Tool, compare};
use crate::find::expressions::Generator;
use crate::random::Random;

/// Words of a command line, split at spaces; `'...'` keeps spaces, `\n` and the like are the program's own business.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quoted = false;
    let mut word: Option<String> = None;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn check(bed: &Bed, lines: &str) {
    let failures: Vec<_> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .filter_map(|line| compare(bed, &words(line)).err())
        .collect();
    assert!(failures.is_empty(), "{} of the command lines differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn mistakes_are_reported_word_for_word() {
    let bed = Bed::fixed();
    check(&bed, include_str!("find/mistakes.txt"));
}

#[test]
fn tests_and_actions_agree() {
    let bed = Bed::fixed();
    check(&bed, include_str!("find/expressions.txt"));
}

#[test]
fn messages_follow_the_locale() {
    for locale in ["C", "en_US.UTF-8"] {
        let bed = Bed::fixed().with_locale(locale);
        check(
            &bed,
            "nosuch it's 'a b' -newer x
             nosuch 'it''s' bäd 'b\\d'
             t -type f,f
             t -maxdepth ä
             t -name é
             t -name '?'
             t -name 'b*' -ls
             t -regex 't/.'",
        );
    }
}

#[test]
fn listings_count_the_blocks_of_posix_where_that_is_asked_for() {
    let bed = Bed::fixed().with_variable("POSIXLY_CORRECT", "");
    check(
        &bed,
        "t -ls
         t -type f -fls /dev/stdout
         t -type f -printf '%p %b %k\\n'",
    );
}

#[test]
fn random_expressions_on_random_trees() {
    let rounds = std::env::var("FIND_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let mut random = Random::from_environment();
    for _ in 0..rounds {
        let bed = Bed::random(&mut random);
        let mut failures = Vec::new();
        for _ in 0..60 {
            let words = Generator::new(&mut random).command_line();
            failures.extend(compare(&bed, &words).err());
        }
        assert!(failures.is_empty(), "{} expressions differ:\n{}", failures.len(), failures.join("\n"));
    }
}

/// Local times that a change of the clocks skips or repeats; several in one command, as the C library remembers the
/// last one.
#[test]
fn dates_around_changes_of_the_clocks_agree() {
    // A zone, a moment of change, and the offset from UTC before it, in seconds.
    const CHANGES: [(&str, i64, i64); 9] = [
        ("America/New_York", 1_710_054_000, -18_000),
        ("America/New_York", 1_730_613_600, -14_400),
        ("Europe/Berlin", 1_711_846_800, 3600),
        ("Europe/Berlin", 1_729_990_800, 7200),
        ("Australia/Lord_Howe", 1_712_415_600, 39_600),
        ("Australia/Lord_Howe", 1_728_142_200, 37_800),
        ("Pacific/Apia", 1_325_239_200, -36_000),
        ("America/Sao_Paulo", 1_541_300_400, -10_800),
        ("America/Sao_Paulo", 1_518_919_200, -7200),
    ];
    let mut random = Random::from_environment();
    for (zone, change, offset) in CHANGES {
        let bed = Bed::fixed().with_variable("TZ", zone);
        for quarter in -16..16 {
            let file = std::fs::File::create(bed.path().join(format!("t/at{quarter}"))).expect("a file");
            let seconds = (change + quarter * 900).unsigned_abs();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
        }
        for _ in 0..6 {
            let mut line = String::from("t");
            for _ in 0..1 + random.below(2) {
                let local = change + offset + (random.below(25) as i64 - 12) * 450;
                let date = Command::new("date").args(["-u", "-d", &format!("@{local}"), "+%F %T"]).output();
                let date = String::from_utf8(date.expect("date runs").stdout).expect("ASCII");
                let zone = random.pick(&["", "", "", " UTC", " +0100", " 1 day", " 2 days ago", " 1 hour"]);
                line += &format!(" -newermt '{}{zone}'", date.trim());
            }
            check(&bed, &line);
        }
    }
}

#[test]
fn removal_leaves_the_same_tree() {
    let random = Random::from_environment();
    for line in [
        "t -delete",
        "t -mindepth 1 -delete",
        "t -type f -delete",
        "t -empty -delete",
        "t -type d -empty -delete -printf %p|%y\\n",
        "t -name '*a*' -delete -o -print",
        "t -depth -type d -exec rmdir {} ;",
        "t -mmin +10000000 -delete -print0",
        ". -delete",
        "t/. -delete -printf .",
        "./ -delete",
    ] {
        let outcomes = [Tool::Gnu, Tool::Ours].map(|tool| {
            let bed = Bed::random(&mut random.clone());
            let outcome = bed.run(tool, &words(line));
            (outcome, bed.names())
        });
        assert_eq!(outcomes[0], outcomes[1], "{line}");
    }
}

#[test]
fn what_must_not_be_read_is_reported_alike() {
    let bed = Bed::with_closed_doors();
    check(
        &bed,
        "no nx sl sl2
         no nx sl sl2 -depth
         no nx -empty
         no nx sl sl2 -type f
         no nx -size 0
         -L no nx sl sl2
         -L no nx sl sl2 -type l
         no nx sl sl2 -printf '%p %y %Y\\n'
         no nx -printf '%p %s\\n'
         no nx sl -ls
         no nx sl -readable
         no nx sl -writable
         no nx sl -executable
         no nx sl sl2 -depth -delete
         -L sl sl2 -maxdepth 0 -delete
         -H sl sl2 -maxdepth 0 -delete
         nx -name f -size 0
         nx -size 0 -name g
         . -maxdepth 1
         . -newer nx/f",
    );
}

#[test]
fn quit_prints_exactly_one_line_whatever_the_threads() {
    let bed = Bed::wide(40, 200);
    for threads in ["1", "2", "8", "32"] {
        for _ in 0..10 {
            let words: Vec<String> =
                ["--threads", threads, "t", "-name", "f1*", "-size", "0", "-print", "-quit"]
                    .map(str::to_owned)
                    .to_vec();
            // One line, and what comes after its end.
            let Outcome { stdout, code, .. } = bed.run(Tool::Ours, &words);
            assert_eq!((stdout.len(), code), (2, Some(0)), "{threads} threads: {stdout:?}");
        }
    }
}

#[test]
fn commands_run_one_at_a_time_in_the_order_of_the_expression() {
    let bed = Bed::wide(10, 30);
    let script = "test ! -e lock || echo overlap; : > lock; sleep 0.001; rm lock; echo $0 $1";
    let words: Vec<String> = [
        "--threads",
        "8",
        "t",
        "-type",
        "f",
        "-print",
        "-exec",
        "sh",
        "-c",
        script,
        "{}",
        "one",
        ";",
        "-printf",
        "%p two\\n",
    ]
    .map(str::to_owned)
    .to_vec();
    let output = bed.output(Tool::Ours, &words);
    let lines: Vec<_> = output.lines().collect();
    assert_eq!(lines.len(), 3 * 10 * 30);
    for three in lines.chunks(3) {
        let expected = [three[0].to_owned(), format!("{} one", three[0]), format!("{} two", three[0])];
        assert_eq!(three, expected);
    }
}

#[test]
fn parents_come_before_children_and_after_them_with_depth() {
    let bed = Bed::random(&mut Random::from_environment());
    for (options, before) in [(&["t"][..], true), (&["t", "-depth"], false)] {
        let words: Vec<String> = ["--threads", "8"].iter().chain(options).map(|w| (*w).to_owned()).collect();
        let words: Vec<String> = words.into_iter().chain(["-print0".to_owned()]).collect();
        let output = bed.raw_output(Tool::Ours, &words);
        let paths: Vec<&[u8]> = output.split(|&b| b == 0).filter(|path| !path.is_empty()).collect();
        let place: std::collections::HashMap<_, _> = paths.iter().zip(0..).collect();
        assert!(paths.len() > 50, "the tree is too small to tell");
        for path in &paths {
            let Some(slash) = path.iter().rposition(|&b| b == b'/') else { continue };
            let parent = place[&&path[..slash]];
            assert_eq!(parent < place[path], before, "{}", path.escape_ascii());
        }
    }
}

#[test]
fn deep_chains_of_directories_are_searched_and_removed() {
    let bed = Bed::chain(5000);
    let count = |tool| bed.raw_output(tool, &words("t -type d -printf x")).len();
    assert_eq!((count(Tool::Ours), count(Tool::Gnu)), (5001, 5001));
    let outcome = bed.run(Tool::Ours, &words("t -delete"));
    assert_eq!((outcome.code, outcome.stderr), (Some(0), vec![]));
    assert!(!bed.path().join("t").exists());
}

/// Removes all that is in `t`, but not `t`, which an operand must not be before it is looked at.
fn remove_inside(bed: &Bed) -> std::thread::JoinHandle<()> {
    let tree = bed.path().join("t");
    std::thread::spawn(move || {
        for entry in std::fs::read_dir(tree).expect("a directory") {
            std::fs::remove_dir_all(entry.expect("an entry").path()).expect("removed");
        }
    })
}

#[test]
fn files_that_vanish_are_reported_or_ignored() {
    for _ in 0..5 {
        let bed = Bed::wide(30, 100);
        let remover = remove_inside(&bed);
        let ignoring = bed.run(Tool::Ours, &words("t -ignore_readdir_race -size -1 -name 'f*'"));
        remover.join().expect("removed");
        assert_eq!(ignoring.stderr, Vec::<String>::new());
    }
    let bed = Bed::wide(30, 100);
    let remover = remove_inside(&bed);
    let outcome = bed.run(Tool::Ours, &words("t -size -1"));
    remover.join().expect("removed");
    let expected = |line: &String| {
        line.is_empty() || (line.starts_with("find: ") && line.ends_with("No such file or directory"))
    };
    assert!(outcome.stderr.iter().all(expected), "{:?}", outcome.stderr);
    assert_eq!(outcome.code, Some(i32::from(!outcome.stderr.is_empty())));
}

#[test]
fn a_closed_pipe_ends_the_search_quietly() {
    let bed = Bed::wide(50, 200);
    let (status, stderr) = bed.run_with_closed_output(&words("t"));
    assert_eq!((status, stderr.as_str()), (Some(13), ""));
}
