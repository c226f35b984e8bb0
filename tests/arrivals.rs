//! Arrival processes against their formulas: rate, gaps, and counts at several time scales.
//!
//! Every estimate comes from 40 independent streams; with `m` comparisons Student's t with 39
//! degrees of freedom allows |z| up to its quantile at level 0.001 / m, and the standard error
//! itself is bounded, so that a pass means something.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/laws.rs"]
mod laws;
#[path = "common/worlds.rs"]
mod worlds;

use batchsim::arrivals::{
    Clients, Deterministic, Feed, Limits, Mmpp, OnOff, Process, Replay, Schedule, SchedulePoint,
    Sine, Stream, TimeScale, TimeScaleMode, Trace,
};
use batchsim::rng::{Purpose, substream};
use batchsim::stats::t_quantile;
use batchsim::time::Nanos;
use batchsim::units::Fraction;
use laws::{SPREAD, laws};
use std::sync::Arc;
use worlds::{MS, gamma, mmpp, ms, poisson, rate};

const STREAMS: u32 = 40;

fn stream(process: &Process, replication: u32, source: u32) -> Box<dyn Stream + Send> {
    let rng = substream(11, replication, source, Purpose::Arrivals);
    process.stream(None, rng).unwrap().unwrap()
}

/// The first `n` arrivals of a stream in ns.
fn times(process: &Process, replication: u32, n: usize) -> Vec<u64> {
    let mut out = vec![0; n];
    assert_eq!(stream(process, replication, 0).fill(&mut out), n);
    assert!(out.windows(2).all(|w| w[0] <= w[1]), "in order");
    out
}

/// Collects comparisons.
#[derive(Default)]
struct Check(Vec<(String, f64, f64)>);

impl Check {
    /// Compares the mean of independent estimates; their relative standard error is bounded.
    fn mean(&mut self, what: String, estimates: &[f64], want: f64, precise: f64) {
        let n = estimates.len() as f64;
        let mean = estimates.iter().sum::<f64>() / n;
        let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        self.0.push((
            format!("{what}: {mean:.5} ± {error:.5}, by formula {want:.5}"),
            (mean - want) / error,
            error / want / precise,
        ));
    }

    fn finish(self) {
        let limit = t_quantile(1.0 - 0.0005 / self.0.len() as f64, u64::from(STREAMS) - 1);
        for (what, z, _) in &self.0 {
            println!("{what} (z {z:+.2})");
        }
        for (what, z, strain) in &self.0 {
            assert!(z.abs() < limit, "{what}: z = {z}, limit {limit}");
            assert!(*strain < 1.0, "{what}: too imprecise to tell");
        }
    }
}

/// Counts in the windows of length `window_ns` that fit into `windows` of them.
fn counts(times: &[u64], window_ns: u64, windows: usize) -> Vec<f64> {
    let mut counts = vec![0.0; windows];
    for t in times {
        if let Some(count) = counts.get_mut((t / window_ns) as usize) {
            *count += 1.0;
        }
    }
    counts
}

#[test]
fn rates_gaps_and_counts_follow_their_formulas() {
    let mut check = Check::default();
    for law in laws() {
        let n = 250_000usize;
        let (mut rates, mut squares) = (Vec::new(), Vec::new());
        // Windows of 0.02, 0.1, 0.5 and 3 s: below, at and above the time scales of the bursts.
        // For renewal gaps the formula is that of long windows.
        let windows: &[f64] = if law.renewal { &[0.5, 3.0] } else { &[0.02, 0.1, 0.5, 3.0] };
        let mut dispersion = vec![Vec::new(); windows.len()];
        for replication in 0..STREAMS {
            let times = times(&law.process, replication, n);
            let horizon_s = 0.95 * n as f64 / law.per_s;
            let until = (horizon_s * 1e9) as u64;
            let arrived = times.iter().filter(|t| **t < until).count() as f64;
            assert!(arrived < n as f64, "{}: the horizon is covered", law.name);
            rates.push(arrived / horizon_s);
            let gap = |w: &[u64]| (w[1] - w[0]) as f64 / 1e9 * law.per_s;
            let square: f64 = times.windows(2).map(|w| gap(w).powi(2)).sum();
            squares.push(square / (n - 1) as f64);
            for (window, estimates) in windows.iter().zip(&mut dispersion) {
                let mean = law.per_s * window;
                let many = (horizon_s / window) as usize;
                let counts = counts(&times, (window * 1e9) as u64, many);
                let spread: f64 = counts.iter().map(|c| (c - mean).powi(2)).sum();
                estimates.push(spread / many as f64 / mean);
            }
        }
        check.mean(format!("{}: rate", law.name), &rates, law.per_s, 0.002);
        if let Some(cv) = law.cv {
            check.mean(format!("{}: 1 + cv²", law.name), &squares, 1.0 + cv * cv, 0.005);
        }
        for (window, estimates) in windows.iter().zip(&dispersion) {
            let want = (law.idc)(*window);
            check.mean(format!("{}: IDC({window} s)", law.name), estimates, want, 0.03);
        }
    }
    check.finish();
}

