"""The harness: which run is shown, and that a claim cannot be met by a command that does less."""

import contextlib
import functools
import importlib.machinery
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness
import sync_sides
import sync_spark
from chart import FASTER, SLOWER, chart
from harness import (
    Contender,
    Contest,
    LocalDirectory,
    Result,
    Run,
    cpu_check,
    measure_probes,
    memory_check,
    parse_arguments,
    ratio_of,
    run_bench,
    run_command,
    tree_cpu_s,
    wall_check,
)


def run_of(wall_s, cpu_s=1.0, rss_mb=10.0, status=0):
    return Run(wall_s, cpu_s, rss_mb, status)


def ratio(check, *results):
    return ratio_of(Contest("contest", "", [], [check], 1), check, list(results))


def fixed(check, *results):
    """A contest with these results."""
    return Contest("contest", "", [], [check], 1, measure=lambda contest: list(results))


def program(name):
    """A program of bench/ as a module; its file has no extension."""
    loader = importlib.machinery.SourceFileLoader(name, str(Path(__file__).resolve().parent.parent / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def report_with(*ratios, **machine):
    return {
        "bench": "walk",
        "name": "case",
        "title": "A case",
        "command": "bench/walk --case case",
        "date": "2026-01-02",
        "machine": machine,
        "header": ["command", "wall s"],
        "rows": [["find", "2.0"], ["pfind", "1.0"]],
        "ratios": [{"name": f"case/{name}", "value": value, "target": 1.5, **more} for name, value, more in ratios],
    }


class Page(unittest.TestCase):
    def setUp(self):
        self.report = program("report")

    def test_a_miss_needs_its_reason(self):
        reports = [report_with(("wall", 2, {}), ("cpu", 1.4, {}))]
        self.assertEqual(self.report.unexplained(reports, {}), ["walk case/cpu"])
        self.assertEqual(self.report.unexplained(reports, {"walk case/cpu": "it is read twice"}), [])
        self.assertIn(
            "| walk case/cpu | 1.4 | 1.5 | it is read twice |",
            self.report.page_of(reports, {"walk case/cpu": "it is read twice"}),
        )

    def test_a_rival_that_was_stopped_gives_a_bound(self):
        self.assertIn(
            "wall more than 9 (target 1.5)", self.report.page_of([report_with(("wall", 9, {"at_least": True}))], {})
        )

    def test_what_holds_for_all_runs_is_said_once(self):
        page = self.report.page_of([report_with(load="1.00", CPU="fast"), report_with(load="2.00", CPU="fast")], {})
        self.assertEqual((page.count("CPU fast"), page.count("load 1.00"), page.count("load 2.00")), (1, 1, 1))

    def test_the_page_shows_the_committed_results(self):
        reports, reasons = self.report.committed_results()
        self.assertEqual(
            self.report.PAGE.read_text(), self.report.page_of(reports, reasons), "run bench/report --render"
        )
        self.assertEqual(self.report.unexplained(reports, reasons), [])


class Charts(unittest.TestCase):
    def test_each_ratio_has_a_bar_and_its_name(self):
        ratios = [
            {"name": "near/wall-a<b", "value": 0.5, "target": 1},
            {"name": "far/wall", "value": 50, "target": 20, "at_least": True},
            {"name": "failed/wall", "value": 0.0, "target": 20},
        ]
        drawing = ElementTree.fromstring(chart("Listing & more", ratios))
        svg = "{http://www.w3.org/2000/svg}"
        texts = [text.text for text in drawing.iter(f"{svg}text")]
        for expected in ("Listing & more", "near, against a<b", "0.5x", "far", "over 50x"):
            self.assertIn(expected, texts)
        bars = [bar.get("fill") for bar in drawing.iter(f"{svg}rect")][1:]
        self.assertEqual(bars, [SLOWER, FASTER])


class Probes(unittest.TestCase):
    """A probe that reports a cost without starting Spark."""

    def measured(self, *costs, rounds=1):
        contenders = [Contender(f"contender {i}", ["echo", f"noise\n{cost}"]) for i, cost in enumerate(costs)]
        bed = functools.partial(LocalDirectory, Path("/"))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            results = measure_probes(Contest("probes", "", contenders, [], rounds, bed))
        return results, said.getvalue()

    @staticmethod
    def cost(rows, **more):
        return json.dumps({"wall_s": 2, "cpu_s": 3, "heap_mb": 4, "rows": rows, **more})

    def test_a_probe_tells_what_its_job_cost(self):
        (result,), _ = self.measured(self.cost(7, sum=5), rounds=2)
        self.assertEqual(result.runs, [Run(2, 3, 4, status=0, lines=7)] * 2)

    def test_a_probe_may_count_requests(self):
        (result,), _ = self.measured(self.cost(7, requests=300, max_in_flight=64))
        self.assertEqual(result.runs, [Run(2, 3, 4, status=0, lines=7, requests=300, max_in_flight=64)])

    def test_a_probe_with_several_jobs_has_results_for_each(self):
        names = ("count", "sum")
        contenders = [
            Contender(
                label, ["printf", "%s\n", *(self.cost(rows, job=job) for job, rows in zip(names, found, strict=True))]
            )
            for label, found in (("stock", (7, 1)), ("Millstream", (7, 2)))
        ]
        bed = functools.partial(LocalDirectory, Path("/"))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            results = measure_probes(Contest("probes", "", contenders, [], 1, bed, jobs=names))
        self.assertEqual(
            [(result.label, result.lines, result.failed) for result in results],
            [
                ("count: stock", 7, False),
                ("count: Millstream", 7, False),
                ("sum: stock", 1, False),
                ("sum: Millstream", 2, True),
            ],
        )
        self.assertIn("sum: Millstream: rows and sum are (2, None), not (1, None)", said.getvalue())

    def test_a_job_that_a_probe_does_not_report_has_failed(self):
        contenders = [Contender("stock", ["echo", self.cost(7, job="count")])]
        bed = functools.partial(LocalDirectory, Path("/"))
        with contextlib.redirect_stderr(io.StringIO()):
            count, total = measure_probes(Contest("probes", "", contenders, [], 1, bed, jobs=("count", "sum")))
        self.assertEqual((count.failed, total.failed), (False, True))

    def test_other_rows_or_another_sum_than_the_first_one_has_is_a_failure(self):
        for other in (self.cost(8, sum=5), self.cost(7, sum=6)):
            (first, second), said = self.measured(self.cost(7, sum=5), other)
            self.assertEqual((first.failed, second.failed), (False, True))
            self.assertIn("contender 1: rows and sum are", said)

    def test_a_stopped_job_has_no_answer_to_compare(self):
        (stopped, second), _ = self.measured(self.cost(None, stopped=True), self.cost(7))
        self.assertEqual((stopped.stopped, stopped.failed, second.failed), (True, False, False))

    def test_a_probe_without_a_result_has_failed(self):
        (first, second), _ = self.measured("no result", self.cost(7))
        self.assertEqual((first.failed, second.failed), (True, False))


class Ratios(unittest.TestCase):
    def test_the_median_run_is_shown(self):
        self.assertEqual(Result("x", [run_of(9), run_of(2), run_of(3)]).median.wall_s, 3)

    def test_higher_is_better(self):
        rival = Result("rival", [run_of(10, cpu_s=1)], lines=5)
        ours = Result("ours", [run_of(2, cpu_s=4, rss_mb=100)], lines=5)
        cases = [
            (wall_check("wall", "rival", "ours", 4), 5.0, 4),
            (cpu_check("cpu", "rival", "ours"), 0.25, 1),
            (memory_check("peak", 1000, "ours"), 10.0, 1),
        ]
        for check, value, target in cases:
            with self.subTest(check.name):
                expected = {"name": f"contest/{check.name}", "value": value, "target": target}
                self.assertEqual(ratio(check, rival, ours), expected)

    def test_failing_or_printing_less_scores_nothing(self):
        check = wall_check("wall", "rival", "ours", 1)
        rival = Result("rival", [run_of(10)], lines=5)
        for ours in (Result("ours", [run_of(1, status=1)], lines=5), Result("ours", [run_of(1)], lines=4)):
            self.assertEqual(ratio(check, rival, ours)["value"], 0)
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
                self.assertEqual(run_bench("bench", [fixed(check, rival, ours)], parse_arguments("", [])), 1)
            self.assertIn("contest", told.getvalue())

    def test_a_bench_whose_commands_work_and_agree_ends_well(self):
        check = wall_check("wall", "rival", "ours", 1)
        contest = fixed(check, Result("rival", [run_of(10)], lines=5), Result("ours", [run_of(1)], lines=5))
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(run_bench("bench", [contest], parse_arguments("", [])), 0)
        self.assertIn("ratio contest/wall 10 target 1", shown.getvalue())

    def test_a_stopped_rival_gives_a_bound_and_we_may_not_be_stopped(self):
        check = wall_check("wall", "rival", "ours", 1)
        long = Run(300, 1, 1, status=0, stopped=True)
        rival, ours = Result("rival", [long]), Result("ours", [run_of(3)], lines=5)
        expected = {"name": "contest/wall", "value": 100.0, "target": 1, "at_least": True}
        self.assertEqual(ratio(check, rival, ours), expected)
        self.assertEqual(ratio(check, Result("rival", [run_of(3)], lines=5), Result("ours", [long]))["value"], 0)


class Choosing(unittest.TestCase):
    def contests(self, name, directory):
        module = program(name)
        options = parse_arguments("", ["--quick", "--bin-dir", directory])
        makers = {
            "direct-writes": lambda: module.Writes(True, 1).contests(),
            "formats": lambda: module.contests(True, 1),
            "spark-list": lambda: module.contests(True, 1),
            "spark-read": lambda: module.Reads(True, 1).contests(),
            "spark-remote": lambda: module.contests(True, 1),
            "sync": lambda: module.Syncs(options).contests(),
            "tools": lambda: module.Tools(options).contests(),
            "walk": lambda: module.Walk(options).contests(),
        }
        return makers[name]()

    def test_only_the_cases_that_run_make_data(self):
        for name in ("direct-writes", "formats", "spark-list", "spark-read", "spark-remote", "sync", "tools", "walk"):
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                with mock.patch.dict(os.environ, {"MILLSTREAM_BENCH_DIR": directory}):
                    self.assertTrue(self.contests(name, directory))
                self.assertEqual(os.listdir(directory), [])

    def test_a_word_may_be_made_when_the_command_runs(self):
        made = []
        contender = Contender("cat", ["cat", lambda: made.append("data") or Path("/made"), "{}"])
        self.assertEqual(made, [])
        self.assertEqual(contender.on(Path("/bed")), ["cat", "/made", "/bed"])

    def test_cases_behind_latency_have_a_row_with_16_slots(self):
        with (
            tempfile.TemporaryDirectory() as directory,
            mock.patch.dict(os.environ, {"MILLSTREAM_BENCH_DIR": directory}),
        ):
            for name, is_slow in (("spark-list", "latfs"), ("spark-read", "latfs"), ("spark-remote", "")):
                slow = [contest for contest in self.contests(name, directory) if is_slow in contest.name]
                self.assertTrue(slow)
                for contest in slow:
                    with self.subTest(contest.name):
                        self.assertIn("wall-16-slots", [check.name for check in contest.checks])
                        labels = {contender.label for contender in contest.contenders}
                        self.assertLessEqual({label for check in contest.checks for label in check.labels}, labels)


class DirectWrites(unittest.TestCase):
    def test_a_limit_of_requests(self):
        check = program("direct-writes").requests_limit(1300)
        for requests, value in ((650, 2.0), (2600, 0.5), (None, 0.999)):
            result = Result("Millstream", [Run(1, 1, 1, status=0, requests=requests)], lines=5)
            self.assertEqual(ratio(check, result)["value"], value)

    def test_contests_have_names_of_their_own(self):
        names = [contest.name for contest in program("direct-writes").Writes(quick=True, rounds=1).contests()]
        self.assertEqual(len(names), len(set(names)))


class SparkReads(unittest.TestCase):
    def setUp(self):
        self.program = program("spark-read")
        for makes_data in ("tree", "record_files", "everyday_files"):
            patch = mock.patch.object(self.program, makes_data, return_value=Path("/warm"))
            patch.start()
            self.addCleanup(patch.stop)

    def contests(self):
        return {contest.name: contest for contest in self.program.Reads(quick=True, rounds=1).contests()}

    def test_contests_have_names_of_their_own(self):
        reads = self.program.Reads(quick=True, rounds=1).contests()
        self.assertEqual(len(reads), len(self.contests()))

    def test_everyday_jobs_take_turns_in_one_probe_and_have_a_ratio_each(self):
        contest = self.contests()["everyday-small"]
        self.assertEqual(len(contest.jobs), 20)
        self.assertEqual([check.name for check in contest.checks], list(contest.jobs))
        for contender in contest.contenders:
            self.assertIn(",".join(contest.jobs), contender.command)
        labels = {result.label for result in harness.results_of(contest)}
        self.assertLessEqual({label for check in contest.checks for label in check.labels}, labels)

    def test_each_slow_case_mounts_its_own_format(self):
        for case, expected in (("csv-infer", "csv-header"), ("json-infer", "json")):
            with self.subTest(case), mock.patch.object(self.program, "LatencyMount"):
                self.contests()[f"latfs-0.5ms-{case}"].bed()
                self.assertEqual(self.program.tree.call_args.args[0], expected)


class Syncs(unittest.TestCase):
    def setUp(self):
        self.program = program("sync")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.source, self.destination = Path(scratch.name, "from"), Path(scratch.name, "to")
        for number in range(200):
            file = self.source / f"directory {number % 7}" / f"file {number}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"text {number}")

    def contests(self, lacking=()):
        options = parse_arguments("", ["--quick"])
        find = lambda name, **_: None if name in lacking else f"/bin/{name}"  # noqa: E731
        with (
            mock.patch.object(self.program.shutil, "which", find),
            mock.patch.object(self.program, "floor_program", lambda: "/floor"),
        ):
            return {contest.name: contest for contest in self.program.Syncs(options).contests()}

    def differences(self):
        return sync_sides.differences(self.source, self.destination)

    def test_every_check_is_about_contenders_of_its_contest(self):
        for name, contest in self.contests().items():
            labels = {contender.label for contender in contest.contenders}
            for check in contest.checks:
                with self.subTest(f"{name}/{check.name}"):
                    self.assertLessEqual(set(check.labels), labels)

    def test_a_rival_that_is_not_installed_is_named_and_left_out(self):
        self.assertEqual([name for name, contest in self.contests().items() if "not installed" in contest.title], [])
        contest = self.contests(lacking=["fpsync"])["nested-first"]
        self.assertIn("; fpsync is not installed", contest.title)
        self.assertEqual([check.name for check in contest.checks], ["wall-rsync", "wall-cp", "wall-rclone", "requests"])

    def test_a_copy_has_no_differences(self):
        sync_sides.copy_all(self.source, self.destination)
        self.assertEqual(self.differences(), 0)

    def test_whatever_a_tool_leaves_out_is_a_difference(self):
        file = Path("directory 3", "file 3")
        spoilers = {
            "a file": lambda path: path.unlink(),
            "its time": lambda path: os.utime(path, ns=(0, path.stat().st_mtime_ns + 1)),
            "its text": lambda path: (
                status := path.stat(),
                path.write_text("TEXT 3"),
                os.utime(path, ns=(0, status.st_mtime_ns)),
            ),
            "an empty directory": lambda path: (self.source / "empty").mkdir(),
        }
        for what, spoil in spoilers.items():
            with self.subTest(what):
                sync_sides.copy_all(self.source, self.destination)
                spoil(self.destination / file)
                self.assertGreater(self.differences(), 0)
                subprocess.run(["rm", "-r", self.destination], check=True)

    def test_one_file_of_a_hundred_is_older_and_shorter(self):
        sync_sides.copy_older(self.source, self.destination)
        changed = []
        for file in (path for path in self.source.rglob("*") if path.is_file()):
            ours, other = file.stat(), (self.destination / file.relative_to(self.source)).stat()
            if (ours.st_size, ours.st_mtime_ns) != (other.st_size, other.st_mtime_ns):
                changed.append((other.st_size < ours.st_size, other.st_mtime_ns < ours.st_mtime_ns))
        self.assertEqual(changed, [(True, True)] * 2)

    def test_the_copy_loop_copies_files_with_their_times(self):
        self.destination.mkdir()
        with mock.patch.object(self.program, "scratch_directory", lambda: self.source.parent):
            subprocess.run([self.program.floor_program(), self.source, self.destination, "2"], check=True)
        self.assertEqual(self.differences(), 0)


class SparkSyncs(unittest.TestCase):
    def setUp(self):
        jars = mock.patch.multiple(
            sync_spark,
            s3a_jars=lambda version: [Path("/s3a.jar")],
            distcp_jars=lambda version: [Path(f"/distcp-{version}.jar")],
            hadoop_native_directory=lambda: Path("/native"),
        )
        jars.start()
        self.addCleanup(jars.stop)

    def contests(self, *arguments):
        return {
            contest.name: contest for contest in sync_spark.SparkSyncs(parse_arguments("", list(arguments))).contests()
        }

    def test_every_check_is_about_contenders_of_its_contest(self):
        for name, contest in self.contests("--quick").items():
            labels = {contender.label for contender in contest.contenders}
            self.assertTrue(contest.checks, name)
            for check in contest.checks:
                with self.subTest(f"{name}/{check.name}"):
                    self.assertLessEqual(set(check.labels), labels)

    def test_only_what_is_chosen_needs_anything(self):
        self.assertEqual(list(self.contests("--case", "s3-d")), ["s3-down"])
        self.assertEqual(sync_spark.SparkSyncs(parse_arguments("", ["--case", "local-first"])).missing(), [])

    def test_a_contender_is_told_where_the_server_of_the_run_is(self):
        with tempfile.TemporaryDirectory() as scratch:
            Path(scratch, "url").write_text("http://server:1")
            contender = sync_spark.OfServer("x", ["copy", "{url}/data", "{}/to"])
            self.assertEqual(contender.on(Path(scratch)), ["copy", "http://server:1/data", f"{scratch}/to"])

    def test_files_of_a_linked_tree_are_spread_evenly_and_few_are_distinct(self):
        with tempfile.TemporaryDirectory() as scratch:
            distinct = sync_spark.linked_files(Path(scratch, "tree"), 1_000, 250, 10)
            files = [path for path in Path(scratch).rglob("*") if path.is_file()]
            self.assertEqual((len(distinct), len(files), len({path.parent for path in files})), (100, 1_000, 250))
            self.assertEqual(len({path.stat().st_ino for path in files}), 100)

    def test_times_and_sidecars_do_not_matter_to_a_rival_that_makes_them(self):
        with tempfile.TemporaryDirectory() as scratch:
            source, destination = Path(scratch, "from"), Path(scratch, "to")
            for top, time_s in ((source, 1), (destination, 2)):
                (top / "a").mkdir(parents=True)
                (top / "a" / "b").write_text("text")
                os.utime(top / "a" / "b", (time_s, time_s))
            (destination / "a" / ".b.crc").write_text("sum")
            self.assertEqual(sync_sides.untimed_differences(source, destination), 0)
            (destination / "a" / "b").write_text("TEXT")
            self.assertEqual(sync_sides.untimed_differences(source, destination), 1)
            (destination / "a" / "c").touch()
            self.assertGreater(sync_sides.untimed_differences(source, destination), 1)

    def test_the_memory_of_a_process_is_not_that_of_its_children(self):
        big = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'b = bytearray(200 << 20)'])"
        run = sync_spark.run_watched([sys.executable, "-c", big])
        self.assertEqual(run.status, 0)
        self.assertTrue(3 < run.rss_mb < 100, run.rss_mb)


