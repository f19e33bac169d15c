"""Random trees with random names. `MILLSTREAM_SEED=N` repeats a run; the seed is in the test's name."""

import random

import datasets
from answers import told_apart

# Without colons: Hadoop cannot open such files, and which of several fails first is random.
CHARACTERS = "abAB01 .,_-=%#?&+[]{}*\\'\"~é漢🙂\n\t"
PARTS = ["_", ".", "k=1", "k=2", "K=3", "a=x", "_SUCCESS", ".crc", "%20", "_metadata", "._COPYING_"]
QUERIES = ["plain", "recursive", "filtered", "rdd"]
TREES = 12


def random_name(rng):
    if rng.random() < 0.3:
        return rng.choice(PARTS) + rng.choice(["", "x"])
    return "".join(rng.choices(CHARACTERS, k=rng.randrange(1, 8)))


def make_tree(rng, directory, depth=0):
    for name in {random_name(rng) for _ in range(rng.randrange(1, 6))} - {".", ".."}:
        path = directory / name
        match rng.choices(["file", "empty", "directory", "link", "dangling"], [8, 1, 5 if depth < 4 else 0, 1, 1])[0]:
            case "file":
                path.write_bytes(b"".join(b"%d\n" % rng.randrange(100) for _ in range(rng.randrange(1, 4))))
            case "empty":
                path.write_bytes(b"")
            case "directory":
                path.mkdir()
                make_tree(rng, path, depth + 1)
            case "link":
                path.symlink_to(rng.choice([f.name for f in directory.iterdir() if not f.is_dir()] or ["nothing"]))
            case "dangling":
                path.symlink_to("nowhere")
        datasets.set_time(path, rng.randrange(1000))


def test_random_trees(stock, ours, data, seed):
    rng = random.Random(seed)
    for number in range(TREES):
        tree = data / f"random-{seed}-{number}"
        tree.mkdir()
        make_tree(rng, tree)
        for query in QUERIES:
            for session in (stock, ours):
                session.ask("answers:run_query", query=query, path=str(tree))
            expected, actual = stock.answer(), ours.answer()
            assert "crash" not in expected
            told_apart(expected, actual)
            assert actual == expected, f"MILLSTREAM_SEED={seed}: tree {number}, {query}"
