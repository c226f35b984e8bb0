//! `calibrate`: times forward passes, looks for devices.

use anyhow::Context;
use calibrate::cpu::{Cpu, DecoderSizes, Shape, TOLERANCE};
use calibrate::device::{Device, Fault};
use calibrate::endpoint::{Endpoint, Protocol};
use calibrate::file::{self, Calibration};
use calibrate::meaning::time;
use calibrate::method::{self, Plan, Watch};
use calibrate::probe::{Places, Status, probe};
use clap::{Args, Parser, Subcommand, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Times real forward passes at every batch size.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Say which devices and libraries there are; nothing is needed for it.
    Probe {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Measure a model and write what a scenario uses as cost = { file = "FILE.json" }.
    Run(Box<Run>),
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    Cpu,
    Gpu,
    Endpoint,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Speaks {
    Kserve,
    Openai,
}

#[derive(Args)]
struct Run {
    /// Where to run.
    #[arg(long, value_enum, default_value = "cpu")]
    device: On,
    /// mlp, encoder, cnn, prefill or decode; the model's name for an endpoint.
    #[arg(long, default_value = "mlp")]
    model: String,
    /// Layers.
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Width of a row or token.
    #[arg(long, default_value_t = 256)]
    hidden: usize,
    /// Heads of attention.
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Heads of keys and values of a decoder (default: --heads).
    #[arg(long)]
    kv_heads: Option<usize>,
    /// Width of the inner part (default: 4 times --hidden).
    #[arg(long)]
    ffn: Option<usize>,
    /// Tokens of a sequence or prompt.
    #[arg(long, default_value_t = 64)]
    seq: usize,
    /// Tokens that each sequence of decode has in its cache.
    #[arg(long, default_value_t = 128)]
    context: usize,
    /// Channels of the first convolution.
    #[arg(long, default_value_t = 16)]
    channels: usize,
    /// Side of an image, pixels.
    #[arg(long, default_value_t = 64)]
    side: usize,
    /// Threads (default: one per processor).
    #[arg(long)]
    threads: Option<usize>,
    /// Memory that a batch may take, MiB.
    #[arg(long, default_value_t = 2048)]
    memory_mib: u64,
    /// Address of the server, http://host:port.
    #[arg(long, required_if_eq("device", "endpoint"))]
    url: Option<String>,
    /// What the server speaks.
    #[arg(long, value_enum, default_value = "kserve")]
    protocol: Speaks,
    /// A KServe v2 request of one item as JSON (default: made from the model's metadata).
    #[arg(long)]
    payload: Option<PathBuf>,
    /// Length of dimensions that the metadata leave open.
    #[arg(long, default_value_t = 16)]
    open_dimension: u64,
    /// Prompt for an OpenAI-compatible server.
    #[arg(long, default_value = "Tell me about queues.")]
    prompt: String,
    /// Tokens to generate.
    #[arg(long, default_value_t = 16)]
    max_tokens: u32,
    /// Time the first token instead of the whole answer.
    #[arg(long)]
    first_token: bool,
    /// Sizes to measure, by commas (default: a grid up to --max-batch, refined where it bends).
    #[arg(long, value_delimiter = ',')]
    batches: Vec<u32>,
    /// Largest batch to try.
    #[arg(long, default_value_t = 64)]
    max_batch: u32,
    /// Half-width of the median's 95 % interval at which a size is done, percent.
    #[arg(long, default_value_t = 0.5)]
    precision: f64,
    /// Seconds for one sweep; sizes keep measuring until they have 30 samples.
    #[arg(long, default_value_t = 30)]
    budget_s: u64,
    /// Leave the second sweep out.
    #[arg(long)]
    once: bool,
    /// Seed of weights, inputs and order.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Where to write; samples go beside it as .csv.
    #[arg(short, long)]
    output: PathBuf,
}

// How it ended: as it should, by something outside, by wrong input, without a device, by a signal.
const FINE: u8 = 0;
const OTHER: u8 = 1;
const USAGE: u8 = 2;
const NO_DEVICE: u8 = 3;
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Probe { json } => show_probe(json),
        Verb::Run(run) => measure(&run),
    };
    ExitCode::from(done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        OTHER
    }))
}

fn show_probe(json: bool) -> anyhow::Result<u8> {
    let status = probe(&Places::of_environment());
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&status)?)?;
        return Ok(FINE);
    }
    writeln!(out, "{}", status.sentence())?;
    if let Status::Ready { gpus, .. } | Status::MissingLibrary { gpus, .. } = &status {
        for gpu in gpus {
            let free = gpu.free_bytes.map(|b| format!(", {} MiB free", b >> 20));
            writeln!(
                out,
                "  {}: compute capability {}.{}, {} MiB{}",
                gpu.name,
                gpu.compute.0,
                gpu.compute.1,
                gpu.memory_bytes >> 20,
                free.unwrap_or_default()
            )?;
        }
    }
    Ok(FINE)
}

/// The model of a name.
fn shape(run: &Run) -> Result<Shape, String> {
    let (layers, hidden, heads) = (run.layers, run.hidden, run.heads);
    let ffn = run.ffn.unwrap_or(4 * hidden);
    let sizes =
        DecoderSizes { layers, hidden, heads, kv_heads: run.kv_heads.unwrap_or(heads), ffn };
    let shape = match run.model.as_str() {
        "mlp" => Shape::Mlp { layers, hidden },
        "encoder" => Shape::Encoder { layers, hidden, heads, ffn, seq: run.seq },
        "cnn" => Shape::Cnn { layers, channels: run.channels, side: run.side, classes: 100 },
        "prefill" => Shape::Decoder { sizes, context: 0, prompt: run.seq },
        "decode" => Shape::Decoder { sizes, context: run.context.max(1), prompt: 0 },
        other => {
            return Err(format!(
                "there is no model {other}; write mlp, encoder, cnn, prefill or decode"
            ));
        }
    };
    shape.check().map(|()| shape)
}

