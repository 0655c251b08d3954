#!/usr/bin/env python3
"""Installs a build into a folder, and builds and runs a program against what is there: by pkg-config, statically, by CMake."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(rbsample REQUIRED)
add_executable(consumer {source})
target_link_libraries(consumer rbsample::rbsample)
"""


def run(*command, env=None):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(c) for c in command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(what)


def ran(program, env=None):
    out = run(program, env=env)
    expect(out == "Foo#bar 1\n" or out.startswith("Foo#bar"), f"{program} printed {out!r}")


p = argparse.ArgumentParser()
for name in ("--cmake", "--cc", "--build"):
    p.add_argument(name, required=True)
args = p.parse_args()

with tempfile.TemporaryDirectory() as tmp:
    prefix = pathlib.Path(tmp) / "prefix"
    run(args.cmake, "--install", args.build, "--prefix", prefix)
    pc_dirs = [f.parent for f in prefix.rglob("rbsample.pc")]
    expect(len(pc_dirs) == 1, "rbsample.pc is not installed")
    lib = pc_dirs[0].parent
    env = {"PKG_CONFIG_PATH": str(pc_dirs[0])}
    define = f"--define-variable=prefix={prefix}"

    shared = pathlib.Path(tmp) / "shared"
    flags = run("pkg-config", define, "--cflags", "--libs", "rbsample", env=env).split()
    run(args.cc, "-std=c11", "-Wall", "-Werror", here / "consumer.c", "-o", shared, *flags)
    ran(shared, {"LD_LIBRARY_PATH": str(lib)})
    expect("librbsample.so.0" in run("readelf", "-d", shared), "the program does not need librbsample.so.0")

    static = pathlib.Path(tmp) / "static"
    flags = run("pkg-config", define, "--static", "--cflags", "--libs", "rbsample", env=env).split()
    flags = ["-l:librbsample.a" if f == "-lrbsample" else f for f in flags]
    run(args.cc, "-std=c11", "-Wall", "-Werror", here / "consumer.c", "-o", static, *flags)
    ran(static)
    expect("librbsample" not in run("readelf", "-d", static), "the static program needs librbsample.so")

    project = pathlib.Path(tmp) / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT.format(source=here / "consumer.c"))
    run(args.cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={args.cc}")
    run(args.cmake, "--build", project / "build")
    ran(project / "build/consumer", {"LD_LIBRARY_PATH": str(lib)})

    expect(run(prefix / "bin/rbsample", "--version").startswith("rbsample "), "rbsample --version does not say its name")
    pages = {f.name for f in prefix.rglob("*.[1-9]") if "man" in f.parent.name}
    wanted = {f.name for f in (root / "doc/man").glob("*.[1-9]")}
    expect(pages == wanted and "rbsample.1" in pages, f"man pages installed: {sorted(pages)}, in doc/man: {sorted(wanted)}")
