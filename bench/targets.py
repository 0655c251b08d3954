"""The programs of the bench: targets that count their work, and samplers whose CPU time is read from outside."""
import ctypes
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
BUILD = os.path.join(TREE, "build", "bench")
RBSAMPLE = os.path.join(BUILD, "rbsample")
WARM = 0.8  # seconds that a sampler runs before it is measured: attached, and its caches filled


class Failed(Exception):
    """A measurement cannot be made; the text says why."""


def child_setup(cpu=None):
    """What a child does before its exec: it ends with us, cannot burn a cpu for ever, and is pinned if asked."""
    resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def tool(name):
    return os.path.join(BUILD, f"bench-{name}")


def run_json(argv, timeout=120):
    """Run a program of the bench that prints one JSON document."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(argv[0])}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def ruby_command(version):
    """How this Ruby is started; Failed where it is not installed."""
    script = os.path.join(TREE, "scripts", "rubies")
    prefix = subprocess.check_output([script, "--run", version], text=True).split()
    if prefix[0] == "chroot" and (os.geteuid() != 0 or not os.path.isdir(prefix[1])):
        raise Failed(f"Ruby {version} needs root and a folder: run scripts/rubies {version}")
    return prefix


class Target:
    """A running bench/ruby/busy.rb. It stands still except inside `with target:`, so that several can be kept."""

    def __init__(self, version, shape, frames, sleepers=0, cpu=None):
        self.name = f"{shape} {frames}" + (f" + {sleepers} sleepers" if sleepers else "")
        self.out = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        with open(os.path.join(HERE, "ruby", "busy.rb"), "rb") as script:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(ruby_command(version) + ["-", shape, str(frames), str(sleepers)],
                                            stdin=script, stdout=self.out, cwd="/",
                                            preexec_fn=lambda: child_setup(cpu))
        self.pid = self.process.pid
        deadline = time.monotonic() + 20
        while self.count()[0] == 0:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the target {self.name} does not run")
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGSTOP)

    def __enter__(self):
        os.kill(self.pid, signal.SIGCONT)
        time.sleep(0.1)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGSTOP)

    def count(self):
        """(iterations, at which monotonic ns)"""
        data = os.pread(self.out.fileno(), 16, 0)
        return struct.unpack("QQ", data) if len(data) == 16 else (0, 0)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.out.close()


def cpu_ns(pid):
    """The process CPU clock of another process (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def threads_ns(pid):
    """CPU time of each thread of a process."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            found[int(tid)] = int(f.read().split()[0])
    return found


class Calm:
    """What everybody else took of the machine between its making and `ended`, in percent of a core."""

    def __init__(self, target_pid):
        self.target_pid = target_pid
        self.begun = self._now()
        self.foreign = self.stolen = None

    def _now(self):
        with open("/proc/stat", encoding="ascii") as f:
            user, nice, system, _, _, irq, soft, steal = [int(x) for x in f.readline().split()[1:9]]
        hz = os.sysconf("SC_CLK_TCK")
        ours = cpu_ns(self.target_pid) / 1e9
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            ours += usage.ru_utime + usage.ru_stime
        return time.monotonic(), (user + nice + system + irq + soft) / hz - ours, steal / hz

    def ended(self):
        wall, foreign, stolen = (b - a for a, b in zip(self.begun, self._now()))
        self.foreign, self.stolen = 100 * max(0.0, foreign) / wall, 100 * stolen / wall


def wait_for_calm(target_pid, percent, patience=600):
    """Wait, the target standing still, until others leave the machine alone for a second; or so many seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        calm = Calm(target_pid)
        time.sleep(1)
        calm.ended()
        if calm.foreign <= percent:
            return


SUMMARY = re.compile(
    r"(?P<samples>\d+) samples, (?P<seconds>[\d.]+) s, (?P<late>\d+) late, (?P<lost>\d+) lost, "
    r"stop (?P<mean>[\d.]+) us mean (?P<p99>[\d.]+) us p99 (?P<max>[\d.]+) us max, (?P<exact>\d+) % exact")
MORE = re.compile(r"(?P<ticks>\d+) ticks, (?P<missed>\d+) missed, (?P<due>\d+) due, (?P<stops>\d+) stops, "
                  r"(?P<priority>[\w-]+) priority")


def summary_of(text):
    """The figures of rbsample's closing lines."""
    found = {}
    for pattern in (SUMMARY, MORE):
        match = pattern.search(text)
        if not match:
            raise Failed(f"rbsample printed no summary: {text.strip()[-300:]}")
        found.update({k: float(v) if v.replace(".", "").isdigit() else v for k, v in match.groupdict().items()})
    return found


class Samplers:
    """The samplers that can be run on a target, by name."""

    def __init__(self, rbspy, scratch):
        self.rbspy, self.scratch, self.runs = rbspy, scratch, 0

    def file(self, suffix):
        self.runs += 1
        return os.path.join(self.scratch, f"{self.runs}.{suffix}")

    def command(self, name, pid, rate):
        if name == "bare":
            return [tool("bare"), "sample", pid, rate, 600, -1], None
        out = self.file("folded")
        if name == "rbspy":
            return [self.rbspy, "record", "-p", pid, "-r", rate, "--silent", "--format", "collapsed", "--file", out,
                    "--raw-file", self.file("raw")], out
        return [RBSAMPLE, "record", "-p", pid, "-r", rate, "-n", name, "-v", "-f", "folded", "-o", out], out

    def measure(self, name, target, rate, seconds):
        """Run a sampler (or "none") on an awake target; CPU and speed are those of `seconds` in its middle."""
        process, out, begun = None, None, time.monotonic()
        if name != "none":
            argv, out = self.command(name, target.pid, rate)
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       cwd=self.scratch, preexec_fn=child_setup)
        time.sleep(WARM if process else 0.1)
        found = self._middle(process, target, seconds)
        if process:
            found.update(self._end(name, process, rate, out, time.monotonic() - begun))
        return found

    @staticmethod
    def _middle(process, target, seconds):
        if process and process.poll() is not None:
            raise Failed(f"{os.path.basename(process.args[0])} ended at once: {process.stdout.read().decode()[-300:]}")
        start = time.monotonic()
        count, target_cpu = target.count(), cpu_ns(target.pid)
        used, threads = (cpu_ns(process.pid), threads_ns(process.pid)) if process else (0, {})
        time.sleep(seconds)
        if process:
            used, after = cpu_ns(process.pid) - used, threads_ns(process.pid)
            threads = {tid: ns - threads.get(tid, 0) for tid, ns in after.items()}
        count2, target_cpu2 = target.count(), cpu_ns(target.pid)
        wall = time.monotonic() - start
        if count2[1] == count[1]:
            raise Failed("the target stands still")
        main = threads.get(process.pid, 0) if process else 0
        return {
            "cpu_percent": used / wall / 1e7,
            "main_thread_percent": main / wall / 1e7,
            "other_threads_percent": (sum(threads.values()) - main) / wall / 1e7,
            "speed": (count2[0] - count[0]) / (count2[1] - count[1]) * 1e9,
            "target_cpu_percent": (target_cpu2 - target_cpu) / wall / 1e7,
        }

    @staticmethod
    def _end(name, process, rate, out, ran):
        process.send_signal(signal.SIGINT)
        text = process.stdout.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if name != "rbspy" and process.returncode != 0:
            raise Failed(f"{name} ended with {process.returncode}: {text.strip()[-300:]}")
        found = {"whole_cpu_s": usage.ru_utime + usage.ru_stime, "max_rss_mib": usage.ru_maxrss / 1024}
        if name == "bare":
            found["bare"] = json.loads(text)
        elif name == "rbspy":
            with open(out, encoding="utf-8", errors="replace") as f:
                found["samples"] = sum(int(line.rsplit(" ", 1)[1]) for line in f if line.strip())
            found["wanted"] = rate * ran
        else:
            found.update(summary_of(text))
            found["wanted"] = found["due"]
        if out:
            os.unlink(out)
        return found


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:<100.100}")
    else:
        sys.stderr.write(text + "\n")
    sys.stderr.flush()
