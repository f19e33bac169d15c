"""Shared by the benchmark programs: trees, test environments, measuring, tables, the JSON behind docs/benchmarks.md.

A bench is a list of `Contest`s. In a contest several commands do the same work in the same environment, in turn,
for some rounds; for each command the run with the median wall time is shown, together with the fastest and
the slowest. A command that takes over a minute runs once, and one that takes over five is stopped.
`Check`s turn the runs into ratios with a target; higher is better in every one. A command that fails, or
prints a different number of lines than its rival, scores 0, and the bench ends with an error.
"""

import argparse
import datetime
import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TESTBED = REPOSITORY / "testbed"
RIVALS = REPOSITORY / "build" / "rivals" / "bin"  # those that testbed/setup builds
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LOCALE = "C.UTF-8"  # for every command, so that sorting costs the same everywhere
LONG_RUN_S = 60  # longer runs are not repeated
LIMIT_S = 300  # longer runs are stopped
# Two runs of one program differ by so much here; "never slower" means "not slower beyond noise".
NOISE = 0.95


# ---- trees ----


def scratch_directory() -> Path:
    """The directory that keeps the trees between runs."""
    directory = Path(os.environ.get("MILLSTREAM_BENCH_DIR") or REPOSITORY / "build" / "bench")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def make_once(name: str, make: Callable[[Path], None]) -> Path:
    """The path of scratch item `name`; `make(path)` is called if it does not exist yet."""
    path = scratch_directory() / name
    if not path.exists():
        partial = path.with_name(f"{name}.partial")
        if partial.is_dir():
            shutil.rmtree(partial)
        else:
            partial.unlink(missing_ok=True)
        print(f"making {path} ...", file=sys.stderr)
        make(partial)
        partial.rename(path)
    return path


def make_tree(kind: str, path: Path, *numbers: int) -> None:
    """Makes a tree with testbed/mktree, which takes `numbers` after the directory."""
    subprocess.run([TESTBED / "mktree", kind, path, *map(str, numbers)], check=True)


def tree(kind: str, *numbers: int) -> Path:
    """Such a tree, made once."""
    return make_once("-".join([kind, *map(str, numbers)]), lambda path: make_tree(kind, path, *numbers))


def ext4_image(source: Path, name: str, inodes: int, megabytes: int) -> Path:
    """An ext4 image with a copy of `source`, made once."""
    return make_once(
        name,
        lambda path: subprocess.run(
            ["mke2fs", "-q", "-t", "ext4", "-N", str(inodes), "-d", source, path, f"{megabytes}M"],
            check=True,
            stdout=subprocess.DEVNULL,
        ),
    )


# ---- beds ----


class LocalDirectory:
    """An environment for warm runs: the directory itself."""

    statistics = None

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class CachedFiles(LocalDirectory):
    """The same, with all its files read just before: a kernel may drop what was not used for minutes."""

    def __enter__(self):
        with subprocess.Popen(["find", self.path, "-type", "f", "-print0"], stdout=subprocess.PIPE) as find:
            subprocess.run(["xargs", "-0", "cat"], stdin=find.stdout, stdout=subprocess.DEVNULL, check=True)
        return self


# ---- measuring ----


@dataclass(frozen=True)
class Run:
    """One run of one command."""

    wall_s: float
    cpu_s: float
    rss_mb: float
    status: int
    lines: int | None = None  # of output; None when it went to /dev/null
    requests: int | None = None
    max_in_flight: int | None = None
    stopped: bool = False  # was not done when its time was over: its true cost is higher


def count_lines(path: Path) -> int:
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def run_command(command: list[str], output: Path | None = None, limit_s: float = LIMIT_S) -> Run:
    """Runs `command`, its output going to a file or to /dev/null; CPU and memory include its children's.

    The kernel counts what a process held before it became the command, which is all of this interpreter: so the peak is
    taken by time(1), a small process that starts another. After `limit_s` seconds all of them are killed.
    """
    environment = {**os.environ, "LC_ALL": LOCALE}
    with open(output or os.devnull, "wb") as sink, tempfile.NamedTemporaryFile("r") as peak_kb:
        command = ["time", "--quiet", f"--output={peak_kb.name}", "--format=%M", *command]
        start = time.perf_counter()
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, env=environment, start_new_session=True
        )
        at_limit = []

        def stop() -> None:
            at_limit.append(tree_cpu_s(child.pid))
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(limit_s, stop)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - start
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        if at_limit:
            return Run(wall_s, at_limit[0], rss_mb=0, status=0, stopped=True)
        rss_mb = int(peak_kb.read()) / 1024
    return Run(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        rss_mb=rss_mb,
        status=child.returncode,
        lines=count_lines(output) if output else None,
    )


