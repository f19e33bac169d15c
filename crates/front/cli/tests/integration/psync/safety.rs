//! What a synchronization must not do: delete for want of a source, or write where a link leads.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::attributes::{DEFAULT_LIST, list, set_attribute, set_mode};
use super::program::{Scratch, User, is_root, is_rsync, psync_command, run, text};
use super::state::Tree;
use crate::races::StopWhenDone;

/// Every time of deletion that psync takes. rsync's own choice, while it copies, comes before it has seen
/// all.
fn times_of_deletion() -> Vec<&'static str> {
    let mut all = vec!["--delete-after", "--delete-before", "--delete-delay"];
    if !is_rsync() {
        all.push("--delete");
    }
    all
}

fn shell(scratch: &Scratch, script: &str) {
    let done = Command::new("sh").args(["-ec", script]).current_dir(scratch.path()).status();
    assert!(done.expect("sh runs").success(), "{script}");
}

fn psync(scratch: &Scratch, user: User, words: &str) -> Output {
    run(psync_command(user, scratch.path()).args(words.split_whitespace()))
}

/// What the program said, wherever.
fn said(output: &Output) -> String {
    text(&[&output.stdout[..], &output.stderr].concat()).to_lowercase()
}

/// A mount that failed leaves an empty directory. rsync then deletes all that was ever saved.
#[test]
fn an_empty_source_deletes_nothing() {
    for (options, operands) in [
        ("-a", "src/ dst/"),
        ("-aHAXS", "src/ dst/"),
        ("-r", "src/ dst/"),
        ("-ac", "src/. dst/."),
        ("-an", "src/ dst/"),
        ("-a", "dst2/dst ."),
    ] {
        for time in times_of_deletion() {
            let scratch = Scratch::new();
            shell(&scratch, "mkdir -p src dst2/dst dst/sub; echo keep >dst/file; echo keep >dst/sub/file");
            let before = Tree::read(&scratch.at("dst"));
            let output = psync(&scratch, User::Own, &format!("{options} {time} {operands}"));
            if is_rsync() {
                assert_eq!(output.status.code(), Some(0));
                assert_eq!(scratch.at("dst/file").exists(), options == "-an");
                continue;
            }
            assert_eq!(Tree::read(&scratch.at("dst")).0.len(), before.0.len(), "{options} {time}");
            assert!(output.status.code() != Some(0) && !output.stderr.is_empty(), "{output:?}");
            assert!(said(&output).contains("empty") && said(&output).contains("delet"), "{output:?}");
        }
    }
}

/// Issue 36: a destination that is made for several sources was open to all, whatever the directory was whose contents
/// go into it.
#[test]
fn a_destination_of_several_sources_is_as_closed_as_the_first() {
    for (words, expected) in [
        ("-r private/ file new", 0o700),
        ("-r file private/ open/ new", 0o700),
        ("-rog private/ file new", 0o700),
        ("-r open/ private/ file new", 0o755),
        ("-a private/ file new", 0o700),
        ("-a open/ file new", 0o777),
        ("-r open file new", 0o755),
    ] {
        let scratch = Scratch::new();
        shell(&scratch, "mkdir -m 700 private; mkdir -m 777 open; touch private/a open/b file");
        let output = psync(&scratch, User::Own, words);
        assert!(output.status.success(), "{words}: {output:?}");
        let mode = fs::metadata(scratch.at("new")).expect("made").permissions().mode() & 0o7777;
        assert_eq!(mode, expected, "{words}");
    }
}

/// Where there is nothing to lose an empty source is a source like any other.
#[test]
fn an_empty_source_is_copied() {
    for (prepare, words) in [
        ("mkdir src dst", "-a --delete src/ dst/"),
        ("mkdir src", "-a --delete src/ dst/"),
        ("mkdir -p src dst/sub", "-a src/ dst/"),
        ("mkdir -p src/empty dst/empty/sub dst/sub", "-a --delete src/ dst/"),
        ("mkdir -p src dst; touch dst/file", "-a src dst/"),
        ("mkdir -p src dst/src; touch dst/file", "-a --delete src dst/"),
    ] {
        let scratch = Scratch::new();
        shell(&scratch, prepare);
        let output = psync(&scratch, User::Own, words);
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), String::new()),
            "{prepare}; {words}"
        );
        assert!(scratch.at("dst").is_dir());
    }
}

