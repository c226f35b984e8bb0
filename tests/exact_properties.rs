//! What must hold whatever the parameters: closed forms, limits, two routes to the mean, and an
//! independent simulation of the rules.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use batchsim::exact::{Anchor, Input, NotCovered, Rule, Solution, solve};

fn linear(n: u32) -> f64 {
    8.0 + 0.5 * f64::from(n)
}

fn poisson(rate_per_s: f64) -> Input {
    Input::Poisson { rate_per_s }
}

fn at_least(min: u32, cap: u32) -> Rule {
    Rule::AtLeast { min, cap: Some(cap) }
}

fn timer(cap: u32, wait_ms: f64, anchor: Anchor) -> Rule {
    Rule::Timer { cap, wait_ms, anchor }
}

fn close(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want.abs(), "{got} instead of {want}");
}

#[test]
fn running_example() {
    let rule = timer(32, 5.0, Anchor::Oldest);
    let s = solve(&poisson(1000.0), &rule, &linear).unwrap();
    assert_eq!(format!("{:.3}", s.mean_ms()), "24.835");
    assert_eq!(format!("{:.3}", s.quantile_ms(0.5)), "24.511");
    assert_eq!(format!("{:.3}", s.quantile_ms(0.99)), "38.562");
    assert_eq!(format!("{:.3}", s.mean_batch()), "16.000");
    close(s.capacity_per_s(), 1333.0 + 1.0 / 3.0, 1e-14);
    close(s.load(), 0.75, 1e-14);
    close(s.mean_in_system(), 24.8345, 1e-4);
}

#[test]
fn no_batching_is_the_constant_service_queue() {
    let rate = 900.0 / 8.5;
    let s = solve(&poisson(rate), &at_least(1, 1), &linear).unwrap();
    close(s.mean_ms(), 46.75, 1e-12);
    close(s.mean_wait_ms(), 38.25, 1e-12);
    close(s.utilization(), 0.9, 1e-12);
    close(s.quantile_ms(0.99), 194.635, 1e-6);
    // The tail falls by a factor of 10 in ln 10 / theta.
    close(s.quantile_ms(0.999) - s.quantile_ms(0.99), 94.48, 1e-4);
    close(s.quantile_ms(0.9999) - s.quantile_ms(0.999), 94.48, 1e-4);
}

#[test]
fn atoms_are_exact() {
    let s = solve(&poisson(20.0), &at_least(1, 8), &linear).unwrap();
    assert_eq!(s.quantile_ms(0.5), 8.5);
    assert!(s.is_atom(0.5));
    let (below, upto) = s.cdf(8.5);
    assert!(below == 0.0 && upto > 0.5);
    close(s.mass_at(8.5), upto, 1e-15);

    let s = solve(&poisson(120.0), &timer(4, 10.0, Anchor::Oldest), &linear).unwrap();
    assert_eq!((s.quantile_ms(0.9), s.quantile_ms(0.99)), (19.5, 19.5));
    assert!(s.is_atom(0.9) && s.is_atom(0.99) && !s.is_atom(0.9999));
    assert!(s.quantile_ms(1.5).is_nan() && s.quantile_ms(0.0).is_nan());
}

#[test]
fn timers_at_their_limits_are_other_rules() {
    let cost = |n: u32| 7.3 + 0.417 * f64::from(n);
    let input = poisson(510.0);
    let same = |a: &Rule, b: &Rule, relative: f64| {
        let (a, b) = (solve(&input, a, &cost).unwrap(), solve(&input, b, &cost).unwrap());
        close(a.mean_ms(), b.mean_ms(), relative);
        close(a.quantile_ms(0.99), b.quantile_ms(0.99), relative);
    };
    for anchor in [Anchor::Oldest, Anchor::Pickup] {
        same(&timer(6, 0.0, anchor), &at_least(1, 6), 0.0);
        same(&timer(6, f64::INFINITY, anchor), &at_least(6, 6), 0.0);
        same(&timer(6, 1e-7, anchor), &at_least(1, 6), 1e-6);
        same(&timer(6, 250.0, anchor), &at_least(6, 6), 1e-9);
    }
    // Two different solutions meet where the timer equals the full service.
    let full = cost(6);
    same(&timer(6, full, Anchor::Oldest), &timer(6, full * (1.0 + 1e-12), Anchor::Oldest), 1e-10);
}

