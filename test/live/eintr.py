# rubies: 2.7 3.1 3.3 3.4
# timeout: 200
"""No EINTR: a thread in raw epoll_wait is never woken by sampling, save once where its native frames were asked for."""
import ctypes
import os
import time

import harness
from harness import Failed

EPOLL_WAIT = 232
SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
# (what, arguments of record, EINTR allowed)
RECORDS = (
    ("record", (), 0),
    ("record -n off", ("-n", "off"), 0),
    ("record -n full", ("-n", "full"), 0),
    ("record -i -n off", ("-i", "-n", "off"), 0),
    ("record -i", ("-i",), 1),  # one stop for each sleep, for its native frames
    ("record --no-realtime", ("--no-realtime",), 0),
)


def count(program):
    """EINTR so far, by a statement made after this call."""
    now = time.clock_gettime(harness.CLOCK)
    deadline = time.monotonic() + 10
    while not program.last or program.last["at"] <= now:
        if time.monotonic() > deadline:
            raise Failed("the program states nothing any more")
        time.sleep(0.01)
    if program.last["other"]:
        raise Failed(f"epoll_wait returned something else {program.last['other']} times")
    return program.last["eintr"]


def waiting_thread(program):
    for _ in range(500):
        for t in harness.tids(program.pid):
            if harness.read_file(f"/proc/{program.pid}/task/{t}/syscall").startswith(f"{EPOLL_WAIT} ") and \
                    harness.read_file(f"/proc/{program.pid}/task/{t}/comm").strip() == "waiter":
                return t
        time.sleep(0.01)
    raise Failed("no thread waits in epoll_wait")


def stop_once(tid):
    """What a sampler must not do to this thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(SEIZE, tid, None, None) or libc.ptrace(INTERRUPT, tid, None, None):
        raise Failed(os.strerror(ctypes.get_errno()))
    os.waitpid(tid, 0x40000000)  # __WALL
    libc.ptrace(DETACH, tid, None, None)


def body(test):
    program = test.start("eintr.rb")
    program.wait_totals(3)
    tid = waiting_thread(program)
    before = count(program)
    stop_once(tid)
    time.sleep(0.1)
    test.check(count(program) == before + 1, "the test can see it: one stop of the thread is one EINTR")
    seconds = 5 if test.full else 1.5
    for what, options, allowed in RECORDS:
        before = count(program)
        r = test.record(program.pid, "-r", 499, "-d", seconds, "-t", *options)
        seen = count(program) - before
        stacks = [s for s in r.folded() if s.tid == tid]
        test.check(seen <= allowed, f"{what}: {seen} EINTR in {r.summary()['samples']:.0f} samples, allowed {allowed}")
        found = any("Waiter#wait_here" in s.labels() for s in stacks)
        test.check(found == ("-i" in options), f"{what}: the waiting thread is {'in' if found else 'not in'} the profile")
    for what, options, allowed in (("dump", (), 0), ("dump -n off", ("-n", "off"), 0)):
        before = count(program)
        threads = [t for k in range(5) for t in test.dump(program.pid, *options)["threads"] if t["tid"] == tid]
        seen = count(program) - before
        named = all(any(f["name"] == "Waiter#wait_here" for f in t["frames"]) for t in threads)
        test.check(seen <= allowed and named and len(threads) == 5,
                   f"{what}: {seen} EINTR in 5 looks, the thread's stack is there in {len(threads)}")
    states = {t["state"] for t in threads}
    test.check(states <= {"blocked", "io wait"}, f"dump: its state is {sorted(states)}")
    before = count(program)
    full = [t for t in test.dump(program.pid, "-n", "full")["threads"] if t["tid"] == tid][0]
    native = [f["name"] for f in full["frames"] if f["kind"] == "native"]
    test.check(any(n and "epoll_wait" in n for n in native),
               f"dump -n full: its native frames are there, for {count(program) - before} EINTR: {native[:4]}")
    test.check(waiting_thread(program) == tid, "it waits on")


if __name__ == "__main__":
    harness.main(body)
