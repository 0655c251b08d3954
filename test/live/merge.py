# rubies: 2.7 3.1 3.3 3.4
# timeout: 900
"""Merge: native and Ruby frames of nested C and Ruby calls, against gdb's unwinder and the program's own statement."""
import os
import shutil
import signal
import subprocess
import tempfile
import time

import harness
from harness import Failed, Skip

PROGRAMS = ("sort_by", "json", "comparable", "enumerator", "fiber", "define_method")
IN_FIBER = ("enumerator", "fiber")

WALK = """
import gdb
frame = gdb.newest_frame()
while frame is not None:
    if frame.type() != gdb.INLINE_FRAME:
        print("pc", frame.pc(), frame.name() or "")
    frame = frame.older()
print("end")
"""


def gdb_walk(test, pid, script):
    """(program counter, name) of the main thread by gdb, innermost first, without inlined frames."""
    argv = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
            "-iex", f"set sysroot {test.ruby.root}", "-iex", "set backtrace past-main on",
            "-iex", "set backtrace past-entry on", os.readlink(f"/proc/{pid}/exe"), "-p", str(pid), "-x", script]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    lines = r.stdout.splitlines()
    walked = [(int(l.split(" ")[1]), l.split(" ", 2)[2]) for l in lines if l.startswith("pc ")]
    if "end" not in lines or not walked:
        raise Failed(f"gdb could not walk the stack: {r.stderr[-400:]}")
    pcs = [pc for pc, _ in walked]
    return walked[:pcs.index(0)] if 0 in pcs else walked  # below a fiber's first frame gdb invents one at 0


def begins_run(test, frames, i):
    """Whether C code called this Ruby frame, so that an rb_vm_exec of its own carries it (from what the program states)."""
    if i + 1 == len(frames) or frames[i + 1]["kind"] == "cfunc":
        return True
    # Before 3.3 the body of a define_method is run by an rb_vm_exec of its own even when Ruby calls it.
    return frames[i]["name"] == "block in <class:Defined>" and test.args.ruby in ("2.7", "3.1")


def same_ruby(test, name, ruby, stated):
    got = [(f["name"], f["path"], f["line"] or 0) for f in ruby]
    want = [(label, path, line) for label, path, line in stated]
    return test.quiet(got == want, f"{name}: Ruby frames\n#   stated {want}\n#   dumped {got}")


def same_native(test, name, dumped, walked, vm_exec):
    """Equal to gdb's; in a fiber only as far as its first frame."""
    if name in IN_FIBER:
        n = max((i for i, (pc, _) in enumerate(walked) if pc == vm_exec), default=0) + 1
        ok = dumped[:n] == [pc for pc, _ in walked[:n]] and abs(len(dumped) - len(walked)) <= 3
    else:
        ok = dumped == [pc for pc, _ in walked]
    return test.quiet(ok, f"{name}: native frames\n#   gdb    {[hex(pc) for pc, _ in walked]}\n"
                          f"#   dumped {[hex(a) for a in dumped]}")


def runs_lie_right(test, name, frames, walked):
    """Directly under the oldest frame of each run, and nowhere else, lies the rb_vm_exec that carries it."""
    ruby = [f for f in frames if f["kind"] in ("ruby", "cfunc")]
    firsts = {id(ruby[i]) for i in range(len(ruby)) if ruby[i]["kind"] == "ruby" and begins_run(test, ruby, i)}
    under = [below for above, below in zip(frames, frames[1:]) if id(above) in firsts]
    if not test.quiet(len(under) == len(firsts) and under[0]["kind"] == "interp",
                      f"{name}: there is no frame of the interpreter under each of {len(firsts)} runs"):
        return 0
    vm_exec = under[0]["address"]
    wrong = []
    for above, below in zip(frames, frames[1:]):
        if (id(above) in firsts) != (below["kind"] == "interp" and below["address"] == vm_exec):
            wrong.append(f"{above['kind']} {above['name']} over {below['kind']} {below['name']}")
    count = sum(pc == int(vm_exec, 16) for pc, _ in walked)
    test.quiet(not wrong and count == len(firsts),
               f"{name}: {len(firsts)} runs, gdb sees {count} frames of rb_vm_exec; wrong: {wrong}")
    # That it is rb_vm_exec: by its name where the library has it, else as the oldest frame of the interpreter.
    names = {n for pc, n in walked if pc == int(vm_exec, 16)} - {""}
    oldest = [f["address"] for f in frames if f["kind"] == "interp"][-1]
    test.quiet(names == {"rb_vm_exec"} or (not names and (name in IN_FIBER or oldest == vm_exec)),
               f"{name}: under the runs lies {names or vm_exec}, the oldest frame of the interpreter is {oldest}")
    return int(vm_exec, 16)


def stopped(program):
    """Whether it stays stopped: after a detach the kernel lets it enter the stop again by itself."""
    for _ in range(1000):
        if harness.status_field(program.pid, "State").startswith("T"):
            return True
        time.sleep(0.001)
    return False


def one_stop(test, name, program, script):
    stated = program.line()["frames"]
    program.wait_cpu(1_000_000)
    time.sleep(0.002)
    program.signal(signal.SIGSTOP)
    if not stopped(program):
        raise Failed(f"{name}: SIGSTOP does not stop it")
    spent = program.cpu_ns()
    doc = test.dump(program.pid, "-n", "full", "--interp", "--labels=ruby")
    test.quiet(stopped(program) and program.cpu_ns() - spent < 1_000_000, f"{name}: the dump set it running")
    frames = [t for t in doc["threads"] if t["tid"] == program.pid][0]["frames"]
    walked = gdb_walk(test, program.pid, script)
    same_ruby(test, name, [f for f in frames if f["kind"] in ("ruby", "cfunc")], stated)
    vm_exec = runs_lie_right(test, name, frames, walked)
    dumped = [int(f["address"], 16) for f in frames if f["address"]]
    same_native(test, name, dumped, walked, vm_exec)
    program.signal(signal.SIGUSR1)
    program.signal(signal.SIGCONT)
    return len(dumped), len(stated)


def body(test):
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    times = test.count(20)
    with tempfile.TemporaryDirectory(prefix="rbsample-gdb-") as folder:
        script = os.path.join(folder, "walk.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(WALK)
        for name in PROGRAMS:
            if test.args.only not in name:
                continue
            before = test.failures
            program = test.start("merge.rb", name)
            sizes = [one_stop(test, name, program, script) for _ in range(times)]
            program.close()
            test.check(test.failures == before, f"{name}: {times} stops, {sum(s[0] for s in sizes)} native frames as gdb "
                                                f"walks them, {sum(s[1] for s in sizes)} Ruby frames as stated")


if __name__ == "__main__":
    harness.main(body)
