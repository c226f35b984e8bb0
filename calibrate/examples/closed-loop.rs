//! Calibrates, serves a closed loop with a real batching thread and real passes, calibrates again,
//! and writes what is needed to compare: `closed-loop DIR`.
//!
//! `DIR` receives `before.json`, `after.json` and `served.json`; `check-closed-loop.sh` judges.
#![allow(clippy::print_stdout, reason = "a script's program")]

use calibrate::cpu::{Cpu, Shape};
use calibrate::device::Device;
use calibrate::file::{self, Calibration};
use calibrate::method::{Plan, Silent, measure, medians};
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};

const CLIENTS: usize = 8;
const CAP: usize = 4;
const SECONDS: u64 = 12;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: closed-loop DIR")?);
    std::fs::create_dir_all(&folder)?;
    let shape = Shape::Mlp { layers: 8, hidden: 512 };
    let mut cpu = Cpu::new("mlp", shape, 1, 1 << 30, 42)?;
    let plan = Plan {
        batches: (1..=4).collect(),
        budget_ns: 10_000_000_000,
        repeat: false,
        ..Plan::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    let calibrate =
        |cpu: &mut Cpu, name: &str| -> Result<Vec<(u32, f64)>, Box<dyn std::error::Error>> {
            let measured = measure(cpu, &plan, &stop, &mut Silent)?;
            let file = Calibration::new(&measured, cpu.describe(), &plan, None);
            file::write(&folder.join(name), &serde_json::to_string_pretty(&file)?)?;
            Ok(medians(&measured.sizes))
        };
    let before = calibrate(&mut cpu, "before.json")?;
    // Buffers of every size live beside each other, as a server would have them.
    let mut servers = Vec::new();
    for batch in 1..=u32::try_from(CAP)? {
        let mut one = Cpu::new("mlp", shape, 1, 1 << 30, 42)?;
        one.prepare(batch)?;
        servers.push(one);
    }
    let (mean_ms, batch, requests) = serve(&mut servers)?;
    drop(servers);
    let after = calibrate(&mut cpu, "after.json")?;
    let worst = before.iter().zip(&after).map(|(a, b)| (a.1 / b.1 - 1.0).abs()).fold(0.0, f64::max);
    let served = serde_json::json!({
        "clients": CLIENTS, "max_batch_size": CAP, "requests": requests,
        "latency_mean_ms": mean_ms, "batch_mean": batch, "calibrations_differ": worst,
    });
    file::write(&folder.join("served.json"), &served.to_string())?;
    println!("{served}");
    Ok(())
}

/// Each client sends its next request as soon as it has its answer; the batching thread takes what
/// waits, at most `CAP`, and runs it. Mean latency in ms, mean batch, requests.
fn serve(servers: &mut [Cpu]) -> Result<(f64, f64, usize), Box<dyn std::error::Error>> {
    type Request = (Instant, mpsc::Sender<()>);
    let (send, queue) = mpsc::channel::<Request>();
    let (report, latencies) = mpsc::channel::<Vec<f64>>();
    let end = Instant::now() + Duration::from_secs(SECONDS);
    for _ in 0..CLIENTS {
        let (send, report) = (send.clone(), report.clone());
        std::thread::spawn(move || {
            let (answer, answered) = mpsc::channel();
            let mut seen = Vec::new();
            while Instant::now() < end {
                let begin = Instant::now();
                if send.send((begin, answer.clone())).is_err() || answered.recv().is_err() {
                    break;
                }
                seen.push(begin.elapsed().as_secs_f64() * 1e3);
            }
            let _ = report.send(seen);
        });
    }
    drop((send, report));
    let (mut batches, mut items) = (0_usize, 0_usize);
    while let Ok(first) = queue.recv() {
        let mut batch = vec![first];
        while batch.len() < CAP {
            match queue.try_recv() {
                Ok(more) => batch.push(more),
                Err(_) => break,
            }
        }
        servers[batch.len() - 1].pass(u32::try_from(batch.len())?)?;
        batches += 1;
        items += batch.len();
        for (_, answer) in batch {
            let _ = answer.send(());
        }
    }
    let all: Vec<f64> = latencies.iter().flatten().collect();
    #[expect(clippy::cast_precision_loss, reason = "means")]
    Ok((all.iter().sum::<f64>() / all.len() as f64, items as f64 / batches as f64, all.len()))
}