def fields_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat, from the state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = fields_of(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def tree_cpu_s(root: int) -> float:
    """The same for a process and all its descendants, including those that have ended."""
    parents, ticks = {}, {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            fields = fields_of(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # has just ended
        parents[pid] = int(fields[1])
        ticks[pid] = sum(map(int, fields[11:15]))

    def is_below(pid: int) -> bool:
        while pid and pid != root:
            pid = parents.get(pid, 0)
        return pid == root

    return sum(ticks[pid] for pid in ticks if is_below(pid)) / TICKS_PER_S


# ---- contests ----


Word = str | Callable[[], object]
"""A word of a command, or a function that returns it. A function is called when the command runs, so that only the
cases that `--case` chooses make data.
"""


@dataclass(frozen=True)
class Contender:
    """A command; {} in its words becomes the environment's path."""

    label: str
    command: list[Word]
    # Does only the part of the work that no tool can avoid: it has no answer to compare.
    is_floor: bool = False

    def on(self, path: Path) -> list[str]:
        words = [word if isinstance(word, str) else str(word()) for word in self.command]
        return [word.replace("{}", str(path)) for word in words]


@dataclass
class Result:
    """All runs of one contender in a contest."""

    label: str
    runs: list[Run] = field(default_factory=list)
    lines: int | None = None
    is_floor: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it should not run again."""
        return any(run.wall_s > LONG_RUN_S for run in self.runs)

    @property
    def median(self) -> Run:
        return sorted(self.runs, key=lambda run: run.wall_s)[(len(self.runs) - 1) // 2]

    @property
    def failed(self) -> bool:
        return any(run.status for run in self.runs)

    @property
    def stopped(self) -> bool:
        return any(run.stopped for run in self.runs)

    @property
    def has_answer(self) -> bool:
        return not (self.stopped or self.is_floor)


@dataclass(frozen=True)
class Check:
    """A ratio with a target: `value(results)`, where results are found by label."""

    name: str
    target: float
    value: Callable[[dict[str, Result]], float]
    labels: tuple[str, ...]  # the contenders that must have worked, and agree in their output; ours is the last


def wall_check(name: str, rival: str, ours: str, target: float) -> Check:
    return Check(name, target, lambda by: by[rival].median.wall_s / by[ours].median.wall_s, (rival, ours))


def cpu_check(name: str, rival: str, ours: str, target: float = 1.0) -> Check:
    return Check(name, target, lambda by: by[rival].median.cpu_s / by[ours].median.cpu_s, (rival, ours))


def requests_check(name: str, rival: str, ours: str, target: float = 1.0) -> Check:
    return Check(name, target, lambda by: by[rival].median.requests / by[ours].median.requests, (rival, ours))


WIDE_SLOTS = 16


def with_slots(label: str) -> str:
    """The label of the same contender with more task slots: with latency, stock Spark has one request in flight for
    each of its slots.
    """
    return f"{label}, {WIDE_SLOTS} slots"


def wide_wall_check(rival: str, ours: str, target: float) -> Check:
    return wall_check(f"wall-{WIDE_SLOTS}-slots", with_slots(rival), with_slots(ours), target)


def memory_check(name: str, limit_mb: float, ours: str) -> Check:
    return Check(name, 1.0, lambda by: limit_mb / max(run.rss_mb for run in by[ours].runs), (ours,))


@dataclass(frozen=True)
class Contest:
    """Commands that do the same work in the same environment."""

    name: str
    title: str
    contenders: list[Contender]
    checks: list[Check]
    rounds: int
    # Opened for every run when cold, once for all when warm. `None`: `measure` does it all.
    bed: Callable[[], AbstractContextManager] | None = None
    warm: bool = False
    measure: Callable[["Contest"], list[Result]] | None = None
    memory_column: str = "peak MB"  # what the runs' rss_mb is
    requests_column: str = "requests"  # what the runs' requests are
    limit_s: float = LIMIT_S
    jobs: tuple[str, ...] = ("",)  # what each probe does, one after the other; every job has its own results

    def run(self) -> list[Result]:
        if self.measure:
            return self.measure(self)
        return measure_warm(self) if self.warm else measure_cold(self)


def result_label(job: str, contender: str) -> str:
    return f"{job}: {contender}" if job else contender


def results_of(contest: Contest) -> list[Result]:
    """Empty results for each job."""
    return [
        Result(result_label(job, contender.label), is_floor=contender.is_floor)
        for job, contender in itertools.product(contest.jobs, contest.contenders)
    ]


def progress(contest: Contest, label: str, run: Run) -> None:
    print(f"  {contest.name}: {label}: {run.wall_s:.3f} s", file=sys.stderr, flush=True)


def measure_cold(contest: Contest) -> list[Result]:
    """Uses a fresh environment for every run; the output is kept in memory, and its lines are counted afterwards.

    If an environment's `answer`, found in the command's result, is not None, it replaces the number of lines.
    """
    results = results_of(contest)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        output = Path(memory, "output")
        for _ in range(contest.rounds):
            for contender, result in zip(contest.contenders, results, strict=True):
                if result.is_long:
                    continue
                with contest.bed() as bed:
                    run = run_command(contender.on(bed.path), output, contest.limit_s)
                if bed.statistics:
                    run = replace(run, requests=bed.statistics.total, max_in_flight=bed.statistics.max_in_flight)
                if (answer := getattr(bed, "answer", None)) is not None:
                    run = replace(run, lines=answer)
                result.runs.append(run)
                result.lines = run.lines
                progress(contest, result.label, run)
    return results


def measure_warm(contest: Contest) -> list[Result]:
    """One environment for all; an untimed first run of each command warms the caches, and its lines are counted."""
    results = results_of(contest)
    with contest.bed() as bed, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        for contender, result in zip(contest.contenders, results, strict=True):
            result.lines = run_command(contender.on(bed.path), Path(memory, "output")).lines
        Path(memory, "output").unlink()
        for _ in range(contest.rounds):
            for contender, result in zip(contest.contenders, results, strict=True):
                if result.is_long:
                    continue
                result.runs.append(run_command(contender.on(bed.path)))
                progress(contest, result.label, result.runs[-1])
    return results


Answer = tuple[
    Run, int | None
]  # the run, whose `lines` are the number of rows that a job found, or their sum if it adds something up
NO_ANSWER = Run(wall_s=0, cpu_s=0, rss_mb=0, status=1), None


def run_probes(command: list[str]) -> dict[str, Answer]:
    """Runs a command that measures its jobs itself and prints their costs as lines of JSON; a job's last line counts.

    If the command fails, none of its jobs has an answer.
    """
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": LOCALE})
    costs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not costs:
        print(done.stderr, file=sys.stderr)
        return {}
    return {cost.get("job", ""): answer_of(cost) for cost in costs}


def run_probe(command: list[str]) -> Answer:
    """The same for a command with a single job, which needs no name."""
    return run_probes(command).get("", NO_ANSWER)


def answer_of(cost: dict) -> Answer:
    counts = {name: cost.get(name) for name in ("requests", "max_in_flight")}
    run = Run(
        cost["wall_s"], cost["cpu_s"], cost["heap_mb"], 0, cost["rows"], **counts, stopped=cost.get("stopped", False)
    )
    return run, cost.get("sum")


def checked(contest: Contest, result: Result, answer: Answer, expected: dict[str, tuple], job: str) -> Run:
    """The run, failed if its answer differs from that of the job's first run, in `expected`; a floor has none."""
    run, run_sum = answer
    if run.status or run.stopped or result.is_floor:
        return run
    found = (run.lines, run_sum)
    if found == expected.setdefault(job, found):
        return run
    print(f"{contest.name}: {result.label}: rows and sum are {found}, not {expected[job]}", file=sys.stderr)
    return replace(run, status=1)


def measure_probes(contest: Contest) -> list[Result]:
    """Runs the contenders, which are probes, in turn, each in a newly opened environment."""
    results = results_of(contest)
    expected: dict[str, tuple] = {}
    for _ in range(contest.rounds):
        for position, contender in enumerate(contest.contenders):
            own = results[position :: len(contest.contenders)]
            if any(result.is_long for result in own):
                continue
            with contest.bed() as bed:
                answers = run_probes(contender.on(bed.path))
            for job, result in zip(contest.jobs, own, strict=True):
                run = checked(contest, result, answers.get(job, NO_ANSWER), expected, job)
                if bed.statistics:
                    run = replace(run, requests=bed.statistics.total, max_in_flight=bed.statistics.max_in_flight)
                result.runs.append(run)
                result.lines = run.lines
                progress(contest, result.label, run)
    return results


# ---- reports ----


def machine_facts() -> dict[str, str]:
    def cpu_model() -> str:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
        return platform.machine()

    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    file_system = subprocess.run(
        ["findmnt", "-no", "FSTYPE", "-T", scratch_directory()], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        "CPU": f"{len(os.sched_getaffinity(0))} x {cpu_model()}",
        "memory": f"{memory_gb:.0f} GB",
        "kernel": platform.release(),
        "file system": file_system,
        "locale": LOCALE,
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def table_header(contest: Contest) -> list[str]:
    return [
        "command",
        "wall s",
        "min-max s",
        "CPU s",
        contest.memory_column,
        contest.requests_column,
        "in flight",
        "lines",
    ]


def table_row(result: Result) -> list[str]:
    run = result.median
    walls = [run.wall_s for run in result.runs]
    return [
        result.label + (" (FAILED)" if result.failed else " (stopped)" if result.stopped else ""),
        (">" if run.stopped else "") + (f"{run.wall_s:.4f}" if run.wall_s < 0.1 else f"{run.wall_s:.3f}"),
        f"{min(walls):.3f}-{max(walls):.3f}",
        f"{run.cpu_s:.3f}",
        f"{run.rss_mb:.{0 if run.rss_mb >= 20 else 1}f}" if run.rss_mb else "",
        str(run.requests or ""),
        str(run.max_in_flight or ""),
        str(result.lines or ""),
    ]


def faults(contest: Contest, results: list[Result]) -> list[str]:
    """The reasons why the figures of a contest are worthless, a line each."""
    found = [f"{contest.name}: {result.label} failed" for result in results if result.failed]
    by_label = {result.label: result for result in results}
    for check in contest.checks:
        answers = {label: by_label[label].lines for label in check.labels if by_label[label].has_answer}
        if len(set(answers.values())) > 1:
            found.append(
                f"{contest.name}/{check.name}: the answers differ: {', '.join(f'{label}: {lines}' for label, lines in answers.items())}"
            )
    return found


def ratio_of(contest: Contest, check: Check, results: list[Result]) -> dict:
    by_label = {result.label: result for result in results}
    used = [by_label[label] for label in check.labels]
    answers = {result.lines for result in used if result.has_answer}
    sound = not any(result.failed for result in used) and used[-1].has_answer and len(answers) == 1
    value = check.value(by_label) if sound else 0.0
    ratio = {"name": f"{contest.name}/{check.name}", "value": round(value, 3), "target": check.target}
    return {**ratio, "at_least": True} if any(result.stopped for result in used) else ratio


def print_table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())


def parse_arguments(description: str, argv: list[str]) -> argparse.Namespace:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small data, few rounds: for a look, not for a claim")
    parser.add_argument("--rounds", type=int, metavar="N", help="runs of each command (default 3, quick 1)")
    parser.add_argument("--case", metavar="TEXT", default="", help="only cases whose name contains TEXT")
    parser.add_argument("--results", metavar="DIR", type=Path, help="also write a file of JSON for each case there")
    parser.add_argument("--bin-dir", metavar="DIR", type=Path, default=target / "release", help="where our tools are")
    options = parser.parse_args(argv)
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def command_line(name: str, contest: Contest, options: argparse.Namespace) -> str:
    """The command that reproduces these results."""
    return " ".join(
        [
            f"bench/{name}",
            *(["--quick"] if options.quick else []),
            f"--case {contest.name}",
            f"--rounds {options.rounds}",
        ]
    )


def report_of(
    name: str, contest: Contest, results: list[Result], options: argparse.Namespace, machine: dict[str, str]
) -> dict:
    """The data of a contest that docs/benchmarks.md shows."""
    return {
        "bench": name,
        "name": contest.name,
        "title": contest.title,
        "command": command_line(name, contest, options),
        "date": datetime.date.today().isoformat(),
        "machine": machine,
        "header": table_header(contest),
        "rows": [table_row(result) for result in results],
        "ratios": [ratio_of(contest, check, results) for check in contest.checks],
    }


def run_bench(name: str, contests: list[Contest], options: argparse.Namespace) -> int:
    """Runs the contests that `--case` selects, prints their tables and ratios; returns the exit status, 1 if a command
    failed or answers differ.
    """
    chosen = [contest for contest in contests if options.case in contest.name]
    if not chosen:
        print(f"{name}: no case contains '{options.case}'", file=sys.stderr)
        return 2
    print(
        f"{name}{' (QUICK: small data, no claim)' if options.quick else ''}, {datetime.date.today()}, {options.rounds} rounds"
    )
    for fact, value in machine_facts().items():
        print(f"  {fact}: {value}")
    complaints, ratios = [], []
    for contest in chosen:
        machine = machine_facts()
        results = contest.run()
        complaints += faults(contest, results)
        report = report_of(name, contest, results, options, machine)
        print(f"\n{contest.name}: {contest.title}")
        print_table(report["header"], report["rows"])
        ratios += report["ratios"]
        if options.results:
            options.results.mkdir(parents=True, exist_ok=True)
            (options.results / f"{name}.{contest.name}.json").write_text(json.dumps(report, indent=1) + "\n")
    print()
    for ratio in ratios:
        print(f"ratio {ratio['name']} {ratio['value']:g} target {ratio['target']:g}")
    for complaint in complaints:
        print(f"{name}: {complaint}", file=sys.stderr)
    return 1 if complaints else 0
