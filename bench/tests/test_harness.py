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
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import (  # noqa: E402
    Contender, Contest, LocalDirectory, Result, Run, cpu_check, measure_probes, memory_check, parse_arguments,
    ratio_of, run_bench, run_command, tree_cpu_s, wall_check,
)


def run_of(wall_s, cpu_s=1.0, rss_mb=10.0, status=0):
    return Run(wall_s, cpu_s, rss_mb, status)


def ratio(check, *results):
    return ratio_of(Contest("contest", "", [], [check], 1), check, list(results))


def fixed(check, *results):
    """A contest with these results."""
    return Contest("contest", "", [], [check], 1, measure=lambda contest: list(results))


def program(name):
    """A program of bench/ as a module; its file has no ending."""
    loader = importlib.machinery.SourceFileLoader(name, str(Path(__file__).resolve().parent.parent / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Page(unittest.TestCase):
    def test_a_contest_of_several_reports_is_shown_once(self):
        def report(rounds, names, quick=False):
            return {
                "bench": "walk", "rounds": rounds, "quick": quick,
                "contests": [{"name": name} for name in names],
                "ratios": [{"name": f"{name}/wall"} for name in names],
            }

        shown = program("report").once_each([
            report(1, ["far-pls", "near-pls"]), report(3, ["near-pls", "near-pdu"]), report(9, ["near-pls"], quick=True),
        ])
        self.assertEqual([[c["name"] for c in r["contests"]] for r in shown], [["far-pls"], ["near-pls", "near-pdu"]])
        self.assertEqual(
            [[c["name"] for c in r["ratios"]] for r in shown], [["far-pls/wall"], ["near-pls/wall", "near-pdu/wall"]]
        )


class Probes(unittest.TestCase):
    """A probe that says what it cost, in place of one that starts Spark."""

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


class DirectWrites(unittest.TestCase):
    def test_a_limit_of_requests(self):
        check = program("direct-writes").requests_limit(1300)
        for requests, value in ((650, 2.0), (2600, 0.5), (None, 0.999)):
            result = Result("Millstream", [Run(1, 1, 1, status=0, requests=requests)], lines=5)
            self.assertEqual(ratio(check, result)["value"], value)

    def test_contests_have_names_of_their_own(self):
        names = [contest.name for contest in program("direct-writes").Writes(quick=True, rounds=1).contests()]
        self.assertEqual(len(names), len(set(names)))


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

    def test_contenders_take_turns_and_a_slow_one_runs_less(self):
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch, "log")
            contenders = [
                Contender("slow", ["sh", "-c", f"echo slow {{}}/in >> {log}"], rounds_max=1),
                Contender("quick", ["sh", "-c", f"echo quick >> {log}"]),
            ]
            contest = Contest("c", "", contenders, [], 2, bed=lambda: LocalDirectory(Path(scratch)))
            results = contest.run()
            self.assertEqual(log.read_text().split("\n")[:3], [f"slow {scratch}/in", "quick", "quick"])
        self.assertEqual([len(result.runs) for result in results], [1, 2])


if __name__ == "__main__":
    unittest.main()
