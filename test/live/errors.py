# rubies: 3.1
# timeout: 300
"""Every refusal: one line that says what, why and what to do, and the documented exit status."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
from harness import Failed

TRACER = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
pid = int(sys.argv[1])
bad = [t for t in os.listdir(f"/proc/{pid}/task") if libc.ptrace(0x4206, int(t), None, None) != 0]
print(len(bad), flush=True)
time.sleep(600)
"""

NOT_DUMPABLE = "require 'fiddle'\n" \
    "Fiddle::Function.new(Fiddle.dlopen(nil)['prctl'], [Fiddle::TYPE_INT] * 5, Fiddle::TYPE_INT).call(4, 0, 0, 0, 0)\n" \
    "$stdout.syswrite(\"{\\\"ready\\\":true}\\n\")\nsleep\n"


def free_pid():
    """A process id that nobody has."""
    with subprocess.Popen(["true"]) as p:
        p.wait()
    return p.pid


def refused(test, what, r, status, *words, usage=False):
    """The status, one line that begins with the program's name and has these words, and nothing on stdout."""
    lines = r.lines_of_err()
    if usage:
        lines = "\n".join(lines).split("\nTry `")[0].splitlines()  # argp's own hint, which it wraps
    one = len(lines) == 1 and re.match(r"^rbsample(?: \w+)?: ", lines[0])
    has = all(w in r.err for w in map(str, words))
    test.check(r.code == status and one and has and not r.raw,
               f"{what}: status {r.code}, wanted {status}; says {r.err.strip()[:300]!r}"
               + ("" if has else f"; lacks one of {words}") + (f"; stdout {r.raw[:80]!r}" if r.raw else ""))


def each(test, what, pid, status, *words, **how):
    """The same refusal by each subcommand that takes a process."""
    for sub, rest in (("record", ["-d", "1", "-o", "-", "-f", "folded"]), ("dump", []), ("inspect", [])):
        r = test.run(sub, "-p", pid, *rest, **how)
        if sub == "inspect":
            r.raw = b""  # its steps are printed also where something is missing
        refused(test, f"{sub}: {what}", r, status, pid, *words)


def processes(test):
    each(test, "no such process", free_pid(), 66)
    with subprocess.Popen(["sleep", "100"], preexec_fn=harness.child_setup) as p:  # pylint: disable=subprocess-popen-preexec-fn
        time.sleep(0.1)
        each(test, "not a Ruby", p.pid, 69, "Ruby")
        p.kill()
        for _ in range(1000):
            if harness.status_field(p.pid, "State").startswith("Z"):
                break
            time.sleep(0.001)
        each(test, "a zombie", p.pid, 66, "zombie")
    if harness.read_file("/proc/2/comm").strip() == "kthreadd":
        each(test, "a kernel thread", 2, 69, "kernel thread")
    else:
        test.note("there are no kernel threads to see here")


def users(test, program):
    each(test, "another user's process", program.pid, 77, nobody=True)
    mine = test.start("latency.rb", "busy", nobody=True)
    mine.line()
    mine.wait_cpu(50_000_000)
    r = test.run("dump", "-p", mine.pid, "-f", "json", nobody=True)
    test.check(r.code == 0 and r.json()["threads"], f"its own process without any privilege is read: status {r.code}")
    mine.close()
    hidden = os.path.join(test.ruby.folder, "not_dumpable.rb")
    with open(hidden, "w", encoding="ascii") as f:
        f.write(NOT_DUMPABLE)
    os.chmod(hidden, 0o644)
    hidden = test.start("not_dumpable.rb", nobody=True)
    hidden.line()
    each(test, "a process that is not dumpable", hidden.pid, 77, "dumpable", nobody=True)
    hidden.close()


