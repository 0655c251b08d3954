# rubies: 2.7 3.1 3.3 3.4
# timeout: 300
"""Threads with methods of their own: never a frame of one under another, in 10,000 samples."""
import re

import harness

WORKERS = 6


def owners(stack):
    """Which workers' methods are on a stack: their numbers, and "passing" for the short-lived threads."""
    found = set()
    for f in stack.frames:
        if f.kind not in ("ruby", "cfunc"):
            continue
        k = re.search(r"Worker_(\d+)[#.](?:outer|middle|inner|in_fiber|work)_(\d+)$", f.label)
        if k:
            found |= {k[1], k[2]}
        elif "Passing#" in f.label:
            found.add("passing")
    return found


def check(test, what, stacks):
    n = sum(s.count for s in stacks)
    mixed = [s for s in stacks if len(owners(s)) > 1]
    for s in mixed[:5]:
        test.note(f"mixed: {s.texts}")
    test.check(not mixed, f"{what}: {sum(s.count for s in mixed)} of {n} samples have frames of two threads")
    # A worker lives as long as the program, so its native thread is never another's.
    by_tid = {}
    for s in stacks:
        for o in owners(s):
            by_tid.setdefault(s.tid, set()).add(o)
    shared = {t: sorted(o) for t, o in by_tid.items() if len(o) > 1}
    test.check(not shared, f"{what}: no native thread shows two owners: {shared or len(by_tid)}")
    known = sum(s.count for s in stacks if owners(s))
    test.check(known > 0.5 * n or "-i" in what, f"{what}: {known} of {n} samples are of a known owner")
    return n, set().union(*by_tid.values()) if by_tid else set()


def body(test):
    program = test.start("threads.rb", WORKERS)
    program.line()
    program.wait_cpu(300_000_000)
    wanted = test.count(10_000, 2_000)
    total, seen = 0, set()
    for what, options, part in (("running threads", ("-n", "leaf"), 0.5), ("with -i", ("-i", "-n", "off"), 0.5)):
        r = test.record(program.pid, "-t", "-r", 499, "--count", int(wanted * part), "-d", 60, *options)
        n, owning = check(test, what, r.folded())
        total += n
        seen |= owning
    missing = {str(k) for k in range(WORKERS)} | {"passing"}
    missing -= seen
    test.check(not missing, f"all owners were seen, missing: {sorted(missing) or 'none'}")
    test.check(total >= wanted, f"{total} samples in all, wanted {wanted}")
    test.check(program.alive(), "the program still runs")


if __name__ == "__main__":
    harness.main(body)
