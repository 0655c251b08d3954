"""Rows of the bench's table: what was measured in every round, both sides of a ratio, and what it must not exceed."""
import statistics

LEAST_ROUNDS = 5


def number(value, unit):
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f} {unit}".strip()


class Row:
    """One line. `ours` and `other` hold one value a round, in the order of the rounds (None: that round has none)."""

    def __init__(self, group, name, unit, ours, other=(), other_name="", at_most=None, of_limit="ratio", note=""):
        self.group, self.name, self.unit, self.note = group, name, unit, note
        self.ours, self.other, self.other_name = list(ours), list(other), other_name
        self.at_most = at_most  # a number: of the ratio, of our value or of our loss against the other, see of_limit
        self.of_limit = of_limit  # "ratio" | "value" | "loss" (percent)

    @staticmethod
    def median(values):
        there = [v for v in values if v is not None]
        return statistics.median(there) if there else None

    def pairs(self):
        return [(a, b) for a, b in zip(self.ours, self.other) if a is not None and b]

    def rounds(self):
        return len(self.pairs()) if self.other else len([v for v in self.ours if v is not None])

    def ratio(self):
        """The median of the rounds' own ratios; None from too few rounds."""
        ratios = [a / b for a, b in self.pairs()]
        return statistics.median(ratios) if len(ratios) >= LEAST_ROUNDS else None

    def loss(self):
        ratio = self.ratio()
        return None if ratio is None else 100 * (1 - ratio)

    def spread(self):
        """Percent between the fastest and the slowest round of the other side."""
        there = [v for v in self.other if v]
        return 100 * (max(there) - min(there)) / statistics.median(there) if there else 0

    def verdict(self):
        if self.at_most is None:
            return ""
        value = {"ratio": self.ratio(), "value": self.median(self.ours), "loss": self.loss()}[self.of_limit]
        if value is None or self.rounds() < LEAST_ROUNDS:
            return "too few rounds"
        if value <= self.at_most:
            return "met"
        if self.of_limit == "loss" and value <= self.spread():
            return "met: within the spread of the other side"
        return "MISSED"

    def cells(self):
        ratio = ""
        if self.other:
            if self.ratio() is None:
                ratio = f"from {self.rounds()} rounds: none"
            elif self.of_limit == "loss":
                ratio = f"{-self.loss():+.1f} %"
            elif self.ratio() < 0.2:
                ratio = f"1/{1 / self.ratio():.1f}" if self.ratio() > 0 else "0"
            else:
                ratio = f"{self.ratio():.2f} x"
        limit = ""
        if self.at_most is not None:
            limit = {
                "ratio": f"1/{1 / self.at_most:.0f}" if self.at_most < 0.2 else f"{self.at_most:g} x",
                "value": f"{self.at_most:g} {self.unit}",
                "loss": f"-{self.at_most:g} %",
            }[self.of_limit]
        other = f"{number(self.median(self.other), self.unit)} ({self.other_name})" if self.other else ""
        return [self.name, number(self.median(self.ours), self.unit), other, ratio, limit, self.verdict(), self.note]

    def document(self):
        return {
            "group": self.group, "name": self.name, "unit": self.unit, "rounds": self.rounds(), "note": self.note,
            "ours": self.ours, "ours_median": self.median(self.ours),
            "other": self.other, "other_name": self.other_name or None, "other_median": self.median(self.other),
            "ratio": self.ratio() if self.other else None, "at_most": self.at_most,
            "of_limit": self.of_limit if self.at_most is not None else None, "verdict": self.verdict() or None,
        }


HEAD = ["what", "ours", "beside it", "ratio", "at most", "verdict", ""]


def text(rows):
    """The table, a heading before each group."""
    cells = [HEAD] + [r.cells() for r in rows]
    width = [max(len(c[i]) for c in cells) for i in range(len(HEAD))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(HEAD, width)).rstrip()]
    group = None
    for row, cell in zip(rows, cells[1:]):
        if row.group != group:
            group = row.group
            lines.append(f"-- {group}")
        lines.append("  ".join(c.ljust(w) for c, w in zip(cell, width)).rstrip())
    return "\n".join(lines)