#[test]
fn no_cap_is_a_cap_never_reached() {
    for min in [1, 3] {
        let rule = Rule::AtLeast { min, cap: None };
        let a = solve(&poisson(600.0), &rule, &linear).unwrap();
        let b = solve(&poisson(600.0), &at_least(min, 64), &linear).unwrap();
        close(a.mean_ms(), b.mean_ms(), 1e-12);
        for q in [0.1, 0.5, 0.99, 0.999] {
            close(a.quantile_ms(q), b.quantile_ms(q), 1e-11);
        }
    }
}

/// Equal rates make the two-state process Poisson, but its solution takes other paths and grids.
#[test]
fn equal_rates_are_poisson() {
    let cost = |n: u32| 7.3 + 0.417 * f64::from(n);
    let input = Input::Mmpp2 { rates_per_s: [430.0, 430.0], dwells_ms: [37.0, 11.0] };
    for cap in [Some(1), Some(7), None] {
        let rule = Rule::AtLeast { min: 1, cap };
        let scale = if cap == Some(1) { 0.2 } else { 1.0 };
        let cost = |n: u32| scale * cost(n);
        let a = solve(&input, &rule, &cost).unwrap();
        let b = solve(&poisson(430.0), &rule, &cost).unwrap();
        close(a.mean_ms(), b.mean_ms(), 1e-12);
        close(a.sd_ms(), b.sd_ms(), 1e-11);
        for q in [0.1, 0.5, 0.99, 0.999] {
            close(a.quantile_ms(q), b.quantile_ms(q), 1e-11);
            if !b.is_atom(q) {
                let t = b.quantile_ms(q);
                close(a.density_per_ms(t), b.density_per_ms(t), 1e-9);
            }
        }
    }
}

/// A small generator (xorshift), so that the test needs none of the crate.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.unit() * f64::from(n)) as u32
    }
}

/// Random service times, decreasing ones included; the mean from the chain equals the mean of the
/// latency law, total probability is 1, and quantiles invert the distribution function.
#[test]
fn two_routes_to_the_mean_agree_on_random_tables() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..300 {
        let cap = 1 + random.below(9);
        let table: Vec<f64> = (0..cap).map(|_| 1.0 + 14.0 * random.unit()).collect();
        let cost = |n: u32| table[n as usize - 1];
        let load = 0.02 + 0.94 * random.unit();
        let rate = load * 1000.0 * f64::from(cap) / cost(cap);
        let wait = 40.0 * random.unit() * random.unit();
        let rule = match round % 3 {
            0 => at_least(1 + random.below(cap), cap),
            1 => timer(cap, wait, Anchor::Oldest),
            _ => timer(cap, wait, Anchor::Pickup),
        };
        let s = solve(&poisson(rate), &rule, &cost).unwrap();
        check_law(&s, &format!("{rule:?} {rate} {table:?}"));
    }
}

fn check_law(s: &Solution, at: &str) {
    assert!(s.mass_error().abs() < 1e-11, "{at}: mass {}", s.mass_error());
    let relative = s.mean_by_law_ms() / s.mean_ms() - 1.0;
    assert!(relative.abs() < 1e-10, "{at}: {} {}", s.mean_ms(), s.mean_by_law_ms());
    let pmf: f64 = s.batch_pmf().iter().sum();
    assert!((pmf - 1.0).abs() < 1e-12, "{at}");
    close(s.mean_in_system(), s.throughput_per_s() / 1000.0 * s.mean_ms(), 1e-14);
    assert!(s.utilization() <= 1.0 + 1e-12, "{at}: {}", s.utilization());
    for q in [0.01, 0.3, 0.5, 0.9, 0.99, 0.999] {
        let (below, upto) = s.cdf(s.quantile_ms(q));
        assert!(below <= q + 1e-11 && upto >= q - 1e-11, "{at} {q}: {below} {upto}");
    }
}

