#!/bin/sh
# Instructions per request, counted by callgrind, against benches/instructions.json for this
# compiler: fails where a count has grown by more than 3 %. `--bless` writes the counts down.
# Says "skipped" where valgrind, jq or a baseline for this compiler is missing.
set -eu
cd "$(dirname "$0")/.."
baseline=benches/instructions.json

for tool in valgrind jq; do
    command -v "$tool" >/dev/null || { echo "skipped: no $tool"; exit 0; }
done
compiler=$(rustc -vV | awk '/^release:/ { r = $2 } /^host:/ { h = $2 } END { print r, h }')
known=$(jq --arg c "$compiler" 'has($c)' "$baseline")
if [ "$known" = false ] && [ "${1-}" != --bless ]; then
    echo "skipped: no baseline for $compiler"
    exit 0
fi

binary=$(cargo bench --no-run --no-default-features --bench instructions --message-format json |
    jq -r 'select(.executable != null) | .executable' | tail -n 1)

count() { # WORK REQUESTS
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$binary" "$1" "$2" 2>&1 |
        awk '/Collected/ { print $NF }'
}

counts='{}'
for work in limit recurrence event; do
    short=$(count "$work" 5000)
    long=$(count "$work" 405000)
    counts=$(echo "$counts" | jq --arg w "$work" --argjson s "$short" --argjson l "$long" \
        '. + {($w): {per_request: ((($l - $s) / 4000 | round) / 100), run_of_5000: $s}}')
done

if [ "${1-}" = --bless ]; then
    new=$(jq --arg c "$compiler" --argjson n "$counts" '. + {($c): $n}' "$baseline")
    echo "$new" >"$baseline"
fi
report=$(jq -rn --arg c "$compiler" --argjson now "$counts" --slurpfile all "$baseline" '
    $all[0][$c] as $was | $now | to_entries[] | .key as $work | .value | to_entries[] |
    ($was[$work][.key] // 0) as $before |
    (if .value > $before * 1.03 then "GREW" else "ok" end) +
    " \($work) \(.key): \(.value), was \($before)"')
echo "$report"
case $report in *GREW*) exit 1 ;; esac