def traced(test, program):
    with subprocess.Popen([sys.executable, "-c", TRACER, str(program.pid)], stdout=subprocess.PIPE, text=True) as tracer:
        if tracer.stdout.readline().strip() != "0":
            raise Failed("the test's own tracer cannot seize the target")
        r = test.run("record", "-p", program.pid, "-d", "1", "-o", "-", "-f", "folded")
        refused(test, "record: already traced", r, 77, program.pid, tracer.pid, os.path.basename(sys.executable)[:15])
        r = test.run("dump", "-p", program.pid, "-n", "full")
        refused(test, "dump: already traced", r, 77, program.pid, tracer.pid)
        # An output that cannot be opened is found before anybody tries to attach.
        r = test.run("record", "-p", program.pid, "-d", "1", "-o", "/nonexistent/out.folded")
        refused(test, "record: unwritable output of a traced target", r, 74, "/nonexistent/out.folded")
        tracer.kill()
    time.sleep(0.05)
    r = test.record(program.pid, "-r", 499, "--count", 20, "-d", 20)
    test.check(r.summary()["samples"] >= 20, "once the other tracer is gone it is sampled")


def output(test, program):
    for path in ("/nonexistent/x.folded", "/proc/x.folded", "/"):
        r = test.run("record", "-p", program.pid, "-d", "1", "-o", path, "-f", "folded")
        refused(test, f"record -o {path}", r, 74, path)
    if shutil.which("strace"):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            r = subprocess.run(["strace", "-f", "-e", "trace=ptrace", "-o", log, test.binary, "record", "-p",
                                str(program.pid), "-d", "1", "-o", "/nonexistent/x.folded"], capture_output=True, check=False)
            calls = harness.read_file(log).count("ptrace(")
            test.check(r.returncode == 74 and calls == 0, f"unwritable output: status {r.returncode}, {calls} calls of ptrace")
    start = time.monotonic()
    r = test.run("record", "-p", program.pid, "-d", "1", "-r", "499", "-o", "/dev/full", "-f", "folded")
    test.check(r.code == 74 and "No space left" in r.err and time.monotonic() - start < 10,
               f"a full disk: status {r.code}, says {r.err.strip()[:300]!r}")


def usage(test, program):
    pid = program.pid
    for what, args in (
        ("no subcommand", []),
        ("an unknown subcommand", ["frobnicate"]),
        ("record without a target", ["record"]),
        ("dump without a target", ["dump"]),
        ("an unknown option", ["record", "-p", pid, "--frobnicate"]),
        ("a pid that is no number", ["record", "-p", "abc"]),
        ("a negative pid", ["dump", "-p", "-5"]),
        ("a rate of 0", ["record", "-p", pid, "-r", "0"]),
        ("a rate that is no number", ["record", "-p", pid, "-r", "fast"]),
        ("a duration of nothing", ["record", "-p", pid, "-d", "0"]),
        ("a duration that is no time", ["record", "-p", pid, "-d", "5 parsecs"]),
        ("an unknown format", ["record", "-p", pid, "-f", "frobnicate"]),
        ("an unknown --native", ["record", "-p", pid, "-n", "some"]),
        ("an unknown --labels", ["dump", "-p", pid, "--labels", "french"]),
        ("a broken regex", ["record", "-p", pid, "--thread-name", "("]),
        ("-p and a command", ["record", "-p", pid, "--", "true"]),
        ("-o - with a command", ["record", "-o", "-", "--", "true"]),
        ("a count of 0", ["record", "-p", pid, "--count", "0"]),
    ):
        refused(test, f"usage: {what}", test.run(*args), 64, usage=True)
    r = test.run("record", "--help")
    test.check(r.code == 0 and b"--rate" in r.raw and not r.err, "--help goes to stdout and ends with 0")


def several(test, program):
    gone = free_pid()
    r = test.run("record", "-p", gone, "-p", program.pid, "-r", "199", "-d", "0.5", "-o", "-", "-f", "folded")
    test.check(r.code == 0 and str(gone) in r.err and r.folded(), f"one of two targets is missing: status {r.code}, it is named")
    with subprocess.Popen(["sleep", "100"]) as p:
        time.sleep(0.05)
        r = test.run("record", "-p", p.pid, "-p", gone, "-d", "0.5", "-o", "-", "-f", "folded")
        p.kill()
    test.check(r.code == 69 and len(r.lines_of_err()) == 2,
               f"no target is left: the first one's status, {r.code}, and a line for each: {r.err.strip()[:300]!r}")


