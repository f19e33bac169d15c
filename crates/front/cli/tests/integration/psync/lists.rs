//! Random lists of files, with filters and deletions, beside rsync.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::attributes::{set_mode, set_time};
use super::edit::copy_tree;
use super::oracle::seeds;
use super::program::{RSYNC, Scratch, User, command, psync_command, run, text};
use super::state::Tree;
use crate::random::Random;

const NAMES: [&str; 5] = ["a", "b", "ab", "a-", "c"];
const PATTERNS: [&str; 10] = ["a", "a/", "/a", "/a/", "b", "c", "ab/", "/a/b", "a*", "a/**"];

/// A few files and directories with few different names, so that patterns and lists meet them often.
fn grow(random: &mut Random, root: &Path) -> Vec<PathBuf> {
    fs::create_dir(root).expect("a directory");
    let (mut directories, mut paths) = (vec![PathBuf::new()], Vec::new());
    for serial in 0..12 + random.below(12) {
        let path = directories[random.below(directories.len())].join(random.pick(&NAMES));
        let at = root.join(&path);
        if at.exists() {
            continue;
        }
        if random.below(2) == 0 {
            fs::create_dir(&at).expect("a directory");
            directories.push(path.clone());
        } else {
            fs::write(&at, format!("source {serial}")).expect("a file");
        }
        paths.push(path);
    }
    for (path, serial) in paths.iter().rev().zip(0..) {
        set_mode(&root.join(path), random.pick(&[0o755, 0o700, 0o750]));
        set_time(&root.join(path), (1_000_000_000 + serial, 0));
    }
    paths
}

/// Makes a copy of a tree unlike it.
fn edit(random: &mut Random, root: &Path, paths: &[PathBuf]) {
    for path in paths {
        let at = root.join(path);
        match random.below(6) {
            0 if at.is_dir() => fs::remove_dir_all(&at).expect("removed"),
            0 if at.exists() => fs::remove_file(&at).expect("removed"),
            1 if at.is_file() => fs::write(&at, "older, and longer").expect("written"),
            2 if at.is_dir() => {
                let extra = at.join(random.pick(&NAMES)).join("extra");
                if !extra.parent().is_some_and(Path::exists) {
                    fs::create_dir_all(&extra).expect("a directory");
                    fs::write(extra.join("a"), "extra").expect("a file");
                }
            }
            3 if at.is_dir() => set_mode(&at, 0o711),
            _ => {}
        }
    }
}

fn list(random: &mut Random, paths: &[PathBuf]) -> String {
    let mut list = String::new();
    for _ in 0..random.below(6) {
        let path = match random.below(8) {
            0 => "none".to_owned(),
            1 => String::new(),
            _ => paths[random.below(paths.len())].display().to_string(),
        };
        let (before, after) = (random.pick(&["", "", "./", "/"]), random.pick(&["", "", "/", "/."]));
        list += &format!("{before}{path}{after}\n");
    }
    list
}

/// Without deletions where a path is missing, which prevents them here.
fn options(random: &mut Random, may_delete: bool) -> Vec<String> {
    let mut options = vec!["-a".to_owned(), "--files-from=list".to_owned(), "--force".to_owned()];
    let time = random.pick(&["--delete-after", "--delete-before"]);
    let mut add = |share, option: &str| {
        if random.below(share) == 0 {
            options.push(option.to_owned());
        }
    };
    add(2, "-r");
    if may_delete {
        add(2, time);
        add(6, "--delete-excluded");
    }
    add(8, "--existing");
    add(8, "--ignore-existing");
    for _ in 0..random.below(4) {
        let rule = random.pick(&["-", "-", "+", "H", "S", "P", "R"]);
        options.push(format!("--filter={rule} {}", random.pick(&PATTERNS)));
    }
    options
}

/// Mode, second of the last change, and contents of each entry.
type State = BTreeMap<PathBuf, (String, i64, String)>;

/// What of a tree is unlike another one.
fn only(one: &State, other: &State) -> String {
    let apart = one.iter().filter(|(path, entry)| other.get(*path) != Some(entry));
    apart.map(|entry| format!("\n    {entry:?}")).collect()
}