class PublishedPattern(unittest.TestCase):
    def test_upper_directories_are_listed_until_there_are_enough_for_tasks(self):
        with (
            tempfile.TemporaryDirectory() as scratch,
            mock.patch.dict(
                sys.modules, {"pyspark": mock.Mock(), "pyspark.sql": mock.Mock(), "pyspark.sql.functions": mock.Mock()}
            ),
        ):
            import ptspark

            for number in range(80):
                Path(scratch, f"d{number % 4}", f"e{number}").mkdir(parents=True)
                Path(scratch, f"d{number % 4}", f"e{number}", "file").touch()
            directories, entries = ptspark.upper_entries(scratch)
            self.assertEqual((len(directories), len(entries)), (80, 84))
            below = [entry for directory in directories for entry in ptspark.walk(scratch, directory)]
            found = {entry[0] for entry in entries + below}
            self.assertEqual(found, {str(path.relative_to(scratch)) for path in Path(scratch).rglob("*")})


class Running(unittest.TestCase):
    def test_a_run_is_measured_with_its_children(self):
        with tempfile.TemporaryDirectory() as scratch:
            burn = "timeout 0.2 sh -c 'while :; do :; done'; echo a; echo b; exit 3"
            run = run_command(["sh", "-c", burn], Path(scratch, "output"))
        self.assertEqual((run.status, run.lines), (3, 2))
        self.assertGreater(run.wall_s, 0.19)
        self.assertGreater(run.cpu_s, 0.02)
        self.assertLess(run.rss_mb, 10, "that is Python's")

    def test_the_cpu_time_of_a_tree_has_that_of_children_alive_and_ended(self):
        before = tree_cpu_s(os.getpid())
        burn = "timeout 0.3 sh -c 'while :; do :; done'; echo; sleep 60"
        with subprocess.Popen(["sh", "-c", burn], stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            self.assertGreater(tree_cpu_s(child.pid), 0.02)
            self.assertGreater(tree_cpu_s(os.getpid()) - before, 0.02)
            child.kill()
        self.assertGreater(tree_cpu_s(os.getpid()) - before, 0.02)

    def test_a_command_that_takes_too_long_is_stopped_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as scratch:
            alive = Path(scratch, "alive")
            run = run_command(
                ["sh", "-c", f"(while :; do :; done; touch {alive}) & sleep 0.8; touch {alive}; wait"], limit_s=0.3
            )
            self.assertEqual((run.stopped, run.status), (True, 0))
            self.assertGreater(run.cpu_s, 0.02)
            time.sleep(0.8)
            self.assertFalse(alive.exists())

    def test_a_floor_has_no_answer_to_compare(self):
        contest = Contest("c", "", [Contender("floor", ["true"], is_floor=True)], [], 1)
        (floor,) = harness.results_of(contest)
        floor.runs = [run_of(1)]
        ours = Result("ours", [run_of(2)], lines=7)
        self.assertEqual(ratio(wall_check("wall", "floor", "ours", 1), floor, ours)["value"], 0.5)

    def test_what_a_command_left_behind_can_stand_in_place_of_its_lines(self):
        class Bed(LocalDirectory):
            answer = 3

        contender = Contender("echo", ["echo", "{}"])
        (result,) = Contest("c", "", [contender], [], 1, bed=lambda: Bed(Path("/"))).run()
        self.assertEqual((result.lines, result.runs[0].lines), (3, 3))

    @mock.patch.object(harness, "LONG_RUN_S", 0.2)
    def test_contenders_take_turns_and_a_slow_one_runs_once(self):
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch, "log")
            contenders = [
                Contender("slow", ["sh", "-c", f"echo slow {{}}/in >> {log}; sleep 0.3"]),
                Contender("quick", ["sh", "-c", f"echo quick >> {log}"]),
            ]
            contest = Contest("c", "", contenders, [], 2, bed=lambda: LocalDirectory(Path(scratch)))
            results = contest.run()
            self.assertEqual(log.read_text().split("\n")[:3], [f"slow {scratch}/in", "quick", "quick"])
        self.assertEqual([len(result.runs) for result in results], [1, 2])


if __name__ == "__main__":
    unittest.main()