/// What cannot be listed may hold anything.
#[test]
fn a_source_that_cannot_be_listed_deletes_nothing() {
    assert!(is_root(), "this test becomes another user");
    // With `--delete-delay` rsync deletes what it had found before it came to what is closed.
    for time in times_of_deletion().into_iter().filter(|time| !is_rsync() || *time != "--delete-delay") {
        closed_source_deletes_nothing(time, &["dst", "dst/a", "dst/closed", "dst/z", "dst/extra"]);
        // The destination does not have it.
        closed_source_deletes_nothing(time, &["dst", "dst/a", "dst/z", "dst/extra"]);
    }
}

fn closed_source_deletes_nothing(time: &str, places: &[&str]) {
    let scratch = Scratch::new();
    let keeping = places.join(" ");
    shell(
        &scratch,
        &format!(
            "mkdir -p src/a src/closed src/z {keeping}
            for place in {keeping}; do echo keep >$place/keep; done
            echo new >src/a/new; echo new >src/z/new
            chown -R 65534:65534 .; chmod 0 src/closed"
        ),
    );
    let output = psync(&scratch, User::Nobody, &format!("-a {time} src/ dst/"));
    assert_eq!(output.status.code(), Some(23), "{time}: {output:?}");
    for place in places {
        assert!(scratch.at(place).join("keep").exists(), "{time}: {place}: {output:?}");
    }
    assert!(scratch.at("dst/a/new").exists() && scratch.at("dst/z/new").exists(), "the rest is copied");
    assert!(said(&output).contains("closed") && said(&output).contains("delet"), "{output:?}");
}

/// Neither does one that is not there, alone or beside others.
#[test]
fn a_missing_source_deletes_nothing() {
    for time in times_of_deletion() {
        for sources in ["missing/", "missing", "src/ missing/", "missing/ src/", "src/missing/"] {
            let scratch = Scratch::new();
            shell(
                &scratch,
                "mkdir -p src dst/sub; echo keep | tee dst/keep >dst/sub/keep; echo new >src/new",
            );
            let output = psync(&scratch, User::Own, &format!("-a {time} {sources} dst/"));
            assert_eq!(output.status.code(), Some(23), "{time} {sources}: {output:?}");
            assert!(
                scratch.at("dst/keep").exists() && scratch.at("dst/sub/keep").exists(),
                "{time} {sources}"
            );
            assert!(said(&output).contains("missing"), "{output:?}");
        }
    }
}

/// A directory of the destination that is to go and cannot be listed is told of, and stays.
#[test]
fn a_destination_that_cannot_be_listed_is_told_of() {
    assert!(is_root(), "this test becomes another user");
    for time in times_of_deletion() {
        let scratch = Scratch::new();
        shell(
            &scratch,
            "mkdir -p src/sub dst/closed dst/sub; echo keep | tee dst/keep >dst/sub/keep
            echo keep >dst/closed/keep; echo new >src/sub/new
            chown -R 65534:65534 .; chown 0 dst/closed; chmod 700 dst/closed",
        );
        let output = psync(&scratch, User::Nobody, &format!("-a {time} src/ dst/"));
        assert_eq!(output.status.code(), Some(23), "{time}: {output:?}");
        assert!(scratch.at("dst/closed/keep").exists() && scratch.at("dst/sub/new").exists());
        assert!(said(&output).contains("closed"), "{output:?}");
    }
}

