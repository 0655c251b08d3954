#!/usr/bin/env python3
"""Checks that lib/librbsample.map, the public headers and the libraries' symbols say the same."""
import argparse
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
problems = []


def declared():
    """Functions and objects with linkage that the public headers declare."""
    names = set()
    for path in (root / "include/rbsample").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        text = re.sub(r"^\s*#(?:[^\n\\]|\\\n|\\.)*", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        # Bodies, struct members and enumerators are between braces.
        depth, flat = 0, ""
        for c in text:
            depth -= c == "}"
            if depth == 0:
                flat += ";" if c == "}" else c
            depth += c == "{"
        for statement in flat.split(";"):
            if re.match(r"\s*(static|typedef)\b", statement):
                continue
            m = re.search(r"\b(rbsp_\w+)\s*\(", statement) or re.match(r"\s*extern\b.*\b(rbsp_\w+)\s*\[?", statement, re.S)
            if m:
                names.add(m.group(1))
    return names


def mapped():
    text = (root / "lib/librbsample.map").read_text()
    return set(re.findall(r"^\s*(rbsp_\w+);", text, re.M))


def defined(nm, library, *options):
    out = subprocess.run([nm, "--defined-only", *options, library], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in out.splitlines())
    return {r[2].split("@")[0] for r in rows if len(r) == 3 and r[1] in "TDBRVWC"}


def same(a, a_name, b, b_name):
    for name in sorted(a - b):
        problems.append(f"{name} is in {a_name}, not in {b_name}")
    for name in sorted(b - a):
        problems.append(f"{name} is in {b_name}, not in {a_name}")


p = argparse.ArgumentParser()
p.add_argument("--nm", default="nm")
p.add_argument("--static", required=True)
p.add_argument("--shared", required=True)
args = p.parse_args()

same(declared(), "the public headers", mapped(), "lib/librbsample.map")
same(mapped(), "lib/librbsample.map", defined(args.nm, args.shared, "-D"), "librbsample.so")
for name in sorted(defined(args.nm, args.static, "-g")):
    if not re.match(r"(rbsp_|__asan_|__odr_asan|asan\.|_?_?sancov)", name):
        problems.append(f"{name} has linkage in librbsample.a and does not begin with rbsp_")
for p in problems:
    print(p)
sys.exit(1 if problems else 0)
