#!/usr/bin/env python3
"""Folded stacks with hostile names, through the real flamegraph.pl: well-formed SVG, nothing lost, nothing taken for a count."""
# rubies: 3.1 3.3
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live"))
from harness import Skip, main, parse_folded  # noqa: E402

FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
SVG = "{http://www.w3.org/2000/svg}"


def flamegraph(text, **env):
    done = subprocess.run(["perl", FLAMEGRAPH], input=text.encode(), capture_output=True, check=False, env={**os.environ, **env})
    return done.stdout, done.stderr.decode(errors="replace")


def titles(svg):
    """The words of each box: NAME (SAMPLES samples, SHARE%), with a second share where it was taken for a difference."""
    found = []
    for g in ET.fromstring(svg).iter(SVG + "g"):
        title = g.find(SVG + "title")
        if title is not None or g.get("title"):
            found.append(g.get("title") or title.text)
    return found


def check_svg(t, text, samples, what, **env):
    svg, err = flamegraph(text, **env)
    try:
        boxes = titles(svg)
    except ET.ParseError as why:
        t.check(False, f"{what}: the SVG is well-formed: {why}")
        return
    t.check("Ignored" not in err, f"{what}: no line is ignored: {err.strip()!r}")
    root = [b for b in boxes if re.match(r"^all \([\d,]+ samples, 100%\)$", b)]
    t.check(len(root) == 1 and int(re.sub(r"\D", "", root[0].split("samples")[0])) == samples,
            f"{what}: the root has all {samples} samples: {root}")
    t.check(not [b for b in boxes if re.search(r"%; [-+]?[\d.]+%\)$", b)], f"{what}: nothing is taken for a difference")


def check_lines(t, r, names, lines):
    stacks = parse_folded(r.text)
    total = sum(s.count for s in stacks)
    t.check(r.text.encode() == r.raw, "the output is UTF-8")
    t.check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", r.text), "and has no control codes")
    t.check(total == r.summary()["samples"], f"the counts add up: {total}")
    # Each leaf method stands at the same depth as the harmless one.
    leaves = [s for s in stacks if any("each_name" in f for f in s.texts) and not s.texts[-1].startswith("[gc")]
    plain = [s for s in leaves for f in s.texts if re.match(r"^Hostile#plain( - |$)", f)]
    t.check(bool(plain), "the harmless method was seen")
    if not plain:
        return
    depth = next(i for i, f in enumerate(plain[0].texts) if f.startswith("Hostile#plain"))
    methods = {s.texts[depth] for s in leaves if len(s.texts) > depth}
    seen = {m for m in methods if m.strip("[").startswith("Hostile#")}
    if lines:
        seen = {re.sub(r":\d+$", "", m) for m in seen}
    t.check(len(seen) >= names - 3, f"{len(seen)} of {names} names are told apart, lines {lines}")
    t.check(any(len(m) >= 4000 for m in methods), "the longest name is there, as far as names are read")
    for s in stacks:
        t.quiet(all(f and f == f.strip() for f in s.texts), f"no frame is empty: {s.texts!r}")
        t.quiet(not re.search(r"\s[\d.]+$", s.texts[-1]), f"no leaf ends like a count: {s.texts[-1][-80:]!r}")


def body(t):
    if not os.path.exists(FLAMEGRAPH):
        raise Skip(f"there is no {FLAMEGRAPH} (Debian package libdevel-nytprof-perl)")
    p = t.start("hostile_names.rb")
    names = p.line()["names"]
    for options in ([], ["--no-lines"], ["--no-lines", "--threads", "-n", "full"]):
        what = " ".join(options) or "with lines"
        r = t.record(p.pid, "-d", "4s", "-r", "199", *options)
        check_lines(t, r, names, not options)
        samples = sum(s.count for s in parse_folded(r.text))
        # flamegraph.pl cuts text by bytes unless perl is told that it reads UTF-8.
        check_svg(t, r.text, samples, what, PERL_UNICODE="SD")
        ascii_only = "".join(l + "\n" for l in r.text.split("\n") if l and l.isascii())
        check_svg(t, ascii_only, sum(s.count for s in parse_folded(ascii_only)), what + ", bytes")


if __name__ == "__main__":
    main(body)
