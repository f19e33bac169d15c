//! Directories behind many symbolic links: what every tool that follows links does about more of them than the kernel
//! follows on one path, against GNU's.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::random::Random;

const TOOLS: &[(&str, &str)] = &[
    ("chgrp", env!("CARGO_BIN_EXE_pchown")),
    ("cp", env!("CARGO_BIN_EXE_pcopy")),
    ("du", env!("CARGO_BIN_EXE_pdu")),
    ("find", env!("CARGO_BIN_EXE_pfind")),
    ("ls", env!("CARGO_BIN_EXE_pls")),
];

const READING: &[&str] = &[
    "du -L 0",
    "du -aLl 7/s",
    "du -L --inodes 3/s/s/s",
    "du -D 0/s",
    "ls -LR 0",
    "ls -LR --color=always 0",
    "ls -R --color=always 0 0/s/s/",
    "ls -LRF 0/s/s 5/",
    "find -L 0",
    "find -L 0 -name f -o -type l",
    "find -L 0 -depth -links +0 -printf %p|%y|%Y|%l\\n",
    "find -H 0/s",
];

const CHANGING: &[&str] = &[
    "cp -rL 0 copy",
    "cp -rLv 0/s 1 into",
    "cp -rH 0/s copy",
    "chgrp -RcL 1 0",
    "chgrp -RvL 1 0/s",
    "chgrp -RcH 1 0/s",
];

/// Directories with a file, a link that leads nowhere, and a link to the next directory, by a number of links that
/// `further` tells. Returns how many links the whole way takes.
fn chain(root: &Path, directories: usize, mut further: impl FnMut() -> usize) -> usize {
    let mut links = 0;
    fs::create_dir(root.join("into")).expect("a directory");
    for at in 0..directories {
        let directory = root.join(at.to_string());
        fs::create_dir(&directory).expect("a directory");
        fs::write(directory.join("f"), "data").expect("a file");
        symlink("f", directory.join("l")).expect("a link");
        symlink("nowhere", directory.join("n")).expect("a link");
        let mut target = (at + 1).to_string();
        for further in 0..further() {
            let name = format!("by-{at}-{further}");
            symlink(target, root.join(&name)).expect("a link");
            target = name;
            links += 1;
        }
        symlink(format!("../{target}"), directory.join("s")).expect("a link");
        links += 1;
    }
    fs::write(root.join(directories.to_string()), "no directory").expect("a file");
    links
}

/// What the program said, its exit code, and what there is afterwards, in lines without an order.
fn outcome(program: &str, name: &str, arguments: &[&str], directory: &Path) -> BTreeSet<String> {
    let mut command = Command::new(program);
    command.arg0(name).args(arguments).current_dir(directory).env_clear().env("LC_ALL", "C");
    let output = command.env("LS_COLORS", "or=31:mi=32:ln=33:di=34").output().expect("the program runs");
    let mut lines = BTreeSet::from([format!("status {:?}", output.status.code())]);
    for (kind, text) in [("out", output.stdout), ("error", output.stderr)] {
        lines.extend(String::from_utf8_lossy(&text).lines().map(|line| format!("{kind}: {line}")));
    }
    lines
}

/// Which lines only one of the two tools has, in directories of their own.
fn differences(line: &str, [theirs, ours]: [&Path; 2]) -> String {
    let words: Vec<_> = line.split(' ').collect();
    let (name, program) = TOOLS.iter().find(|(name, _)| *name == words[0]).expect("a tool");
    let theirs = outcome(name, name, &words[1..], theirs);
    let ours = outcome(program, name, &words[1..], ours);
    let theirs_only = theirs.difference(&ours).map(|found| format!("{line}: only GNU's: {found}\n"));
    theirs_only.chain(ours.difference(&theirs).map(|found| format!("{line}: only ours: {found}\n"))).collect()
}

/// As [`differences`], of the whole trees too if they are changed.
fn differences_of_changes(line: &str, make: &dyn Fn(&Path)) -> String {
    let scratch = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let trees = scratch.each_ref().map(|scratch| scratch.path());
    trees.into_iter().for_each(make);
    let said = differences(line, trees);
    let left = trees.map(|tree| outcome("find", "find", &[".", "-printf", "%P %y %g %l\\n"], tree));
    let differing =
        left[0].symmetric_difference(&left[1]).map(|found| format!("{line}: left by one: {found}\n"));
    said + &differing.collect::<String>()
}

/// A kernel that has to begin a path anew counts its links twice, so GNU's tools may find too many of them once in a
/// while.
fn check(note: &str, make: impl Fn(&Path)) {
    let once = tempfile::tempdir().expect("a directory");
    make(once.path());
    let is_root = rustix::process::geteuid().is_root();
    let lastingly = |differing: &dyn Fn() -> String| {
        (0..3).map(|_| differing()).find(String::is_empty).unwrap_or_else(differing)
    };
    let mut differing: String =
        READING.iter().map(|line| lastingly(&|| differences(line, [once.path(); 2]))).collect();
    for line in CHANGING.iter().filter(|line| is_root || !line.starts_with("chgrp")) {
        differing += &lastingly(&|| differences_of_changes(line, &make));
    }
    assert!(differing.is_empty(), "{note}:\n{differing}");
}

#[test]
fn links_are_followed_as_far_as_the_kernel_follows_them() {
    for directories in [40, 41, 50] {
        check(&format!("{directories} directories"), |root| {
            assert_eq!(chain(root, directories, || 0), directories);
        });
    }
}

/// A link may lead through others, which count as well.
#[test]
fn links_on_the_way_of_links_count() {
    let mut random = Random::from_environment();
    for round in 0..3 {
        let most = random.pick(&[1, 2, 3, 5]);
        let further: Vec<_> = (0..45).map(|_| random.below(most)).collect();
        check(&format!("round {round}: {further:?}"), |root| {
            let mut next = further.iter();
            assert!(chain(root, further.len(), || *next.next().expect("enough")) >= further.len());
        });
    }
}