/// One server, first come first served, by the rules in words: no chain, no law.
struct Server<'a> {
    rule: Rule,
    cost: &'a dyn Fn(u32) -> f64,
}

impl Server<'_> {
    /// Start and size of the next batch, given the arrivals from the oldest queued one on.
    fn next(&self, free: f64, arrivals: &[f64]) -> (f64, usize) {
        let first = free.max(arrivals[0]);
        let present = |t: f64, most: usize| arrivals[..most].partition_point(|&a| a <= t);
        match self.rule {
            Rule::AtLeast { min, cap } => {
                let start = free.max(arrivals[min as usize - 1]);
                (start, present(start, cap.unwrap_or(1000) as usize))
            }
            Rule::Timer { cap, wait_ms, anchor } => {
                let cap = cap as usize;
                let deadline = match anchor {
                    Anchor::Oldest => (arrivals[0] + wait_ms).max(free),
                    Anchor::Pickup => first + wait_ms,
                };
                let start = deadline.min(arrivals[cap - 1]).max(first);
                (start, present(start, cap))
            }
        }
    }

    fn latencies(&self, arrivals: &[f64]) -> Vec<f64> {
        let (mut free, mut done) = (0.0, 0);
        let mut out = Vec::new();
        while done + 1000 < arrivals.len() {
            let (start, size) = self.next(free, &arrivals[done..]);
            free = start + (self.cost)(size as u32);
            out.extend(arrivals[done..done + size].iter().map(|a| free - a));
            done += size;
        }
        out
    }
}

fn arrivals(input: &Input, n: usize, random: &mut Random) -> Vec<f64> {
    let (rates, dwells) = match *input {
        Input::Poisson { rate_per_s } => ([rate_per_s; 2], [1e9; 2]),
        Input::Mmpp2 { rates_per_s, dwells_ms } => (rates_per_s, dwells_ms),
    };
    let (mut t, mut phase) = (0.0, 0);
    let mut out = Vec::with_capacity(n);
    while out.len() < n {
        let (rate, leave) = (rates[phase] / 1000.0, 1.0 / dwells[phase]);
        t -= random.unit().ln() / (rate + leave);
        if random.unit() * (rate + leave) < rate {
            out.push(t);
        } else {
            phase = 1 - phase;
        }
    }
    out
}

/// Compares mean and distribution function with a simulation in 50 batches, within five standard
/// errors.
fn compare(input: Input, rule: Rule, cost: &dyn Fn(u32) -> f64) {
    let requests = if cfg!(debug_assertions) { 400_000 } else { 2_000_000 };
    let mut random = Random(20_260_101);
    let solution = solve(&input, &rule, cost).unwrap();
    check_law(&solution, &format!("{rule:?}"));
    let server = Server { rule, cost };
    let latencies = server.latencies(&arrivals(&input, requests, &mut random));
    let sections: Vec<&[f64]> = latencies.chunks_exact(latencies.len() / 50).collect();
    let judge = |name: String, exact: f64, f: &dyn Fn(f64) -> f64| {
        let mean = |s: &[f64]| s.iter().map(|&t| f(t)).sum::<f64>() / s.len() as f64;
        let means: Vec<f64> = sections.iter().map(|s| mean(s)).collect();
        let centre = means.iter().sum::<f64>() / means.len() as f64;
        let var: f64 = means.iter().map(|m| (m - centre) * (m - centre)).sum();
        let error = (var / (49.0 * 50.0)).sqrt();
        let z = (centre - exact) / error.max(1e-9);
        assert!(z.abs() < 5.0, "{rule:?} {name}: {centre} against {exact}, z = {z}");
    };
    judge("mean".into(), solution.mean_ms(), &|t| t);
    judge("square".into(), solution.sd_ms().powi(2) + solution.mean_ms().powi(2), &|t| t * t);
    for q in [0.05, 0.2, 0.5, 0.8, 0.95, 0.99] {
        // A point mass is tested from both sides, a little away from it.
        let t = solution.quantile_ms(q);
        for t in [t - 1e-3, t + 1e-3] {
            let exact = solution.cdf(t).1;
            judge(format!("cdf({t})"), exact, &|l| f64::from(u8::from(l <= t)));
        }
    }
}