/// Directories of both sides are swapped for links that lead outside while runs copy, delete and change
/// attributes.
#[test]
fn swapped_directories_lead_nowhere() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.at(name);
    for directory in 0..6 {
        fs::create_dir_all(at(&format!("src/d{directory}/sub"))).expect("directories");
        for file in 0..30 {
            fs::write(at(&format!("src/d{directory}/f{file}")), "new").expect("a file");
            fs::write(at(&format!("src/d{directory}/sub/f{file}")), "new").expect("a file");
        }
    }
    for place in ["outside", "secret"] {
        fs::create_dir_all(at(place).join("sub")).expect("directories");
        for file in 0..30 {
            // Some have names of what is copied, and some of what is deleted.
            fs::write(at(place).join(format!("f{file}")), "secret").expect("a file");
            fs::write(at(place).join(format!("x{file}")), "secret").expect("a file");
            set_mode(&at(place).join(format!("f{file}")), 0o600);
        }
    }
    symlink(at("outside"), at("to-outside")).expect("a link");
    symlink(at("secret"), at("to-secret")).expect("a link");
    let before = (Tree::read(&at("outside")), Tree::read(&at("secret")));
    let over = AtomicBool::new(false);
    let swap = || {
        while !over.load(Ordering::Relaxed) {
            for (one, other) in [("dst/d3", "to-outside"), ("src/d2", "to-secret")] {
                for _ in 0..2 {
                    // Where there is nothing yet there is nothing to swap.
                    let _ = renameat_with(CWD, at(one), CWD, at(other), RenameFlags::EXCHANGE);
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(swap);
        let _stop = StopWhenDone(&over);
        let started = Instant::now();
        let mut round = 0;
        while started.elapsed() < Duration::from_secs(5) {
            // Something to delete, to change and to replace; the run may complain of what vanishes under its
            // hands.
            for file in 0..30 {
                for (name, text) in [("x", "extra"), ("f", "old")] {
                    let _ = write_inside(&at("dst/d3"), &format!("{name}{file}"), text);
                }
            }
            let options = ["-a", "-aHAXS"][round % 2];
            psync(&scratch, User::Own, &format!("{options} --delete-after src/ dst/"));
            for directory in (0..6).filter(|_| !is_rsync()) {
                let data = read_inside(&at(&format!("dst/d{directory}")), "f1").unwrap_or_default();
                assert_ne!(data, b"secret", "read outside");
            }
            round += 1;
        }
        assert!(round > 3, "{round} rounds");
    });
    assert_eq!(Tree::read(&at("secret")).touched(&before.1), Vec::<String>::new());
    assert_eq!(Tree::read(&at("outside")).touched(&before.0), Vec::<String>::new());
}

/// Writes into a directory unless it is a link.
fn write_inside(directory: &Path, name: &str, text: &str) -> rustix::io::Result<()> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(CWD, directory, flags, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&directory, name, flags, Mode::from_raw_mode(0o644))?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

/// Reads the beginning of a file in a directory unless that is a link, also while it is swapped for one.
fn read_inside(directory: &Path, name: &str) -> rustix::io::Result<Vec<u8>> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(CWD, directory, flags, Mode::empty())?;
    let file = openat(&directory, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let mut data = vec![0; 100];
    let length = rustix::io::read(&file, &mut data)?;
    data.truncate(length);
    Ok(data)
}

/// Other hosts are for rsync, which would ask one here.
#[test]
fn other_hosts_are_refused() {
    if is_rsync() {
        // It would start a shell on that host.
        return;
    }
    for remote in
        ["host:path", "user@host:path", "host:", "host::module", "rsync://host/module", "[::1]:path"]
    {
        for words in [format!("-a src/ {remote}"), format!("-a {remote} dst/"), format!("-an {remote} dst")] {
            let scratch = Scratch::new();
            shell(&scratch, "mkdir src dst; echo new >src/new");
            let before = Tree::read(scratch.path());
            let output = psync(&scratch, User::Own, &words);
            assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
            assert!(said(&output).contains("rsync") && said(&output).contains("host"), "{words}: {output:?}");
            assert_eq!(Tree::read(scratch.path()).touched(&before), Vec::<String>::new(), "{words}");
        }
    }
}

/// A colon after a slash is one of a name.
#[test]
fn names_with_colons_are_names() {
    let scratch = Scratch::new();
    shell(&scratch, "mkdir -p a:b/c:d; echo new >a:b/c:d/e:f");
    for words in ["-a ./a:b/ ./x:y/", "-a ./a:b/c:d/e:f z"] {
        let output = psync(&scratch, User::Own, words);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words}");
    }
    assert!(scratch.at("x:y/c:d/e:f").exists() && scratch.at("z").exists());
}

