# rubies: 2.7 3.1 3.3 3.4
# ci: 3.3
# timeout: 300
"""Counts add up: folded lines, summary, due threads and the root of flamegraph.pl's picture; also with hostile names."""
import os
import re
import signal
import subprocess
import threading
import time
import xml.etree.ElementTree as ElementTree

import harness
from harness import Failed, Skip

FLAMEGRAPH = ("/usr/share/perl5/Devel/NYTProf/flamegraph.pl",)


def more(err):
    """The counters that -v prints."""
    found = re.search(r"^rbsample: (\d+) ticks, (\d+) missed, (\d+) due, (\d+) stops", err, re.M)
    if not found:
        raise Failed(f"-v prints no counters: {err[-500:]!r}")
    return dict(zip(("ticks", "missed", "due", "stops"), map(int, found.groups())))


def flamegraph(folded, *options):
    """Title -> samples of the picture that the real flamegraph.pl draws; what it says on stderr."""
    script = next((f for f in FLAMEGRAPH if os.path.exists(f)), None)
    if not script:
        raise Skip("flamegraph.pl is not installed: package libdevel-nytprof-perl")
    r = subprocess.run(["perl", script, "--minwidth", "0", *options], input=folded, capture_output=True, timeout=60,
                       check=False)
    if r.returncode != 0:
        raise Failed(f"flamegraph.pl ended with {r.returncode}: {r.stderr[:300]!r}")
    counts = {}
    for title in ElementTree.fromstring(r.stdout).iter("{http://www.w3.org/2000/svg}title"):
        found = re.fullmatch(r"(.*) \(([\d,]+) samples, [\d.]+%.*\)", title.text or "", re.S)
        if found:
            counts[found[1]] = counts.get(found[1], 0) + int(found[2].replace(",", ""))
    return counts, r.stderr.decode("utf-8", "replace").strip()


def drawn(name):
    """How flamegraph.pl may draw a name: <> as (), by its version without a palette's suffix; nothing else may be lost."""
    round_ = name.replace("<", "(").replace(">", ")")
    return name, round_, re.sub(r"_\[[kwij]\]$", "", round_)


def adds_up(test, what, r):
    """Folded lines, summary and due threads of one run."""
    total = sum(s.count for s in r.folded())
    s, m = r.summary(), more(r.err)
    lost = sum(s["causes"].values())
    test.check(total == s["samples"], f"{what}: the folded counts add up to {total}, the summary says {s['samples']:.0f}")
    test.check(lost == s["lost"], f"{what}: lost {s['lost']:.0f} is the sum of its causes {s['causes']}")
    test.check(s["samples"] + s["late"] + lost == m["due"],
               f"{what}: {s['samples']:.0f} samples + {s['late']:.0f} late + {lost} lost == {m['due']} due "
               f"({m['ticks']} ticks, {m['missed']} missed)")
    return s, m


def hostile(test, *options):
    program = test.start("hostile.rb", test.ruby.inside)
    methods = program.line()["methods"]
    program.wait_cpu(100_000_000)
    what = f"hostile names {' '.join(options)}".strip()
    r = test.record(program.pid, "-v", "-t", "-n", "off", "-r", 997, "--count", test.count(5000, 1500), "-d", 60, *options)
    program.close()
    s, _ = adds_up(test, what, r)
    stacks = r.folded()
    bad = [c for c in r.text if (ord(c) < 32 and c != "\n") or ord(c) == 127]
    test.check(not bad, f"{what}: no control characters in valid UTF-8: {bad[:5]}")
    for x in stacks:  # a thread may wait in a page fault, once in a while: its state is one frame more
        if x.frames and x.frames[-1].kind == "state":
            x.texts.pop()
            x.frames.pop()
    # thread; block in <main>; Hostile#run; Array#each; block in Hostile#run; Method#call; the method
    full = [len(x.texts) for x in stacks if len(x.texts) > 6]
    wrong = [x.texts for x in stacks if len(x.texts) > 7 or not x.thread]
    test.check(full and not wrong, f"{what}: {len(full)} stacks of 7 frames, none deeper, all with a thread: {wrong[:3]}")
    leaves = {}
    for x in stacks:
        if len(x.texts) == 7:
            leaves[x.texts[-1]] = leaves.get(x.texts[-1], 0) + x.count
    lines = "--no-lines" not in options
    names = {re.sub(r":\d+$", "", l) for l in leaves} if lines else set(leaves)
    test.check(len(names) == methods, f"{what}: {len(names)} different leaves for {methods} methods")
    svg, said = flamegraph(r.raw)
    test.check(not said, f"{what}: flamegraph.pl has nothing to say: {said[:200]!r}")
    test.check(svg.get("all") == s["samples"], f"{what}: the picture's root is {svg.get('all')} of {s['samples']:.0f}")
    off = {l: n for l, n in leaves.items() if n not in (svg.get(d) for d in drawn(l))}
    test.check(not off, f"{what}: all {len(leaves)} leaves have their counts in the picture: {list(off.items())[:3]}")


