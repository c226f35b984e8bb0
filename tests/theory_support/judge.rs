//! Simulating a case for as long as its precision needs, and judging what came out.

use super::cases::{Case, Cell};
use super::worlds::{self, ms};
use batchsim::exact::Solution;
use batchsim::policy::Reason;
use batchsim::record::{Histogram, Summary, rank};
use batchsim::stats::t_quantile;
use batchsim::study::Measured;

/// A number of a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// Mean latency, ms.
    Mean,
    /// Quantile of the latency, ms.
    Quantile(f64),
    /// Mean wait, ms.
    MeanWait,
    /// Quantile of the wait, ms.
    WaitQuantile(f64),
    /// Share of requests that wait.
    Waits,
    /// Share of requests that do not.
    NoWait,
    /// Share of latencies at or below a limit in ns.
    Within(u64),
    /// Share of latencies below a limit in ns.
    Below(u64),
    /// Mean size of a batch.
    MeanBatch,
    /// Busy fraction.
    Utilization,
}

type Part = Summary<Histogram<10>>;
type Pooled = Measured<Histogram<10>>;

/// What one cell came to.
#[derive(Clone, Debug)]
pub struct Finding {
    pub at: String,
    pub z: f64,
    /// Relative standard error over what is allowed.
    pub strain: f64,
    pub requests: u64,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An estimate with a standard error.
    Estimate,
    /// A point mass, met to the nanosecond.
    Atom,
    /// A quantile at the edge of a point mass: the shares on either side were judged instead.
    Edge,
}

fn value(metric: Metric, s: &Part, limits: &[u64], instances: f64) -> f64 {
    let n = s.counts.completed as f64;
    let within = |ns: u64| s.within[limits.binary_search(&ns).unwrap()] as f64 / n;
    match metric {
        Metric::Mean => s.latency_sum_ns as f64 / n / 1e6,
        Metric::Quantile(q) => s.latency.quantiles(&[q]).unwrap()[0] / 1e6,
        Metric::MeanWait => s.wait_sum_ns as f64 / n / 1e6,
        Metric::WaitQuantile(q) => s.wait.quantiles(&[q]).unwrap()[0] / 1e6,
        Metric::Waits => 1.0 - s.wait.count_to(0) as f64 / n,
        Metric::NoWait => s.wait.count_to(0) as f64 / n,
        Metric::Within(ns) => within(ns),
        Metric::Below(ns) => within(ns - 1),
        Metric::MeanBatch => {
            // What the end of the run flushed is no part of the steady state.
            let flushed = Reason::Flush as usize;
            let steady = |by: &[u64; Reason::COUNT]| by.iter().sum::<u64>() - by[flushed];
            let batches: u64 = s.batches.iter().map(steady).sum();
            let items: u64 = (0..).zip(&s.batches).map(|(size, by)| size * steady(by)).sum();
            items as f64 / batches as f64
        }
        Metric::Utilization => s.busy_ns as f64 / (s.window_ns as f64 * instances),
    }
}

/// Requests in batches that only the end of a run let go.
fn flushed(s: &Part) -> u64 {
    (0..).zip(&s.batches).map(|(size, by)| size * by[Reason::Flush as usize]).sum()
}

/// A pooled value and its standard error from the sections.
struct Estimate {
    value: f64,
    error: f64,
}

fn estimate(metric: Metric, m: &Pooled, limits: &[u64], instances: f64) -> Estimate {
    let pooled = value(metric, &m.pooled, limits, instances);
    let r = m.sections.len() as f64;
    let squares: f64 =
        m.sections.iter().map(|s| (value(metric, s, limits, instances) - pooled).powi(2)).sum();
    let sampling = (squares / (r - 1.0) / r).sqrt();
    // Half a bin: what a histogram does not know of a quantile.
    let bin = match metric {
        Metric::Quantile(_) => pooled / 2048.0,
        Metric::WaitQuantile(_) => pooled / 256.0,
        _ => 0.0,
    };
    Estimate { value: pooled, error: sampling.hypot(bin) }
}

