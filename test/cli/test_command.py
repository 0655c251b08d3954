#!/usr/bin/env python3
"""`record -- CMD`: the command's status, its stdio, mask, dispositions, limits and descriptors, and where the profile goes."""
# rubies: 3.1
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from harness import child_setup, main, parse_folded, parse_summary  # noqa: E402

BUSY = "t = Process.clock_gettime(1) + 0.4; i = 0; i += 1 while Process.clock_gettime(1) < t; "
# name, Ruby text, the status that rbsample must end with
STATUSES = [
    ("its status 0", BUSY, 0),
    ("its status 3", BUSY + "exit 3", 3),
    ("killed by a signal", BUSY + "Process.kill(:KILL, $$); sleep", 128 + signal.SIGKILL),
    ("ended by TERM", BUSY + "trap('TERM', 'DEFAULT'); Process.kill(:TERM, $$); sleep", 128 + signal.SIGTERM),
    ("an exception", BUSY + "raise 'no'", 1),
]
STATE = r"""
import json, os, resource, signal
status = {l.split(":")[0]: l.split(":")[1].strip() for l in open("/proc/self/status")}
print(json.dumps({
    "blocked": status["SigBlk"], "ignored": status["SigIgn"],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "descriptors": sorted(f for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f)),
    "stdin": open(0).read(), "cwd": os.getcwd(), "group": os.getpgrp() != os.getpid(),
    "policy": os.sched_getscheduler(0), "affinity": sorted(os.sched_getaffinity(0)),
}))
"""


class Run:
    """One run in a folder of its own."""

    def __init__(self, t, *args, data=b"", setup=None, timeout=60, pass_fds=()):
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run([t.binary, "record", *args], cwd=folder, input=data, capture_output=True, timeout=timeout,
                               preexec_fn=setup or child_setup, check=False, pass_fds=pass_fds)
            self.files = {f: open(os.path.join(folder, f), encoding="utf-8").read() for f in sorted(os.listdir(folder))}
        self.code, self.out, self.err = p.returncode, p.stdout.decode(), p.stderr.decode()

    def __str__(self):
        return f"status {self.code}, stdout {self.out[:200]!r}, stderr {self.err[:400]!r}, files {list(self.files)}"


def statuses(t):
    for name, text, status in STATUSES:
        r = Run(t, "--", *t.ruby.prefix, "-e", text)
        t.check(r.code == status, f"{name}: {status}; {r}")
        t.check(len(r.files) == 1 and list(r.files)[0] in r.err, f"{name}: one file, named on stderr")
        t.check(r.out == "", f"{name}: nothing of ours on stdout")
        for text in r.files.values():
            t.check(sum(s.count for s in parse_folded(text)) == parse_summary(r.err)["samples"] > 0,
                    f"{name}: the profile has what the summary says")


def booting(t):
    """A Ruby that does nothing ends while it is looked at: always 0, and never an error."""
    for i in range(t.count(100)):
        r = Run(t, "--", *t.ruby.prefix, "-e", "")
        t.check(r.code == 0 and ("no samples" in r.err or len(r.files) == 1) and "cannot" not in r.err, f"run {i}: {r}")


def unusual(t):
    r = Run(t, "--", "sh", "-c", "exit 7")
    t.check(r.code == 7 and "no samples" in r.err and not r.files, f"no Ruby: its status, no samples, no file; {r}")
    r = Run(t, "--", "/nonexistent/ruby")
    t.check(r.code == 127 and "cannot run /nonexistent/ruby: No such file" in r.err and not r.files, f"no such command: 127; {r}")
    r = Run(t, "--", "/etc/passwd")
    t.check(r.code == 126 and "Permission denied" in r.err and not r.files, f"not executable: 126; {r}")
    r = Run(t, "-o", "/nonexistent/x", "--", "sh", "-c", "echo started")
    t.check(r.code == 74 and r.out == "", f"no output: 74, and the command is not started; {r}")
    r = Run(t, "-o", "/dev/full", "--", *t.ruby.prefix, "-e", BUSY)
    t.check(r.code == 74 and "No space left" in r.err, f"a full disk: 74; {r}")
    r = Run(t, "-o", "/dev/full", "--", *t.ruby.prefix, "-e", BUSY + "exit 9")
    t.check(r.code == 9, f"unless the command failed itself; {r}")
    r = Run(t, "-o", "x.folded", "-q", "--", *t.ruby.prefix, "-e", "puts 1; $stderr.puts 2; " + BUSY)
    t.check((r.code, r.out, r.err) == (0, "1\n", "2\n") and "x.folded" in r.files, f"-q -o FILE: stdio is the command's; {r}")
    r = Run(t, "--", "sh", "-c", "sleep 0.3; exec \"$@\"", "sh", *t.ruby.prefix, "-e", BUSY)
    t.check(r.code == 0 and r.files, f"a wrapper that execs a Ruby is followed; {r}")
    began = time.monotonic()
    r = Run(t, "-d", "200ms", "--", *t.ruby.prefix, "-e", "t = Time.now; nil while Time.now - t < 1.5; exit 4")
    t.check(r.code == 4 and time.monotonic() - began > 1.5, f"-d ends the sampling, not the command; {r}")


def ignore_pipe():
    child_setup()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))


def default_pipe():
    child_setup()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def inheritance(t):
    """What a command sees under rbsample is what it sees without it."""
    for name, setup in (("everything changed", ignore_pipe), ("nothing changed", default_pipe)):
        bare = subprocess.run([sys.executable, "-c", STATE], input=b"in\n", capture_output=True, preexec_fn=setup, check=True, cwd="/")
        want = json.loads(bare.stdout)
        r = Run(t, "-q", "-o", "/dev/null", "--", "sh", "-c", f"cd / && exec {sys.executable} -c '{STATE}'", data=b"in\n", setup=setup)
        got = json.loads(r.out or "{}")
        for key in want:
            t.check(got.get(key) == want[key], f"{name}: {key}: {want[key]!r}; got {got.get(key)!r}")


def signals(t):
    text = "trap('{0}') {{ puts '{0}'; exit 5 }}; $stdout.sync = true; puts 'on'; loop {{ 1 + 1 }}"
    for name in ("INT", "TERM", "HUP"):
        with tempfile.TemporaryDirectory() as folder:
            argv = [t.binary, "record", "--", *t.ruby.prefix, "-e", text.format(name)]
            with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=child_setup) as p:
                p.stdout.readline()
                time.sleep(0.5)
                p.send_signal(getattr(signal, "SIG" + name))
                out, err = p.communicate(timeout=30)
            files = os.listdir(folder)
            t.check(p.returncode == 5 and out.decode().strip() == name, f"{name} is passed on: status {p.returncode}, {out!r}")
            t.check(len(files) == 1 and parse_summary(err.decode())["samples"] > 0, f"{name}: the profile is written: {err!r}")


def body(t):
    for part in (statuses, booting, unusual, inheritance, signals):
        if t.args.only in part.__name__:
            part(t)


if __name__ == "__main__":
    main(body)
