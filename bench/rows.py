"""What the bench measures: each function runs its interleaved rounds and gives rows."""
import os
import subprocess
import time

import table
from table import Row
from targets import RBSAMPLE, TREE, Calm, Failed, Target, progress, run_json, tool, wait_for_calm

RATE = 99
ATTACHES = 10  # in one measurement of their time
AGAIN = 12  # times that a measurement is made at the most


class Bench:
    """What all groups need."""

    def __init__(self, samplers, given, cpus):
        self.samplers, self.cpus = samplers, cpus
        self.rounds, self.seconds, self.calm = given.rounds, given.seconds, given.calm
        self.skipped, self.raw = [], {}
        self.foreign, self.stolen, self.again = [], [], 0

    def skip(self, what, why):
        self.skipped.append(f"{what}: {why}")

    def once(self, label, target, call):
        """One measurement, of an awake target; again, if that is asked for, when others took too much meanwhile."""
        kept = None
        for attempt in range(AGAIN if self.calm is not None else 1):
            if self.calm is not None:
                progress(f"waiting for calm: {label}")
                wait_for_calm(target.pid, self.calm)
            progress(label + (f", again ({attempt})" if attempt else ""))
            with target:
                calm = Calm(target.pid)
                found = call()
                calm.ended()
            self.again += attempt > 0
            if kept is None or calm.foreign < kept[0].foreign:
                kept = (calm, found)
            if self.calm is None or calm.foreign <= self.calm:
                break
        self.foreign.append(kept[0].foreign)
        self.stolen.append(kept[0].stolen)
        return kept[1]

    def measure(self, label, name, target, rate):
        return self.once(f"{label}: {target.name}, {name} {rate} Hz", target,
                         lambda: self.samplers.measure(name, target, rate, self.seconds))


def column(results, key, *path):
    """One value of every round of results[key]."""
    values = []
    for found in results[key]:
        for name in path:
            found = found.get(name) if found is not None else None
        values.append(found)
    return values


def stop(bench):
    """The stop window, beside a bare stop at the same ticks."""
    rows, results = [], {}
    seconds = bench.seconds
    places = [("same cpu", bench.cpus[0], 2.2)]
    if len(bench.cpus) > 1:
        places.insert(0, ("another cpu", bench.cpus[1], 1.5))
    else:
        bench.skip("stop from another cpu", "only one cpu can be used")
    target = Target("3.1", "nested", 35, cpu=bench.cpus[0])
    try:
        for i in range(bench.rounds):
            for place, cpu, _ in places:
                for mode in ("bare", "off", "leaf", "full"):
                    argv = [tool("window"), target.pid, RATE, seconds, cpu, mode]
                    if mode == "bare":
                        argv = [tool("bare"), "stop", target.pid, RATE, seconds, cpu]
                    results.setdefault((place, mode), []).append(bench.once(
                        f"stop, round {i + 1}: {place}, {mode}", target, lambda argv=argv: run_json(argv)))
            results.setdefault("record", []).append(bench.measure(f"stop, round {i + 1}", "leaf", target, RATE))
    finally:
        target.stop()
    group = "stop of a busy thread, 79 native + 35 Ruby frames, 3.1, target pinned; bare: INTERRUPT, wait, CONT"
    for place, _, limit in places:
        bare = results[(place, "bare")]
        for mode in ("off", "leaf", "full"):
            key, other = (place, mode), column({0: bare}, 0, "window", "median")
            rows.append(Row(group, f"INTERRUPT to resume, {place}, -n {mode}, median", "us",
                            column(results, key, "window", "median"), other, "bare", limit))
            rows.append(Row(group, "  p99", "us", column(results, key, "window", "p99"),
                            column({0: bare}, 0, "window", "p99"), "bare"))
        key = (place, "leaf")
        rows.append(Row(group, f"-n leaf, {place}: INTERRUPT until stopped", "us", column(results, key, "to_stop", "median"),
                        column({0: bare}, 0, "to_stop", "median"), "bare"))
        rows.append(Row(group, f"-n leaf, {place}: registers, 2 bulk reads, resume", "us",
                        column(results, key, "held", "median"), column({0: bare}, 0, "held", "median"), "bare",
                        note=f"{column(results, key, 'bytes', 'median')[0]:.0f} bytes"))
        rows.append(Row(group, f"beside it, {place}: schedstat read", "us", column(results, key, "schedstat", "median"),
                        note="in the sampler's window, not counted above"))
        rows.append(Row(group, f"beside it, {place}: process CPU clock", "us",
                        column(results, key, "process_clock", "median"), note="not read yet by the sampler"))
        rows.append(Row(group, f"beside it, {place}: SEIZE before it", "us", column(results, key, "seize", "median")))
    rows.append(Row(group, "summary of record -n leaf: stop, mean", "us", column(results, "record", "mean"),
                    note="less waiting for a cpu; tracers pin themselves, to the pinned target's cpu"))
    rows.append(Row(group, "summary of record -n leaf: stop, p99", "us", column(results, "record", "p99")))
    bench.raw["stop"] = {" ".join(k) if isinstance(k, tuple) else k: v for k, v in results.items()}
    return rows