/// The first arrivals are as stationary as the rest: no burst and no gap at time zero.
#[test]
fn streams_start_stationary() {
    let mut check = Check::default();
    for law in laws().into_iter().filter(|law| law.name != SPREAD) {
        // Mean count of the first 30 ms over many streams, in 40 groups.
        let groups: Vec<f64> = (0..STREAMS)
            .map(|group| {
                let each = 1_000;
                let count: usize = (0..each)
                    .map(|i| {
                        let times = times(&law.process, 1000 + group * each + i, 128);
                        assert!(times[127] > 30 * MS);
                        times.partition_point(|t| *t < 30 * MS)
                    })
                    .sum();
                count as f64 / f64::from(each)
            })
            .collect();
        check.mean(format!("{}: first 30 ms", law.name), &groups, 0.030 * law.per_s, 0.02);
    }
    check.finish();
}

#[test]
fn deterministic_arrivals_are_exact() {
    let process = |per_s, phase_ms| {
        Process::Deterministic(Deterministic { rate: rate(per_s), phase: ms(phase_ms) })
    };
    let even = times(&process(250.0, 3.0), 0, 100_000);
    assert!(even.iter().enumerate().all(|(k, t)| *t == 3 * MS + k as u64 * 4 * MS));
    // 1 / 3,000 s is no whole number of nanoseconds: no drift all the same.
    let odd = times(&process(3000.0, 0.0), 0, 3_000_001);
    for k in [1, 2, 3, 1_000, 2_999_999, 3_000_000u64] {
        let exact = k as f64 * 1e9 / 3000.0;
        assert!((odd[k as usize] as f64 - exact).abs() <= 1.0, "{k}");
    }
    assert_eq!(times(&process(250.0, 3.0), 1, 1000), even[..1000]);
}

/// The same two-state law written both ways gives the same arrivals, byte for byte. Values that
/// have no rounding: high and low for 125 ms each at 150 and 50/s.
#[test]
fn an_mmpp_is_the_same_by_states_and_by_burstiness() {
    let by_states = mmpp([150.0, 50.0], [125.0, 125.0]);
    let by_burstiness = Process::Mmpp(Mmpp {
        rate: Some(rate(100.0)),
        idc: Some(4.125),
        timescale: Some(ms(62.5)),
        high_share: Fraction::new(0.5),
        ..Mmpp::default()
    });
    for replication in 0..5 {
        let states = times(&by_states, replication, 20_000);
        assert_eq!(states, times(&by_burstiness, replication, 20_000));
    }
    // On-off is the same process under other names.
    let on_off = Process::OnOff(OnOff {
        rate_on: rate(150.0),
        rate_off: Some(rate(50.0)),
        on: ms(125.0),
        off: ms(125.0),
    });
    assert_eq!(times(&on_off, 0, 20_000), times(&by_states, 0, 20_000));
}

/// Half the time high is the default share.
#[test]
fn high_share_defaults_to_half() {
    let burst = |high_share| {
        Process::Mmpp(Mmpp {
            rate: Some(rate(100.0)),
            idc: Some(4.0),
            timescale: Some(ms(60.0)),
            high_share,
            ..Mmpp::default()
        })
    };
    assert_eq!(times(&burst(None), 0, 1000), times(&burst(Fraction::new(0.5)), 0, 1000));
}

