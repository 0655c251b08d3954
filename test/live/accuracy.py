# rubies: 2.7 3.1 3.3 3.4
# ci: 3.3
# timeout: 900
"""Accuracy: shares, self time, lock-step, the number of samples and the cpu time covered are what the program knows of itself."""
import harness


def has(stack, method):
    return method in stack.labels()


def compare(test, what, stacks, stated, methods, points, needed):
    """Inclusive shares of methods against the program's own statement."""
    n = sum(s.count for s in stacks)
    for m in methods:
        true = stated[m] / stated["total"]
        got = harness.share(stacks, lambda s, m=m: has(s, m))
        allowed = test.tolerance(points, true, n, needed)
        test.check(abs(got - true) * 100 <= allowed,
                   f"{what}: {m} {100 * got:.2f} % of {n} samples, its own clock says {100 * true:.2f} % "
                   f"(off {100 * (got - true):+.2f}, allowed {allowed:.1f})")


def shares(test):
    program = test.start("shares.rb")
    program.wait_totals()
    methods = ("Burn#sixty", "Burn#thirty", "Burn#ten")
    for native in ("off", "leaf"):
        r = test.record(program.pid, "-n", native, "-r", 997, "--count", 5000 if test.full else 2000, "-d", 60)
        stated = program.totals_between(r.start, r.end)
        stacks = r.folded()
        compare(test, f"-n {native}", stacks, stated, methods, 2, 5000)
        if native == "leaf":
            self_is_total(test, stacks, methods)
    program.close()


def self_is_total(test, stacks, methods):
    """A method that only runs Ruby has no frame on top of it, but for a thread's state: it may wait in a page fault."""
    for m in methods:
        with_m = [s for s in stacks if has(s, m)]
        total = sum(s.count for s in with_m)
        tops = [([f for f in s.frames if f.kind != "state"][-1], s.count) for s in with_m]
        on_top = sum(n for f, n in tops if f.label == m)
        marked = sum(s.count for s in with_m if s.frames[-1].kind == "state")
        others = sorted({f.text for f, _ in tops if f.label != m})
        test.check(on_top == total and marked <= total / 100 + 1,
                   f"-n leaf: {m} self {on_top} == total {total}, {marked} of them in a state; on top: {others or 'nothing'}")


def lock_step(test):
    period = round(1e9 / 997)
    for turn in range(3 if test.full else 2):
        program = test.start("lockstep.rb", period)
        program.wait_totals()
        r = test.record(program.pid, "-n", "off", "-r", 997, "--count", 5000 if test.full else 2000, "-d", 60)
        stated = program.totals_between(r.start, r.end)
        program.close()
        compare(test, f"lock-step {turn + 1}", r.folded(), stated, ("Step#first", "Step#second"), 3, 5000)


def rate(test):
    """The number of samples of a busy thread at 99 Hz, and the cpu time they cover."""
    seconds = 30 if test.full else 8
    program = test.start("busy.rb", "ruby")
    program.line()
    program.wait_cpu(200_000_000)
    before = program.cpu_ns()
    r = test.record(program.pid, "-r", 99, "-d", seconds)
    spent, wall = (program.cpu_ns() - before) / 1e9, r.end - r.start
    program.close()
    s = r.summary()
    want = 99 * seconds
    # Ticks at which the thread had no cpu are not due: some are, where the machine is shared.
    test.check(-want / (100 if test.full else 20) <= s["samples"] - want <= want / 100,
               f"{seconds} s at 99 Hz: {s['samples']:.0f} samples of a busy thread, wanted {want} +- {want / 100:.0f} "
               f"({s['late']:.0f} late, {s['lost']:.0f} lost {s['causes'] or ''}; it had {spent / wall:.2f} of a cpu)")
    test.check(abs(s["seconds"] - seconds) <= 0.1, f"the summary says {s['seconds']} s of {seconds}")
    covered(test, "one thread", s, spent, wall)


def covered(test, what, s, spent, wall):
    off = 100 * (s["covered"] / s["cpu"] - 1) if s["cpu"] else -100
    test.check(abs(off) <= 2, f"{what}: samples cover {s['covered']} of {s['cpu']} CPU seconds (off {off:+.2f} %)")
    # The process clock that the summary names, against our own reading of it around the run.
    ours = spent / wall * s["seconds"]
    test.check(abs(s["cpu"] - ours) <= 0.03 * ours + 0.02,
               f"{what}: the summary's {s['cpu']} CPU seconds are {ours:.2f} by our reading of the clock")


def cpu_of_threads(pid):
    """ns on a cpu of each thread, from schedstat."""
    found = {}
    for t in harness.tids(pid):
        words = harness.read_file(f"/proc/{pid}/task/{t}/schedstat").split()
        if words:
            found[t] = int(words[0])
    return found


def two_cpus(test):
    """Ruby in one thread and C code without the GVL in another: both are sampled, all cpu time is covered."""
    seconds = 10 if test.full else 4
    program = test.start("busy.rb", "both")
    program.line()
    program.wait_cpu(300_000_000)
    before, each = program.cpu_ns(), cpu_of_threads(program.pid)
    r = test.record(program.pid, "-r", 499, "-d", seconds, "-t")
    spent, wall = (program.cpu_ns() - before) / 1e9, r.end - r.start
    each = {t: ns - each.get(t, 0) for t, ns in cpu_of_threads(program.pid).items()}
    program.close()
    covered(test, "a thread without the GVL beside it", r.summary(), spent, wall)
    stacks = r.folded()
    n = sum(s.count for s in stacks)
    for tid, ns in each.items():
        true, got = ns / sum(each.values()), harness.share(stacks, lambda s, t=tid: s.tid == t)
        allowed = test.tolerance(5, true, n, 5000)
        test.check(abs(got - true) * 100 <= allowed,
                   f"two threads at once: {tid} has {100 * got:.1f} % of {n} samples and {100 * true:.1f} % of the cpu "
                   f"time (allowed {allowed:.1f})")
    for m in ("Busy#work", "Busy#squeeze"):
        owners = {s.tid for s in stacks if has(s, m)}
        test.check(len(owners) == 1, f"{m} is in the stacks of one thread: {sorted(owners)}")


PARTS = (shares, lock_step, rate, two_cpus)


def body(test):
    for part in PARTS:
        if test.args.only in part.__name__:
            test.measured(part.__name__, part)


if __name__ == "__main__":
    harness.main(body)
