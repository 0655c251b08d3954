# Shared by the live tests: starts Rubies, runs rbsample, reads folded lines, JSON and the summary, reports checks.
import argparse
import ctypes
import json
import math
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(TREE, "test", "ruby")
SKIP = 77
NOBODY = 65534
CLOCK = time.CLOCK_MONOTONIC


class Skip(Exception):
    """The test cannot run here; the text says why."""


class Failed(Exception):
    """The test cannot go on; the text says why."""


def prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def child_setup(uid=None):
    """What a child does before its exec: it ends with us and cannot burn a cpu for ever."""
    resource.setrlimit(resource.RLIMIT_CPU, (900, 900))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if uid is not None:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Ruby:
    """One installed Ruby: how to start it, and a folder that it sees."""

    def __init__(self, version):
        self.version = version
        script = os.path.join(TREE, "scripts", "rubies")
        self.prefix = subprocess.check_output([script, "--run", version], text=True).split()
        self.root = subprocess.check_output([script, "--root", version], text=True).strip()
        if not os.path.isdir(self.root):
            raise Skip(f"Ruby {version} is not installed: run scripts/rubies {version}")
        if self.root != "/" and os.geteuid() != 0:
            raise Skip(f"Ruby {version} lives in a folder, chroot needs root")
        if self.root == "/" and not shutil.which("ruby"):
            raise Skip("there is no ruby on this machine")
        parent = os.path.join(self.root, "tmp")
        os.makedirs(parent, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix=f"rbsample-test-{os.getpid()}-", dir=parent)
        os.chmod(self.folder, 0o755)
        self.inside = os.path.join("/tmp", os.path.basename(self.folder))
        for name in sorted(os.listdir(PROGRAMS)):
            if name.endswith((".rb", ".ru")):
                shutil.copy(os.path.join(PROGRAMS, name), self.folder)
                os.chmod(os.path.join(self.folder, name), 0o644)

    def command(self, program, args=(), nobody=False):
        run = list(self.prefix)
        if nobody and run[0] == "chroot":
            run[1:1] = [f"--userspec={NOBODY}:{NOBODY}", "--groups="]
        return run + [os.path.join(self.inside, program)] + [str(a) for a in args]

    def has(self, *gems):
        """Whether these gems are installed for this Ruby."""
        code = "exit ARGV.all? { |g| Gem::Specification.find_all_by_name(g).any? }"
        return subprocess.run(self.prefix + ["-e", code] + list(gems), cwd="/", check=False).returncode == 0

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Program:
    """A running test program that prints one JSON document a line."""

    def __init__(self, argv, nobody=False, env=None, noise=False):
        self.argv, self.noise = argv, noise
        uid = NOBODY if nobody and argv[0] != "chroot" else None
        full = dict(os.environ, LC_ALL="C.UTF-8", **(env or {}))
        full.pop("RUBYOPT", None)
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=full,
                                        bufsize=0, preexec_fn=lambda: child_setup(uid))
        self.pid = self.process.pid
        self.lines = queue.Queue()
        self.last = None
        self.history = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with os.fdopen(os.dup(self.process.stdout.fileno()), "rb", buffering=65536) as out:
            for raw in out:
                try:
                    doc = json.loads(raw)
                except ValueError:
                    if self.noise:  # a program that also prints for people
                        continue
                    sys.stderr.write(f"program: {raw[:300]!r}\n")
                    continue
                if isinstance(doc, dict) and "at" in doc:  # a statement of totals, made now and then
                    self.history.append(doc)
                    self.last = doc
                else:
                    self.lines.put(doc)
        self.lines.put(None)

    def line(self, timeout=20):
        """The next document that is not a statement of totals."""
        try:
            doc = self.lines.get(timeout=timeout)
        except queue.Empty:
            raise Failed(f"{' '.join(self.argv)} printed nothing in {timeout} s") from None
        if doc is None:
            raise Failed(f"{' '.join(self.argv)} ended with {self.process.wait()}")
        return doc

    def totals_between(self, start, end):
        """What the program itself counted from start to end (CLOCK_MONOTONIC): differences of its statements."""
        deadline = time.monotonic() + 5
        while (not self.last or self.last["at"] < end) and time.monotonic() < deadline:
            time.sleep(0.02)
        before = [d for d in self.history if d["at"] <= start]
        after = [d for d in self.history if d["at"] >= end]
        if not before or not after:
            raise Failed("the program stated no totals around the run")
        return {k: after[0][k] - before[-1][k] for k in after[0]}

    def wait_totals(self, count=2, timeout=30):
        deadline = time.monotonic() + timeout
        while len(self.history) < count:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{' '.join(self.argv)} states no totals")
            time.sleep(0.02)

    def write(self, data=b"\n"):
        os.write(self.process.stdin.fileno(), data)

    def signal(self, number):
        os.kill(self.pid, number)

    def alive(self):
        return self.process.poll() is None

    def cpu_ns(self):
        """CPU time of all its threads, from its own cpu clock."""
        return time.clock_gettime_ns(((~self.pid) << 3) | 2)

    def wait_cpu(self, ns, timeout=20):
        """Until it has used that much more cpu."""
        goal, deadline = self.cpu_ns() + ns, time.monotonic() + timeout
        while self.cpu_ns() < goal:
            if time.monotonic() > deadline or not self.alive():
                raise Failed(f"{' '.join(self.argv)} does not run")
            time.sleep(0.001)

    def wait_call(self, tid, names, timeout=20):
        """Until this thread is blocked in one of these system calls (x86-64 numbers)."""
        deadline = time.monotonic() + timeout
        while True:
            word = read_file(f"/proc/{self.pid}/task/{tid}/syscall").split(" ")[0].strip()
            if word.isdigit() and int(word) in names:
                return
            if time.monotonic() > deadline or not self.alive():
                raise Failed(f"thread {tid} is in call {word!r}, not in one of {names}")
            time.sleep(0.001)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for f in (self.process.stdin, self.process.stdout):
            try:
                f.close()
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def read_file(path):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return f.read()
    except OSError:
        return ""


