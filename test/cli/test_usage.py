#!/usr/bin/env python3
"""The command line itself: --help and --version, usage errors, processes that cannot be sampled, all as the table below says."""
# serial: no
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from harness import main  # noqa: E402

NO_PID = "4194304"  # one more than the largest that the kernel gives
# name, arguments, status, a part of stderr
USAGE = [
    ("no command", [], 64, "which command"),
    ("an unknown command", ["frobnicate"], 64, "no command 'frobnicate'"),
    ("record of nothing", ["record"], 64, "Give -p PID, or -- CMD"),
    ("dump of nothing", ["dump"], 64, "Give -p PID"),
    ("inspect of nothing", ["inspect"], 64, "Give -p PID"),
    ("both a process and a command", ["record", "-p", "1", "--", "true"], 64, "not both"),
    ("a command without --", ["record", "true"], 64, "-- goes before a command"),
    ("an argument too many", ["dump", "-p", "1", "x"], 64, "unexpected argument 'x'"),
    ("the profile of a command to stdout", ["record", "-o", "-", "--", "true"], 64, "stdout is the command's own"),
    ("an unknown option", ["record", "--frobnicate"], 64, "--frobnicate"),
    ("a pid that is no number", ["record", "-p", "12x"], 64, "'12x'"),
    ("a pid that is negative", ["record", "-p", "-1"], 64, "'-1'"),
    ("pid 0", ["dump", "-p", "0"], 64, "'0'"),
    ("a pid beyond int", ["dump", "-p", "99999999999"], 64, "'99999999999'"),
    ("an empty pid", ["dump", "-p", ""], 64, "''"),
    ("a duration without a number", ["record", "-p", "1", "-d", "s"], 64, "'s'"),
    ("a duration of an unknown unit", ["record", "-p", "1", "-d", "3 parsecs"], 64, "'3 parsecs'"),
    ("a negative duration", ["record", "-p", "1", "-d", "-3"], 64, "'-3'"),
    ("no duration at all", ["record", "-p", "1", "-d", "0"], 64, "'0'"),
    ("an endless word", ["record", "-p", "1", "-d", "infinity"], 64, "'infinity'"),
    ("a rate of 0", ["record", "-p", "1", "-r", "0"], 64, "'0'"),
    ("a rate that is no number", ["record", "-p", "1", "-r", "fast"], 64, "'fast'"),
    ("a rate that is not finite", ["record", "-p", "1", "-r", "nan"], 64, "'nan'"),
    ("a count of 0", ["record", "-p", "1", "--count", "0"], 64, "'0'"),
    ("an unknown format", ["record", "-p", "1", "-f", "gif"], 64, "no format 'gif'"),
    ("an unknown format of dump", ["dump", "-p", "1", "-f", "folded"], 64, "text or json"),
    ("an unknown native mode", ["dump", "-p", "1", "-n", "some"], 64, "leaf, full, off"),
    ("unknown labels", ["dump", "-p", "1", "--labels", "perl"], 64, "default, ruby"),
    ("an unknown colour", ["dump", "-p", "1", "--color", "red"], 64, "auto, always, never"),
    ("a regex that is none", ["record", "-p", "1", "--thread-name", "("], 64, "--thread-name '('"),
    ("an empty output", ["record", "-p", "1", "-o", ""], 64, "--output"),
    ("threads that wait, and only holders", ["record", "-p", "1", "-i", "-g"], 64, "give one of them"),
    ("a tape of two processes", ["record", "-p", "1", "-p", "2", "--tape", "t"], 64, "--tape takes one"),
    ("record of a pid that is not there", ["record", "-d", "1", "-p", NO_PID], 66, f"cannot attach to {NO_PID}: "),
    ("dump of a pid that is not there", ["dump", "-p", NO_PID], 66, f"cannot attach to {NO_PID}: "),
    ("its alias", ["snapshot", "-p", NO_PID], 66, f"cannot attach to {NO_PID}: "),
    ("inspect of a pid that is not there", ["inspect", "-p", NO_PID], 66, f"cannot attach to {NO_PID}: "),
    ("the first of two failures counts", ["record", "-d", "1", "-p", NO_PID, "-p", "4194305"], 66, "4194305"),
    ("an alias of a format", ["record", "-f", "collapsed", "-d", "1", "-p", NO_PID], 66, "cannot attach"),
    ("an output folder that is not there", ["record", "-d", "1", "-p", NO_PID, "-o", "/nonexistent/x"], 74,
     "cannot open /nonexistent/x: No such file"),
    ("an output that is a folder", ["record", "-d", "1", "-p", NO_PID, "-o", "/"], 74, "cannot open /: Is a directory"),
]
DURATIONS = ["inf", "1", "1s", "1000ms", "0.5", "1.5s", "2m", "1h", ".5s"]


def usage(t):
    for name, args, status, text in USAGE:
        r = t.run(*args)
        lines = r.lines_of_err()
        t.check(r.code == status and r.raw == b"" and text in r.err, f"{name}: {status}; said {r.code}, {r.err.strip()!r}")
        # One line for each failure; argp adds its hint, which it may fold.
        said = [l for l in lines if l.startswith("rbsample")]
        hints = len(lines) - len(said)
        failures = max(1, r.err.count("cannot attach"))
        t.check(len(said) == failures and hints <= (2 if status == 64 else 0), f"{name}: one line each, {len(lines)} lines")


def durations(t):
    for d in DURATIONS:
        r = t.run("record", "-p", NO_PID, "-d", d)
        t.check(r.code == 66, f"-d {d} is a duration: {r.err.strip()!r}")


def helps(t):
    for args in (["--help"], ["record", "--help"], ["dump", "--help"], ["snapshot", "--help"], ["inspect", "--help"],
                 ["--version"], ["record", "--usage"]):
        r = t.run(*args)
        t.check(r.code == 0 and r.raw and not r.err, f"{' '.join(args)}: 0, on stdout only")
    t.check(t.run("--version").text.startswith("rbsample "), "--version names the program")
    text = t.run("--help").text
    for command in ("record", "dump", "inspect", "snapshot"):
        t.check(command in text, f"--help has {command}")


def no_ruby(t):
    with subprocess.Popen(["sleep", "60"]) as p:
        for args in (["record", "-d", "1"], ["dump"], ["inspect"]):
            r = t.run(*args, "-p", p.pid)
            t.check(r.code == 69 and f"cannot attach to {p.pid}: " in r.err, f"{args[0]} of a process without Ruby: 69; {r}")
        p.kill()
    if os.path.exists("/proc/2/status") and b"kthreadd" in open("/proc/2/comm", "rb").read():
        r = t.run("dump", "-p", 2)
        t.check(r.code == 69, f"a kernel thread: 69; {r}")
    with subprocess.Popen(["true"]) as p:
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        r = t.run("record", "-d", "1", "-p", p.pid)
        t.check(r.code == 66, f"a zombie: 66; {r}")


def body(t):
    usage(t)
    durations(t)
    helps(t)
    no_ruby(t)


if __name__ == "__main__":
    main(body, ruby=False)
