#!/usr/bin/env python3
"""Adds up ctest's JUnit files: names what failed or was skipped and why, and closes with a line of counts.

With CI=true a skipped test is a failure, unless a line `PATTERN: REASON` of test/allowed-skips names it.
"""
import fnmatch
import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

here = pathlib.Path(__file__).resolve().parent


def allowed_skips():
    for line in (here / "allowed-skips").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(": ")
            yield pattern.strip(), reason.strip()


def last_line(case):
    lines = (case.findtext("system-out") or "").strip().splitlines()
    return lines[-1] if lines else "no reason given"


ci = os.environ.get("CI") == "true"
allowed = dict(allowed_skips())
passed = failed = skipped = 0
for name in sys.argv[1:]:
    preset = pathlib.Path(name).parent.name
    for case in ElementTree.parse(name).getroot().iter("testcase"):
        test = case.get("name")
        status = case.get("status")
        if status == "run":
            passed += 1
        elif case.find("skipped") is not None and "77" in case.find("skipped").get("message", ""):
            if ci and not any(fnmatch.fnmatch(test, a) for a in allowed):
                failed += 1
                print(f"skipped without leave: {preset} {test}: {last_line(case)}")
            else:
                skipped += 1
                print(f"skipped: {preset} {test}: {last_line(case)}")
        else:
            failed += 1
            print(f"failed: {preset} {test}")
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(0 if passed and not failed else 1)
