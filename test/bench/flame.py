#!/usr/bin/env python3
"""Flame graphs of a running server while it answers the kit's queries, and a text summary of where its time goes.

  flame.py --server 127.0.0.1:19100 --pid PID --out docs/flame-graphs w_lag t_sym_price …

Each query is repeated for --seconds over one kept-alive connection while `perf` samples the process with the
software clock, which needs no CPU counters. Needs linux-perf, inferno (`cargo install inferno --features cli`) and
an addon with symbol names (`TIDEMARK_SYMBOLS=1 node scripts/build-addon.mjs`). Writes NAME.svg, and prints for each query the
functions with the most self time.
"""
import argparse, collections, os, re, subprocess, tempfile, time
import yaml

from bench import params, render
from peers import Server

HERE = os.path.dirname(os.path.abspath(__file__))


def repeat(server, text, seconds):
    """Repeats a query for the given time; returns the shortest response time in ms."""
    least, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end: least = min(least, server.query(text)[0])
    return least * 1000


def folded(pid, work):
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        record = ["perf", "record", "-q", "-F", "199", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-p", str(pid), "-o", data]
        perf = subprocess.Popen(record, stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        least = work()
        perf.send_signal(2)
        perf.wait()
        script = subprocess.run(["perf", "script", "-i", data], capture_output=True).stdout
        return least, subprocess.run(["inferno-collapse-perf"], input=script, capture_output=True, check=True).stdout.decode()


def most(stacks, count=8):
    own, all_samples = collections.Counter(), 0
    for line in stacks.splitlines():
        stack, _, samples = line.rpartition(" ")
        own[stack.rsplit(";", 1)[-1]] += int(samples)
        all_samples += int(samples)
    return [(name, 100 * samples / all_samples) for name, samples in own.most_common(count)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--server", default="127.0.0.1:9000"); ap.add_argument("--pid", type=int, required=True)
    ap.add_argument("--out", default="."); ap.add_argument("--seconds", type=float, default=5); ap.add_argument("ids", nargs="+")
    a = ap.parse_args()
    queries = {q["id"]: q["q"] for q in yaml.safe_load(open(f"{HERE}/queries.yaml")) if "id" in q and "q" in q}
    server = Server(f"name=tidemark,http={a.server}")
    os.makedirs(a.out, exist_ok=True)
    for name in a.ids:
        text = render(queries[name], server, params(0, 1000))
        repeat(server, text, 0.5)
        least, stacks = folded(a.pid, lambda: repeat(server, text, a.seconds))
        graph = ["inferno-flamegraph", "--title", name, "--subtitle", re.sub(r"\s+", " ", text)[:150], "--minwidth", "0.4", "--width", "1200"]
        svg = subprocess.run(graph, input=stacks.encode(), capture_output=True, check=True).stdout
        with open(f"{a.out}/{name}.svg", "wb") as file: file.write(svg)
        print(f"{name}: {least:.1f} ms")
        for function, share in most(stacks): print(f"  {share:5.1f} %  {function}")


if __name__ == "__main__":
    main()
