#!/bin/sh
# Measures every format at the widths of clef-flash 9B on this machine and prints the table of the README.
#
# Usage: bench/run.sh [--layers N] [--tokens "N N"] [--formats "A B"] [--dir DIR] [--keep]
#
# Builds a checkpoint with random weights (tools/synth; 8 layers take 3.5 GB, and as much again is needed for the copies,
# which are made and removed one by one), runs `clef bench --json` on it in each format, and removes it. A folder that
# --keep left under --dir is taken as it is. Ceilings are measured in the same run as what is compared with them; the ratio
# is to bf16 in tokens a second. Progress goes to standard error. Run `make all tools` first, on an idle machine.
set -u
cd "$(dirname "$0")/.." || exit 2

layers=8
tokens="512 128"
formats="bf16 int8mix int8 int6 int4mix"
dir=build/bench
keep=
usage() {
    sed -n '/^# Usage/s/^# //p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --keep)
        keep=1
        shift
        continue
        ;;
    --layers | --tokens | --formats | --dir) [ $# -ge 2 ] || usage ;;
    *) usage ;;
    esac
    case $1 in
    --layers) layers=$2 ;;
    --tokens) tokens=$2 ;;
    --formats) formats=$2 ;;
    --dir) dir=$2 ;;
    esac
    shift 2
done

say() {
    echo "bench: $1" >&2
}
fail() {
    say "$1"
    exit 1
}
[ -x ./clef ] && [ -x build/tools/synth ] || fail "make all tools first"

source=$dir/bf16-$layers
rows=$dir/rows.$$
clean() {
    rm -rf "$rows" "$dir/copy" "$dir/copy.partial"
    [ -n "$keep" ] || rm -rf "$source"
    rmdir "$dir" 2> /dev/null
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mkdir -p "$dir" || fail "$dir cannot be made"
rm -rf "$dir/copy" "$dir/copy.partial"
if [ ! -f "$source/config.json" ]; then
    need=$((layers * 450000 + 500000))
    free=$(df -Pk "$dir" | awk 'NR == 2 {print $4}')
    [ "$free" -gt $((need * 2)) ] || fail "$dir: $((need * 2 / 1000000)) GB are needed, $((free / 1000000)) GB are free"
    say "making $layers layers of random weights in $source"
    rm -rf "$source"
    build/tools/synth --geometry 9b --layers "$layers" --vocab 2000 --tokenizer testdata/toy-r2/tokenizer.json \
        --out "$source" > /dev/null || fail "the checkpoint cannot be made"
fi

load_before=$(cut -d' ' -f1 /proc/loadavg)
for format in $formats; do
    model=$source
    if [ "$format" != bf16 ]; then
        model=$dir/copy
        say "converting to $format"
        ./clef convert "$source" --out "$model" --format "$format" > /dev/null || fail "$format cannot be made"
    fi
    for n in $tokens; do
        bytes=$(cat "$model"/model*.safetensors | wc -c)
        for precision in exact fast; do
            [ "$precision" = exact ] || [ "$format" != bf16 ] || continue
            say "$format, $precision, $n tokens"
            json=$(./clef bench "$model" --tokens "$n" --precision "$precision" --json) ||
                fail "$format cannot be measured"
            echo "$format $precision $bytes $json" >> "$rows"
        done
    done
    rm -rf "$dir/copy"
done

python3 - "$rows" "$layers" "$load_before" << 'END'
import datetime
import json
import subprocess
import sys

path, layers, before = sys.argv[1:]
rows = []
for line in open(path, encoding="utf-8"):
    name, precision, size, text = line.split(" ", 3)
    rows.append((name if precision == "exact" else f"{name}, {precision}", int(size), json.loads(text)))

commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
load = open("/proc/loadavg", encoding="utf-8").read().split()[0]
first = rows[0][2]
print(f"{first['machine']}, {first['threads']} threads of {first['processors']} processors, kernels {first['kernels']}; {layers} layers of the "
      f"9B's widths, random weights; medians of {first['repeats']} runs; commit {commit}, {datetime.date.today()}; load average "
      f"{before} before, {load} after.\n")
print("| tokens | format | weights | tokens/s | to bf16 | linears | of the ceiling |")
print("| --- | --- | --- | --- | --- | --- | --- |")
for n in dict.fromkeys(r["prefill"]["tokens"] for _, _, r in rows):
    same = [x for x in rows if x[2]["prefill"]["tokens"] == n]
    exact = next((r["prefill"]["tokens_per_s"] for name, _, r in same if name == "bf16"), None)
    for name, size, r in same:
        linears = r["parts"]["linears"]["gflops"]
        speed = r["prefill"]["tokens_per_s"]
        ratio = f"{speed / exact:.2f}" if exact else ""
        print(f"| {n} | {name} | {size / 1e9:.2f} GB | {speed:.1f} | {ratio} | {linears:.1f} GFLOP/s | "
              f"{100 * linears / r['ceilings']['fma_gflops']:.1f} % |")
END
