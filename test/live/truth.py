# rubies: 2.7 3.1 3.3 3.4
# timeout: 900
"""Truth: for every kind of frame, place and way of standing still, rbsample's stack is the one the program states."""
import os
import time

import harness
from harness import Failed

PLACES = ("main", "thread", "fiber")
WAYS = ("spin", "read")
READ = {0}  # read(2)
# On 2.7 the accessors of a Struct are C functions for an instant: the only difference that the table of frames allows.
HIDDEN = {("2.7", "Struct accessors"): {"go", "other=", "go=", "other"}}


def golden():
    """Row -> labels innermost first, with "..." where the place's own frames follow."""
    rows = {}
    with open(os.path.join(harness.PROGRAMS, "truth_golden.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("# "):
                name, _, labels = line.rstrip("\n").partition("\t")
                rows[name] = labels.split(" | ")
    return rows


def wanted_labels(rows, row, place):
    labels = []
    for label in rows[row]:
        labels += rows[f"under {place}"] if label == "..." else [label]
    return labels


def without_call(frames, label, way):
    """The frames under the C function that blocks; a stack that lacks it is returned as None."""
    if way == "spin":
        return frames
    if frames and label(frames[0]).split("#")[-1] == "read":
        return frames[1:]
    return None


def same(version, row, got, want, label):
    if got == want:
        return True
    allowed = HIDDEN.get((version, row))
    return bool(allowed and got and label(got[0]).split("#")[-1] in allowed and got[1:] == want)


def dumped(test, program, tid, labels):
    """Ruby and C function frames and the state of one thread: (label, path, line), innermost first."""
    doc = test.dump(program.pid, f"--labels={labels}", "-n", "off")
    threads = [t for t in doc["threads"] if t["tid"] == tid]
    if doc["pid"] != program.pid or len(threads) != 1:
        raise Failed(f"dump of {program.pid} has {len(threads)} threads with tid {tid}: {doc}")
    frames = [(f["name"], f["path"], f["line"] or 0) for f in threads[0]["frames"] if f["kind"] in ("ruby", "cfunc")]
    return frames, threads[0]


def thread_of(program, place):
    """The kernel's id of the thread that states its stack."""
    if place != "thread":
        return program.pid
    for _ in range(2000):
        named = [t for t in harness.tids(program.pid)
                 if harness.read_file(f"/proc/{program.pid}/task/{t}/comm").strip() == "truth"]
        if len(named) == 1:
            return named[0]
        time.sleep(0.001)  # it is named by the main thread, a moment after it began
    raise Failed(f"{len(named)} threads are named truth")


def as_folded(frame, cfunc):
    """What a folded line can show of a stated frame: C functions have no line there."""
    return (frame[0], None, None) if cfunc else tuple(frame)


class Case:
    """One row at one place in one way."""

    def __init__(self, test, program, place, way, row, stated):
        self.test, self.program, self.place, self.way, self.row = test, program, place, way, row
        self.stated = [tuple(f) for f in stated]
        self.tid = thread_of(program, place)
        self.name = f"{row}, {way} on {place}"

    def stand(self):
        """Until the program does what it said it would do next."""
        if self.way == "read":
            self.program.wait_call(self.tid, READ)
        else:
            self.program.wait_cpu(2_000_000)

    def dump_ruby(self):
        frames, thread = dumped(self.test, self.program, self.tid, "ruby")
        got = without_call(frames, lambda f: f[0], self.way)
        self.kinds = [f["kind"] for f in thread["frames"] if f["kind"] in ("ruby", "cfunc")]
        if self.way == "read":
            self.kinds = self.kinds[1:]
        ok = self.test.quiet(got is not None and same(self.test.args.ruby, self.row, got, self.stated, lambda f: f[0]),
                             f"{self.name}: dump --labels=ruby\n#   stated {self.stated}\n#   dumped {frames}")
        states = ("running",) if self.way == "spin" else ("blocked", "io wait")
        self.test.quiet(thread["state"] in states, f"{self.name}: state {thread['state']!r} is none of {states}")
        self.test.quiet(thread["main"] == (self.place != "thread"), f"{self.name}: main is {thread['main']}")
        return ok

    def dump_default(self, rows):
        want = wanted_labels(rows, self.row, self.place)
        frames, _ = dumped(self.test, self.program, self.tid, "default")
        labels = without_call([f[0] for f in frames], lambda f: f, self.way)
        self.test.quiet(labels is not None and same(self.test.args.ruby, self.row, labels, want, lambda f: f),
                        f"{self.name}: dump --labels=default\n#   golden {want}\n#   dumped {[f[0] for f in frames]}")

    def record_ruby(self, samples):
        """Each of so many samples; the number seen of this thread."""
        wait = ["-i"] if self.way == "read" else []
        threads = 2 if wait and self.place == "thread" else 1
        result = self.test.record(self.program.pid, "--labels=ruby", "-n", "off", "-t", "-r", 997, "-q",
                                  "--count", samples * threads, "-d", 20, *wait)
        stacks = [s for s in result.folded() if s.tid == self.tid]
        want = [as_folded(f, k == "cfunc") for f, k in zip(self.stated, self.kinds)]
        for s in stacks:
            ends = s.frames[-1].kind if s.frames else None
            self.test.quiet(self.way == "spin" or ends == "state", f"{self.name}: it does not end in a state: {s.texts}")
            got = [as_folded((f.label, f.path, f.line), f.kind == "cfunc") for f in s.ruby()]
            got = without_call(got, lambda f: f[0], self.way)
            self.test.quiet(got is not None and same(self.test.args.ruby, self.row, got, want, lambda f: f[0]),
                            f"{self.name}: record --labels=ruby\n#   stated {want}\n#   sampled {s.count}x {s.texts}")
        seen = sum(s.count for s in stacks)
        self.test.quiet(seen >= samples - threads + 1, f"{self.name}: {seen} samples of {samples}: {result}")
        return seen


def run_place(test, rows, place, way, samples):
    """All rows at one place in one way, in one program; the names of the rows run and the samples seen."""
    program = test.start("truth.rb", place, way)
    done, seen = [], 0
    while True:
        doc = program.line()
        if "done" in doc:
            break
        case = Case(test, program, place, way, doc["row"], doc["frames"])
        done.append(case.row)
        if test.args.only in case.row:
            case.stand()
            if case.dump_ruby():
                seen += case.record_ruby(samples)
            if test.quiet(case.row in rows, f"{case.row} is not in truth_golden.txt"):
                case.dump_default(rows)
        if way == "read":
            program.write()
        else:
            program.signal(10)  # SIGUSR1
    program.close()
    return done, seen


def body(test):
    rows = golden()
    samples = test.count(50)
    wanted = [r for r in rows if not r.startswith("under ")]
    for place in PLACES:
        for way in WAYS:
            before = test.failures
            done, seen = run_place(test, rows, place, way, samples)
            # <main> itself is the leaf of the main thread only.
            missing = [r for r in wanted if r not in done and not (r == "main program" and place != "main")]
            test.check(not missing, f"{way} on {place}: every row was run; missing: {missing or 'none'}")
            test.check(test.failures == before,
                       f"{way} on {place}: {len(done)} rows equal what the program states, {seen} samples")
            if (place, way) == ("main", "spin"):
                test.note(f"rows: {', '.join(done)}")


if __name__ == "__main__":
    harness.main(body)
