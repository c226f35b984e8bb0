//! Textbook queues in closed or positive-term form: M/M/c, M/G/1, group arrivals, M/D/c, and the
//! bounds for unbounded greedy batching.
//!
//! Times in ms, rates per second. `rho` below is the load per server.

use super::chain::{Row, decay, stationary};
use super::error::NotCovered;
use super::model::{MOST_STATES, checked_states};
use super::poisson::Poisson;
use super::positive;

/// M/M/c: Poisson arrivals, `c` servers, exponential service (Erlang C; Kleinrock, Queueing
/// Systems, vol. 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MMc {
    servers: f64,
    /// Service completions per ms of one server.
    mu: f64,
    /// Offered work in servers.
    offered: f64,
    wait_probability: f64,
}

impl MMc {
    /// For `servers >= 1`.
    ///
    /// # Errors
    /// Parameters that are not positive, or an overloaded system.
    pub fn new(rate_per_s: f64, mean_service_ms: f64, servers: u32) -> Result<Self, NotCovered> {
        let offered = offered(rate_per_s, mean_service_ms, servers)?;
        let c = f64::from(servers);
        // Erlang B by its recursion in the number of servers, then C from B.
        let mut blocked = 1.0;
        for k in 1..=servers {
            blocked = offered * blocked / (f64::from(k) + offered * blocked);
        }
        let wait_probability = blocked / (1.0 - offered / c * (1.0 - blocked));
        Ok(Self { servers: c, mu: 1.0 / mean_service_ms, offered, wait_probability })
    }

    /// Rate at which the wait's tail decays, per ms.
    fn slack(&self) -> f64 {
        self.mu * (self.servers - self.offered)
    }

    /// Probability that a request has to wait (Erlang C).
    pub fn wait_probability(&self) -> f64 {
        self.wait_probability
    }

    /// Mean wait, ms.
    pub fn mean_wait_ms(&self) -> f64 {
        self.wait_probability / self.slack()
    }

    /// Mean wait plus service, ms.
    pub fn mean_sojourn_ms(&self) -> f64 {
        self.mean_wait_ms() + 1.0 / self.mu
    }

    /// `P(wait <= t)`.
    pub fn wait_cdf(&self, t_ms: f64) -> f64 {
        if t_ms < 0.0 { 0.0 } else { 1.0 - self.wait_probability * (-self.slack() * t_ms).exp() }
    }

    /// Quantile of the wait, ms; NaN unless `0 < q < 1`.
    pub fn wait_quantile_ms(&self, q: f64) -> f64 {
        if !(q > 0.0 && q < 1.0) {
            return f64::NAN;
        }
        ((self.wait_probability / (1.0 - q)).ln() / self.slack()).max(0.0)
    }

    /// `P(wait + service <= t)`.
    pub fn sojourn_cdf(&self, t_ms: f64) -> f64 {
        if t_ms <= 0.0 {
            return 0.0;
        }
        // The two decay rates may coincide: then (1 - exp(-g t)) / g is t.
        let gap = self.slack() - self.mu;
        let ratio = if (gap * t_ms).abs() < 1e-12 { t_ms } else { -(-gap * t_ms).exp_m1() / gap };
        1.0 - (-self.mu * t_ms).exp() * (1.0 + self.wait_probability * self.mu * ratio)
    }

    /// Quantile of wait plus service, ms; NaN unless `0 < q < 1`.
    pub fn sojourn_quantile_ms(&self, q: f64) -> f64 {
        quantile(q, self.mean_sojourn_ms(), |t| self.sojourn_cdf(t))
    }
}

/// M/D/c: Poisson arrivals, `c` servers, constant service.
///
/// The number in system after one service time is `max(N - c, 0) + Poisson` (Crommelin 1932); the
/// wait follows by Franx (Oper. Res. Letters 29, 2001) as a sum of positive terms. Erlang's series
/// for `c = 1` alternates in sign and loses all digits in double precision.
#[derive(Debug, Clone)]
pub struct MDc {
    servers: usize,
    rate: f64,
    service: f64,
    /// `P(N <= n)`.
    upto: Vec<f64>,
    mean_queue: f64,
}

