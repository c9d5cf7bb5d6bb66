"""The view `tokens` of bench_tables.py: records of engines/ggml/bench.py, llama-bench with the backend beside stock."""

import bench_records

LEVELS = {"fast": "FAST", "exact": "EXACT"}


def table(name, filters, markdown, root):
    record = bench_records.read(bench_records.path_of(name, root))
    bench_records.check_run(record, root)
    cases = [case for case in record["cases"] if bench_records.fits(case, filters)]
    if not cases:
        raise bench_records.Refused("no case is left")
    sides = [side for side in LEVELS if all(f"{side}_wall_ms" in case for case in cases)]

    def row(case):
        by_clock = [[f"{1000 / case[f'ggml_{clock}_ms']:.1f}",
                     *(f"{1000 / case[f'{side}_{clock}_ms']:.1f} ({case[f'ggml_{clock}_ms'] / case[f'{side}_{clock}_ms']:.2f}x)"
                       for side in sides)] for clock in ("wall", "cpu")]
        return [case["type"].upper(), case["test"], str(case["threads"]), *by_clock[0], *by_clock[1]]

    head = ["weights", "test", "threads", "stock", *(LEVELS[side] for side in sides),
            "stock, by CPU time", *(f"{LEVELS[side]}, by CPU time" for side in sides)]
    model = record["model"]
    return (f"{markdown(head, [row(case) for case in cases])}\n\nTokens a second, and how many times stock's. {record['device']}"
            f"{', ' + record['note'] if record['note'] else ''}; commit `{record['commit']}`, {record['date'][:10]}; ggml "
            f"{record['ggml']}; {model['layers']} layers, {model['width']} wide, {model['inner']} inside, {model['words']} words; "
            f"{record['time']}")
