"""The score of drawn cases (the suites drawn and layers): how many times as fast as cuBLAS fp16, for each band of rows
and each width of X, usual kinds of weights and others apart; and the worst cases."""

import bench_bars

BANDS = ((1, 16), (17, 64), (65, 256), (257, 1024), (1025, 8192))
FLOOR, WORST = 0.90, 20
WIDE = ("f16", "bf16", "f32")


def bands(cases):
    """Rows (band, X, count, mean, worst, below FLOOR) of the bands that have cases."""
    rows = []
    for wide in (True, False):
        for least, most in BANDS:
            ratios = [c["ratio"] for c in cases if least <= c["m"] <= most and (c["x"] in WIDE) == wide]
            if ratios:
                rows.append([f"{least} to {most}", "16-bit" if wide else "8-bit", str(len(ratios)),
                             f"{bench_bars.mean(ratios):.3f}", f"{min(ratios):.3f}",
                             str(sum(r < FLOOR for r in ratios))])
    return rows


def worst(cases):
    return [[f"{c['ratio']:.3f}", f"`{c['name']}`", f"`{c['kernel']}`", c.get("plan", "")]
            for c in sorted(cases, key=lambda c: c["ratio"])[:WORST]]


def score(cases, markdown):
    """The text; `markdown` makes a table of a head and rows."""
    drawn = [c for c in cases if c.get("draw") and c["ratio"] is not None]
    text = []
    for use in ("usual", "other"):
        if own := [c for c in drawn if c["use"] == use]:
            head = ["M", "X", "cases", "mean", "worst", f"below {FLOOR:.2f}"]
            text.append(f"{use} kinds of weights, times as fast as cuBLAS fp16:\n\n{markdown(head, bands(own))}")
    text.append(f"The worst:\n\n{markdown(['ratio', 'case', 'kernel', 'plan'], worst(drawn))}")
    return "\n\n".join(text)


def selftest(case, markdown):
    cases = [{**case, "draw": i + 1, "use": use, "m": m, "x": x, "ratio": ratio, "plan": "split-K 2"}
             for i, (use, m, x, ratio) in enumerate((("usual", 16, "f16", 2.0), ("usual", 1, "bf16", 0.5),
                                                     ("usual", 17, "i8", 3.0), ("other", 8192, "f16", 0.25)))]
    text = score([*cases, {**case, "ratio": 0.1}, {**cases[0], "ratio": None}], markdown)
    assert "| 1 to 16 | 16-bit | 2 | 1.000 | 0.500 | 1 |" in text, text
    assert "| 17 to 64 | 8-bit | 1 | 3.000 | 3.000 | 0 |" in text and "| 1025 to 8192 | 16-bit | 1 |" in text, text
    assert text.index("usual kinds") < text.index("other kinds") and "0.100" not in text, text
    assert text.index("| 0.250 |") < text.index("| 0.500 | `") and "split-K 2" in text, text