def make_tape(bench, target):
    """A tape of the target of 79 native and 35 Ruby frames."""
    path = bench.samplers.file("tape")
    with target:
        done = subprocess.run([RBSAMPLE, "record", "-q", "-p", str(target.pid), "-n", "full", "--count", "60",
                               "--tape", path, "-f", "folded", "-o", os.devnull], capture_output=True, text=True,
                              timeout=60, check=False)
    if done.returncode != 0:
        raise Failed(f"no tape: {done.stderr.strip()}")
    return path


def decode(bench):
    """Unwinding and decoding, warm: from tapes, and in a run."""
    rows, results = [], {}
    target = Target("3.1", "nested", 35)
    tapes = [(f"tape {v}", os.path.join(TREE, "fixtures", "tapes", f"{v}.tape")) for v in ("2.7", "3.1", "3.3", "3.4")]
    try:
        tapes.insert(0, ("79 + 35 frames", make_tape(bench, target)))
        for i in range(bench.rounds):
            for name, path in tapes:
                progress(f"decode, round {i + 1}: {name}")
                results.setdefault(name, []).append(run_json([tool("decode"), path, "full", 200]))
            for mode in ("full", "leaf"):
                argv = [tool("live"), target.pid, RATE, 1, bench.seconds, mode]
                results.setdefault(mode, []).append(bench.once(
                    f"decode, round {i + 1}: run -n {mode}", target, lambda argv=argv: run_json(argv)))
    finally:
        target.stop()
    group = "unwinding and decoding after the resume, warm; a frame"
    for key in [name for name, _ in tapes] + ["full", "leaf"]:
        live = key in ("full", "leaf")
        name = f"a run at {RATE} Hz, -n {key}" if live else f"replay, {key}"
        native, ruby = (column(results, key, k)[0] for k in ("native_frames", "ruby_frames"))
        rows.append(Row(group, f"{name}: unwind", "ns", column(results, key, "unwind_ns"), at_most=100,
                        of_limit="value", note=f"{native:.1f} native frames a sample"))
        rows.append(Row(group, f"{name}: decode", "ns", column(results, key, "decode_ns"), at_most=50,
                        of_limit="value", note=f"{ruby:.1f} control frames a sample"))
        if live:
            rows.append(Row(group, f"{name}: a sample in all", "us", column(results, key, "us_per_sample")))
    bench.raw["decode"] = results
    return rows


def cost_rounds(bench, label, targets, plan):
    """plan: list of (key, target name, sampler, rate), one measurement each, in this order in every round."""
    results = {key: [] for key, _, _, _ in plan}
    for i in range(bench.rounds):
        for key, target, name, rate in plan:
            if name == "rbspy" and not bench.samplers.rbspy:
                continue
            results[key].append(bench.measure(f"{label}, round {i + 1}", name, targets[target], rate))
    bench.raw[label] = {str(k): v for k, v in results.items()}
    return results