/// Allowed relative standard error.
fn allowed(metric: Metric, want: f64, load: f64) -> f64 {
    let tail = matches!(metric, Metric::Quantile(q) | Metric::WaitQuantile(q) if q > 0.99);
    match metric {
        // Bins of the wait are 0.8 % wide.
        Metric::WaitQuantile(_) => 0.01,
        // One request in hundreds waits.
        Metric::MeanWait if want < 0.1 => 0.01,
        Metric::Waits if want < 0.05 => 0.01,
        _ if load > 0.901 || tail => 0.01,
        _ => 0.003,
    }
}

/// Whether a quantile is a point mass or near one: its edges in probability.
fn atom_near(law: &Solution, q: f64) -> Option<u64> {
    // A little to the left and to the right, as far as a sample quantile may stray.
    let aside = 0.3 * (1.0 - q);
    [q, q - aside, q + aside]
        .into_iter()
        .find(|&at| law.is_atom(at))
        .map(|at| ms(law.quantile_ms(at)).0)
}

/// Limits in ns at which the simulation must count, increasing.
fn limits(case: &Case) -> Vec<u64> {
    let mut limits = Vec::new();
    for cell in &case.cells {
        match cell.metric {
            Metric::Within(ns) => limits.push(ns),
            Metric::Quantile(q) => {
                if let Some(atom) = case.law.as_ref().and_then(|law| atom_near(law, q)) {
                    limits.extend([atom - 1, atom]);
                }
            }
            _ => {}
        }
    }
    limits.sort_unstable();
    limits.dedup();
    limits
}

/// Requests of the pilot; also the least that is simulated.
const PILOT: u64 = 400_000;
const MOST: u64 = 600_000_000;

/// Simulates a case for as long as its cells need.
pub fn simulate(case: &Case) -> Vec<Finding> {
    let limits = limits(case);
    let pilot_length = if case.load > 0.85 { 5 * PILOT } else { PILOT };
    let mut pilot = case.world.clone();
    pilot.seed ^= 0x9e37_79b9;
    let mut measured = worlds::measure(&pilot, pilot_length, &limits);
    let mut length = pilot_length;
    // Fresh streams every time: a run is not judged on the noise that decided its length.
    for attempt in 0..6u64 {
        let strain = strain(case, &measured, &limits);
        if attempt > 0 && strain <= 1.0 {
            break;
        }
        length = (length as f64 * (strain * strain * 1.5).clamp(1.0, 100.0)) as u64;
        length = length.min(MOST);
        let mut world = case.world.clone();
        world.seed += attempt << 32;
        measured = worlds::measure(&world, length, &limits);
    }
    case.cells.iter().flat_map(|cell| judge(case, cell, &measured, &limits)).collect()
}

/// Largest relative standard error over what is allowed.
fn strain(case: &Case, m: &Pooled, limits: &[u64]) -> f64 {
    let of =
        |cell: &Cell| judge(case, cell, m, limits).iter().map(|f| f.strain).fold(0.0, f64::max);
    case.cells.iter().map(of).fold(0.0, f64::max)
}