def interrupted(test, program):
    """INT, TERM and HUP write what there is."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen([test.binary, "record", "-p", str(program.pid), "-o", "-", "-f", "folded", "-r", "499"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            time.sleep(0.7)
            p.send_signal(number)
            out, err = p.communicate(timeout=20)
        stacks = harness.parse_folded(out.decode())
        n = sum(s.count for s in stacks)
        test.check(p.returncode == 0 and n > 50 and n == harness.parse_summary(err.decode())["samples"],
                   f"{signal.Signals(number).name}: status {p.returncode}, {n} samples written")


def ends(test):
    """The target's end ends the run; nothing to sample is status 1."""
    program = test.start("busy.rb", "ruby")
    program.line()
    with subprocess.Popen([test.binary, "record", "-p", str(program.pid), "-o", "-", "-f", "folded", "-r", "199"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        time.sleep(0.6)
        program.close()
        out, err = p.communicate(timeout=20)
    test.check(p.returncode == 0 and out and b"samples" in err,
               f"the target's end: status {p.returncode}, {len(out)} bytes, says {err.decode().strip()[-200:]!r}")
    idle = test.start("truth.rb", "main", "read")
    idle.line()
    time.sleep(0.2)
    r = test.run("record", "-p", idle.pid, "-d", "0.5", "-o", "-", "-f", "folded")
    test.check(r.code == 1 and "no samples" in r.err and not r.raw,
               f"a target that does nothing: status {r.code}, says {r.err.strip()[-300:]!r}")
    idle.close()


def closed_pipe(test, program):
    """A reader that goes away ends it quietly, and the target goes on."""
    read, write = os.pipe()
    with subprocess.Popen([test.binary, "record", "-p", str(program.pid), "-o", "-", "-f", "folded", "-d", "1"],
                          stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE) as p:
        os.close(write)
        os.close(read)
        err = p.communicate(timeout=20)[1].decode()
    test.check(p.returncode not in (-signal.SIGSEGV, -signal.SIGABRT) and "Assert" not in err and program.alive(),
               f"closed stdout: status {p.returncode}, the target lives")


def commands(test):
    """With -- CMD the command's own status wins, and its stdout is its own."""
    ruby = shutil.which("ruby")
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            file = os.path.join(folder, "out.folded")
            if os.path.exists(file):
                os.unlink(file)
            return test.run("record", "-r", "199", "-o", file, "--", *command), file
        for what, command, status in (
            ("false", ("false",), 1),
            ("exit 7", ("sh", "-c", "exit 7"), 7),
            ("killed by TERM", ("sh", "-c", "kill -TERM $$"), 143),
            ("true", ("true",), 0),
        ):
            r, _ = run(*command)
            test.check(r.code == status, f"-- {what}: status {r.code}, wanted {status}: {r.err.strip()[-200:]!r}")
        if ruby:
            r, file = run(ruby, "-e", "puts 42; i = 0; i += 1 while i < 20_000_000; exit 3")
            stacks = harness.parse_folded(harness.read_file(file))
            test.check(r.code == 3 and r.raw == b"42\n" and stacks,
                       f"-- ruby: status {r.code}, stdout {r.raw!r}, {sum(s.count for s in stacks)} samples")
        r, _ = run("/nonexistent/command")
        test.check(r.code not in (0, -11, -6) and "/nonexistent/command" in r.err,
                   f"-- a command that is not there: status {r.code}, says {r.err.strip()[:200]!r}")


def body(test):
    harness.need_root()
    program = test.start("busy.rb", "ruby")
    program.line()
    program.wait_cpu(100_000_000)
    for part in (processes, ends, commands):
        if test.args.only in part.__name__:
            part(test)
    for part in (users, traced, output, usage, several, interrupted, closed_pipe):
        if test.args.only in part.__name__:
            part(test, program)
    test.check(program.alive() and harness.status_field(program.pid, "TracerPid") == "0", "the target runs on, untraced")


if __name__ == "__main__":
    harness.main(body)