impl MDc {
    /// For `servers >= 1`.
    ///
    /// # Errors
    /// Parameters that are not positive, an overloaded system, or a load too close to 1.
    pub fn new(rate_per_s: f64, service_ms: f64, servers: u32) -> Result<Self, NotCovered> {
        let offered = offered(rate_per_s, service_ms, servers)?;
        let c = servers as usize;
        let slope = decay(f64::from(servers), &|z| offered * (z - 1.0));
        let spread = offered + 9.0 * offered.sqrt() + 40.0;
        let top = checked_states(f64::from(servers) + spread + 40.0 / slope, MOST_STATES)?;
        let law = Poisson::new(offered);
        let row = |n: usize| {
            let lo = n.saturating_sub(c);
            let mut p = vec![0.0; law.all().len().min(top + 1 - lo)];
            let last = p.len() - 1;
            for (k, q) in law.all().iter().enumerate() {
                p[k.min(last)] += q;
            }
            Row { lo, p }
        };
        let pi = stationary((0..=top).map(row).collect());
        let mut sum = 0.0;
        let mut upto = Vec::with_capacity(pi.len());
        let mut mean_queue = 0.0;
        for (n, p) in pi.iter().enumerate() {
            sum += p;
            upto.push(sum);
            mean_queue += n.saturating_sub(c) as f64 * p;
        }
        Ok(Self { servers: c, rate: rate_per_s / 1000.0, service: service_ms, upto, mean_queue })
    }

    /// Mean wait, ms.
    pub fn mean_wait_ms(&self) -> f64 {
        self.mean_queue / self.rate
    }

    /// Mean wait plus service, ms.
    pub fn mean_sojourn_ms(&self) -> f64 {
        self.mean_wait_ms() + self.service
    }

    /// `P(wait <= t)`; at 0 the probability of no wait.
    pub fn wait_cdf(&self, t_ms: f64) -> f64 {
        if t_ms < 0.0 {
            return 0.0;
        }
        let k = (t_ms / self.service).floor() + 1.0;
        let most = k as usize * self.servers - 1;
        let arrivals = Poisson::new(self.rate * (k * self.service - t_ms).max(0.0));
        let term = |(j, p): (usize, &f64)| {
            let n = self.servers + most - j;
            p * self.upto.get(n).copied().unwrap_or(1.0)
        };
        arrivals.all().iter().enumerate().take(most + 1).map(term).sum()
    }

    /// `P(wait + service <= t)`.
    pub fn sojourn_cdf(&self, t_ms: f64) -> f64 {
        self.wait_cdf(t_ms - self.service)
    }

    /// Quantile of the wait, ms; NaN unless `0 < q < 1`.
    pub fn wait_quantile_ms(&self, q: f64) -> f64 {
        quantile(q, self.service, |t| self.wait_cdf(t))
    }

    /// Quantile of wait plus service, ms; NaN unless `0 < q < 1`.
    pub fn sojourn_quantile_ms(&self, q: f64) -> f64 {
        self.wait_quantile_ms(q) + self.service
    }
}

/// Mean wait in M/G/1, ms (Pollaczek 1930, Khinchine 1932). `scv` is the variance of the service
/// time over its squared mean. Infinite at load 1 and beyond.
pub fn pollaczek_khinchine_wait_ms(rate_per_s: f64, mean_service_ms: f64, scv: f64) -> f64 {
    let rho = rate_per_s / 1000.0 * mean_service_ms;
    if rho >= 1.0 {
        return f64::INFINITY;
    }
    rho * mean_service_ms * (1.0 + scv) / (2.0 * (1.0 - rho))
}

/// Mean wait in M\[X\]/G/1, ms: groups arrive as a Poisson process and are served one by one.
/// `size_mean` is E\[X\], `size_pairs` is E\[X (X - 1)\].
pub fn group_wait_ms(
    groups_per_s: f64,
    size_mean: f64,
    size_pairs: f64,
    mean_service_ms: f64,
    scv: f64,
) -> f64 {
    let rate_per_s = groups_per_s * size_mean;
    let rho = rate_per_s / 1000.0 * mean_service_ms;
    if rho >= 1.0 {
        return f64::INFINITY;
    }
    let ahead_in_group = size_pairs / (2.0 * size_mean * (1.0 - rho)) * mean_service_ms;
    pollaczek_khinchine_wait_ms(rate_per_s, mean_service_ms, scv) + ahead_in_group
}