def cpu_rows(group, results, other, limits, key=lambda name: name, rate=RATE):
    """Rows of sampler CPU for -n off and -n leaf beside another sampler."""
    rows = []
    for mode, limit in limits:
        if results.get(key(other)):
            rows.append(Row(group, f"sampler CPU, -n {mode}", "% of a core", column(results, key(mode), "cpu_percent"),
                            column(results, key(other), "cpu_percent"), other, limit,
                            note=", ".join(f"{1e4 * Row.median(column(results, key(k), 'cpu_percent')) / rate:.0f} us"
                                           for k in (mode, other)) + " a tick"))
    return rows


def where_rows(group, results, mode):
    return [
        Row(group, f"  of it, -n {mode}: tracers", "% of a core", column(results, mode, "other_threads_percent")),
        Row(group, f"  of it, -n {mode}: decoder and upkeep", "% of a core",
            column(results, mode, "main_thread_percent")),
    ]


def speed_rows(group, results, limit, names, base=("none", "none2")):
    """Iterations a second of the target, sampled and (the mean of the round's two) unsampled."""
    rows = []
    idle = [sum(v) / len(v) for v in zip(*(column(results, b, "speed") for b in base))]
    for key, title in names:
        if results.get(key):
            rows.append(Row(group, f"target's speed, {title}", "M/s", [v / 1e6 for v in column(results, key, "speed")],
                            [v / 1e6 for v in idle], "unsampled", limit if "rbspy" not in title else None, "loss"))
    return rows


def cost(bench):
    """Sampler CPU and the target's speed at 99 Hz, 35 and 200 plain Ruby frames and the nested program."""
    rows = []
    for shape, frames, limits in (("plain", 35, (1 / 11, 1 / 9)), ("nested", 35, (None, None)),
                                  ("plain", 200, (1 / 35, 1 / 35))):
        label = f"{shape} {frames}"
        target = Target("3.1", shape, frames)
        try:
            plan = [("none", "t", "none", RATE), ("bare", "t", "bare", RATE), ("off", "t", "off", RATE),
                    ("rbspy", "t", "rbspy", RATE), ("none2", "t", "none", RATE), ("leaf", "t", "leaf", RATE)]
            results = cost_rounds(bench, f"cost {label}", {"t": target}, plan)
        finally:
            target.stop()
        group = f"99 Hz, one busy thread, {frames} {'plain Ruby' if shape == 'plain' else 'Ruby and 79 native'} frames, 3.1"
        rows += cpu_rows(group, results, "bare", [("off", 1.4 if frames == 35 else None),
                                                  ("leaf", 1.7 if frames == 35 else None)])
        rows += cpu_rows(group, results, "rbspy", [("off", limits[0]), ("leaf", limits[1])])
        rows += where_rows(group, results, "off") + where_rows(group, results, "leaf")
        rows += speed_rows(group, results, 1, [("off", "-n off"), ("leaf", "-n leaf"), ("rbspy", "rbspy")])
    return rows


def speed(bench):
    """The target's loss at 1000 Hz."""
    target = Target("3.1", "plain", 35)
    try:
        plan = [("none", "t", "none", 1000), ("leaf", "t", "leaf", 1000), ("rbspy", "t", "rbspy", 1000),
                ("none2", "t", "none", 1000), ("off", "t", "off", 1000)]
        results = cost_rounds(bench, "speed 1000", {"t": target}, plan)
    finally:
        target.stop()
    group = "1000 Hz, one busy thread, 35 plain Ruby frames, 3.1"
    rows = speed_rows(group, results, 5, [("off", "-n off"), ("leaf", "-n leaf"), ("rbspy", "rbspy")])
    rows += cpu_rows(group, results, "rbspy", [("off", None), ("leaf", None)], rate=1000)
    return rows


