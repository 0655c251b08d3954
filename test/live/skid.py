# rubies: 2.7 3.1 3.3 3.4
# ci: 3.3
# timeout: 900
"""No skid: where compute alternates with system calls or page faults, shares are those of the program's own thread clock."""
import itertools

import harness

SAMPLES = 5000
KINDS = ("stat", "fault")
PERIODS_US = (25, 90)
THREADS = (1, 5)
# Points by which five threads may be off beyond what is asked for, unless --full is given: they are not there yet. A
# tick that comes 10-40 us late, as in virtual machines, misses what a thread does on its way to sleep.
GAP = {1: 0, 5: 8}
# (name, rbsample's options, whether target and sampler run as nobody, points allowed)
USERS = (
    ("root", (), False, 2),
    ("nobody", ("--no-realtime",), True, 4),
)


def run(test, kind, period, threads, user):
    name, options, nobody, points = user
    what = f"{kind}, {period} us, {threads} thread{'s' if threads > 1 else ''}, {name}"
    if test.args.only not in what:
        return
    program = test.start("skid.rb", kind, period, threads, nobody=nobody)
    program.wait_totals(4)
    r = test.record(program.pid, "-r", 997, "--count", SAMPLES if test.full else 2000, "-d", 60, *options,
                    nobody=nobody)
    stated = program.totals_between(r.start, r.end)
    program.close()
    stacks = r.folded()
    n = sum(s.count for s in stacks)
    for method in ("Skid#compute", f"Skid#{kind}"):
        true = stated[method] / stated["total"]
        got = harness.share(stacks, lambda s, m=method: m in s.labels())
        allowed = test.tolerance(points, true, n, SAMPLES) + (0 if test.full else GAP[threads])
        test.check(abs(got - true) * 100 <= allowed,
                   f"{what}: {method} {100 * got:.1f} % of {n} samples, its own clock says {100 * true:.1f} % "
                   f"(off {100 * (got - true):+.1f}, allowed {allowed:.1f})")
    # What the program says of its own statement: its parts must add up to its clock, else it knows nothing.
    parts = stated["Skid#compute"] + stated[f"Skid#{kind}"] + stated["rest"]
    sure = parts / stated["total"] - 1
    test.note(f"{what}: a round takes {stated['total'] / stated['rounds'] / 1000:.1f} us, its parts add up to its clock "
              f"{100 * sure:+.2f} %, between them {100 * stated['rest'] / stated['total']:.1f} %; "
              f"{r.summary()['exact']:.0f} % exact")
    test.check(abs(sure) < 0.02, f"{what}: the program's own account is off by {100 * sure:+.2f} %")


def body(test):
    harness.need_root()
    for case in itertools.product(KINDS, PERIODS_US, THREADS, USERS):
        test.measured(str(case[:3]), lambda t, c=case: run(t, *c))


if __name__ == "__main__":
    harness.main(body)