#[test]
fn an_infeasible_idc_names_the_largest() {
    let burst = |idc, share| {
        Process::Mmpp(Mmpp {
            rate: Some(rate(200.0)),
            idc: Some(idc),
            timescale: Some(ms(40.0)),
            high_share: Fraction::new(share),
            ..Mmpp::default()
        })
    };
    // 1 + 2 τ λ (1 − p) / p with τλ = 8.
    for (share, largest, text) in [(0.5, 17.0, "1 to 17;"), (0.2, 65.0, "1 to 65;")] {
        assert_eq!(burst(largest, share).check(), Ok(()));
        let error = burst(largest * 1.001, share).check().unwrap_err();
        assert_eq!(error.key, "idc");
        assert!(error.help.contains(text), "{error:?}");
        // At the largest the low state is silent.
        let times = times(&burst(largest, share), 0, 1000);
        assert!(times.windows(2).any(|w| w[1] - w[0] > 20 * MS));
    }
    assert!(burst(0.9, 0.5).check().is_err());
    assert!(burst(f64::NAN, 0.5).check().is_err());
}

/// Several sources become one stream in order of time, each request with its source; at equal
/// times the lower source comes first.
#[test]
fn superposition_keeps_order_and_counts() {
    let grid = || Process::Deterministic(Deterministic { rate: rate(250.0), phase: Nanos::ZERO });
    let sources = [poisson(300.0), grid(), gamma(200.0, 3.0), grid()];
    let until = 2_000 * MS;
    let mut expected: Vec<(u64, u8)> = Vec::new();
    for (tag, process) in (0u8..).zip(&sources) {
        let mut all = vec![0; 10_000];
        let n = stream(process, 4, u32::from(tag)).fill(&mut all);
        expected.extend(all[..n].iter().filter(|t| **t < until).map(|t| (*t, tag)));
    }
    expected.sort_unstable();
    let limits = Limits { measure_from_ns: 0, measured: None, until_ns: Some(until) };
    let streams = (0..).zip(&sources).map(|(i, p)| stream(p, 4, i)).collect();
    let mut feed = Feed::new(streams, limits);
    let mut merged = Vec::new();
    loop {
        let (times, tags) = feed.ready();
        if times.is_empty() {
            break;
        }
        merged.extend(times.iter().copied().zip(tags.iter().copied()));
        // In odd steps, as an engine would.
        let n = times.len().min(37);
        merged.truncate(merged.len() - (times.len() - n));
        feed.consume(n);
    }
    assert_eq!(merged, expected);
    assert!(merged.len() > 1_700);
}

/// Warm-up does not count towards the requests that were asked for.
#[test]
fn a_feed_ends_where_it_is_told() {
    let all = times(&poisson(1000.0), 0, 6_000);
    for (from, measured) in [(0, 2_500), (500 * MS, 2_500), (1_000 * MS, 1)] {
        let limits = Limits { measure_from_ns: from, measured: Some(measured), until_ns: None };
        let mut feed = Feed::new(vec![stream(&poisson(1000.0), 0, 0)], limits);
        let mut got = Vec::new();
        while !feed.ready().0.is_empty() {
            got.extend_from_slice(feed.ready().0);
            let n = feed.ready().0.len();
            feed.consume(n);
        }
        let warm_up = all.partition_point(|t| *t < from);
        assert_eq!(got, all[..warm_up + measured as usize]);
    }
}

/// A recording faster by a factor: every time divided, nothing lost, the CV unchanged.
#[test]
fn a_recording_is_scaled_in_time() {
    let recorded = times(&gamma(40.0, 3.0), 9, 30_000);
    let start = recorded[0];
    let arrivals: Vec<Nanos> = recorded.iter().map(|t| Nanos(t - start)).collect();
    let trace = Arc::new(Trace { arrivals: arrivals.clone(), ..Trace::default() });
    let play = |factor: Option<f64>| {
        let scale = factor.map(|factor| TimeScale { mode: TimeScaleMode::Time, factor });
        let process =
            Process::Trace(Replay { file: "r".into(), format: None, columns: None, scale });
        let rng = substream(0, 0, 0, Purpose::Arrivals);
        let mut stream = process.stream(Some(&trace), rng).unwrap().unwrap();
        let mut out = vec![0; 40_000];
        let mut n = 0;
        // In pieces; the stream ends with the recording.
        loop {
            let end = (n + 1_000).min(out.len());
            let got = stream.fill(&mut out[n..end]);
            n += got;
            if got == 0 {
                break;
            }
        }
        out.truncate(n);
        out
    };
    let as_recorded = play(None);
    assert!(as_recorded.iter().zip(&arrivals).all(|(t, a)| *t == a.0));
    assert_eq!(play(Some(1.0)), as_recorded);
    let cv = |times: &[u64]| {
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        spread.sqrt() / mean
    };
    for factor in [5.0, 0.5, 3.3] {
        let scaled = play(Some(factor));
        assert_eq!(scaled.len(), 30_000);
        for (scaled, recorded) in scaled.iter().zip(&as_recorded) {
            assert!((*scaled as f64 - *recorded as f64 / factor).abs() <= 0.5 + 1e-6);
        }
        assert!((cv(&scaled) / cv(&as_recorded) - 1.0).abs() < 1e-6);
    }
}

