# rubies: 2.7 3.1 3.3
# ci: 3.3
# timeout: 300
"""A real program: puma with sinatra under load. Shares of methods against StackProf's in another run of the same load."""
import http.client
import json
import re
import socket
import threading
import time

import harness
from harness import Failed, Program, Skip

PATHS = ("/page", "/json", "/files", "/index", "/json", "/files")
CLIENTS = 4
# What StackProf of 3.1 and later shows for a C block: the method that made it, here under each of puma's threads.
# Ruby itself (caller_locations) has no such frame.
ARTEFACTS = {"Method#to_proc"}
LEAST = 0.05  # methods with a smaller share are not compared
POINTS = 5


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path, timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != 200:
        raise Failed(f"GET {path} gives {answer.status}: {body[:300]!r}")
    return body


class Load:
    """So many clients, each asking for one path after the other, until stopped."""

    def __init__(self, port):
        self.port, self.ending, self.done, self.bad = port, False, 0, []
        self.threads = [threading.Thread(target=self.client, args=(k,), daemon=True) for k in range(CLIENTS)]

    def client(self, k):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            while not self.ending:
                connection.request("GET", PATHS[k % len(PATHS)])
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise Failed(f"status {answer.status}")
                k += 1
                self.done += 1
                if k % 8 == 0:  # puma 4 resets a connection after its tenth request
                    connection.close()
        except (OSError, http.client.HTTPException, Failed) as why:
            self.bad.append(repr(why))

    def __enter__(self):
        for t in self.threads:
            t.start()
        time.sleep(1)
        return self

    def __exit__(self, *exc):
        self.ending = True
        for t in self.threads:
            t.join(30)


def serve(test):
    port = free_port()
    puma = "/usr/bin/puma"
    argv = test.ruby.prefix + [puma, "-q", "-e", "production", "-t", "5:5", "-b", f"tcp://127.0.0.1:{port}",
                               f"{test.ruby.inside}/app.ru"]
    program = Program(argv, env={"PWD": "/", "HOME": "/tmp"}, noise=True)
    test.open.append(program)
    for _ in range(300):
        try:
            for path in sorted(set(PATHS)):
                get(port, path)
            return program, port
        except OSError:
            if not program.alive():
                break
            time.sleep(0.1)
    raise Failed(f"puma does not answer: {' '.join(argv)}")


def plain(name):
    """The method's name alone: what both profilers can say. None: a body that StackProf cannot name."""
    name = re.sub(r"^((block|rescue|ensure)( \(\d+ levels\))? in )+", "", name)
    name = re.sub(r"#<(Class|Module|Refinement):0x[0-9a-f]*>", r"#<\1>", name)
    # A route, an after filter or a rackup file's own body: define_method, or eval without a method.
    if "<" in name.replace("#<", "").replace("<=>", "").replace("<<", "") or re.search(r"[#.](GET|HEAD) /", name):
        return None
    return name


def by_stackprof(port, seconds):
    """Method -> share of the stacks that are not of the collector; number of those."""
    get(port, "/profile/start")
    time.sleep(seconds)
    found = json.loads(get(port, "/profile/stop", 60))
    raw, at, total, counts = found["raw"], 0, 0, {}
    while at < len(raw):
        n = raw[at]
        ids, weight = raw[at + 1:at + 1 + n], raw[at + 1 + n]
        at += n + 2
        names = {found["frames"][str(i)]["name"] for i in ids}
        if any(x.startswith("(") for x in names):
            continue  # (garbage collection), (marking), (sweeping)
        total += weight
        for name in {plain(x) for x in names} - {None}:
            counts[name] = counts.get(name, 0) + weight
    if not total:
        raise Failed("StackProf saw nothing")
    return {k: v / total for k, v in counts.items()}, total


def by_rbsample(test, program, seconds):
    """The same from rbsample's stacks; which names are of C functions; the run."""
    r = test.record(program.pid, "-r", 499, "-d", seconds, "-t")
    counts, total, cfuncs = {}, 0, set()
    for s in r.folded():
        if any(f.text.startswith("[gc") for f in s.frames):
            continue
        total += s.count
        frames = [f for f in s.frames if f.kind in ("ruby", "cfunc")]
        cfuncs |= {f.label for f in frames if f.kind == "cfunc"}
        for name in {plain(f.label) for f in frames} - {None}:
            counts[name] = counts.get(name, 0) + s.count
    return {k: v / total for k, v in counts.items()}, total, cfuncs, r


def mean(shares):
    """The mean of several runs' shares, method by method."""
    return {k: sum(s.get(k, 0) for s in shares) / len(shares) for k in set().union(*shares)}


def body(test):
    if not test.ruby.has("stackprof", "sinatra", "puma"):
        raise Skip(f"Ruby {test.args.ruby} has no puma, sinatra and stackprof: packages puma ruby-sinatra ruby-stackprof")
    test.measured("shares", compare)


def compare(test):
    turns, seconds = (3, 8) if test.full else (2, 4)
    program, port = serve(test)
    ours, theirs, cfuncs = [], [], set()
    with Load(port) as load:
        if not load.done:
            raise Failed(f"no request is answered: {load.bad[:3]}")
        for _ in range(turns):  # in turns, so that what else the machine does meets both alike
            before, start = load.done, time.monotonic()
            shares, n, named, run = by_rbsample(test, program, seconds)
            middle, half = load.done, time.monotonic()
            ours.append(shares)
            cfuncs |= named
            shares, m = by_stackprof(port, seconds)
            theirs.append(shares)
            test.note(f"{n} busy samples ({(middle - before) / (half - start):.0f} requests a second), StackProf {m} "
                      f"({(load.done - middle) / (time.monotonic() - half):.0f} requests a second)")
            test.note(run.err.strip().splitlines()[-1])
    ours, theirs = mean(ours), mean(theirs)
    test.check(not load.bad, f"all {load.done} answers were right: {load.bad[:3]}")
    # StackProf of 2.7 sees no C functions at all.
    unseen = ARTEFACTS | (cfuncs if test.args.ruby == "2.7" else set())
    names = [k for k in set(ours) | set(theirs) if max(ours.get(k, 0), theirs.get(k, 0)) > LEAST and k not in unseen]
    test.check(len(names) >= 10 and "Shop::Files#check" in names, f"{len(names)} methods have more than 5 %")
    for k in sorted(names, key=lambda k: -theirs.get(k, 0)):
        a, b = 100 * ours.get(k, 0), 100 * theirs.get(k, 0)
        test.check(abs(a - b) <= POINTS, f"{k}: {a:.1f} %, StackProf {b:.1f} % (off {a - b:+.1f}, allowed {POINTS})")
    program.close()


if __name__ == "__main__":
    harness.main(body)