/// While it copies psync does not know yet what to delete.
#[test]
fn deleting_while_copying_is_refused() {
    if is_rsync() {
        return;
    }
    for option in ["--delete-during", "--del"] {
        let scratch = Scratch::new();
        shell(&scratch, "mkdir src dst; echo new >src/new; echo keep >dst/keep");
        let output = psync(&scratch, User::Own, &format!("-a {option} src/ dst/"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            said(&output).contains("--delete-after") || said(&output).contains("--delete "),
            "{output:?}"
        );
        assert!(scratch.at("dst/keep").exists() && !scratch.at("dst/new").exists());
    }
}

/// Options of rsync that psync does not have are refused by name, and those that mean nothing here are accepted.
#[test]
fn other_options_of_rsync_are_refused_or_accepted() {
    for words in
        ["-az", "-aq", "-avzq", "-aiq", "--compress -a", "-a --info=progress2,misc,name0", "-a --stats -q"]
    {
        let scratch = Scratch::new();
        shell(&scratch, "mkdir src; echo new >src/new");
        let output = psync(&scratch, User::Own, &format!("{words} src/ dst/"));
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{words}");
        assert_eq!(text(&output.stdout), "", "{words}");
        assert!(scratch.at("dst/new").exists(), "{words}");
    }
    for (words, expected) in [("--info=name", "new\n"), ("--info=stats2", "Number of files")] {
        let scratch = Scratch::new();
        shell(&scratch, "mkdir src; echo new >src/new");
        let output = psync(&scratch, User::Own, &format!("-a {words} src/ dst/"));
        assert!(text(&output.stdout).contains(expected), "{words}: {output:?}");
    }
    if is_rsync() {
        return;
    }
    for option in [
        "--inplace",
        "-L",
        "-aR",
        "--link-dest=x",
        "-e ssh",
        "--chmod=u+w",
        "-b",
        "-F",
        "--max-size=1",
        "--info=nonsense",
    ] {
        let scratch = Scratch::new();
        shell(&scratch, "mkdir src; echo new >src/new");
        let output = psync(&scratch, User::Own, &format!("-r {option} src/ dst/"));
        assert_eq!(output.status.code(), Some(1), "{option}");
        let is_of_rsync = said(&output).contains("is an rsync option that psync does not support");
        assert!(
            is_of_rsync || option.contains("nonsense") && said(&output).contains("nonsense"),
            "{output:?}"
        );
        assert!(!scratch.at("dst").exists(), "{option}");
    }
}

/// No more than so many entries are deleted; a directory counts like a file.
#[test]
fn deletions_are_limited() {
    for time in times_of_deletion() {
        for (limit, dry) in [(0, ""), (1, ""), (5, ""), (11, ""), (12, ""), (100, ""), (5, "-n")] {
            let scratch = Scratch::new();
            shell(
                &scratch,
                "mkdir -p src/d dst/d/e dst/x/y; echo new >src/new
                touch dst/d/1 dst/d/2 dst/d/e/3 dst/d/e/4 dst/x/5 dst/x/y/6 dst/x/y/7 dst/8 dst/9",
            );
            let words = format!("-ai {dry} {time} --max-delete={limit} src/ dst/");
            let output = psync(&scratch, User::Own, &words);
            // Nine files and three directories.
            let deleted = 12.min(limit);
            assert_eq!(output.status.code(), Some(if limit < 12 { 25 } else { 0 }), "{words}: {output:?}");
            let lines = text(&output.stdout).lines().filter(|line| line.starts_with("*deleting")).count();
            assert_eq!(lines, deleted, "{words}: {output:?}");
            let left = Tree::read(&scratch.at("dst")).0.len();
            // The root, `d` and `new`.
            let expected = if dry.is_empty() { 3 + 12 - deleted } else { 2 + 12 };
            assert_eq!(left, expected, "{words}: {output:?}");
            assert_eq!(scratch.at("dst/new").exists(), dry.is_empty());
        }
    }
}

/// Runs psync in a directory that a script has prepared; its exit status, and what it said.
fn run_after(prepare: &str, words: &str) -> (Scratch, Option<i32>, String) {
    let scratch = Scratch::new();
    shell(&scratch, prepare);
    let output = psync(&scratch, User::Own, words);
    let said = said(&output);
    (scratch, output.status.code(), said)
}

fn holds(scratch: &Scratch, path: &str) -> bool {
    scratch.at(path).symlink_metadata().is_ok()
}

/// Trees that contain one another, which rsync deletes or copies again and again.
#[test]
fn trees_in_one_another_lose_nothing() {
    if is_rsync() {
        return;
    }
    for time in times_of_deletion() {
        let prepare = "mkdir -p a/sub sub d; echo 1 >a/sub/f1; echo 2 >sub/f2; echo extra >d/extra";
        let (scratch, code, said) = run_after(prepare, &format!("-a {time} a/ sub d/"));
        assert_eq!(code, Some(23), "{said}");
        assert!(said.contains("inside") && holds(&scratch, "d/extra"), "{time}: {said}");
        assert!(holds(&scratch, "d/sub/f1") && holds(&scratch, "d/sub/f2"), "{time}: {said}");

        let prepare = "mkdir -p d/in/src; echo 1 >d/in/src/f; echo extra >d/extra";
        let (scratch, code, said) = run_after(prepare, &format!("-a {time} d/in/src/ d/"));
        assert_eq!(code, Some(0), "{said}");
        assert!(holds(&scratch, "d/in/src/f") && !holds(&scratch, "d/extra"), "{time}: {said}");
        assert!(said.contains("source"), "{said}");
    }
    for words in ["-a s/ s/in/", "-a s s/in", "-a s/ s/x/in/"] {
        let (scratch, code, said) = run_after("mkdir -p s/x; echo 1 >s/x/f", words);
        assert_eq!(code, Some(23), "{words}: {said}");
        assert!(holds(&scratch, "s/x/f") && said.contains("destination"), "{words}: {said}");
    }
}

/// An empty source beside one that is not deletes nothing of what it may have supplied.
#[test]
fn an_empty_source_among_others_deletes_nothing() {
    if is_rsync() {
        return;
    }
    for time in times_of_deletion() {
        for sources in ["empty/ full/", "full/ empty/"] {
            let prepare = "mkdir empty full dst; echo 1 >full/f; echo keep >dst/keep";
            let words = format!("-a --ignore-errors {time} {sources} dst/");
            let (scratch, code, said) = run_after(prepare, &words);
            assert_eq!(code, Some(23), "{said}");
            assert!(holds(&scratch, "dst/keep") && holds(&scratch, "dst/f"), "{time} {sources}: {said}");
        }
    }
}

/// What is mounted in the destination stays, whatever device it is on, and whatever is to take its place.
#[test]
fn mounts_in_the_destination_are_not_emptied() {
    assert!(is_root(), "this test mounts");
    if is_rsync() {
        return;
    }
    let sources = [
        ("d/m", "f"),
        ("d/n/m", "f"),
        ("d/m", "m"),
        ("d/n/m", "n"),
        // The source has what something is mounted on.
        ("d/m", "m/f"),
        ("d/n/m", "n/m/f"),
    ];
    for (at, source) in sources {
        for kind in ["tmpfs", "bind"] {
            let scratch = Scratch::new();
            let prepare = format!(
                "mkdir -p s/$(dirname {source}) {at} other; echo 1 >s/{source}; echo keep >other/keep"
            );
            shell(&scratch, &prepare);
            match kind {
                "bind" => shell(&scratch, &format!("mount --bind other {at}")),
                _ => shell(&scratch, &format!("mount -t tmpfs -o size=1m none {at}; echo keep >{at}/keep")),
            }
            let output = psync(&scratch, User::Own, "-a --delete s/ d/");
            let is_kept = holds(&scratch, &format!("{at}/keep"));
            shell(&scratch, &format!("umount {at}"));
            assert!(is_kept && said(&output).contains("mounted"), "{kind} {at} {source}: {output:?}");
            assert!(holds(&scratch, "other/keep"), "{kind} {at}");
        }
    }
    for (destination, at) in [("d", "d"), ("d", "d/s")] {
        let scratch = Scratch::new();
        shell(
            &scratch,
            &format!("mkdir -p s {at} other; echo 1 >s/f; echo x >other/x; mount --bind other {at}"),
        );
        let source = if at == "d" { "s/" } else { "s" };
        let output = psync(&scratch, User::Own, &format!("-a --delete {source} {destination}/"));
        shell(&scratch, &format!("umount {at}"));
        assert!(
            holds(&scratch, "other/f") && !holds(&scratch, "other/x"),
            "the destination itself may be one: {output:?}"
        );
    }
}

/// A default access control list in the destination takes permissions from what is made there, whatever mode is asked
/// for.
#[test]
fn modes_survive_an_inherited_list() {
    let scratch = Scratch::new();
    let prepare = "mkdir -p s/n/m d
        for n in 1 2 3 4 5 6 7 8; do echo $n >s/n/m/f$n; : >s/n/e$n; mkfifo s/n/m/p$n; done
        chmod 666 s/n/m/f1; chmod 640 s/n/e1; chmod 775 s/n";
    shell(&scratch, prepare);
    set_attribute(&scratch.path().join("d"), DEFAULT_LIST, &list(0o706, (1, 6), (1, 6), 1));
    let output = psync(&scratch, User::Own, "-a s/ d/");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let modes = |top: &str| {
        let found = Command::new("find")
            .args([".", "-printf", "%P %m\n"])
            .current_dir(scratch.path().join(top))
            .output();
        let mut lines: Vec<String> =
            text(&found.expect("find runs").stdout).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(modes("d"), modes("s"));
}

/// A directory makes way only for what is complete.
#[test]
fn nothing_makes_way_for_what_cannot_be_copied() {
    assert!(is_root(), "this test becomes another user");
    if is_rsync() {
        return;
    }
    for options in ["-a --delete", "-a --force"] {
        let scratch = Scratch::new();
        let prepare = "mkdir -p s d/f/x; echo keep >d/f/x/keep; echo secret >s/f; chmod 600 s/f
            chown -R 65534:65534 d .; chown 0 s/f";
        shell(&scratch, prepare);
        let output = psync(&scratch, User::Nobody, &format!("{options} s/ d/"));
        assert_eq!(output.status.code(), Some(23), "{output:?}");
        assert!(holds(&scratch, "d/f/x/keep"), "{options}: {output:?}");
    }
    let prepare = "mkdir -p s d/f/x; echo 1 >s/f; echo keep >d/f/x/keep";
    let (scratch, code, said) = run_after(prepare, "-a --force --max-delete=0 s/ d/");
    assert_eq!(code, Some(23), "{said}");
    assert!(said.contains("--max-delete prevents its removal: 'd/f'"), "{said}");
    assert!(holds(&scratch, "d/f/x/keep"), "{said}");
}

/// A file of the destination that is newer stays under each of its names, and a listed path that is missing deletes
/// nothing.
#[test]
fn newer_files_and_lists_lose_nothing() {
    if is_rsync() {
        return;
    }
    let prepare = "mkdir s d; echo old >s/1; ln s/1 s/2; ln s/1 s/3; touch -d 2001-01-01 s/1
        for name in 1 2 3; do echo newer >d/$name; done";
    let (scratch, code, said) = run_after(prepare, "-aHu s/ d/");
    assert_eq!(code, Some(0), "{said}");
    for name in ["d/1", "d/2", "d/3"] {
        assert_eq!(fs::read(scratch.at(name)).expect("a file"), b"newer\n", "{name}");
    }
    let prepare = "mkdir -p s/a d/a; echo 1 >s/a/f; echo extra >d/a/extra; printf 'a/\\nmissing\\n' >list";
    for time in times_of_deletion() {
        let (scratch, code, said) = run_after(prepare, &format!("-r {time} --files-from=list s/ d/"));
        assert_eq!(code, Some(23), "{said}");
        assert!(holds(&scratch, "d/a/extra") && holds(&scratch, "d/a/f"), "{time}: {said}");
    }
}