fn judge(case: &Case, cell: &Cell, m: &Pooled, limits: &[u64]) -> Vec<Finding> {
    let instances = f64::from(case.world.servers[0].instances);
    let finding = |metric: Metric, want: f64, kind: Kind| {
        let Estimate { value, error } = estimate(metric, m, limits, instances);
        let mut off = value - want;
        if matches!(metric, Metric::Below(_) | Metric::Within(_)) {
            // What the end of a run lets go early is no part of the steady state.
            let flushed = flushed(&m.pooled) as f64 / m.pooled.counts.completed as f64;
            off = off.signum() * (off.abs() - flushed).max(0.0);
        }
        // A number that does not vary must be right to the digits of the table; or an instance
        // that idles a few times in all the run, for one gap between arrivals, never did.
        let idles = off.abs() * m.pooled.counts.completed as f64;
        let never = metric == Metric::Utilization && error == 0.0 && idles < 10.0;
        let exact = off.abs() <= (2e-9 * want.abs()).max(1e-12);
        let z = if exact || never { 0.0 } else { off / error };
        let strain = if kind == Kind::Edge || want < 1e-9 {
            0.0
        } else {
            error / want.abs() / allowed(metric, want, case.load)
        };
        Finding {
            at: format!("{} {metric:?}: {value} ± {error} instead of {want}", case.at),
            z,
            strain,
            requests: m.pooled.counts.completed,
            kind,
        }
    };
    let Metric::Quantile(q) = cell.metric else {
        return vec![finding(cell.metric, cell.want, Kind::Estimate)];
    };
    let atom = case.law.as_ref().and_then(|law| Some((law, atom_near(law, q)?)));
    let Some((law, atom)) = atom else {
        return vec![finding(cell.metric, cell.want, Kind::Estimate)];
    };
    let (below, upto) = law.cdf(atom as f64 / 1e6);
    let stray = |metric| 6.0 * estimate(metric, m, limits, instances).error;
    let clear_below = (q - below).abs() > stray(Metric::Below(atom));
    let clear_above = (q - upto).abs() > stray(Metric::Within(atom));
    let kind = match (clear_below && clear_above, law.is_atom(q)) {
        (true, false) => return vec![finding(cell.metric, cell.want, Kind::Estimate)],
        (true, true) => Kind::Atom,
        (false, _) => Kind::Edge,
    };
    let mut shares = vec![
        finding(Metric::Below(atom), below, Kind::Edge),
        finding(Metric::Within(atom), upto, Kind::Edge),
    ];
    if kind == Kind::Atom {
        // The sample quantile is the point mass, to the nanosecond.
        let s = &m.pooled;
        let place = |ns: u64| s.within[limits.binary_search(&ns).unwrap()];
        let rank = rank(q, s.counts.completed);
        let met = place(atom - 1) < rank && rank <= place(atom);
        let as_printed = (atom as f64 / 1e6 - cell.want).abs() <= 1e-8 * cell.want;
        let z = if met && as_printed { 0.0 } else { f64::INFINITY };
        let at = format!("{} p{q} is the point mass at {atom} ns", case.at);
        shares.push(Finding { at, z, strain: 0.0, requests: s.counts.completed, kind });
    }
    shares
}

/// Everything that was judged.
#[derive(Default)]
pub struct Tally {
    findings: Vec<Finding>,
    requests: u64,
}

impl Tally {
    pub fn add(&mut self, findings: Vec<Finding>) {
        self.requests += findings.first().map_or(0, |f| f.requests);
        self.findings.extend(findings);
    }

    pub fn cells(&self) -> usize {
        self.findings.len()
    }

    /// Prints what was checked; fails on a cell beyond the limit or too imprecise to tell.
    pub fn report(&self, name: &str, rows: usize) {
        let cells = self.findings.len();
        let count = |kind| self.findings.iter().filter(|f| f.kind == kind).count();
        let limit = t_quantile(1.0 - 0.0005 / cells as f64, 19);
        let worst = self.findings.iter().max_by(|a, b| a.z.abs().total_cmp(&b.z.abs())).unwrap();
        let strained = self.findings.iter().max_by(|a, b| a.strain.total_cmp(&b.strain)).unwrap();
        let varying: Vec<f64> =
            self.findings.iter().map(|f| f.z).filter(|z| *z != 0.0 && z.is_finite()).collect();
        let spread = (varying.iter().map(|z| z * z).sum::<f64>() / varying.len() as f64).sqrt();
        println!(
            "{name}: {rows} rows, {cells} cells ({} point masses met exactly, {} shares around \
             point masses), {:.1e} requests",
            count(Kind::Atom),
            count(Kind::Edge),
            self.requests as f64,
        );
        println!("    |z| at most {:.2} (limit {limit:.2}), r.m.s. {spread:.2}", worst.z.abs());
        println!("        {}", worst.at);
        println!("    standard error at most {:.2} of what is allowed", strained.strain);
        println!("        {}", strained.at);
        let mut longest: Vec<&Finding> = self.findings.iter().collect();
        longest.sort_by_key(|f| std::cmp::Reverse(f.requests));
        longest.dedup_by_key(|f| f.requests);
        for f in longest.iter().take(5) {
            println!("    {:.1e} requests: {}", f.requests as f64, f.at);
        }
        let failed: Vec<&Finding> =
            self.findings.iter().filter(|f| f.z.abs() > limit || f.z.is_nan()).collect();
        assert!(failed.is_empty(), "not the exact value: {failed:#?}");
        let vague: Vec<&Finding> = self.findings.iter().filter(|f| f.strain > 1.0).collect();
        assert!(vague.is_empty(), "too imprecise to tell: {vague:#?}");
    }
}
