//! The queue of the running example in nexosim: dynamic batching, cap 32, wait 5 ms, one
//! instance. A source and a server, connected by a port; one worker thread.
//!
//! usage: peer-nexosim [REQUESTS] [RATE_PER_S]

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::Output;
use nexosim::simulation::{EventKey, Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CAP: usize = 32;
const WAIT: Duration = Duration::from_millis(5);
const FIXED_NS: u64 = 8_000_000;
const PER_ITEM_NS: u64 = 500_000;

#[derive(Default)]
struct Results {
    latencies_ns: Vec<u64>,
    batches: u64,
}

/// Sends a request after every exponential gap.
#[derive(Serialize, Deserialize)]
struct Source {
    request: Output<MonotonicTime>,
    rng: Xoshiro256PlusPlus,
    mean_gap_s: f64,
    left: u64,
}

#[Model]
impl Source {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        self.plan(cx);
    }

    fn plan(&mut self, cx: &Context<Self>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let unit: f64 = Exp1.sample(&mut self.rng);
        // The framework refuses a gap of no time.
        let gap = Duration::from_secs_f64(unit * self.mean_gap_s).max(Duration::from_nanos(1));
        cx.schedule_event(gap, schedulable!(Self::send), ()).expect("a later moment");
    }

    #[nexosim(schedulable)]
    async fn send(&mut self, _: (), cx: &Context<Self>) {
        self.request.send(cx.time()).await;
        self.plan(cx);
    }
}

/// One queue, one instance.
#[derive(Serialize, Deserialize)]
struct Server {
    queue: VecDeque<MonotonicTime>,
    running: Vec<MonotonicTime>,
    timer: Option<EventKey>,
    #[serde(skip)]
    results: Arc<Mutex<Results>>,
}

#[Model]
impl Server {
    async fn arrive(&mut self, at: MonotonicTime, cx: &Context<Self>) {
        self.queue.push_back(at);
        self.settle(cx);
    }

    #[nexosim(schedulable)]
    fn due(&mut self, _: (), cx: &Context<Self>) {
        self.timer = None;
        self.settle(cx);
    }

    #[nexosim(schedulable)]
    fn done(&mut self, _: (), cx: &Context<Self>) {
        let now = cx.time();
        let mut results = self.results.lock().expect("one thread");
        results.batches += 1;
        let latencies = self.running.drain(..).map(|at| now.duration_since(at).as_nanos() as u64);
        results.latencies_ns.extend(latencies);
        drop(results);
        self.settle(cx);
    }

    fn settle(&mut self, cx: &Context<Self>) {
        let Some(&oldest) = self.queue.front() else { return };
        if !self.running.is_empty() {
            return;
        }
        let due = oldest + WAIT;
        if self.queue.len() < CAP && cx.time() < due {
            if self.timer.is_none() {
                let key = cx.schedule_keyed_event(due, schedulable!(Self::due), ());
                self.timer = Some(key.expect("a later moment"));
            }
            return;
        }
        if let Some(timer) = self.timer.take() {
            timer.cancel();
        }
        let n = self.queue.len().min(CAP);
        self.running.extend(self.queue.drain(..n));
        let took = Duration::from_nanos(FIXED_NS + PER_ITEM_NS * n as u64);
        cx.schedule_event(took, schedulable!(Self::done), ()).expect("a later moment");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let requests: u64 = words.next().map_or(Ok(2_000_000), |w| w.parse())?;
    let rate: f64 = words.next().map_or(Ok(1000.0), |w| w.parse())?;
    let results = Arc::new(Mutex::new(Results::default()));
    let mut source = Source {
        request: Output::default(),
        rng: Xoshiro256PlusPlus::seed_from_u64(1),
        mean_gap_s: 1.0 / rate,
        left: requests,
    };
    let server = Server {
        queue: VecDeque::new(),
        running: Vec::new(),
        timer: None,
        results: Arc::clone(&results),
    };
    let (source_mailbox, server_mailbox) = (Mailbox::new(), Mailbox::new());
    source.request.connect(Server::arrive, &server_mailbox);
    let start = cpu_s();
    let mut simulation = SimInit::with_num_threads(1)
        .add_model(source, source_mailbox, "source")
        .add_model(server, server_mailbox, "server")
        .init(MonotonicTime::EPOCH)?;
    simulation.run()?;
    let took = cpu_s() - start;
    let mut results = results.lock().map_err(|_| "the results are lost")?;
    let n = results.latencies_ns.len();
    results.latencies_ns.sort_unstable();
    let ms = |ns: u64| ns as f64 / 1e6;
    let mean = results.latencies_ns.iter().map(|&ns| ms(ns)).sum::<f64>() / n as f64;
    let (p50, p99) = (results.latencies_ns[n / 2], results.latencies_ns[n * 99 / 100]);
    println!("nexosim 1.0: {n} requests");
    let batch = n as f64 / results.batches as f64;
    println!("mean {mean:.3} ms, p50 {:.3} ms, p99 {:.3} ms, batch {batch:.3}", ms(p50), ms(p99));
    println!("{:.0} requests/s of CPU time", n as f64 / took);
    Ok(())
}

/// Seconds this thread has computed, as the Linux scheduler counts them; elsewhere the time of
/// day.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_cpu_ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    let of_day = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
    on_cpu_ns.map_or_else(of_day, |ns| ns / 1e9)
}
