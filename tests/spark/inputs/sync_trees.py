"""Random trees for tests of synchronization, and walks of them without the tested code."""

import hashlib
import os
import random
import shutil
import stat
import struct
import subprocess
from pathlib import Path

from datasets import NASTY_NAMES

PSYNC = Path(os.environ.get("MILLSTREAM_PSYNC", Path(__file__).resolve().parents[3] / "target/checked/psync"))
MODES = (0o644, 0o600, 0o755, 0o640, 0o4755, 0o444)
DIRECTORY_MODES = (0o755, 0o700, 0o750, 0o2775)
SIZES = (0, 1, 10, 1000, 70_000)
FIRST_S, LAST_S = 1_000_000_000, 1_700_000_000


def sync(session, source, destination, **options):
    """What `millstream.sync` returns in a session, as a dictionary; its refusal is the member `error`."""
    found = session.call("sync_calls:sync", src=str(source), dst=str(destination), **options)
    assert "crash" not in found, found["crash"]
    return found


def rsync(*arguments) -> None:
    done = subprocess.run(["rsync", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def rsync_finds(source: Path, destination: Path, options: str = "-aHnic") -> str:
    """The changes that rsync would still make to the destination."""
    run = subprocess.run(
        ["rsync", options, "--delete", f"{source}/", f"{destination}/"], capture_output=True, check=True
    )
    return run.stdout.decode(errors="replace")


def files(top: Path, **content: str) -> None:
    """Files with contents, all of one time; `__` stands for a slash."""
    for name, text in content.items():
        path = top / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_500_000_000, 1_500_000_000))


def names_for(chance: random.Random, count: int, allowed=lambda name: True) -> list[str]:
    """Names that are all different."""
    nasty = [name for name in NASTY_NAMES if len(name.encode()) < 200 and allowed(name)]
    return [f"{chance.choice(nasty)}{number}" for number in range(count)]


def make(
    top: Path, seed: int, files: int = 120, directories: int = 25, allowed=lambda name: True, links: bool = True
) -> None:
    """A tree; `allowed` says which names are possible in other file systems."""
    chance = random.Random(seed)
    top.mkdir(parents=True)
    made = [top]
    for name in names_for(chance, directories, allowed):
        made.append(chance.choice(made) / name)
        made[-1].mkdir()
    for name in names_for(chance, files, allowed):
        write(chance.choice(made) / f"f{name}"[:80], chance)
    if links:
        for number in range(10):
            link = chance.choice(made) / f"l{number}"
            link.symlink_to(chance.choice(["nowhere", "../x", "/etc/passwd", "l0", "漢 字"]))
            set_time(link, chance)
    for directory in reversed(made):
        directory.chmod(chance.choice(DIRECTORY_MODES))
        set_time(directory, chance)


def many_files(top: Path, files: int, directories: int = 30) -> None:
    """Small files in a few directories."""
    for number in range(files):
        path = top / f"d{number % directories}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{number}\n".encode() * (number % 50))


def enrich(top: Path, seed: int, changes: int = 30) -> None:
    """Adds what only local file systems have: hard links, access control lists, other attributes, holes, pipes,
    sockets and devices.
    """
    chance = random.Random(seed)
    entries = sorted(path for path in top.rglob("*"))
    files = [path for path in entries if path.is_file() and not path.is_symlink()]
    others = [path for path in entries if not path.is_dir() or path.is_symlink()]
    directories = [top, *(path for path in entries if path.is_dir() and not path.is_symlink())]
    for number in range(changes):
        directory = chance.choice(directories)
        new = directory / f"x{seed}-{number}"
        match chance.randrange(8):
            case 0:
                os.link(chance.choice(others), new, follow_symlinks=False)
            case 1:
                os.setxattr(
                    chance.choice(files + directories),
                    f"user.n{chance.randrange(3)}",
                    chance.randbytes(chance.choice([0, 1, 300])),
                )
            case 2:
                os.setxattr(chance.choice(others), "trusted.note", chance.randbytes(5), follow_symlinks=False)
            case 3:
                os.setxattr(chance.choice(files + directories), "system.posix_acl_access", access_list(chance))
            case 4:
                os.setxattr(directory, "system.posix_acl_default", access_list(chance))
            case 5:
                kind = chance.choice([stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK])
                os.mknod(new, kind | chance.choice([0o600, 0o664]), os.makedev(1, chance.randrange(3, 6)))
                others.append(new)
                set_time(new, chance)
            case 6:
                with new.open("wb") as file:
                    file.truncate(chance.choice([1, 1 << 20]))
                set_time(new, chance)
            case _:
                os.chown(chance.choice(entries), -1, chance.choice([0, 2345]), follow_symlinks=False)


