#!/bin/sh
# Converts testdata/gate/toy-blocks to every format and lets the gate judge each on the held-out set, which nothing was
# chosen by. Prints the table of the README. Run `make` first; CLEF names another program, SET another set.
set -u
cd "$(dirname "$0")/../.." || exit 2

clef=${CLEF:-./clef}
toy=testdata/gate/toy-blocks
set=${SET:-heldout}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM


echo "| format | bits a weight | lost of the weights | answers | largest difference | mean difference | gate |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
judge() {
    name=$1
    precision=$2
    shift 2
    rm -rf "$dir/model"
    "$clef" convert "$toy" --out "$dir/model" "$@" > "$dir/line" || exit 1
    bits=$(sed -n 's/.* \([0-9.]*\) bits a weight.*/\1/p' "$dir/line")
    lost=$(sed -n 's/.*off by \([0-9.]*\) %.*/\1/p' "$dir/line")
    "$clef" gate "$dir/model" --precision "$precision" --fixtures "$toy-$set.json" --report "$dir/report.json" > "$dir/table" 2>&1
    case $? in
    0) verdict=accepted ;;
    2) verdict=**refused** ;;
    *)
        cat "$dir/table" >&2
        exit 1
        ;;
    esac
    answers=$(sed -n 's/^  answers .* \([0-9]* of [0-9]*\) questions.*/\1/p' "$dir/table")
    python3 - "$dir/report.json" "$name" "$bits" "$lost" "$answers" "$verdict" <<'END'
import json
import sys

path, name, bits, lost, answers, verdict = sys.argv[1:]
r = json.load(open(path, encoding="utf-8"))
print(f"| {name} | {bits} | {lost} % | {answers} | {max(x['max_dp'] for x in r['runs']):.4f} | {r['mean_dp']:.5f} | {verdict} |")
END
}

judge int8mix exact --format int8mix
judge "int8mix, \`--precision fast\`" fast --format int8mix
judge "int8mix, int8 tables" exact --format int8mix --tables int8
judge int8 exact --format int8
judge "int8, \`--precision fast\`" fast --format int8
judge int6 exact --format int6
judge int4mix exact --format int4mix
judge "int4 everywhere" exact --format int4