#[test]
fn simulation_agrees_where_no_table_reaches() {
    let odd = |n: u32| 7.3 + 0.417 * f64::from(n);
    let falling = |n: u32| [6.0, 11.5, 9.25, 7.0, 8.125][n as usize - 1];
    // Timer of more than one, two and four full services.
    compare(poisson(250.0), timer(3, 11.0, Anchor::Oldest), &odd);
    compare(poisson(210.0), timer(3, 22.0, Anchor::Oldest), &odd);
    compare(poisson(150.0), timer(3, 41.0, Anchor::Oldest), &odd);
    compare(poisson(330.0), timer(5, 17.0, Anchor::Oldest), &odd);
    // Service times that fall with the batch size.
    compare(poisson(420.0), timer(5, 6.5, Anchor::Oldest), &falling);
    compare(poisson(350.0), timer(5, 9.5, Anchor::Oldest), &falling);
    compare(poisson(350.0), timer(5, 9.5, Anchor::Pickup), &falling);
    compare(poisson(400.0), at_least(3, 5), &falling);
    compare(poisson(300.0), at_least(1, 5), &falling);
    compare(poisson(300.0), Rule::AtLeast { min: 4, cap: None }, &odd);
    let bursts = Input::Mmpp2 { rates_per_s: [900.0, 60.0], dwells_ms: [25.0, 75.0] };
    compare(bursts, at_least(1, 5), &falling);
    compare(bursts, Rule::AtLeast { min: 1, cap: None }, &odd);
}

#[test]
fn what_is_not_covered_is_said() {
    let message = |input: Input, rule: Rule, cost: &dyn Fn(u32) -> f64| {
        solve(&input, &rule, cost).unwrap_err().to_string()
    };
    let text = message(poisson(1400.0), at_least(1, 32), &linear);
    assert!(text.contains("1400.0/s offered") && text.contains("capacity 1333.3/s"), "{text}");
    let text = message(poisson(2100.0), Rule::AtLeast { min: 1, cap: None }, &linear);
    assert!(text.contains("overloaded"), "{text}");
    let text = message(poisson(f64::NAN), at_least(1, 1), &linear);
    assert!(text.contains("rate_per_s"), "{text}");
    let text = message(poisson(10.0), at_least(3, 2), &linear);
    assert!(text.contains("below the minimum"), "{text}");
    let text = message(poisson(10.0), timer(2, -1.0, Anchor::Oldest), &linear);
    assert!(text.contains("wait"), "{text}");
    let text = message(poisson(10.0), at_least(1, 4), &|n| 3.0 - f64::from(n));
    assert!(text.contains("batch of 3"), "{text}");
    let bursts = Input::Mmpp2 { rates_per_s: [200.0, 0.0], dwells_ms: [10.0, 10.0] };
    let text = message(bursts, at_least(2, 4), &linear);
    assert!(text.contains("never wait"), "{text}");
    let silent = Input::Mmpp2 { rates_per_s: [0.0, 0.0], dwells_ms: [10.0, 10.0] };
    assert!(matches!(solve(&silent, &at_least(1, 1), &linear), Err(NotCovered::Input { .. })));
    // Extreme but sensible values are solved, not refused.
    let s = solve(&poisson(1e-6), &timer(4, 1e8, Anchor::Oldest), &linear).unwrap();
    close(s.quantile_ms(0.5), 1e8 + 8.5, 1e-12);
    let near = poisson(1333.3333);
    let got = solve(&near, &at_least(1, 32), &linear);
    assert!(matches!(got, Err(NotCovered::TooLarge { .. })), "{got:?}");
}