def attach(bench):
    """From the start of the command to its end after one sample."""
    rows, results = [], {}
    group = "attach, the whole command for one sample"
    targets = {}
    for version in ("3.3", "3.1"):
        try:
            targets[version] = Target(version, "plain", 35)
        except Failed as e:
            bench.skip(f"attach {version}", str(e))
    try:
        for i in range(bench.rounds):
            for version, target in targets.items():
                plan = [("record", lambda t=target: wall_ms([RBSAMPLE, "record", "-q", "-p", str(t.pid), "--count", "1",
                                                             "-f", "folded", "-o", os.devnull])),
                        ("first", lambda t=target: run_json([tool("live"), t.pid, RATE, 0, 0.1, "leaf"])["first_ms"])]
                if version == "3.1" and bench.samplers.rbspy:
                    plan.append(("rbspy", lambda t=target: wall_ms([bench.samplers.rbspy, "snapshot", "--pid",
                                                                    str(t.pid)])))
                for name, call in plan:
                    results.setdefault((version, name), []).append(
                        bench.once(f"attach, round {i + 1}: {version}, {name}", target,
                                   lambda call=call: table.Row.median([call() for _ in range(ATTACHES)])))
    finally:
        for target in targets.values():
            target.stop()
    for version in targets:
        rows.append(Row(group, f"record --count 1, Ruby {version}", "ms", results[(version, "record")],
                        results.get((version, "rbspy"), ()), "rbspy snapshot", 50 if version == "3.3" else None,
                        "value" if version == "3.3" else "ratio"))
        rows.append(Row(group, f"  of it, until the first sample is decoded, Ruby {version}", "ms",
                        results[(version, "first")], note="a tick is up to 20 ms away"))
    bench.raw["attach"] = {" ".join(k): v for k, v in results.items()}
    return rows


def wall_ms(argv):
    start = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    took = time.monotonic() - start
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(argv[0])}: {done.stderr.strip()[-300:]}")
    return 1e3 * took


def sleepers(bench):
    """Threads that sleep beside the busy one."""
    rows, targets, plan = [], {}, []
    try:
        for n in (0, 100, 500):
            targets[n] = Target("3.1", "plain", 35, n)
            plan += [((n, name), n, sampler, RATE) for name, sampler in
                     (("none", "none"), ("off", "off"), ("leaf", "leaf"), ("none2", "none"), ("rbspy", "rbspy"))]
        results = cost_rounds(bench, "sleepers", targets, plan)
    finally:
        for target in targets.values():
            target.stop()
    for n in (100, 500):
        group = f"99 Hz, one busy thread beside {n} sleeping ones, 35 plain Ruby frames, 3.1"
        for mode in ("off", "leaf"):
            here, without = (results[(k, mode)] for k in (n, 0))
            more = [(a["cpu_percent"] - b["cpu_percent"]) * 1e4 / RATE for a, b in zip(here, without)]
            rows.append(Row(group, f"sampler CPU, -n {mode}", "% of a core", column(results, (n, mode), "cpu_percent"),
                            column(results, (0, mode), "cpu_percent"), "no sleepers"))
            rows.append(Row(group, f"  more a tick, -n {mode}", "us", more, at_most=50 if n == 500 else None,
                            of_limit="value"))
            rows.append(Row(group, f"  stops a tick, -n {mode}", "", [r["stops"] / r["ticks"] for r in here],
                            [r["stops"] / r["ticks"] for r in without], "no sleepers", 1.01 if n == 500 else None))
            rows.append(Row(group, f"  lost or late, -n {mode}", "%",
                            [100 * (r["late"] + r["lost"]) / r["due"] for r in here]))
        rows += cpu_rows(group, results, "rbspy", [("off", None), ("leaf", None)], lambda name, n=n: (n, name))
        if results[(n, "rbspy")]:
            rows.append(Row(group, "  samples that rbspy lost", "%",
                            [100 * (1 - r["samples"] / r["wanted"]) for r in results[(n, "rbspy")]]))
        rows += speed_rows(group, results, 1, [((n, "off"), "-n off"), ((n, "leaf"), "-n leaf"), ((n, "rbspy"), "rbspy")],
                           ((n, "none"), (n, "none2")))
    return rows


GROUPS = {"stop": stop, "decode": decode, "cost": cost, "speed": speed, "attach": attach, "sleepers": sleepers}
