//! The numbers of a cell in every section, for comparisons and for the exact solution.

use super::cell::Measured;
use super::measure::rates;
use crate::outcome::{Better, Series};
use crate::policy::Reason;
use crate::record::{ClassSummary, LatencyStore, Summary};

/// The quantiles that are kept.
const QUANTILES: [(f64, &str); 5] =
    [(0.5, "p(50)"), (0.9, "p(90)"), (0.95, "p(95)"), (0.99, "p(99)"), (0.999, "p(99.9)")];

/// Below this many requests in all, p99.9 says little.
const P999_NEEDS: u64 = 100_000;

/// What the numbers refer to.
pub(super) struct Asked<'a> {
    /// Latency limits in milliseconds, one for each limit that was counted.
    pub(super) limits_ms: &'a [f64],
    /// Names of the classes, in order.
    pub(super) classes: &'a [String],
    /// Instances of the server.
    pub(super) instances: u32,
    /// Whether the queue settles; else there are no latencies.
    pub(super) stable: bool,
}

struct Out<'a, L> {
    measured: &'a Measured<L>,
    series: Vec<Series>,
}

impl<L> Out<'_, L> {
    /// Adds a number, unless it does not exist in every section.
    fn put(
        &mut self,
        metric: impl Into<String>,
        unit: &str,
        better: Better,
        f: impl Fn(&Summary<L>) -> Option<f64>,
    ) {
        let Some(value) = f(&self.measured.pooled).filter(|v| v.is_finite()) else { return };
        let sections: Option<Vec<f64>> =
            self.measured.sections.iter().map(|s| f(s).filter(|v| v.is_finite())).collect();
        let Some(sections) = sections else { return };
        let (metric, unit) = (metric.into(), unit.to_owned());
        self.series.push(Series { metric, unit, better, value, sections, error: None });
    }
}

/// The numbers of a cell.
#[expect(clippy::cast_precision_loss, reason = "counts of requests and batches")]
pub(super) fn series<L: LatencyStore>(measured: &Measured<L>, asked: &Asked<'_>) -> Vec<Series> {
    let mut out = Out { measured, series: Vec::new() };
    if asked.stable {
        out.put("mean", "ms", Better::Lower, |s| mean(s.latency_sum_ns, s.counts.completed));
        latencies(&mut out, "", "", |s| Some((&s.latency, s.counts.completed)));
        for (number, class) in asked.classes.iter().enumerate() {
            let row = |s: &Summary<L>| -> Option<(u128, u64)> {
                let c: &ClassSummary<L> = s.classes.get(number)?;
                Some((c.latency_sum_ns, c.counts.completed))
            };
            let of = format!(" of {class}");
            out.put(format!("mean{of}"), "ms", Better::Lower, |s| {
                row(s).and_then(|(sum, n)| mean(sum, n))
            });
            latencies(&mut out, "", &of, |s| {
                s.classes.get(number).map(|c| (&c.latency, c.counts.completed))
            });
        }
    }
    if asked.stable && measured.pooled.groups.is_some() {
        out.put("group.mean", "ms", Better::Lower, |s| {
            s.groups.as_ref().and_then(|g| mean(g.latency_sum_ns, g.completed))
        });
        latencies(&mut out, "group.", "", |s| s.groups.as_ref().map(|g| (&g.latency, g.completed)));
    }
    out.put("throughput", "/s", Better::Higher, |s| Some(rates(s, asked.instances).0));
    for (i, limit) in asked.limits_ms.iter().enumerate() {
        out.put(format!("attainment({limit}ms)"), "share", Better::Higher, |s| {
            share(*s.within.get(i)?, s.offered)
        });
    }
    out.put("rejected", "share", Better::Lower, |s| share(s.counts.rejected, s.offered));
    out.put("expired", "share", Better::Lower, |s| share(s.counts.expired, s.offered));
    out.put("unfinished", "share", Better::Lower, |s| share(s.counts.unfinished, s.offered));
    out.put("busy", "share", Better::Neither, |s| Some(rates(s, asked.instances).1));
    out.put("mean batch", "", Better::Neither, |s| {
        let batches: u64 = s.batches.iter().flatten().sum();
        let items: u64 = (0u64..).zip(&s.batches).map(|(n, b)| n * b.iter().sum::<u64>()).sum();
        (batches > 0).then(|| items as f64 / batches as f64)
    });
    for reason in Reason::ALL {
        let count = |s: &Summary<L>| s.batches.iter().map(|b| b[reason as usize]).sum::<u64>();
        if count(&measured.pooled) > 0 {
            out.put(format!("reason {}", reason.name()), "share", Better::Neither, |s| {
                share(count(s), s.batches.iter().flatten().sum())
            });
        }
    }
    out.series
}

/// The quantiles of one distribution; every store is gone through once.
fn latencies<L: LatencyStore>(
    out: &mut Out<'_, L>,
    family: &str,
    of: &str,
    store: impl Fn(&Summary<L>) -> Option<(&L, u64)>,
) {
    let measured = out.measured;
    let n = store(&measured.pooled).map_or(0, |(_, n)| n);
    let kept = if n >= P999_NEEDS { QUANTILES.len() } else { QUANTILES.len() - 1 };
    let qs: Vec<f64> = QUANTILES.iter().take(kept).map(|(q, _)| *q).collect();
    let read = |s: &Summary<L>| store(s).and_then(|(latency, _)| latency.quantiles(&qs));
    let Some(pooled) = read(&measured.pooled) else { return };
    let Some(parts) = measured.sections.iter().map(read).collect::<Option<Vec<_>>>() else {
        return;
    };
    for (i, (_, name)) in QUANTILES.iter().take(kept).enumerate() {
        out.series.push(Series {
            metric: format!("{family}{name}{of}"),
            unit: "ms".into(),
            better: Better::Lower,
            value: pooled[i] / 1e6,
            sections: parts.iter().map(|part| part[i] / 1e6).collect(),
            error: None,
        });
    }
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn mean(sum_ns: u128, n: u64) -> Option<f64> {
    (n > 0).then(|| sum_ns as f64 / n as f64 / 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
