//! Arrival processes with the formulas of their counts.

use super::worlds::{gamma, mmpp, ms, on_off, poisson, rate};
use batchsim::arrivals::{
    Clients, GroupSize, GroupSizeKind, GroupSizeLaw, Groups, Hawkes, Hyperexponential, Mmpp, OnOff,
    Process, Weibull,
};
use batchsim::units::Fraction;
use statrs::function::gamma::gamma as gamma_function;

/// `IDC(t)` of stationary renewal counts for long windows (Cox, Renewal Theory, 1962), from the
/// first three moments of a gap of mean 1.
fn renewal_of(per_s: f64, [square, cube]: [f64; 2]) -> Box<dyn Fn(f64) -> f64> {
    let variance = square - 1.0;
    let third = cube - 3.0 * square + 2.0;
    let rest = 1.0 / 6.0 + variance * variance / 2.0 - third / 3.0;
    Box::new(move |t| variance + rest / (per_s * t))
}

/// Mean square and cube of a Weibull variable of mean 1.
fn weibull_moments(shape: f64) -> [f64; 2] {
    let moment = |n: f64| gamma_function(1.0 + n / shape);
    [moment(2.0) / moment(1.0).powi(2), moment(3.0) / moment(1.0).powi(3)]
}

/// The same of two exponential phases with balanced means.
fn two_phases(cv: f64) -> [f64; 2] {
    let c = cv * cv;
    let p = 0.5 * (1.0 + ((c - 1.0) / (c + 1.0)).sqrt());
    let moment = |n: i32, factorial: f64| {
        factorial * (p / (2.0 * p).powi(n) + (1.0 - p) / (2.0 * (1.0 - p)).powi(n))
    };
    [moment(2, 2.0), moment(3, 6.0)]
}

/// `IDC(t)` of self-exciting counts.
fn hawkes(branching: f64, decay_s: f64) -> Box<dyn Fn(f64) -> f64> {
    let (limit, rate) = ((1.0 - branching).powi(-2), (1.0 - branching) / decay_s);
    Box::new(move |t| limit + (1.0 - limit) * (1.0 - (-rate * t).exp()) / (rate * t))
}

/// `IDC(t)` of groups with limit `i`, whose members come over `w` seconds.
fn fan_out(i: f64, w: f64) -> Box<dyn Fn(f64) -> f64> {
    Box::new(move |t| {
        let together = if t < w { t / w * (1.0 - t / (3.0 * w)) } else { 1.0 - w / (3.0 * t) };
        1.0 + (i - 1.0) * together
    })
}

fn fan_out_of(per_s: f64, size: GroupSize, spread_ms: f64) -> Process {
    Process::Groups(Groups { rate: rate(per_s), size, spread: ms(spread_ms) })
}

/// A process with the formulas of its counts.
pub struct Law {
    pub name: &'static str,
    pub process: Process,
    pub per_s: f64,
    /// CV of the gaps, where it has a formula.
    pub cv: Option<f64>,
    /// Index of dispersion over `t` seconds.
    pub idc: Box<dyn Fn(f64) -> f64>,
    /// Whether that is the formula of long windows only.
    pub renewal: bool,
}

/// `IDC(t)` of a two-state process with limit `i` and relaxation rate `q`.
fn two_state(i: f64, q: f64) -> Box<dyn Fn(f64) -> f64> {
    Box::new(move |t| 1.0 + (i - 1.0) * (1.0 - (1.0 - (-q * t).exp()) / (q * t)))
}

