//! Access control lists, and directories that their owner may not read or enter.

use super::*;

/// Lists of permissions and attributes of what cannot be opened for them, below directories that hand on lists of
/// their own. Where a list is lost who it leaves out may be let in: with one, the mode's group bits are its mask.
#[test]
fn lists_of_permissions_are_gnus() {
    assert!(rustix::process::geteuid().is_root(), "this test makes devices and trusted attributes");
    const PREPARE: &str = "
        mkdir src src/sub dst
        echo x >src/file; echo x >src/listed; mkfifo -m 640 src/pipe src/listed-pipe; mkfifo -m 600 src/secret
        mknod -m 604 src/null c 1 3; ln -s target src/link
        setfacl -m u:1:rw,g::---,m::rw src/listed src/listed-pipe; setfacl -m u:2:r src/null
        setfattr -n trusted.x -v 1 src/pipe; setfattr -n trusted.x -v 1 src/null
        setfattr -h -n trusted.x -v 1 src/link; chown 1:1 src/listed-pipe
        setfacl -d -m u:3:rwx,g:4:rwx dst src/sub
        echo y >src/sub/file; mkfifo src/sub/pipe src/sub/plain; setfacl -b src/sub/plain; chmod 751 src/sub/plain
        ln -s listed-pipe src/to-pipe";
    for line in [
        "-r",
        "-a",
        "-rp",
        "-r --preserve=mode",
        "-r --preserve=xattr",
        "-r --no-preserve=mode",
        "-a --no-preserve=mode",
        "-r --preserve=ownership",
        "-a --no-preserve=xattr",
        "-a --attributes-only",
    ] {
        let (_scratch, one, two) = twins(|root| {
            let script = format!("cd '{}' || exit; umask 022; {PREPARE}", root.display());
            assert!(Command::new("sh").args(["-ec", &script]).status().expect("sh runs").success());
        });
        compare(&one, &two, &words(&format!("{line} src dst")), &[], "");
    }
    // A pipe that is reached through a link keeps who may use it, too.
    let (_scratch, _, two) = twins(|root| {
        let script = format!("cd '{}' || exit; umask 022; {PREPARE}", root.display());
        assert!(Command::new("sh").args(["-ec", &script]).status().expect("sh runs").success());
    });
    assert!(run(PCOPY, &two, &words("-aH src/to-pipe dst"), &[]).status.success());
    let list = xattrs(&two.join("src/listed-pipe"));
    assert!(!list.is_empty());
    assert_eq!(xattrs(&two.join("dst/to-pipe")), list);
}

/// The directories of `--parents` get the lists of those in the source, through links as well, and keep none that they
/// inherit from the directory they are made in.
#[test]
fn lists_of_permissions_of_parents_are_gnus() {
    const PREPARE: &str = "
        mkdir -p src/listed/plain src/real dst was/src/listed/plain part/src/listed
        echo x >src/listed/plain/file; echo x >src/real/file; ln -s real src/link
        setfacl -m u:1:rwx,g::---,m::rwx src/listed src/real; setfacl -d -m u:2:rwx src/listed
        setfattr -n user.test -v 1 src/listed; chmod 750 src/listed/plain
        setfacl -d -m u:3:rwx,g:4:rwx dst; setfacl -m u:3:rwx was/src/listed/plain part/src/listed";
    for line in [
        "-p --parents src/listed/plain/file src/link/file dst",
        "-a --parents src/listed/plain/file src/link/file dst",
        "--preserve=mode --parents src/listed/plain/file dst",
        "-p --parents src/listed/plain/file was",
        "-p --parents src/listed/plain/file part",
        "--parents src/listed/plain/file was",
    ] {
        let (_scratch, one, two) = twins(|root| {
            let script = format!("cd '{}' || exit; umask 022; {PREPARE}", root.display());
            assert!(Command::new("sh").args(["-ec", &script]).status().expect("sh runs").success());
        });
        compare(&one, &two, &words(line), &[], "");
    }
}