/// The two upper bounds of Inoue (Performance Evaluation 2021, arXiv 1912.06322) on the mean
/// latency of greedy batching without a cap, service `fixed + per_item n`, ms: `(phi0, phi1)`.
///
/// The smaller one is within 7 % from load 0.05 up; `phi1` is exact where the server never idles.
/// Infinite where `rate * per_item >= 1`.
pub fn inoue_bounds_ms(rate_per_s: f64, fixed_ms: f64, per_item_ms: f64) -> (f64, f64) {
    let rate = rate_per_s / 1000.0;
    let rho = rate * per_item_ms;
    if rho >= 1.0 {
        return (f64::INFINITY, f64::INFINITY);
    }
    let fixed_load = rate * fixed_ms;
    let phi0 = (per_item_ms + fixed_ms) / (2.0 * (1.0 - rho))
        * (1.0 + 2.0 * fixed_load + (1.0 - fixed_load) / (1.0 + rho));
    let phi1 = 1.5 * fixed_ms / (1.0 - rho) + 0.5 * per_item_ms * (rho + 2.0) / (1.0 - rho * rho);
    (phi0, phi1)
}

/// Checks the parameters of a queue with several servers; returns the offered work in servers.
fn offered(rate_per_s: f64, service_ms: f64, servers: u32) -> Result<f64, NotCovered> {
    positive("rate_per_s", rate_per_s)?;
    positive("service_ms", service_ms)?;
    positive("servers", f64::from(servers))?;
    let offered = rate_per_s / 1000.0 * service_ms;
    if offered >= f64::from(servers) {
        return Err(NotCovered::Overloaded {
            offered_per_s: rate_per_s,
            capacity_per_s: 1000.0 * f64::from(servers) / service_ms,
        });
    }
    Ok(offered)
}

/// Smallest `t >= 0` with `cdf(t) >= q`, by doubling and bisection.
fn quantile(q: f64, scale: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    if !(q > 0.0 && q < 1.0) {
        return f64::NAN;
    }
    // A quantile within rounding of the mass at 0 is 0.
    if cdf(0.0) >= q - 1e-15 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, scale);
    while cdf(high) < q && high < 1e9 * scale {
        low = high;
        high *= 2.0;
    }
    while high - low > 4.0 * f64::EPSILON * high {
        let mid = 0.5 * (low + high);
        if cdf(mid) < q { low = mid } else { high = mid }
    }
    high
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn single_server_closed_forms() {
        let q = MMc::new(1000.0 * 0.9 / 8.5, 8.5, 1).unwrap();
        assert!((q.wait_probability() - 0.9).abs() < 1e-12);
        assert!((q.mean_sojourn_ms() - 85.0).abs() < 1e-9);
        let p99 = 85.0 * 100f64.ln();
        assert!((q.sojourn_quantile_ms(0.99) - p99).abs() < 1e-9 * p99);
        let d = MDc::new(1000.0 * 0.9 / 8.5, 8.5, 1).unwrap();
        assert!((d.mean_sojourn_ms() - 46.75).abs() < 1e-10);
        assert!((d.sojourn_quantile_ms(0.99) - 194.635).abs() < 1e-3);
    }

    #[test]
    fn overload_is_an_error_and_bounds_are_infinite() {
        assert!(matches!(MMc::new(120.0, 8.5, 1), Err(NotCovered::Overloaded { .. })));
        assert!(matches!(MDc::new(f64::NAN, 8.5, 1), Err(NotCovered::Input { .. })));
        assert!(pollaczek_khinchine_wait_ms(120.0, 8.5, 0.0).is_infinite());
        assert!(inoue_bounds_ms(2000.0, 8.0, 0.5).1.is_infinite());
    }

    #[test]
    fn sojourn_is_continuous_where_the_two_rates_meet() {
        // Two servers and load one half: the wait decays at the service rate.
        let at = |rate: f64| MMc::new(rate, 10.0, 2).unwrap().sojourn_cdf(25.0);
        assert!((at(100.0) - 0.5 * (at(99.999) + at(100.001))).abs() < 1e-9);
    }
}
