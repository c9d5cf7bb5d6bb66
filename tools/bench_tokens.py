"""The view `tokens` of bench_tables.py: records of engines/ggml/bench.py, llama-bench with the backend beside stock."""

import bench_records

SIDES = {"fast": "FAST", "exact": "EXACT", "guest": "FAST, patched ggml-cuda"}
CLOCKS = {"wall": "", "cpu": ", by CPU time"}


def table(name, filters, markdown, root):
    record = bench_records.read(bench_records.path_of(name, root))
    bench_records.check_run(record, root)
    cases = [case for case in record["cases"] if bench_records.fits(case, filters)]
    if not cases:
        raise bench_records.Refused("no case is left")
    sides = [side for side in SIDES if all(f"{side}_wall_ms" in case for case in cases)]
    clocks = [clock for clock in CLOCKS if all(f"ggml_{clock}_ms" in case for case in cases)]

    def row(case):
        cells = [case["type"].upper(), case["test"], str(case["threads"])]
        for clock in clocks:
            stock = case[f"ggml_{clock}_ms"]
            cells.append(f"{1000 / stock:.1f}")
            cells += [f"{1000 / case[f'{side}_{clock}_ms']:.1f} ({stock / case[f'{side}_{clock}_ms']:.2f}x)" for side in sides]
        return cells

    head = ["weights", "test", "threads"]
    for clock in clocks:
        head += [f"stock{CLOCKS[clock]}", *(f"{SIDES[side]}{CLOCKS[clock]}" for side in sides)]
    model = record["model"]
    cuts = [f"{SIDES.get(side, 'stock')} {count}" for side, count in record.get("pieces", {}).items()]
    pieces = f"; pieces of the graph: {', '.join(cuts)}" if cuts else ""
    return (f"{markdown(head, [row(case) for case in cases])}\n\nTokens a second, and how many times stock's. {record['device']}"
            f"{', ' + record['note'] if record['note'] else ''}; commit `{record['commit']}`, {record['date'][:10]}; ggml "
            f"{record['ggml']}; {model['layers']} layers, {model['width']} wide, {model['inner']} inside, {model['words']} words; "
            f"{record['time']}{pieces}")
