#!/usr/bin/env python3
"""Checks that every file includes only what lib/LAYERS allows, and that cmd/ sees only the public headers."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.M)
problems = []


def complain(path, text, what):
    problems.append(f"{path.relative_to(root)}: {text}: {what}")


def read_layers():
    rows = {}
    for line in (root / "lib/LAYERS").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, allowed = line.partition(":")
        rows[name.strip()] = [a for a in allowed.split() if a != "-"]
    for name, allowed in rows.items():
        for a in allowed:
            if a not in rows:
                problems.append(f"lib/LAYERS: {name} names {a}, which has no row")
    return rows


def check_order(rows):
    """The rows form no circle."""
    done = set()

    def visit(name, path):
        if name in path:
            problems.append("lib/LAYERS: a circle: " + " -> ".join([*path, name]))
        elif name not in done:
            for a in rows.get(name, []):
                visit(a, [*path, name])
            done.add(name)

    for name in rows:
        visit(name, [])


def check_library(rows):
    for folder in sorted(p for p in (root / "lib").iterdir() if p.is_dir()):
        layer = folder.name
        if layer not in rows:
            problems.append(f"lib/LAYERS: no row for lib/{layer}")
            continue
        allowed = {layer, "base", *rows[layer]}
        for path in sorted(folder.glob("*.[ch]")):
            for kind, name in INCLUDE.findall(path.read_text()):
                text = f"#include {kind}{name}"
                if kind == "<":
                    if name.startswith("rbsample/") and not (root / "include" / name).exists():
                        complain(path, text, "no such public header")
                    if name == "uthash.h" and path.name != "hash.h":
                        complain(path, text, 'uthash is set up in "base/hash.h", which is to be included instead')
                elif "/" not in name:
                    complain(path, text, 'headers of the library are written "layer/name.h"')
                elif name.split("/")[0] not in allowed:
                    complain(path, text, f"the row of {layer} in lib/LAYERS does not allow it")


def check_only_public(folder, own):
    for path in sorted((root / folder).glob("*.[ch]")):
        for kind, name in INCLUDE.findall(path.read_text()):
            if kind == '"' and not (own and (path.parent / name).resolve().parent == path.parent):
                complain(path, f'#include "{name}"', f"{folder}/ may include only <rbsample/...> and its own headers")


layers = read_layers()
check_order(layers)
check_library(layers)
check_only_public("cmd", own=True)
check_only_public("include/rbsample", own=False)
for p in problems:
    print(p)
sys.exit(1 if problems else 0)