/// Counts of a planned rate against its integral, window by window: the sum of
/// `(count − mean)² / mean` over windows that cover many turns is their number, as for Poisson
/// counts, and counts at the same phase add up to theirs.
#[test]
fn a_schedule_keeps_to_its_plan() {
    let point = |at_ms, per_s| SchedulePoint { at: ms(at_ms), rate: rate(per_s) };
    let points =
        [point(0.0, 100.0), point(400.0, 900.0), point(500.0, 900.0), point(1000.0, 100.0)];
    let turns = Schedule { points: Some(points.to_vec()), repeat: true, ..Schedule::default() };
    let sine = Sine { rate: rate(400.0), swing: Fraction::new(0.8).unwrap(), period: ms(1000.0) };
    let swing = Schedule { sine: Some(sine), ..Schedule::default() };
    // The integral of each tenth of a turn: trapezoids up, level and down.
    let lines = [20.0, 40.0, 60.0, 80.0, 90.0, 82.0, 66.0, 50.0, 34.0, 18.0];
    let tau = std::f64::consts::TAU;
    let area = |t: f64| 400.0 * (t - 0.8 / tau * ((tau * t).cos() - 1.0));
    let wave: Vec<f64> =
        (0..10).map(|i| area(f64::from(i + 1) / 10.0) - area(f64::from(i) / 10.0)).collect();
    let mut check = Check::default();
    for (name, plan, means) in [("lines", turns, lines.to_vec()), ("sine", swing, wave)] {
        let per_turn: f64 = means.iter().sum();
        assert!((plan.mean_rate_per_s() - per_turn).abs() < 1e-9, "{}", plan.mean_rate_per_s());
        let process = Process::Schedule(plan);
        let many = 600;
        let mut shares = vec![Vec::new(); means.len()];
        let mut spreads = Vec::new();
        for replication in 0..STREAMS {
            let n = (per_turn * f64::from(many) * 1.05) as usize;
            let counted = counts(&times(&process, replication, n), 100 * MS, 10 * many as usize);
            let mut spread = 0.0;
            for (phase, mean) in means.iter().enumerate() {
                let own: Vec<f64> = counted.iter().skip(phase).step_by(10).copied().collect();
                shares[phase].push(own.iter().sum::<f64>() / own.len() as f64);
                spread += own.iter().map(|c| (c - mean).powi(2) / mean).sum::<f64>();
            }
            spreads.push(spread / counted.len() as f64);
        }
        for (phase, (mean, own)) in means.iter().zip(&shares).enumerate() {
            check.mean(format!("{name}: tenth {phase}"), own, *mean, 0.01);
        }
        check.mean(format!("{name}: dispersion"), &spreads, 1.0, 0.01);
    }
    check.finish();
}

/// After the last point the rate stays, before the first too.
#[test]
fn a_schedule_that_ends_keeps_its_last_rate() {
    let points = vec![
        SchedulePoint { at: ms(1000.0), rate: rate(100.0) },
        SchedulePoint { at: ms(2000.0), rate: rate(1000.0) },
    ];
    let process = Process::Schedule(Schedule { points: Some(points), ..Schedule::default() });
    let mut check = Check::default();
    let counted: Vec<Vec<f64>> =
        (0..STREAMS).map(|i| counts(&times(&process, i, 60_000), 1000 * MS, 50)).collect();
    for (second, mean) in [(0, 100.0), (1, 550.0), (2, 1000.0), (49, 1000.0)] {
        let own: Vec<f64> = counted.iter().map(|c| c[second]).collect();
        check.mean(format!("second {second}"), &own, mean, 0.05);
    }
    check.finish();
}

/// Shares of the busiest clients, as asked for.
#[test]
fn clients_have_their_shares() {
    let clients = Clients { count: 100, rate: rate(500.0), cv: 3.0, share_zipf: 1.2 };
    let shares = clients.shares();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((shares[1] / shares[0] - 2f64.powf(-1.2)).abs() < 1e-12);
    let ten: f64 = shares[..10].iter().sum();
    assert!((ten - 0.684899).abs() < 1e-6, "{ten}");
}
