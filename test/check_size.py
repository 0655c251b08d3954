#!/usr/bin/env python3
"""Names files over 500 lines: each should hold one thing. clang-tidy has the limit for functions."""
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 500

long = []
for folder in ("cmd", "include", "lib", "test", "bench", "scripts", "examples"):
    for path in sorted((root / folder).rglob("*")):
        if path.is_file() and path.suffix in ("", ".c", ".h", ".py", ".rb", ".sh"):
            n = len(path.read_text(errors="replace").splitlines())
            if n > LIMIT:
                long.append(f"{path.relative_to(root)}: {n} lines, more than {LIMIT}")
print("\n".join(long), end="\n" if long else "")
sys.exit(1 if long and "--strict" in sys.argv else 0)