pub fn laws() -> Vec<Law> {
    // A stationary renewal process counts with variance cv² λt + (1 − cv⁴) / 6 for gamma gaps and
    // large t (Cox, Renewal Theory, 1962).
    let renewal = |per_s: f64, cv: f64| -> Box<dyn Fn(f64) -> f64> {
        Box::new(move |t| cv * cv + (1.0 - cv.powi(4)) / (6.0 * per_s * t))
    };
    let burst = Mmpp {
        rate: Some(rate(400.0)),
        idc: Some(9.0),
        timescale: Some(ms(50.0)),
        high_share: Fraction::new(0.2),
        ..Mmpp::default()
    };
    // Silent between bursts: gaps are independent, so their CV² is the limit of the IDC.
    let four = GroupSizeLaw { kind: GroupSizeKind::Geometric, mean: 4.0 };
    let (q1, q2): (f64, f64) = (1.0 / 0.030, 1.0 / 0.120);
    let silent = 1.0 + 2.0 * 250.0 * q1 / ((q1 + q2) * (q1 + q2));
    let (p1, p2): (f64, f64) = (1.0 / 0.020, 1.0 / 0.180);
    let by_state =
        1.0 + 2.0 * 260f64.powi(2) * p1 * p2 / ((p1 + p2).powi(2) * (300.0 * p2 + 40.0 * p1));
    vec![
        Law {
            name: "poisson",
            process: poisson(500.0),
            per_s: 500.0,
            cv: Some(1.0),
            idc: Box::new(|_| 1.0),
            renewal: false,
        },
        Law {
            name: "gamma, cv 2.5",
            process: gamma(500.0, 2.5),
            per_s: 500.0,
            cv: Some(2.5),
            idc: renewal(500.0, 2.5),
            renewal: true,
        },
        Law {
            name: "gamma, cv 0.5",
            process: gamma(500.0, 0.5),
            per_s: 500.0,
            cv: Some(0.5),
            idc: renewal(500.0, 0.5),
            renewal: true,
        },
        Law {
            name: "mmpp by states",
            process: mmpp([300.0, 40.0], [20.0, 180.0]),
            per_s: 66.0,
            cv: None,
            idc: two_state(by_state, p1 + p2),
            renewal: false,
        },
        Law {
            name: "mmpp by burstiness",
            process: Process::Mmpp(burst),
            per_s: 400.0,
            cv: None,
            idc: two_state(9.0, 1.0 / 0.050),
            renewal: false,
        },
        Law {
            name: "on-off, silent when off",
            process: on_off(250.0, [30.0, 120.0]),
            per_s: 50.0,
            cv: Some(silent.sqrt()),
            idc: two_state(silent, q1 + q2),
            renewal: false,
        },
        Law {
            name: "on-off, slower when off",
            process: Process::OnOff(OnOff {
                rate_on: rate(300.0),
                rate_off: Some(rate(40.0)),
                on: ms(20.0),
                off: ms(180.0),
            }),
            per_s: 66.0,
            cv: None,
            idc: two_state(by_state, p1 + p2),
            renewal: false,
        },
        Law {
            name: "groups of 8",
            process: fan_out_of(50.0, GroupSize::Constant(8), 0.0),
            per_s: 400.0,
            cv: None,
            idc: fan_out(8.0, 0.0),
            renewal: false,
        },
        Law {
            name: "groups, geometric of 4",
            process: fan_out_of(100.0, GroupSize::Drawn(four), 0.0),
            per_s: 400.0,
            cv: None,
            idc: fan_out(7.0, 0.0),
            renewal: false,
        },
        Law {
            name: SPREAD,
            process: fan_out_of(50.0, GroupSize::Constant(8), 60.0),
            per_s: 400.0,
            cv: None,
            idc: fan_out(8.0, 0.060),
            renewal: false,
        },
        Law {
            name: "weibull, cv 2",
            process: Process::Weibull(Weibull { rate: rate(500.0), cv: 2.0 }),
            per_s: 500.0,
            cv: Some(2.0),
            idc: renewal_of(500.0, weibull_moments(0.542_69)),
            renewal: true,
        },
        Law {
            name: "hyperexponential, cv 3",
            process: Process::Hyperexponential(Hyperexponential { rate: rate(500.0), cv: 3.0 }),
            per_s: 500.0,
            cv: Some(3.0),
            idc: renewal_of(500.0, two_phases(3.0)),
            renewal: true,
        },
        Law {
            name: "hawkes, branching 0.5",
            process: Process::Hawkes(Hawkes { rate: rate(400.0), branching: 0.5, decay: ms(40.0) }),
            per_s: 400.0,
            cv: None,
            idc: hawkes(0.5, 0.040),
            renewal: false,
        },
        Law {
            name: "three clients",
            process: Process::Clients(Clients {
                count: 3,
                rate: rate(900.0),
                cv: 2.0,
                share_zipf: 0.5,
            }),
            per_s: 900.0,
            cv: None,
            idc: Box::new(|t| 4.0 + 3.0 * (1.0 - 16.0) / (6.0 * 900.0 * t)),
            renewal: true,
        },
    ]
}

/// Its first spread is thinner: no group began before time zero.
pub const SPREAD: &str = "groups of 8 over 60 ms";