def status_field(pid, field, tid=None):
    """A field of /proc/PID/status; "" where the thread is gone."""
    path = f"/proc/{pid}/status" if tid is None else f"/proc/{pid}/task/{tid}/status"
    found = re.search(rf"^{field}:\s*(.*)$", read_file(path), re.M)
    return found.group(1) if found else ""


def tids(pid):
    try:
        return sorted(int(t) for t in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return []


class Result:
    """What one run of rbsample gave."""

    def __init__(self, argv, code, out, err, start, end):
        self.argv, self.code, self.raw, self.err = argv, code, out, err
        self.start, self.end = start, end

    @property
    def text(self):
        return self.raw.decode("utf-8")

    def json(self):
        return json.loads(self.text)

    def folded(self):
        return parse_folded(self.text)

    def summary(self):
        return parse_summary(self.err)

    def lines_of_err(self):
        return [l for l in self.err.splitlines() if l.strip()]

    def __str__(self):
        return f"`{' '.join(self.argv)}` ended with {self.code}: {self.err.strip()[:600]}"


class Frame:
    """One frame of a folded line."""

    RUBY = re.compile(r"^(?P<label>.*?) - (?P<path>.*?)(?::(?P<line>\d+))?$", re.S)

    STATE = re.compile(r"^\[(gvl wait|mutex wait|io wait.*|sleep|parked|blocked.*)\]$")

    def __init__(self, text):
        self.text = text
        self.label, self.path, self.line = text, None, None
        found = self.RUBY.match(text)
        if self.STATE.match(text):
            self.kind = "state"
        elif re.match(r"^\[.*\]$", text):
            self.kind = "mark"  # gc, a marker, or a name that ends in a number
        elif text.endswith(" [c function]"):
            self.kind, self.label = "cfunc", text[: -len(" [c function]")]
        elif found:
            self.kind, self.label = "ruby", found["label"]
            self.path, self.line = found["path"], int(found["line"] or 0)
        else:
            self.kind = "native"


class Stack:
    """One folded line: root first."""

    def __init__(self, line):
        text, _, count = line.rpartition(" ")
        if not text or not count.isdigit():
            raise Failed(f"not a folded line: {line!r}")
        self.texts, self.count = text.split(";"), int(count)
        self.thread, self.tid = None, None
        frames = self.texts
        while frames and re.match(r"^process .* \(\d+\)$", frames[0]):
            frames = frames[1:]
        found = re.match(r"^thread (.*) \((\d+)\)$", frames[0]) if frames else None
        if found:
            self.thread, self.tid = found[1], int(found[2])
            frames = frames[1:]
        self.frames = [Frame(f) for f in frames]

    def ruby(self):
        """Ruby and C function frames, innermost first."""
        return [f for f in reversed(self.frames) if f.kind in ("ruby", "cfunc")]

    def labels(self):
        return {f.label for f in self.frames if f.kind in ("ruby", "cfunc")}


def parse_folded(text):
    return [Stack(l) for l in text.split("\n") if l]


SUMMARY = re.compile(
    r"^rbsample: (?P<samples>\d+) samples, (?P<seconds>[\d.]+) s, (?P<late>\d+) late, (?P<lost>\d+) lost, "
    r"stop (?P<mean>[\d.]+) us mean (?P<p99>[\d.]+) us p99 (?P<max>[\d.]+) us max, (?P<exact>[\d.]+) % exact, "
    r"(?P<covered>[\d.]+) of (?P<cpu>[\d.]+) CPU seconds covered(?P<rest>.*)$", re.M)


def parse_summary(err):
    found = SUMMARY.search(err)
    if not found:
        raise Failed(f"no summary line on stderr: {err.strip()[:500]!r}")
    s = {k: (v if k == "rest" else float(v)) for k, v in found.groupdict().items()}
    # "; lost: gone 3, deadline 1"
    causes = re.search(r"; lost: ([^;]*)", s["rest"])
    s["causes"] = {}
    for cause in causes[1].split(",") if causes else []:
        name, _, n = cause.strip().rpartition(" ")
        s["causes"][name] = int(n)
    return s


def share(stacks, choose):
    """The part of all samples whose stack is chosen."""
    total = sum(s.count for s in stacks)
    return sum(s.count for s in stacks if choose(s)) / total if total else 0.0


class Test:
    """Arguments, checks and their report."""

    def __init__(self, args):
        self.args = args
        self.full = args.full
        self.failures = 0
        self.checks = 0
        self.binary = args.rbsample
        self.ruby = None
        self.open = []
        self.copied = None

    def check(self, ok, what):
        self.checks += 1
        if not ok:
            self.failures += 1
        print(f"{'ok' if ok else 'not ok'} {self.checks} - {what}", flush=True)
        return ok

    def quiet(self, ok, what):
        """A check among many: only its failure is printed, and at most 20 of them."""
        if ok:
            return True
        self.failures += 1
        if self.failures <= 20:
            print(f"not ok - {what}", flush=True)
        return False

    def measured(self, what, part, tries=3):
        """
        Do a part that measures, again if a check of it fails: these machines are shared, and what else they do bends
        times and shares now and then. A fault of ours fails every time. --full measures once.
        """
        tries = 1 if self.full else tries
        for turn in range(1, tries + 1):
            before = self.failures
            try:
                part(self)
            except Failed as why:
                self.check(False, f"{what}: {why}")
            if self.failures == before or turn == tries:
                return
            self.note(f"{what}: {self.failures - before} checks failed with {os.getloadavg()[0]:.1f} processes running "
                      f"besides; measured again, {turn + 1} of {tries}")
            self.failures = before
            time.sleep(3)

    def note(self, text):
        print(f"# {text}", flush=True)

    def count(self, stated, least=1):
        """The number the requirement states with --full, else a tenth."""
        return stated if self.full else max(least, stated // 10)

    def tolerance(self, points, p, n, stated):
        """Points of a share over n samples: as stated at the stated number, else wider by what chance adds at 2.5 sigma."""
        if n >= stated:
            return points
        return points + 250 * math.sqrt(max(p * (1 - p), 0.01)) * (1 / math.sqrt(n) - 1 / math.sqrt(stated))

    def start(self, program, *args, nobody=False):
        p = Program(self.ruby.command(program, args, nobody), nobody)
        self.open.append(p)
        return p

    def run(self, *args, nobody=False, timeout=120, binary=None):
        argv = [binary or (self.for_others() if nobody else self.binary)] + [str(a) for a in args]
        start = time.clock_gettime(CLOCK)
        # pylint: disable=subprocess-popen-preexec-fn
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=lambda: child_setup(NOBODY if nobody else None)) as p:
            try:
                out, err = p.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                p.kill()
                out, err = p.communicate()
                raise Failed(f"`{' '.join(argv)}` did not end in {timeout} s: {err.decode(errors='replace')[:300]}") \
                    from None
        return Result(argv, p.returncode, out, err.decode("utf-8", "replace"), start, time.clock_gettime(CLOCK))

    def record(self, pid, *args, nobody=False, timeout=120, status=0):
        """A run of record that must end well; its result."""
        r = self.run("record", "-p", pid, "-o", "-", "-f", "folded", *args, nobody=nobody, timeout=timeout)
        if r.code != status:
            raise Failed(str(r))
        return r

    def dump(self, pid, *args):
        r = self.run("dump", "-p", pid, "-f", "json", *args)
        if r.code != 0:
            raise Failed(str(r))
        return r.json()

    def for_others(self):
        """The binary where any user may execute it."""
        if not self.copied:
            folder = tempfile.mkdtemp(prefix=f"rbsample-bin-{os.getpid()}-")
            os.chmod(folder, 0o755)
            self.copied = os.path.join(folder, "rbsample")
            shutil.copy(self.binary, self.copied)
            os.chmod(self.copied, 0o755)
        return self.copied

    def clean(self):
        for p in reversed(self.open):  # what watches goes before what is watched: a held process cannot be reaped
            p.close()
        if self.ruby:
            self.ruby.remove()
        if self.copied:
            shutil.rmtree(os.path.dirname(self.copied), ignore_errors=True)


class Sampler:
    """An rbsample that runs beside the test."""

    def __init__(self, test, pid, *options):
        argv = [test.binary, "record", "-p", str(pid), "-o", "/dev/null", "-f", "folded", "-d", "600", *map(str, options)]
        # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, preexec_fn=child_setup)
        test.open.append(self)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def kill(self, number=signal.SIGKILL):
        if self.process.poll() is not None:
            raise Failed(f"the sampler ended by itself: {self.process.stderr.read()[-300:]!r}")
        self.process.send_signal(number)
        err = self.process.communicate(timeout=30)[1].decode("utf-8", "replace")
        return self.process.returncode, err


def need_ptrace():
    """Whether a process may be seized here at all; a container's seccomp filter may say no."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with subprocess.Popen(["sleep", "30"], preexec_fn=child_setup) as p:  # pylint: disable=subprocess-popen-preexec-fn
        try:
            if libc.ptrace(0x4206, p.pid, None, None) != 0:  # PTRACE_SEIZE
                raise Skip(f"ptrace is denied here: {os.strerror(ctypes.get_errno())}")
        finally:
            p.kill()


def need_root():
    if os.geteuid() != 0:
        raise Skip("this test needs root, to act as another user too")


def find_binary(given):
    for path in (given, os.environ.get("RBSAMPLE"), os.path.join(TREE, "build", "dev", "rbsample")):
        if path:
            if os.access(path, os.X_OK):
                return os.path.abspath(path)
            raise Failed(f"there is no rbsample at {path}: build it, or name it by --rbsample or RBSAMPLE")
    return None


def main(body, ruby=True):
    """Run a test's body with its arguments; ends the process with 0, 1 or 77."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ruby", default="3.1", help="2.7, 3.1, 3.3 or 3.4")
    parser.add_argument("--rbsample", help="the binary under test (else RBSAMPLE, else build/dev/rbsample)")
    parser.add_argument("--full", action="store_true", default=os.environ.get("RBSAMPLE_FULL") == "1",
                        help="the counts that the requirements state, else a tenth")
    parser.add_argument("--only", default="", help="only the parts whose name contains this")
    args = parser.parse_args()
    test = None
    code, reason = 0, ""
    began = time.monotonic()
    try:
        args.rbsample = find_binary(args.rbsample)
        test = Test(args)
        need_ptrace()
        if ruby:
            test.ruby = Ruby(args.ruby)
        body(test)
    except Skip as why:
        code, reason = SKIP, str(why)
    except Failed as why:
        print(f"not ok - {why}", flush=True)
        code = 1
    finally:
        if test:
            test.clean()
    if test and test.failures:
        print(f"# {test.failures} failures")
        code = 1
    elif code == 0 and test.checks == 0:
        print("not ok - nothing was checked")
        code = 1
    name = os.path.basename(sys.argv[0])
    print(f"# {name} on Ruby {args.ruby}: {test.checks if test else 0} checks in {time.monotonic() - began:.1f} s, "
          f"{'full counts' if args.full else 'a tenth of the counts'}, ends with {code}", flush=True)
    if reason:
        print(f"skipped: {reason}", flush=True)
    sys.exit(code)
