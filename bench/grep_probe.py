"""Counts lines with `grep -c` on two cores and prints the cost, as JSON. Run by bench/spark-read.

grep_probe.py WORD DIRECTORY
"""

import json
import resource
import subprocess
import sys
import time

COMMAND = 'find "$2" -type f -print0 | xargs -0 -n1 -P2 grep -c "$1"'


def main(word: str, directory: str) -> None:
    start = time.perf_counter()
    counts = subprocess.run(["sh", "-c", COMMAND, "sh", word, directory], capture_output=True, text=True, check=True)
    wall = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = sum(map(int, counts.stdout.split()))
    print(json.dumps({"wall_s": wall, "cpu_s": usage.ru_utime + usage.ru_stime, "heap_mb": 0, "rows": rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
