#!/usr/bin/env python3
"""Checks that groff has nothing to say about the man pages, and that a subcommand's --help and its page have the same options."""
import argparse
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
problems = []

p = argparse.ArgumentParser()
p.add_argument("--rbsample", required=True)
args = p.parse_args()


def plain(text):
    """The page's text without font requests; \\- is the hyphen of options."""
    return re.sub(r"\\f[BIRP]", "", text).replace(r"\-", "-")


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def help_of(*command):
    done = subprocess.run([args.rbsample, *command, "--help"], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout:
        problems.append(f"rbsample {' '.join(command)} --help: status {done.returncode}, {len(done.stdout)} bytes on stdout")
    return done.stdout


pages = sorted((root / "doc/man").glob("*.1"))
if not any(page.name == "rbsample.1" for page in pages):
    problems.append("doc/man/rbsample.1 is missing")
for page in pages:
    said = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", str(page)], capture_output=True, text=True)
    if said.returncode != 0 or said.stderr:
        problems.append(f"groff: {said.stderr.strip()}")
    if page.stem == "rbsample":
        continue
    sub = page.stem.removeprefix("rbsample-")
    text = plain(page.read_text())
    # argp's own --usage and --help are said once, in rbsample(1).
    helped = options(help_of(sub)) - {"--usage", "--help", "--version"}
    for option in sorted(helped - options(text)):
        problems.append(f"doc/man/{page.name}: no {option}, which rbsample {sub} --help has")
    listed = {o for line in re.findall(r"^\.(?:BR?|TP|IP)\b.*|^\.OP .*", text, re.M) for o in options(line)}
    for option in sorted(listed - helped - {"--usage", "--help", "--version"}):
        problems.append(f"doc/man/{page.name}: {option} is no option of rbsample {sub}")
for sub in re.findall(r"^  ([a-z]+)  ", help_of(), re.M):
    if not (root / f"doc/man/rbsample-{sub}.1").exists():
        problems.append(f"doc/man/rbsample-{sub}.1 is missing")
for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
