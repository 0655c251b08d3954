#!/usr/bin/env python3
"""Runs the commands that README.md shows: each line of its ```sh blocks that begins with rbsample."""
# rubies: 3.1
# timeout: 180
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

root = pathlib.Path(__file__).resolve().parent.parent.parent
FLAMEGRAPH = pathlib.Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")


def commands(text):
    """The commands of a page, lines that end in a backslash joined."""
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"^\$ ", "", line.strip())
            if re.match(r"(sudo )?rbsample ", line):
                yield line.removeprefix("sudo ")


def runnable(line, pid):
    """The same command for our process, and for one second where it says how long."""
    line = re.sub(r"(-p |--pid[ =])(\$?PID\b|[0-9]+|\$\([^)]*\)|\"\$\([^)]*\)\")", rf"\g<1>{pid}", line)
    return re.sub(r"(-d |--duration[ =])[0-9.]+(m?s|m|h)?\b", r"\g<1>1s", line)


def wait_for_line(process):
    line = process.stdout.readline()
    if not line.startswith("shop:"):
        sys.exit(f"examples/shop.rb said {line!r}")


def run_all(lines, pid, tools, work):
    """Run every command; returns how many failed: a status other than 0, or nothing written."""
    failed = 0
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    for line in lines:
        command = runnable(line, pid)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=work, env=env, timeout=60, capture_output=True)
        written = [f for f in work.iterdir() if f.name != "app.rb"]
        if done.returncode != 0 or (not done.stdout and not any(f.stat().st_size for f in written)):
            failed += 1
            print(f"{line}\n  ran as {command}\n  status {done.returncode}, {len(done.stdout)} bytes on stdout, files: "
                  f"{sorted(f.name for f in written)}\n  {done.stderr.decode(errors='replace').strip()}")
        for f in written:
            f.unlink()
    return failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ruby", default="3.1")
    p.add_argument("--rbsample", required=True)
    args = p.parse_args()

    lines = list(commands((root / "README.md").read_text()))
    if not lines:
        sys.exit("README.md shows no rbsample command in an sh block")
    if args.ruby not in subprocess.run(["ruby", "-v"], capture_output=True, text=True).stdout:
        print(f"the system's own ruby is not {args.ruby}")
        sys.exit(77)

    with tempfile.TemporaryDirectory() as tmp:
        tools, work = pathlib.Path(tmp) / "bin", pathlib.Path(tmp) / "work"
        tools.mkdir()
        work.mkdir()
        (tools / "rbsample").symlink_to(pathlib.Path(args.rbsample).resolve())
        if not shutil.which("flamegraph.pl"):
            (tools / "flamegraph.pl").symlink_to(FLAMEGRAPH)
        (work / "app.rb").write_text("t = Time.now\nx = 0\nx += 1 while Time.now - t < 2\n")
        shop = subprocess.Popen(["ruby", str(root / "examples/shop.rb")], stdout=subprocess.PIPE, text=True)
        try:
            wait_for_line(shop)
            failed = run_all(lines, shop.pid, tools, work)
        finally:
            shop.kill()
            shop.wait()
    print(f"{len(lines)} commands, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
