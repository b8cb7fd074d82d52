#!/usr/bin/env bash
# usage: npm run bench -- [--size tiny|small|full] [--against questdb,duckdb,polars,…] [bench.py options …]
#        npm run bench -- --clickbench ROWS [--against questdb,duckdb] [clickbench.py options …]
# Starts Tidemark, and QuestDB if it is among the peers, with the same commit mode. Measures them
# and the embedded engines in turn in one run, and prints the table for docs/benchmarks.md. Needs
# python3 with requirements.txt, Java and Maven (for QuestDB's jar), and a finished `npm run build`.
# Environment: WORK (data, roots, results; default a folder in the cache), MODE (commit mode of both
# servers, default nosync), PYTHON (default python3).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
size=small
clickbench=
against=questdb,duckdb,polars
options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --size) size=${2:?--size tiny, small or full}; shift 2 ;;
    --clickbench) clickbench=${2:?--clickbench ROWS}; shift 2 ;;
    --against) against=${2?--against questdb,duckdb,…}; shift 2 ;;
    *) options+=("$1"); shift ;;
  esac
done
embedded=$(tr , '\n' <<< "$against" | grep -v '^questdb$' | paste -sd, || true)
work=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemark/bench}
mode=${MODE:-nosync}
python=${PYTHON:-python3}
mkdir -p "$work"
cd "$work"

if [ -n "$clickbench" ]; then
  echo "== generating ClickBench's table ($clickbench rows)"
  npm --prefix "$repository" run --silent clickbench-data -- --rows "$clickbench" --out "$work/data/clickbench"
elif [ ! -s "data/$size/meta.json" ]; then
  echo "== generating data ($size)"
  "$python" "$here/gen.py" --size "$size"
fi

peer=
ours=
servers=()
stop() {
  [ -z "$ours" ] || kill "$ours" 2>/dev/null || true
  [ -z "$peer" ] || kill "$peer" 2>/dev/null || true
}
trap stop EXIT

echo "== starting Tidemark"
rm -rf tidemark-root
node "$repository/build/server/cli.js" serve --root "$work/tidemark-root" \
  --set http.bind.to=127.0.0.1:19100 --set pg.net.bind.to=127.0.0.1:18912 \
  --set http.min.enabled=false --set line.tcp.enabled=false --set pg.auth.method=cleartext --set "cairo.commit.mode=$mode" \
  > tidemark.log 2>&1 &
ours=$!
for _ in $(seq 1 100); do
  grep -q '^tidemark ready' tidemark.log && break
  sleep 0.1
done
grep '^tidemark ready' tidemark.log
servers+=(--server "name=tidemark,http=127.0.0.1:19100,pg=127.0.0.1:18912,dir=$work/tidemark-root")

if [[ ",$against," == *,questdb,* ]]; then
  echo "== starting QuestDB"
  echo "cairo.commit.mode=$mode" > questdb.conf
  rm -rf questdb-root
  peer=$(QDB_EXTRA_CONF="$work/questdb.conf" QDB_XMX=8g "$here/start_questdb.sh" \
    "$work/questdb-root" 19000 18812 19009)
  servers+=(--server "name=questdb,http=127.0.0.1:19000,pg=127.0.0.1:18812,dir=$work/questdb-root/db")
fi

if [ -n "$clickbench" ]; then
  "$python" "$here/clickbench.py" --data data/clickbench "${servers[@]}" --embedded "$embedded" \
    --out results-clickbench.json "${options[@]}"
  "$python" "$here/report.py" --pairs results-clickbench.json
  exit
fi
"$python" "$here/bench.py" --size "$size" --out "results-$size.json" "${servers[@]}" \
  --embedded "$embedded" "${options[@]}"
"$python" "$here/report.py" --pairs "results-$size.json"