def access_list(chance: random.Random) -> bytes:
    """An access control list with one more user, as of linux/posix_acl_xattr.h: version 2, then tag, permissions and ID
    of each entry.
    """
    nobody, user = 2**32 - 1, chance.choice([1234, 5678])
    named, group, mask, rest = (chance.randrange(8) for _ in range(4))
    rows = [(1, 7, nobody), (2, named, user), (4, group, nobody), (16, mask, nobody), (32, rest, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


def write(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(chance.choice(SIZES)))
    path.chmod(chance.choice(MODES))
    set_time(path, chance)


def set_time(path: Path, chance: random.Random) -> None:
    time_ns = chance.randrange(FIRST_S, LAST_S) * 10**9 + chance.choice([0, 123_000_000, 123_456_789])
    os.utime(path, ns=(time_ns, time_ns), follow_symlinks=False)


def mutate(top: Path, seed: int, changes: int = 40) -> None:
    """Changes a copy of a tree in every way that a synchronization has to undo."""
    chance = random.Random(seed)
    for _ in range(changes):
        entries = sorted(path for path in top.rglob("*"))
        if not entries:
            return
        path = chance.choice(entries)
        match chance.randrange(8):
            case 0:
                remove(path)
            case 1:
                remove(path)
                path.mkdir()
                (path / "inside").write_text("x")
            case 2:
                remove(path)
                path.write_text("a file")
            case 3:
                remove(path)
                path.symlink_to("elsewhere")
            case 4 if not path.is_symlink():
                path.chmod(0o711)
            case 5 if stat.S_ISREG(path.lstat().st_mode):
                with path.open("ab") as file:
                    file.write(b"more")
            case 6:
                set_time(path, chance)
            case _:
                extra = path.parent / f"extra{chance.randrange(10**9)}"
                (extra / "deep").mkdir(parents=True)
                (extra / "deep" / "file").write_text("extra")


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def snapshot(top: Path, times: bool = True, unit_ns: int = 1000) -> dict[str, tuple]:
    """Kind, mode, owner, time and content of all entries; times are cut to a unit."""
    found = {}
    for directory, folders, names in os.walk(top):
        for path in [
            Path(directory),
            *(Path(directory, name) for name in folders if Path(directory, name).is_symlink()),
            *(Path(directory, name) for name in names),
        ]:
            about = path.lstat()
            content = (
                os.readlink(path)
                if path.is_symlink()
                else digest(path.read_bytes())
                if stat.S_ISREG(about.st_mode)
                else ""
            )
            mode = 0 if path.is_symlink() else stat.S_IMODE(about.st_mode)
            found[os.path.relpath(path, top)] = (
                stat.S_IFMT(about.st_mode),
                mode,
                about.st_uid,
                about.st_gid,
                about.st_mtime_ns // unit_ns if times else 0,
                content,
            )
    return found


def contents(top: Path) -> dict[str, str]:
    """The content of each file, and the directories."""
    found = {}
    for directory, folders, names in os.walk(top):
        found |= {os.path.relpath(Path(directory, name), top): "directory" for name in folders}
        found |= {
            os.path.relpath(Path(directory, name), top): digest(Path(directory, name).read_bytes()) for name in names
        }
    return found


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
