#!/usr/bin/env python3
"""Where a profile goes: stdout, files, default names, terminals, full disks, readers that go away; and what ends a run."""
# rubies: 3.1
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from harness import child_setup, main, parse_folded, parse_summary, status_field  # noqa: E402

NAME = re.compile(r"rbsample-(\d+)-\d{8}T\d{6}(-\d+)?\.folded$")


def count(text):
    return sum(s.count for s in parse_folded(text))


def untouched(t, p, what):
    t.check(p.alive() and status_field(p.pid, "TracerPid") == "0" and status_field(p.pid, "State")[:1] in "RS",
            f"{what}: the target runs on, untraced")


def start(t, *args, folder="/", **kw):
    kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
    return subprocess.Popen([t.binary, *[str(a) for a in args]], cwd=folder, preexec_fn=child_setup, **kw)


def finish(p, timeout=30):
    out, err = p.communicate(timeout=timeout)
    return p.returncode, (out or b"").decode(), (err or b"").decode()


def stdout_and_files(t, ruby):
    r = t.run("record", "-p", ruby.pid, "-d", "500ms")
    s = r.summary()
    lines = r.text.splitlines()
    t.check(r.code == 0 and count(r.text) == s["samples"] > 0, f"stdout that is no terminal gets the lines: {r}")
    t.check(lines == sorted(lines), "sorted")
    t.check(len(r.lines_of_err()) == 1, "stderr has the summary and nothing else")
    r = t.run("record", "-q", "-p", ruby.pid, "--count", "20")
    t.check(r.code == 0 and r.err == "" and count(r.text) == 20, f"--count 20 -q: {count(r.text)} samples, stderr {r.err!r}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.folded")
        with open(path, "w", encoding="utf-8") as f:
            f.write("old " * 100000)
        r = t.run("record", "-p", ruby.pid, "-d", "300ms", "-o", path)
        t.check(r.code == 0 and r.raw == b"" and count(open(path).read()) == r.summary()["samples"], "-o FILE is written over")
        r = t.run("record", "-p", "4194304", "-d", "300ms", "-o", path)
        t.check(r.code == 66 and count(open(path).read()) > 0, "but not by a run that cannot begin")
        r = t.run("record", "-p", "4194304", "-d", "300ms", "-o", path + "2")
        t.check(r.code == 66 and not os.path.exists(path + "2"), "and no empty file is left")


def failures(t, ruby):
    with open("/dev/full", "wb") as full:
        p = start(t, "record", "-p", ruby.pid, "-d", "300ms", stdout=full)
        code, _, err = finish(p)
        t.check(code == 74 and "No space left" in err, f"a full stdout: 74; {code} {err!r}")
        code, _, err = finish(start(t, "dump", "-p", ruby.pid, stdout=full))
        t.check(code == 74 and "No space left" in err, f"dump too; {code} {err!r}")
    p = subprocess.Popen(["sh", "-c", 'exec "$@" >&-', "sh", t.binary, "record", "-p", str(ruby.pid), "-d", "300ms"],
                         stderr=subprocess.PIPE)
    code, _, err = finish(p)
    t.check(code == 74 and "stdout" in err, f"a closed stdout: 74; {code} {err!r}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.folded")

        def small():
            child_setup()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))

        with subprocess.Popen([t.binary, "record", "-p", str(ruby.pid), "-r", "999", "-d", "500ms", "-o", path],
                              stderr=subprocess.PIPE, preexec_fn=small) as p:
            code, _, err = finish(p)
        text = open(path, encoding="utf-8").read()
        t.check(code == 74, f"a file that may not grow: 74; {code} {err!r}")
        t.check(text == "" or text.endswith("\n") and count(text) > 0, f"what was written is whole lines: {text[-80:]!r}")
    untouched(t, ruby, "failed outputs")


def readers(t, ruby):
    for args in (["record", "-d", "60"], ["record", "-d", "300ms"], ["dump"], ["inspect"]):
        read, write = os.pipe()
        p = start(t, *args, "-p", ruby.pid, stdout=write)
        os.close(write)
        if args[-1] == "60":
            time.sleep(0.5)
        os.close(read)
        began = time.monotonic()
        code, _, err = finish(p)
        t.check(code == 0 and time.monotonic() - began < 20, f"{' '.join(args)} into a closed pipe: ends quietly; {code} {err!r}")
        t.check(not [l for l in err.splitlines() if "samples" not in l], f"{' '.join(args)}: no word about it: {err!r}")
    untouched(t, ruby, "closed pipes")


