# rubies: 2.7 3.1 3.3 3.4
# ci: 3.3
# timeout: 600
"""Harmless: signals reach a profiled target at once, nothing is traced between ticks, a killed sampler leaves no trace."""
import os
import random
import signal
import time

import harness
from harness import Failed


def latencies(program, count):
    """us from kill() to the handler."""
    found = []
    for _ in range(count):
        time.sleep(random.uniform(0.003, 0.009))
        sent = time.clock_gettime_ns(harness.CLOCK)
        program.signal(signal.SIGUSR1)
        found.append((program.line(10) - sent) / 1000)
    return found


def at(sorted_values, part):
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


def in_turns(test, program, hz):
    """Latencies without and with the sampler, in turns, so that what else the machine does meets both alike; exit codes."""
    turns, count = (10, 100) if test.full else (5, 40)
    alone, with_it, codes = [], [], set()
    for _ in range(turns):
        alone += latencies(program, count)
        sampler = harness.Sampler(test, program.pid, "-r", hz)
        time.sleep(0.3)
        with_it += latencies(program, count)
        code, err = sampler.kill(signal.SIGINT)
        codes.add(str(code) if "samples" in err else err)
    return sorted(alone), sorted(with_it), codes


def signals(test):
    """Up to three times: another program's work may bend one measurement, what the sampler does bends them all."""
    for kind in ("busy", "idle"):
        program = test.start("latency.rb", kind)
        program.line()
        latencies(program, 20)
        for hz in (1, 99):
            for last in (False, False, True):
                alone, with_it, codes = in_turns(test, program, hz)
                over = at(with_it, 0.95) - at(alone, 0.95)
                text = (f"{kind} target, -r {hz}: a signal takes {at(with_it, 0.5):.0f} us median, {at(with_it, 0.95):.0f} "
                        f"us p95, alone {at(alone, 0.5):.0f} and {at(alone, 0.95):.0f} us (p95 over it by {over:.0f} us, "
                        f"allowed 1000)")
                if over < 1000 or last:
                    test.check(over < 1000, text)
                    break
                test.note(f"once more: {text}")
            test.check(codes <= {"0", "1"}, f"{kind} target, -r {hz}: the sampler ends with {sorted(codes)}")
        program.close()


def traced(pid):
    """Threads with a tracer now, and threads looked at."""
    found = [harness.status_field(pid, "TracerPid", t) for t in harness.tids(pid)]
    return sum(f not in ("0", "") for f in found), len(found)


def between_ticks(test):
    """TracerPid at random instants. A window is some 100 us, more where cpus are short: of 10 ms at 99 Hz some %."""
    program = test.start("threads.rb", 4)
    program.line()
    for hz, allowed in ((1, 0.02), (99, 0.15)):
        sampler = harness.Sampler(test, program.pid, "-r", hz)
        time.sleep(0.3)
        seen = looked = 0
        end = time.monotonic() + (10 if test.full else 3)
        while time.monotonic() < end:
            now, n = traced(program.pid)
            seen += now
            looked += n
            time.sleep(random.uniform(0, 0.002))
        sampler.kill(signal.SIGINT)
        test.check(looked > 1000 and seen <= allowed * looked,
                   f"-r {hz}: {seen} of {looked} looks at a thread found a tracer ({100 * seen / max(looked, 1):.2f} %, "
                   f"allowed {100 * allowed:.1f} %)")
        test.check(traced(program.pid)[0] == 0, f"-r {hz}: no thread is traced after the end")
    program.close()


def untouched(program, what, test):
    """It runs, is not stopped and has no tracer."""
    time.sleep(0.01)
    states = {harness.status_field(program.pid, "State", t)[:1] for t in harness.tids(program.pid)} - {""}
    ok = program.alive() and not states & {"T", "t", "Z"} and traced(program.pid)[0] == 0
    test.quiet(ok, f"{what}: alive {program.alive()}, states {sorted(states)}, traced {traced(program.pid)}")
    before = program.cpu_ns()
    program.wait_cpu(1_000_000, 5)
    return ok and program.cpu_ns() > before


