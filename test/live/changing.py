# rubies: 2.7 3.1 3.3 3.4
# ci: 2.7 3.3
# timeout: 300
"""Stacks that change places: fibers in turns, threads that live shortly, wrappers that exec a Ruby, a decoder that is behind."""
import os
import signal
import tempfile
import time

import harness


def fibers(test):
    """Each switch moves the machine stack: nothing may be lost, read twice, or charged to the other side."""
    program = test.start("changing.rb", "fibers")
    program.line()
    for native in ("off", "leaf", "full"):
        r = test.record(program.pid, "-n", native, "-r", 499, "--count", 1500, "-d", 30)
        stacks, s = r.folded(), r.summary()
        main = harness.share(stacks, lambda x: "Changing#in_main" in x.labels())
        fiber = harness.share(stacks, lambda x: "Changing#in_fiber" in x.labels())
        test.check(abs(main - fiber) < 0.08 and main + fiber > 0.95,
                   f"fibers, -n {native}: main {100 * main:.1f} %, fiber {100 * fiber:.1f} %, wanted alike")
        test.check(s["lost"] <= 15, f"fibers, -n {native}: {s['lost']:.0f} lost of {s['samples']:.0f}")
        test.check(s["mean"] < 1000, f"fibers, -n {native}: a stop takes {s['mean']:.0f} us")
    program.close()


def short_threads(test):
    """What is missed of a thread that has just begun is said; of one that lives longer little is missed."""
    for ms, least in ((20, 0.3), (200, 0.8)):
        program = test.start("changing.rb", "threads", ms)
        program.line()
        r = test.record(program.pid, "-r", 99, "-d", 5)
        stacks, s = r.folded(), r.summary()
        n = sum(x.count for x in stacks)
        hot = harness.share(stacks, lambda x: "Changing#in_thread" in x.labels())
        program.close()
        test.check(n >= least * 495, f"threads of {ms} ms: {n} samples of 495, at least {100 * least:.0f} %")
        test.check(hot > 0.9, f"threads of {ms} ms: {100 * hot:.1f} % of the samples have their method")
        told = n + s["lost"] + s["late"]
        test.check(told >= 0.85 * 495, f"threads of {ms} ms: samples, lost and late are {told:.0f} of 495")


def wrappers(test):
    """A script that execs a Ruby, at whatever instant of attaching."""
    good = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(10):
            out = os.path.join(folder, f"{k}.folded")
            burn = "t = Process.clock_gettime(1); nil while Process.clock_gettime(1) - t < 0.5"
            r = test.run("record", "-o", out, "--", "sh", "-c", f"exec {' '.join(test.ruby.prefix)} -e '{burn}'")
            with open(out, encoding="utf-8") as f:
                good.append(r.code == 0 and sum(int(line.rsplit(" ", 1)[1]) for line in f) >= 10)
    test.check(all(good), f"{sum(good)} of {len(good)} wrappers were sampled to their end")


def behind(test):
    """A run ends at once when it is asked to, also where stacks come faster than they can be decoded."""
    program = test.start("changing.rb", "nested", 500)
    program.line()
    time.sleep(0.3)
    sampler = harness.Sampler(test, program.pid, "-r", 5000, "-n", "full")
    time.sleep(2)
    began = time.monotonic()
    code, err = sampler.kill(signal.SIGINT)
    test.check(code == 0 and time.monotonic() - began < 5,
               f"SIGINT to a sampler that is behind: {code} after {time.monotonic() - began:.1f} s; {err.strip()[-120:]}")
    program.close()


def body(test):
    for part in (fibers, short_threads, wrappers, behind):
        if test.args.only in part.__name__:
            test.measured(part.__name__, part)


if __name__ == "__main__":
    harness.main(body)