/// The server.
fn endpoint(run: &Run) -> anyhow::Result<Endpoint> {
    let payload = match &run.payload {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Some(serde_json::from_str(&text).with_context(|| path.display().to_string())?)
        }
    };
    let protocol = match run.protocol {
        Speaks::Kserve => Protocol::KServe { payload, open_dimension: run.open_dimension },
        Speaks::Openai => Protocol::OpenAi {
            prompt: run.prompt.clone(),
            max_tokens: run.max_tokens,
            first_token: run.first_token,
        },
    };
    Ok(Endpoint::new(run.url.as_deref().unwrap_or_default(), &run.model, protocol)?)
}

/// A line that is written over, on a terminal only.
struct Line(bool);

impl Watch for Line {
    fn progress(&mut self, what: &str, done: f64, left_ns: u64) {
        if self.0 {
            eprint!("\r\x1b[K{what}: {:.0} %, {} s left", 100.0 * done, left_ns / 1_000_000_000);
        }
    }
}

fn measure(run: &Run) -> anyhow::Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut correctness = None;
    let mut device: Box<dyn Device> = match run.device {
        On::Gpu => {
            let status = probe(&Places::of_environment());
            eprintln!("error: {}", status.sentence());
            if matches!(status, Status::Ready { .. }) {
                eprintln!("help: this build has no GPU passes; use --device cpu or endpoint");
            }
            return Ok(NO_DEVICE);
        }
        On::Endpoint => Box::new(endpoint(run)?),
        On::Cpu => {
            let shape = match shape(run) {
                Ok(shape) => shape,
                Err(what) => {
                    eprintln!("error: {what}");
                    return Ok(USAGE);
                }
            };
            let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let threads = run.threads.unwrap_or(all);
            let mut cpu = Cpu::new(&run.model, shape, threads, run.memory_mib << 20, run.seed)?;
            let gap = cpu.check(3)?;
            anyhow::ensure!(
                gap <= TOLERANCE,
                "the passes differ from the reference by {gap:.1e}; nothing was measured"
            );
            correctness = Some(gap);
            Box::new(cpu)
        }
    };
    let plan = Plan {
        batches: run.batches.clone(),
        max_batch: run.max_batch,
        precision: run.precision / 100.0,
        budget_ns: run.budget_s * 1_000_000_000,
        repeat: !run.once,
        seed: run.seed,
        ..Plan::default()
    };
    let terminal = std::io::stderr().is_terminal();
    let measured = method::measure(&mut *device, &plan, &stop, &mut Line(terminal));
    if terminal {
        eprint!("\r\x1b[K");
    }
    let measured = measured.map_err(|fault: Fault| anyhow::anyhow!("{fault}"))?;
    if measured.sizes.is_empty() {
        eprintln!("interrupted before anything was measured; nothing is written");
        return Ok(INTERRUPTED);
    }
    let result = Calibration::new(&measured, device.describe(), &plan, correctness);
    let write = |path: &std::path::Path, text: &str| {
        file::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write(&run.output, &(serde_json::to_string_pretty(&result)? + "\n"))?;
    write(&run.output.with_extension("csv"), &file::csv(&measured))?;
    show(&result, run)?;
    Ok(if stop.load(Ordering::Relaxed) { INTERRUPTED } else { FINE })
}

fn show(result: &Calibration, run: &Run) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:>8} {:>12} {:>9} {:>12} {:>8}",
        "batch", "median", "±", "per item", "samples"
    )?;
    for p in &result.points {
        let half = (p.median_ci95_ns[1] - p.median_ci95_ns[0]) / 2.0;
        writeln!(
            out,
            "{:>8} {:>12} {:>7.2} % {:>12} {:>8}{}",
            p.batch,
            time(p.median_ns),
            100.0 * half / p.median_ns,
            time(p.median_ns / f64::from(p.batch)),
            p.samples,
            if p.noisy { "  noisy" } else { "" }
        )?;
    }
    let checks = &result.checks;
    if let (Some(median), Some(worst)) = (checks.repeatability_median, checks.repeatability_worst) {
        writeln!(
            out,
            "repeatability: a second sweep differs by {:.2} % (median), {:.2} % at most",
            100.0 * median,
            100.0 * worst
        )?;
    }
    if let Some(drift) = checks.drift {
        writeln!(
            out,
            "drift over the sweep: {:+.2} % (95 % interval {:+.2} to {:+.2} %)",
            100.0 * drift.change,
            100.0 * drift.interval[0],
            100.0 * drift.interval[1]
        )?;
    }
    if let Some(gap) = checks.correctness {
        writeln!(out, "distance from the reference: {gap:.1e}")?;
    }
    writeln!(out, "largest batch: {} ({})", checks.largest_batch, checks.largest_batch_limit)?;
    for sentence in &result.meaning {
        writeln!(out, "{sentence}")?;
    }
    for warning in &result.warnings {
        eprintln!("warning: {warning}");
    }
    writeln!(out, "written: {}", run.output.display())?;
    Ok(())
}