def killed(test):
    """kill -9 at random instants, mostly in the midst of many ticks."""
    count = 50 if test.full else 15
    program = test.start("threads.rb", 4)
    program.line()
    good = 0
    for k in range(count):
        native = random.choice(("off", "leaf", "full"))
        sampler = harness.Sampler(test, program.pid, "-r", random.choice((99, 997, 5000)), "-n", native,
                          *random.choice(((), ("-i",))))
        time.sleep(random.uniform(0.0, 0.25))
        if sampler.process.poll() is not None:
            raise Failed(f"the sampler ended by itself: {sampler.process.stderr.read()[-300:]!r}")
        sampler.kill()
        good += untouched(program, f"kill -9 number {k + 1}", test)
    test.check(good == count, f"{good} of {count} kill -9 left the target running, untraced")
    r = test.record(program.pid, "-r", 499, "--count", 100, "-d", 20)
    test.check(r.summary()["samples"] >= 100, f"it can still be sampled: {r.summary()['samples']:.0f} samples")
    program.close()


def held(test):
    """A sampler that is itself stopped holds nothing, but in its window: of 200 ms between ticks some ms where cpus are short."""
    count = 50 if test.full else 10
    program = test.start("busy.rb", "ruby")
    program.line()
    program.wait_cpu(100_000_000)
    frozen = back = 0
    for _ in range(count):
        sampler = harness.Sampler(test, program.pid, "-r", 5)
        time.sleep(random.uniform(0.2, 0.6))
        os.kill(sampler.process.pid, signal.SIGSTOP)
        time.sleep(0.02)
        frozen += traced(program.pid)[0] > 0
        sampler.kill()
        program.wait_cpu(1_000_000, 5)
        back += traced(program.pid)[0] == 0
    test.check(frozen <= count // 10, f"{frozen} of {count} stops of the sampler found it in its window, "
                                      f"allowed {count // 10}")
    test.check(back == count, f"once it is killed the target runs on, {back} of {count}")
    program.close()


def stopped_target(test):
    """A stopped target can be looked at and sampled, and stays stopped."""
    program = test.start("threads.rb", 2)
    program.line()
    program.wait_cpu(50_000_000)
    program.signal(signal.SIGSTOP)
    time.sleep(0.05)
    before = program.cpu_ns()
    for k, native in enumerate(("off", "leaf", "full")):
        doc = test.dump(program.pid, "-n", native)
        time.sleep(0.05)
        states = {harness.status_field(program.pid, "State", t)[:1] for t in harness.tids(program.pid)}
        named = [f["name"] for t in doc["threads"] for f in t["frames"]]
        test.check(states == {"T"} and "<main>" in named,
                   f"dump {k + 1} of a stopped target, -n {native}: {len(doc['threads'])} threads, states {sorted(states)}")
    test.check(program.cpu_ns() - before < 3_000_000,
               f"it ran for {(program.cpu_ns() - before) / 1000:.0f} us meanwhile")
    r = test.run("record", "-p", program.pid, "-d", 0.5, "-o", "/dev/null", "-f", "folded")
    states = {harness.status_field(program.pid, "State", t)[:1] for t in harness.tids(program.pid)}
    test.check(states == {"T"} and r.code in (0, 1), f"record of a stopped target ends with {r.code}, states {sorted(states)}")
    program.signal(signal.SIGCONT)
    program.wait_cpu(10_000_000)
    test.check(program.alive(), "SIGCONT sets it running again")
    program.close()


def body(test):
    for part in (signals, between_ticks, killed, held, stopped_target):
        if test.args.only in part.__name__:
            test.measured(part.__name__, part)


if __name__ == "__main__":
    harness.main(body)
