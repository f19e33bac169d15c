"""Clean root directories, in which packages are installed and run as on a machine that has never seen this project."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import native  # noqa: E402

CARGO = native.workspace()
DIST = ROOT / "dist"

# What shows that a tool works, run in the volume by a shell that stops at the first failure.
EXERCISES = {
    "pls": 'test "$(pls -lR)" = "$(ls -lR)"',
    "pfind": 'test "$(pfind . | sort)" = "$(find . | sort)"',
    "pdu": 'test "$(pdu -a | sort)" = "$(du -a | sort)"',
    "pchmod": 'pchmod -R g=u . && test "$(stat -c %A sub | cut -c 2-4)" = "$(stat -c %A sub | cut -c 5-7)"',
    "pchown": 'pchown -R 12:34 . && test "$(stat -c %u:%g sub/file)" = 12:34',
    "pcopy": "pcopy -a sub copied && diff -r sub copied",
    "psync": "psync -a sub/ synced/ && diff -r sub synced",
    "prm": "mkdir -p doomed/below && prm -r doomed && test ! -e doomed",
    "millstream": "millstream spark-conf --jar=/x.jar | grep -q /x.jar",
}


def run(*command, **options):
    """The output of a command that must succeed."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, f"{command} exits with {done.returncode}:\n{done.stdout}"
    return done.stdout


def released(pattern):
    (found,) = DIST.glob(pattern)
    return found


def of_this_system(key):
    return re.search(rf"^{key}=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)[1]


def make_root(root, codename, *packages):
    """Installs a release of Debian or of this machine's distribution, and packages of it, from this machine's mirror if
    it has it.
    """
    this_release = of_this_system("VERSION_CODENAME")
    include = [f"--include={','.join(packages)}"] if packages else []
    mirror = []
    if codename == this_release or of_this_system("ID") == "debian":
        sources = run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages").split(
            "\n"
        )
        mirror = [next(line.split()[1] for line in sources if line.startswith(f"{this_release} "))]
    run("debootstrap", "--variant=minbase", *include, codename, root, *mirror)


def new_volume(within):
    volume = Path(tempfile.mkdtemp(dir=within))
    (volume / "sub").mkdir()
    for name in ("ä", "sub/file"):
        (volume / name).write_text(name)
    return volume


def in_root(root, script, volume, mounts=()):
    """Runs a script in a root directory with `volume` and other directories mounted, as a container does."""
    bound = [(volume, "volume"), *mounts]
    for _, place in bound:
        (root / place).mkdir(exist_ok=True)
    binds = [f'mount --bind "{directory}" "{root / place}"' for directory, place in bound]
    chroot = (
        f'exec chroot "{root}" /usr/bin/env -i -C /volume PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash -ec "$1"'
    )
    enter = " && ".join([*binds, f'mount -t proc proc "{root}/proc"', chroot])
    return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", enter, "sh", script)
