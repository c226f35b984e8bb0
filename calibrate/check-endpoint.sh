#!/usr/bin/env bash
# Measures a real server: installs MLServer from the Python package index into a folder, serves a
# small model that takes 2 ms + 0.2 ms an item, and measures it through `calibrate run`. Not part
# of the tests: it needs Python, and a network the first time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir="${1:-$(mktemp -d)}"
mkdir -p "$dir/model"
[ -x "$dir/v/bin/mlserver" ] || { python3 -m venv "$dir/v"; "$dir/v/bin/pip" install -q mlserver; }
cat >"$dir/model/net.py" <<'P'
import time
from mlserver import MLModel
from mlserver.types import InferenceResponse, ResponseOutput


class Net(MLModel):
    async def predict(self, request):
        items = request.inputs[0].shape[0]
        end = time.perf_counter() + 0.002 + 0.0002 * items
        while time.perf_counter() < end:
            pass
        out = ResponseOutput(name="y", datatype="FP32", shape=[items, 1], data=[0.0] * items)
        return InferenceResponse(model_name=self.name, outputs=[out])
P
cat >"$dir/model/model-settings.json" <<'J'
{"name": "net", "implementation": "net.Net", "platform": "python",
 "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}]}
J
cat >"$dir/model/settings.json" <<'J'
{"http_port": 18080, "grpc_port": 18081, "metrics_port": 18082, "parallel_workers": 0}
J
(cd "$dir/model" && exec "$dir/v/bin/mlserver" start .) >"$dir/server.log" 2>&1 &
server=$!
trap 'kill "$server"' EXIT
for _ in $(seq 60); do
  curl -fs http://127.0.0.1:18080/v2/models/net/ready >/dev/null && break
  sleep 1
done
cargo run --release --quiet -p calibrate -- run --device endpoint --url http://127.0.0.1:18080 \
  --model net --max-batch 32 --budget-s 10 -o "$dir/net.json"
