"""Answers to prompts in the locale's language, as GNU's tools accept them."""

import os
import subprocess
import unittest

import tools

ANSWERS = (b"j", b"ja\n", b"J\n", b"y\n", b"Yes\n", b"n\n", b"nej\n", b"\n", b"", b" y\n", b"1\n", b"+\n", b"y\0n\n")


class Answers(unittest.TestCase):
    def test_find_asks_in_the_language_of_the_locale(self):
        question = ["/", "-maxdepth", "0", "-ok", "echo", "run", ";"]
        for locale in "C", "en_US.UTF-8", "sv_SE.UTF-8", "de_DE.UTF-8":
            environment = {**os.environ, "LC_ALL": locale}
            for answer in ANSWERS:
                with self.subTest(locale=locale, answer=answer):
                    ours = tools.run("pfind", *question, input=answer, env=environment)
                    theirs = subprocess.run(["find", *question], input=answer, env=environment, capture_output=True)
                    self.assertEqual((ours.returncode, ours.stdout), (theirs.returncode, theirs.stdout))


if __name__ == "__main__":
    unittest.main()