def due(test):
    """A busy thread is due at every tick, missed or not, but those at which it had no cpu."""
    program = test.start("busy.rb", "ruby")
    program.line()
    program.wait_cpu(200_000_000)
    r = test.record(program.pid, "-v", "-r", 499, "-d", 3)
    s, m = adds_up(test, "one busy thread", r)
    # Ticks at which it waited for a cpu are not due; where the whole machine is stolen from, nobody can count those.
    without = 0 if test.full else 0.4
    test.check(abs(m["due"] - (m["ticks"] + m["missed"])) <= (0.01 + without) * m["due"] + 1,
               f"one busy thread: due {m['due']} at {m['ticks']} + {m['missed']} ticks")
    test.check(abs(m["due"] - 499 * s["seconds"]) <= (0.01 + without) * m["due"] + 2,
               f"one busy thread: {m['due']} due in {s['seconds']} s at 499 Hz")
    pause(test, program)
    program.close()


def pause(test, program):
    """A sampler that stood still for a while counts what it missed, and catches nothing up."""
    argv = [test.binary, "record", "-p", str(program.pid), "-v", "-r", "499", "-d", "2.5", "-o", "-", "-f", "folded"]
    start = time.clock_gettime(harness.CLOCK)
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        def hold():
            time.sleep(1)
            os.kill(p.pid, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(p.pid, signal.SIGCONT)
        threading.Thread(target=hold).start()
        out, err = p.communicate(timeout=60)
    r = harness.Result(argv, p.returncode, out, err.decode(), start, time.clock_gettime(harness.CLOCK))
    if r.code != 0:
        raise Failed(str(r))
    s, m = adds_up(test, "stopped for 0.5 s", r)
    test.check(abs(s["late"] - 0.5 * 499) <= 40, f"stopped for 0.5 s: {s['late']:.0f} late, wanted about 250")
    test.check(-40 - (0 if test.full else 400) <= s["samples"] + s["late"] - 499 * 2.5 <= 40,
               f"stopped for 0.5 s: {s['samples']:.0f} samples + {s['late']:.0f} late in 2.5 s at 499 Hz")
    test.check(program.alive() and m["ticks"] > 0, "stopped for 0.5 s: the target runs on")


def many(test):
    """Threads that come and go, all of them, faster than can be kept up with; and two processes in one run."""
    program, other = test.start("threads.rb", 6), test.start("busy.rb", "both")
    program.line()
    other.line()
    program.wait_cpu(200_000_000)
    adds_up(test, "threads that come and go, -i", test.record(program.pid, "-v", "-i", "-r", 997, "-d", 2, "-n", "off"))
    adds_up(test, "5000 Hz", test.record(program.pid, "-v", "-i", "-r", 5000, "-d", 1.5, "-n", "full"))
    r = test.record(program.pid, "-p", other.pid, "-v", "-r", 499, "-d", 2)
    adds_up(test, "two processes", r)
    roots = {x.texts[0] for x in r.folded()}
    test.check(len(roots) == 2 and all(t.startswith("process ") for t in roots),
               f"two processes: a root for each: {sorted(roots)[:4]}")
    program.close()
    other.close()


def body(test):
    for name, part in (("hostile", hostile), ("hostile without lines", lambda t: hostile(t, "--no-lines")),
                       ("due", due), ("many", many)):
        if test.args.only in name:
            test.measured(name, part)


if __name__ == "__main__":
    harness.main(body)