/// What is in a tree. The root is left out unless the list names it, as `./a` does.
fn state(root: &Path, names_root: bool) -> State {
    let entries =
        Tree::read(root).0.into_iter().filter(|(path, _)| names_root || !path.as_os_str().is_empty());
    entries.map(|(path, entry)| (path, (format!("{:o}", entry.mode), entry.time.0, entry.contents))).collect()
}

#[test]
fn lists_take_part_as_those_of_rsync() {
    let (mut copied, mut failures) = (0, Vec::new());
    for seed in seeds(60) {
        let mut random = Random::from_seed(seed);
        let scratch = Scratch::new();
        let paths = grow(&mut random, &scratch.at("src"));
        copy_tree(&scratch.at("src"), &scratch.at("dst"));
        edit(&mut random, &scratch.at("dst"), &paths);
        copy_tree(&scratch.at("dst"), &scratch.at("theirs"));
        let list = list(&mut random, &paths);
        let options = options(&mut random, !list.contains("none"));
        let names_root = list.lines().any(|line| line.starts_with("./"));
        for place in ["dst", "theirs"] {
            fs::set_permissions(scratch.at(place), Permissions::from_mode(0o700)).expect("a mode");
        }
        fs::write(scratch.at("list"), &list).expect("a list");
        let before = state(&scratch.at("dst"), false);
        let ours = run(psync_command(User::Own, scratch.path()).args(&options).args(["src/", "dst/"]));
        let theirs = run(command(Path::new(RSYNC), User::Own, scratch.path())
            .args(&options)
            .args(["src/", "theirs/"]));
        let (dst, expected) =
            (state(&scratch.at("dst"), names_root), state(&scratch.at("theirs"), names_root));
        copied += usize::from(expected != before);
        if dst != expected || ours.status.code() != theirs.status.code() {
            failures.push(format!(
                "MILLSTREAM_SEED={seed} {options:?} {list:?}: exit {:?}, rsync's {:?}\n  ours:{}\n  rsync's:{}\n  {}  rsync: {}",
                ours.status.code(),
                theirs.status.code(),
                only(&dst, &expected),
                only(&expected, &dst),
                text(&ours.stderr),
                text(&theirs.stderr)
            ));
        }
    }
    assert!(failures.is_empty(), "{} lists differ:\n{}", failures.len(), failures.join("\n\n"));
    assert!(copied > 0, "no list changes anything");
}

#[test]
fn an_empty_list_changes_nothing() {
    let scratch = Scratch::new();
    let paths = grow(&mut Random::from_seed(1), &scratch.at("src"));
    copy_tree(&scratch.at("src"), &scratch.at("dst"));
    edit(&mut Random::from_seed(2), &scratch.at("dst"), &paths);
    set_mode(&scratch.at("src"), 0o750);
    let before = Tree::read(&scratch.at("dst"));
    for content in ["", "# nothing\n\n"] {
        fs::write(scratch.at("list"), content).expect("a list");
        let options = ["-ai", "-r", "--delete", "--files-from=list", "src/", "dst/"];
        let output = run(psync_command(User::Own, scratch.path()).args(options));
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
        assert_eq!(Tree::read(&scratch.at("dst")).touched(&before), Vec::<String>::new());
    }
}

#[test]
fn a_new_destination_that_no_list_names_is_a_plain_directory() {
    let scratch = Scratch::new();
    grow(&mut Random::from_seed(3), &scratch.at("src"));
    set_mode(&scratch.at("src"), 0o700);
    fs::write(scratch.at("src/f"), "content").expect("a file");
    fs::write(scratch.at("list"), "f").expect("a list");
    let options = ["-ai", "--files-from=list", "src/"];
    let ours = run(psync_command(User::Own, scratch.path()).args(options).arg("dst/"));
    let theirs = run(command(Path::new(RSYNC), User::Own, scratch.path()).args(options).arg("theirs/"));
    assert_eq!(text(&ours.stdout), text(&theirs.stdout).replace("theirs", "dst"));
    let mode = |name| fs::metadata(scratch.at(name)).expect("examined").permissions();
    assert_eq!(mode("dst"), mode("theirs"));
}
