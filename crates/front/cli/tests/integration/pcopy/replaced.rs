//! What happens to an existing file: it is replaced by exactly what replaces it with GNU's tool, and it stays if that
//! cannot be made.

use super::*;

const KINDS: [&str; 13] = [
    "file",
    "other-names",
    "closed",
    "fifo",
    "socket",
    "device",
    "link",
    "dangling",
    "loop",
    "link-to-fifo",
    "link-to-directory",
    "empty-directory",
    "directory",
];
/// Options under which the copy of a pipe, device or socket is another one, never its contents.
const OPTIONS: [&str; 24] = [
    "-RH",
    "-RL",
    "-R",
    "-a",
    "-rp",
    "-RHf",
    "-RLf",
    "-RLb",
    "-Rb",
    "-RLn",
    "-RLu",
    "-Ru",
    "-RL --remove-destination",
    "-R --remove-destination",
    "-RL --preserve=links",
    "-R --attributes-only",
    "-RL --attributes-only",
    "-Rl",
    "-Rlf",
    "-RLl",
    "-al",
    "-RLv",
    "-Rv",
    "-RT",
];

/// Makes something of a kind at `path`, and what it needs next to it.
fn make(kind: &str, path: &Path, text: &str) {
    let next_to = |name: &str| path.with_file_name(name);
    let node = |kind, path: &Path, device| {
        rustix::fs::mknodat(CWD, path, kind, Mode::from_raw_mode(0o640), device).expect("a node");
    };
    match kind {
        "file" => fs::write(path, text).expect("a file"),
        "other-names" => {
            fs::write(path, text).expect("a file");
            fs::hard_link(path, next_to("other")).expect("a link");
        }
        "closed" => {
            fs::write(path, text).expect("a file");
            fs::set_permissions(path, Permissions::from_mode(0o400)).expect("chmod");
        }
        "fifo" => node(FileType::Fifo, path, 0),
        "socket" => drop(std::os::unix::net::UnixListener::bind(path).expect("a socket")),
        "device" => node(FileType::CharacterDevice, path, rustix::fs::makedev(1, 3)),
        "link" => {
            fs::write(next_to("target"), text).expect("a file");
            symlink("target", path).expect("a link");
        }
        "dangling" => symlink("nowhere", path).expect("a link"),
        "loop" => symlink("n", path).expect("a link"),
        "link-to-fifo" => {
            node(FileType::Fifo, &next_to("pipe"), 0);
            symlink("pipe", path).expect("a link");
        }
        "link-to-directory" => {
            fs::create_dir(next_to("within")).expect("a directory");
            symlink("within", path).expect("a link");
        }
        "empty-directory" => fs::create_dir(path).expect("a directory"),
        "directory" => {
            fs::create_dir(path).expect("a directory");
            fs::write(path.join("n"), text).expect("a file");
        }
        other => panic!("{other}"),
    }
}

fn fill(source: &str, found: &str) -> impl FnOnce(&Path) {
    move |root| {
        for (kind, side) in [(source, "s"), (found, "d")] {
            fs::create_dir(root.join(side)).expect("a directory");
            make(kind, &root.join(side).join("n"), side);
        }
    }
}

/// Whether source and destination are of kinds for which releases since 9.1 differ, or of which a directory is in the
/// way of a file; `newest/cases.txt` has those.
fn is_newer(source: &str, found: &str, options: &str) -> bool {
    options.contains('b') && (source.contains("directory") || found.contains("directory"))
}

#[test]
fn special_files_replace_what_they_replace_with_gnus() {
    assert!(rustix::process::geteuid().is_root(), "this test makes devices");
    let mut random = Random::from_environment();
    for source in ["fifo", "socket", "device", "link", "dangling", "link-to-fifo", "file", "directory"] {
        for found in KINDS {
            let (one_of, other) = (random.pick(&OPTIONS), random.pick(&OPTIONS));
            // The two of the report are always tried.
            for options in ["-RH", "-RL", one_of, other] {
                // Data is not written into a pipe before somebody reads from it.
                let waits = ["file", "directory", "link"].contains(&source) && found.ends_with("fifo");
                if waits || is_newer(source, found, options) {
                    continue;
                }
                let (_scratch, one, two) = twins(fill(source, found));
                let destination = if options.contains('T') { "d/n" } else { random.pick(&["d", "d/n"]) };
                let line = format!("{options} s/n {destination}");
                compare(&one, &two, &words(&line), &[], &format!("{source} over {found}"));
            }
        }
    }
}

/// GNU's tool removes the existing file first in some of these.
#[test]
fn what_cannot_be_replaced_stays() {
    assert!(rustix::process::geteuid().is_root(), "this test makes devices");
    for (source, options) in [
        // No such call for nobody.
        ("device", "-R"),
        ("device", "-a"),
        ("device", "-R --remove-destination"),
        ("device", "-RLf"),
        ("device", "-Rb"),
        // Not readable.
        ("closed", "--remove-destination"),
        ("closed", "-R --remove-destination"),
        ("closed", "-f"),
        ("closed", "-b"),
        ("closed", "--atomic"),
        ("closed", "-a --remove-destination"),
        ("other-names", "--preserve=links --remove-destination"),
        // Its contents cannot be had.
        ("socket", ""),
        ("socket", "--remove-destination"),
        ("socket", "-P"),
        ("socket", "-R --copy-contents"),
        // Not in the current directory.
        ("fifo", "-Rs"),
        ("file", "-s --remove-destination"),
        ("link", "-as"),
    ] {
        for found in ["file", "other-names", "closed", "fifo", "link", "dangling"] {
            let (_scratch, one, two) = twins(fill(source, found));
            fs::remove_dir_all(one).expect("removed");
            for path in ["s/n", "s/other"] {
                if source == "other-names" {
                    fs::set_permissions(two.join(path), Permissions::from_mode(0o400)).expect("chmod");
                }
            }
            for path in ["", "d"] {
                lchown(two.join(path), Some(65534), Some(65534)).expect("chown");
            }
            for (name, _) in snapshot(&two.join("d")) {
                lchown(two.join("d").join(name), Some(65534), Some(65534)).expect("chown");
            }
            fs::set_permissions(two.parent().expect("one"), Permissions::from_mode(0o755)).expect("chmod");
            let before = snapshot(&two.join("d"));
            let program = two.parent().expect("one").join("cp");
            copy_program(PCOPY, &program);
            let mut command = Command::new(&program);
            command.args(options.split_whitespace()).args(["s/n", "d"]).current_dir(&two);
            let output = command.uid(65534).gid(65534).stdin(Stdio::null()).output().expect("runs");
            let label = format!("{source} over {found} with {options}: {output:?}");
            assert_eq!(output.status.code(), Some(1), "{label}");
            assert_eq!(snapshot(&two.join("d")), before, "{label}");
        }
    }
}
