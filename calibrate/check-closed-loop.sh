#!/usr/bin/env bash
# Calibrates, serves a closed loop of 8 clients with a real batching thread and real passes on this
# processor, calibrates again, and compares the mean latency with what batchsim predicts from the
# first calibration. Exit 0: within 5 %. 1: not. 4: void, as the two calibrations differ by more
# than 3 %. Not part of the tests: it needs a quiet machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir="${1:-$(mktemp -d)}"
cargo run --release --quiet -p calibrate --example closed-loop -- "$dir"
cat >"$dir/scenario.toml" <<'T'
schema = 1
name = "closed-loop"
[run]
requests = 200000
[[arrivals]]
kind = "closed-loop"
clients = 8
think = "0ms"
[server]
cost = { file = "before.json" }
[[policy]]
kind = "greedy"
max_batch_size = 4
T
cargo run --release --quiet -- run "$dir/scenario.toml" --format json -o "$dir/out" >"$dir/predicted.json"
python3 - "$dir" <<'P'
import json, sys
at = sys.argv[1]
served = json.load(open(f"{at}/served.json"))
predicted = json.load(open(f"{at}/predicted.json"))["cells"][0]["latency_ms"]["mean"]
gap = predicted / served["latency_mean_ms"] - 1
print(f"measured {served['latency_mean_ms']:.3f} ms, predicted {predicted:.3f} ms: {100*gap:+.1f} %")
print(f"calibrations differ by {100*served['calibrations_differ']:.1f} %")
if served["calibrations_differ"] > 0.03:
    print("void: the machine changed in between")
    sys.exit(4)
sys.exit(0 if abs(gap) <= 0.05 else 1)
P
