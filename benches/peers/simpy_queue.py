"""The queue of the running example in SimPy: dynamic batching, cap 32, wait 5 ms, one instance.

usage: python simpy_queue.py [REQUESTS] [RATE_PER_S]
"""

import random
import sys
import time

import simpy

CAP, WAIT, FIXED, PER_ITEM = 32, 5.0, 8.0, 0.5  # times in ms


class Server:
    """One instance behind one queue; batches leave when full or when the oldest is 5 ms old."""

    def __init__(self, env, requests):
        self.env, self.left = env, requests
        self.queue, self.latencies, self.batches = [], [], 0
        self.came = self.full = None
        self.process = env.process(self.serve())

    def arrive(self):
        self.queue.append(self.env.now)
        if self.came is not None:
            came, self.came = self.came, None
            came.succeed()
        if len(self.queue) == CAP and self.full is not None:
            full, self.full = self.full, None
            full.succeed()

    def serve(self):
        env, queue = self.env, self.queue
        while self.left > 0:
            if not queue:
                self.came = env.event()
                yield self.came
            held = queue[0] + WAIT - env.now
            if len(queue) < CAP and held > 0:
                self.full = env.event()
                yield self.full | env.timeout(held)
                self.full = None
            batch = queue[:CAP]
            del queue[:CAP]
            yield env.timeout(FIXED + PER_ITEM * len(batch))
            now = env.now
            self.latencies.extend(now - arrived for arrived in batch)
            self.batches += 1
            self.left -= len(batch)


def source(env, server, requests, mean_gap):
    for _ in range(requests):
        yield env.timeout(random.expovariate(1.0 / mean_gap))
        server.arrive()


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 1000.0
    random.seed(1)
    env = simpy.Environment()
    server = Server(env, requests)
    env.process(source(env, server, requests, 1e3 / rate))
    start = time.process_time()
    env.run(until=server.process)
    took = time.process_time() - start
    latencies = sorted(server.latencies)
    n = len(latencies)
    mean, p50, p99 = sum(latencies) / n, latencies[n // 2], latencies[n * 99 // 100]
    print(f"SimPy {simpy.__version__}, Python {sys.version.split()[0]}: {n} requests")
    print(f"mean {mean:.3f} ms, p50 {p50:.3f} ms, p99 {p99:.3f} ms, batch {n / server.batches:.3f}")
    print(f"{n / took:,.0f} requests/s of CPU time")


if __name__ == "__main__":
    main()
