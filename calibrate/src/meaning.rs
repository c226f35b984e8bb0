//! What measured times show, in words.

use crate::device::Description;

/// Sentences about medians by batch size, ns.
#[must_use]
pub fn meaning(medians: &[(u32, f64)], from: &Description) -> Vec<String> {
    let (Some(first), Some(last)) = (medians.first(), medians.last()) else {
        return vec!["Nothing was measured.".into()];
    };
    let per_item = |p: &(u32, f64)| p.1 / f64::from(p.0);
    let mut best = *first;
    for point in medians {
        if per_item(point) < per_item(&best) {
            best = *point;
        }
    }
    let gain = per_item(first) / per_item(&best);
    let mut out = vec![format!(
        "A batch of {} takes {}, a batch of {} {}: {} and {} per item.",
        first.0,
        time(first.1),
        last.0,
        time(last.1),
        time(per_item(first)),
        time(per_item(last))
    )];
    out.push(if gain < 1.05 {
        format!(
            "Batching does not pay here: at best, at batch {}, an item costs {gain:.2} times less.",
            best.0
        )
    } else {
        format!("Batching pays {gain:.1} times at best, at batch {}.", best.0)
    });
    let worse = per_item(last) / per_item(&best);
    if worse > 1.05 {
        out.push(format!(
            "Beyond batch {} an item costs more again, {:.0} % more at {}: what a batch works on \
             no longer stays in the caches.",
            best.0,
            100.0 * (worse - 1.0),
            last.0
        ));
    }
    if from.backend == "cpu" {
        out.extend(why(medians, from, gain));
    }
    out
}

/// Why batching helps as much as it does on a processor.
fn why(medians: &[(u32, f64)], from: &Description, gain: f64) -> Option<String> {
    let fact = |key: &str| from.facts.get(key)?.parse::<f64>().ok();
    let (bytes, flops) = (fact("weights_bytes")?, fact("flops_per_item")?);
    let first = medians.iter().find(|p| p.0 == 1)?;
    let best = medians.iter().map(|p| p.1 / f64::from(p.0)).reduce(f64::min)?;
    // Operations per nanosecond are 10⁹ a second.
    let (alone, peak) = (flops / first.1, flops / best);
    let reading = bytes / first.1;
    let intensity = flops / bytes;
    Some(if intensity > 20.0 {
        format!(
            "One item already computes {intensity:.0} operations for each byte of weights, \
             {alone:.0} of the {peak:.0} GFLOP/s that the best batch reaches: the processor is \
             busy with one item, so a batch saves little. A GPU, with far more arithmetic units to \
             fill, gains more."
        )
    } else if gain < 1.5 {
        format!(
            "One item reaches {alone:.1} GFLOP/s, the best batch {peak:.1}: fixed costs and weight \
             reads are a small part of a pass."
        )
    } else {
        format!(
            "One item computes only {intensity:.1} operations for each byte of weights, so a pass \
             of one waits for {:.1} MB of weights, read at {reading:.1} GB/s; a batch reads them \
             once for all, until arithmetic ({peak:.0} GFLOP/s) is the limit.",
            bytes * 1e-6
        )
    })
}

/// A time with a unit that fits.
#[must_use]
pub fn time(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} µs", n * 1e-3),
        n if n < 1e9 => format!("{:.2} ms", n * 1e-6),
        n => format!("{:.2} s", n * 1e-9),
    }
}