/// A directory that cannot be listed may still be writable, and an unreachable file does not hold up the others.
#[test]
fn directories_that_cannot_be_read_are_copied_into() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user");
    const PREPARE: &str = "
        mkdir -p source/sub closed ok dst/closed drop sticky listed; echo a >a; echo b >source/sub/b
        echo c >closed/c; echo d >ok/d; echo old >drop/old
        setfacl -d -m u:3:rwx,g:4:rwx listed
        mkdir secret; setfacl -m u:3:5,g::0 secret; setfacl -d -m u:3:7 secret; chown 65534 secret; chmod u-r secret
        chmod 700 dst/closed; chown 65534 a source source/sub source/sub/b dst drop/old
        chmod 0333 drop listed; chmod 1733 sticky";
    for line in [
        "a drop",
        "a drop/new",
        "a sticky/",
        "-r source drop",
        "-a source sticky",
        "-a secret sticky",
        "-p -r secret sticky",
        "-p a listed",
        "-a source listed",
        "a drop/old",
        "-b a drop/old",
        "--parents source/sub/b sticky",
        "-p --parents source/sub/b listed",
        "--parents closed/c ok/d dst",
        "--parents ok/d closed/c dst",
        "-rv ok .",
        "-v --parents ok/d .",
        "-rv source/sub ok closed/c ok",
    ] {
        let (scratch, one, two) = twins(|root| {
            let script = format!("cd '{}' || exit; umask 022; {PREPARE}", root.display());
            assert!(Command::new("sh").args(["-ec", &script]).status().expect("sh runs").success());
        });
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).expect("chmod");
        compare_as_nobody(scratch.path(), [&one, &two], "022", line);
    }
}

/// The umask or an inherited access control list may lock the owner out of a new directory.
#[test]
fn closed_directories_are_copied_into() {
    assert!(rustix::process::geteuid().is_root(), "this test becomes another user");
    const PREPARE: &str = "
        mkdir -p d/s d/w d/empty DST G listed; echo a >d/a; echo b >d/s/b; chmod 500 d/s; touch -d 2001-01-01 d d/s
        chown -R 65534:65534 .; chmod g+s G; setfacl -d -m u::r-x listed";
    for umask in ["0277", "0777", "0100"] {
        for line in [
            "-r d DST",
            "-r d G",
            "-a d DST",
            "-r --preserve=ownership d DST",
            "-r --no-preserve=mode d DST",
            "-rl d DST",
            "-r --parents d/s DST",
            "-rp --parents d/s DST",
            "-r d listed",
            "-rp d listed",
            "-r --parents d/s listed",
        ] {
            let (scratch, one, two) = twins(|root| {
                let script = format!("cd '{}' || exit; umask 022; {PREPARE}", root.display());
                assert!(Command::new("sh").args(["-ec", &script]).status().expect("sh runs").success());
            });
            fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).expect("chmod");
            compare_as_nobody(scratch.path(), [&one, &two], umask, line);
        }
    }
}

/// Runs both tools as another user in equal places and compares everything.
fn compare_as_nobody(scratch: &Path, [one, two]: [&Path; 2], umask: &str, line: &str) {
    let program = scratch.join("cp");
    copy_program(PCOPY, &program);
    let outcome = |program: &str, at: &Path| {
        let script = format!("umask {umask}; exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"");
        let mut arguments = ["-c", &script, "sh", program].map(OsStr::new).to_vec();
        arguments.extend(words(line));
        let output = run("/bin/sh", at, &arguments, &[]);
        let errors = String::from_utf8_lossy(&output.stderr).replace(program, "cp");
        (output.status.code(), errors, sorted(&output.stdout))
    };
    let (theirs, ours) = (outcome("/bin/cp", one), outcome(program.to_str().expect("UTF-8"), two));
    assert_eq!(ours, theirs, "umask {umask} {line}");
    assert_eq!(snapshot(two), snapshot(one), "umask {umask} {line}: {ours:?}");
}