def signals(t, ruby):
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        p = start(t, "record", "-p", ruby.pid)
        time.sleep(0.7)
        p.send_signal(getattr(signal, name))
        code, out, err = finish(p)
        t.check(code == 0 and count(out) == parse_summary(err)["samples"] > 0, f"{name}: writes and ends with 0; {code} {err!r}")
    untouched(t, ruby, "signals")


def on_terminal(t, argv, folder, end=b"", size=(24, 80)):
    """Run with stdout and stderr on a terminal; returns the status and what was on it."""
    main_fd, fd = pty.openpty()
    seen = b""
    with subprocess.Popen(argv, cwd=folder, stdin=fd, stdout=fd, stderr=fd, preexec_fn=child_setup,
                          env={**os.environ, "TERM": "xterm"}) as p:
        os.close(fd)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if select.select([main_fd], [], [], 0.1)[0]:
                try:
                    seen += os.read(main_fd, 65536)
                except OSError:
                    break
            elif p.poll() is not None:
                break
        p.wait(30)
    os.close(main_fd)
    return p.returncode, seen.decode()


def terminals(t, ruby):
    with tempfile.TemporaryDirectory() as folder:
        argv = [t.binary, "record", "-p", str(ruby.pid), "-d", "2500ms"]
        code, seen = on_terminal(t, argv, folder)
        files = os.listdir(folder)
        t.check(code == 0 and len(files) == 1 and NAME.match(files[0]), f"a file by the default name: {files}")
        t.check(files and files[0] in seen, "its name is said")
        t.check(int(NAME.match(files[0])[1]) == ruby.pid, "the name has the pid")
        t.check("self%" in seen and "Busy#work" in seen, f"the hottest frames are printed: {seen!r}")
        t.check(re.search(r"\r *\r?1 s, \d+ samples", seen) or " s, " in seen.split("\n")[0], f"a progress line: {seen!r}")
        t.check("\x1b[" in seen, "in colour")
        last = [l for l in seen.split("\n") if l.strip()][-1]
        t.check("CPU seconds covered" in last, f"the summary is the last line: {last!r}")
        code, seen = on_terminal(t, argv[:-1] + ["300ms", "--color=never"], folder)
        t.check("\x1b[" not in seen, "no colour with --color=never")
        runs = [subprocess.Popen([t.binary, "record", "-q", "-d", "300ms", "--", *t.ruby.prefix, "-e", "nil while true"],
                                 cwd=folder, stderr=subprocess.DEVNULL, preexec_fn=child_setup) for _ in range(2)]
        time.sleep(1)
        for p in runs:
            p.send_signal(signal.SIGTERM)
            p.wait(30)
        t.check(len(os.listdir(folder)) == 4, f"runs in one second have files of their own: {os.listdir(folder)}")


def formats(t, ruby):
    r = t.run("dump", "-p", ruby.pid, "-f", "json")
    doc = json.loads(r.text)
    main_thread = doc["threads"][0]
    t.check(doc["pid"] == ruby.pid and main_thread["main"] is True, f"dump -f json: {r.text[:300]}")
    t.check(set(main_thread) == {"tid", "name", "main", "state", "frames"}, f"keys of a thread: {sorted(main_thread)}")
    t.check(all(set(f) == {"kind", "name", "path", "line", "module", "address"} for f in main_thread["frames"]), "keys of a frame")
    t.check(any(f["name"] == "Busy#work" for f in main_thread["frames"]), "Busy#work is there")
    r = t.run("dump", "-p", ruby.pid, "-p", ruby.pid, "-p", "4194304")
    t.check(r.code == 0 and "Busy#work" in r.text and "\x1b" not in r.text, f"dump as text, one failure skipped: {r}")
    r = t.run("inspect", "-p", ruby.pid, "-f", "json")
    doc = json.loads(r.text)
    t.check(r.code == 0 and doc["ruby"].startswith(t.args.ruby) and doc["steps"] and doc["failure"] is None, f"inspect: {r.text[:300]}")


def body(t):
    ruby = t.start("busy.rb", "ruby")
    ruby.line()
    for part in (stdout_and_files, failures, readers, signals, terminals, formats):
        if t.args.only in part.__name__:
            part(t, ruby)


if __name__ == "__main__":
    main(body)
