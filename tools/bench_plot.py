#!/usr/bin/env python3
"""Plots of recorded times as SVG that reads on light and dark pages.

    bench_plot.py eff-bits NAME OUT.svg [field=pattern ...]    eff = limit / time against the bits of a weight, a line a
                                                               matrix, M and kind of weights; of several types of a
                                                               width the one with the least eff
    bench_plot.py time-m NAME OUT.svg [field=pattern ...]      time against M, a line a matrix and type of weights, and
                                                               the baseline dashed

NAME is a record, bench/results/NAME.json; patterns select cases as in bench_tables.py. Cases that may not be shown are
left out, named on stderr, and make the exit code 1."""

import math
import sys
from xml.sax.saxutils import escape

sys.dont_write_bytecode = True
import bench_records  # noqa: E402

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 64, 230, 40, 56
INK = "#808080"  # reads on white and on black
COLORS = ["#3b82c4", "#e08214", "#2ca25f", "#c0559b", "#8f8f2f", "#d6604d", "#3aa6a6", "#8a6fd1"]


class Axis:
    """Numbers to pixels, and where the ticks are."""

    def __init__(self, values, pixels, log, ticks=None):
        self.log, self.pixels = log, pixels
        self.ticks = ticks or self.nice(min(values), max(values))
        self.low, self.high = (self.scale(t) for t in (self.ticks[0], self.ticks[-1]))

    def scale(self, value):
        return math.log10(value) if self.log else value

    def nice(self, low, high):
        """1, 2 and 5 times powers of ten around the values; only the powers if there are many."""
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if len(exponents) <= 4 else (1,)
        all_ticks = [s * 10.0 ** e for e in exponents for s in steps]
        first = max((t for t in all_ticks if t <= low), default=all_ticks[0])
        last = min((t for t in all_ticks if t >= high), default=all_ticks[-1])
        return [t for t in all_ticks if first <= t <= last] if first < last else [first, first * 10]

    def at(self, value):
        share = (self.scale(value) - self.low) / ((self.high - self.low) or 1)
        return self.pixels[0] + share * (self.pixels[1] - self.pixels[0])


def text(x, y, words, anchor="middle", size=12, color=INK, turn=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{color}"{turn}>'
            f"{escape(words)}</text>")


def line(x1, y1, x2, y2, width=1, opacity=0.35):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{INK}" stroke-width="{width}" '
            f'stroke-opacity="{opacity}"/>')


def spread(wanted, least, gap):
    """Heights for labels, in order, at least gap apart, near the wanted ones."""
    heights = []
    for y in wanted:
        heights.append(max(y, heights[-1] + gap if heights else least))
    return heights


def svg(title, x_label, y_label, x, y, series):
    """series: (label, [(x, y)], dashed); labels stand at the right, at the height of the line's end."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="system-ui, sans-serif">', f"<title>{escape(title)}</title>",
           text(LEFT, 22, title, "start", 13)]
    for t in x.ticks:
        out += [line(x.at(t), TOP, x.at(t), bottom), text(x.at(t), bottom + 18, f"{t:g}")]
    for t in y.ticks:
        out += [line(LEFT, y.at(t), right, y.at(t)), text(LEFT - 8, y.at(t) + 4, f"{t:g}", "end")]
    out += [line(LEFT, bottom, right, bottom, 1.5, 1), line(LEFT, TOP, LEFT, bottom, 1.5, 1),
            text((LEFT + right) / 2, HEIGHT - 16, x_label),
            text(18, (TOP + bottom) / 2, y_label, turn=f' transform="rotate(-90 18 {(TOP + bottom) / 2:.1f})"')]
    series = sorted(series, key=lambda s: y.at(s[1][-1][1]))
    heights = spread([y.at(points[-1][1]) for _, points, _ in series], TOP, 15)
    up = max(0, heights[-1] - bottom)  # labels that ran out below move up together
    for i, ((label, points, dashed), height) in enumerate(zip(series, heights)):
        color = COLORS[i % len(COLORS)]
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        out += [f'<circle cx="{x.at(a):.1f}" cy="{y.at(b):.1f}" r="3" fill="{color}"/>' for a, b in points]
        out.append(line(x.at(points[-1][0]) + 5, y.at(points[-1][1]), right + 12, height - up))
        out.append(text(right + 16, height - up + 4, label, "start", color=color))
    return "\n".join(out + ["</svg>", ""])


def grouped(cases, label, point):
    """{label: sorted points}."""
    groups = {}
    for c in cases:
        if None not in point(c):
            groups.setdefault(label(c), set()).add(point(c))
    return {name: sorted(points) for name, points in groups.items()}


def eff_bits(record, cases):
    several = len({c["kind"] for c in cases}) > 1
    lines = grouped(cases, lambda c: f"{c['n']} x {c['k']}, M = {c['m']}" + (f", {c['kind']}" if several else ""),
                    lambda c: (c["bits"], c["eff"]))
    if not lines:
        raise bench_records.Refused("no case has a limit")
    least = {name: sorted(dict(sorted(points, reverse=True)).items()) for name, points in lines.items()}
    bits = sorted({b for points in least.values() for b, _ in points})
    x = Axis(bits, (LEFT + 12, WIDTH - RIGHT - 12), False, list(range(bits[0], bits[-1] + 1)))
    top = max(1.0, max(e for points in least.values() for _, e in points))
    y = Axis([0, top], (HEIGHT - BOTTOM, TOP), False, [i / 5 for i in range(math.ceil(top * 5) + 1)])
    return svg(record["device"] + ", " + record["suite"], "bits of a weight", "limit / time", x, y,
               [(name, points, False) for name, points in least.items()])


def time_m(record, cases):
    lines = grouped(cases, lambda c: f"{c['n']} x {c['k']} {c['weights']}", lambda c: (c["m"], c["us"]))
    baseline = grouped((c for c in cases if c["baseline"]),
                       lambda c: f"{c['n']} x {c['k']} {c['baseline']}", lambda c: (c["m"], c["baseline_us"]))
    series = [(n, p, False) for n, p in lines.items()] + [(n, p, True) for n, p in baseline.items()]
    rows = sorted({m for _, points, _ in series for m, _ in points})
    times = [us for _, points, _ in series for _, us in points]
    x = Axis(rows, (LEFT + 12, WIDTH - RIGHT - 12), True, rows if len(rows) > 1 else rows + [rows[0] * 2])
    y = Axis(times, (HEIGHT - BOTTOM, TOP), True)
    return svg(record["device"] + ", " + record["suite"], "M, rows of activations", "microseconds", x, y, series)


PLOTS = {"eff-bits": eff_bits, "time-m": time_m}


def draw(plot, name, filters, root=bench_records.ROOT):
    """(SVG, reasons why some cases may not be shown)."""
    if plot not in PLOTS:
        raise bench_records.Refused(f"'{plot}' is no plot")
    cases, reasons, records = bench_records.load(name, filters, root)
    if not cases:
        raise bench_records.Refused("no case is left")
    return PLOTS[plot](records[0], cases), reasons


def main(plot, name, out, *selection):
    try:
        picture, reasons = draw(plot, name, dict(s.split("=", 1) for s in selection))
    except bench_records.Refused as error:
        sys.exit(f"{name}: {error}")
    for reason in reasons:
        print(reason, file=sys.stderr)
    with open(out, "w", encoding="utf-8") as f:
        f.write(picture)
    return int(bool(reasons))


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in PLOTS or not all("=" in s for s in sys.argv[4:]):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
