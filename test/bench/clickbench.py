#!/usr/bin/env python3
"""ClickBench's 43 queries over generated rows: Tidemark, QuestDB and DuckDB in turn, answers compared with DuckDB's.

  node build/test/bench/clickbench/main.js --rows 1000000 --out data
  clickbench.py --data data --server name=tidemark,http=127.0.0.1:9000 [--server name=questdb,http=127.0.0.1:19000]
                [--embedded duckdb] [--runs 3] [--only REGEX] [--no-load] [--out results.json]

Each query runs once to warm up, when its answer is compared, then RUNS times, the peers taking turns; the table shows the
median, its ratio to Tidemark's median (below 1 = faster), and the geometric mean of the ratios.

Answers: `equal`: the same rows in the same order as DuckDB. `ties`: the ORDER BY columns have the same values, and each row is
part of DuckDB's answer without LIMIT; the query does not define the order of ties. Fractions are compared to 9 digits.
"""
import argparse, json, math, os, re, statistics as S, time
from collections import Counter
from datetime import datetime
from decimal import Decimal
from bench import Results, fmt, guard
from peers import Embedded, Server

TYPES = {"BYTE": "TINYINT", "SHORT": "SMALLINT", "INT": "INTEGER", "LONG": "BIGINT", "TIMESTAMP": "TIMESTAMP"}
ADDRESS = "list_reduce(list_transform(string_split({0}, '.'), lambda x: x::BIGINT), lambda a, b: a * 256 + b) AS {0}"


def load_server(p, kit, path):
    columns = ", ".join(f"{c['name']} {c['type']}" for c in kit["columns"])
    p.exec("DROP TABLE IF EXISTS hits")
    p.exec(f"CREATE TABLE hits ({columns}) TIMESTAMP(EventTime) PARTITION BY DAY")
    return p.import_csv(path, "hits", "EventTime")


def load_duckdb(p, kit, path):
    """Converts addresses to numbers, because DuckDB's address type has no arithmetic."""
    columns = ", ".join(f"'{c['name']}': '{TYPES.get(c['type'], 'VARCHAR')}'" for c in kit["columns"])
    addresses = ", ".join(ADDRESS.format(c["name"]) for c in kit["columns"] if c["type"] == "IPv4")
    t0 = time.perf_counter()
    p.prepare("hits", f"CREATE OR REPLACE TABLE hits AS SELECT * REPLACE ({addresses}) FROM read_csv('{path}', header=true, columns={{{columns}}})")
    p.prepare("hits", "CHECKPOINT")
    return {"visible_s": time.perf_counter() - t0, "rows": p.call("run", "SELECT count(*) FROM hits").to_pylist()[0]["count_star()"]}


def cell(v, type_=None):
    """Returns a value in the same form for all peers."""
    if type_ == "IPv4" and v is not None: return sum(int(part) << shift for part, shift in zip(v.split("."), (24, 16, 8, 0)))
    if isinstance(v, Decimal): return int(v) if v == int(v) else float(f"{v:.9g}")
    if isinstance(v, float): return float(f"{v:.9g}")
    if isinstance(v, datetime): return v.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return v


def answer(p, q, complete=False):
    """Returns the rows of a query; `complete`: without its LIMIT."""
    sql = q["duckdb"] if not p.server else q["text"]
    if complete: sql = re.sub(r" LIMIT [\d, OFSET]+$", "", sql)
    if not p.server:
        t = p.call("run", sql)
        return [tuple(map(cell, row)) for row in zip(*(c.to_pylist() for c in t.columns))]
    d = p.exec(sql)[0]
    kinds = [c["type"] for c in d["columns"]]
    return [tuple(map(cell, row, kinds)) for row in d["dataset"]]


def compare(q, mine, theirs, complete):
    if mine == theirs: return "equal"
    keys = lambda rows: [tuple(r[i] for i in q["order"]) for r in rows]
    if len(mine) == len(theirs) and keys(mine) == keys(theirs) and not Counter(mine) - Counter(complete()): return "ties"
    return "differs"


def measure(res, q, peers, runs, pause):
    """Runs one query: compares the answers, then times the peers in turn."""
    judge, answers, times, live = next((p for p in peers if not p.server), None), {}, {}, []
    for p in peers:
        def warm(): answers[p.name] = answer(p, q); times[p.name] = []; live.append(p)
        guard(res, q["id"], p, warm)
    for _ in range(runs):
        for p in live:
            time.sleep(pause)
            times[p.name].append(p.query(q["text"] if p.server else q["duckdb"])[0])
    for p in live:
        kw = {"value": S.median(times[p.name]), "min": min(times[p.name]), "rows": len(answers[p.name])}
        if judge in live and p is not judge: kw["answer"] = compare(q, answers[p.name], answers[judge.name], lambda: answer(judge, q, True))
        res.put(q["id"], p.name, **kw)


def report(d, base):
    """Returns the Markdown table: medians, ratios to the base, how the answers compare, and geometric means."""
    names = [n for n in d["peers"] if n != base]
    print(f"\n| query | {base} | " + " | ".join(names) + " | answers |\n|---|---|" + "---|" * (len(names) + 1))
    ratios = {n: [] for n in names}
    for item, r in d["items"].items():
        own = r.get(base, {}).get("value"); cells = [fmt(own) if own else "error"]
        for n in names:
            x = r.get(n, {})
            if not x.get("value"): cells.append("error" if "error" in x else ""); continue
            if own and item.startswith("q"): ratios[n].append(x["value"] / own)
            cells.append(f"{fmt(x['value'])} ({x['value'] / own:.2f}×)" if own else fmt(x["value"]))
        verdicts = [f"{n}: {x['answer']}" if n != base else x["answer"] for n, x in r.items() if x.get("answer")]
        print(f"| {item} | " + " | ".join(cells) + f" | {', '.join(verdicts)} |")
    mean = lambda v: f"{math.exp(S.mean(map(math.log, v))):.2f}× ({len(v)} queries)" if v else ""
    print("| geometric mean | | " + " | ".join(mean(ratios[n]) for n in names) + " | |")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--data", default="clickbench-data"); ap.add_argument("--home", default="bench-home")
    ap.add_argument("--server", action="append", default=[]); ap.add_argument("--embedded", default="duckdb")
    ap.add_argument("--runs", type=int, default=3); ap.add_argument("--only", default=""); ap.add_argument("--no-load", action="store_true")
    ap.add_argument("--pause", type=float, default=0.03); ap.add_argument("--out", default="results-clickbench.json")
    a = ap.parse_args()
    kit, path = json.load(open(f"{a.data}/kit.json")), os.path.abspath(f"{a.data}/hits.csv")
    peers = [Server(s) for s in a.server]
    if "duckdb" in a.embedded.split(","): peers.append(Embedded("duckdb", "duckdb", os.path.abspath(f"{a.home}/clickbench/duckdb")))
    res = Results(a.out, {"size": f"{kit['rows']} rows", "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "cpus": os.cpu_count(),
                          "peers": {p.name: p.version() for p in peers}})
    for p in () if a.no_load else peers:
        def load():
            r = (load_server if p.server else load_duckdb)(p, kit, path)
            if r["rows"] != kit["rows"]: raise RuntimeError(f"{r['rows']} of {kit['rows']} rows")
            res.put("load", p.name, value=r["visible_s"])
        guard(res, "load", p, load)
    for q in kit["queries"]:
        if re.search(a.only, q["id"]): measure(res, q, peers, a.runs, a.pause)
    report(res.d, peers[0].name)
    for p in peers: p.close()


if __name__ == "__main__":
    main()
