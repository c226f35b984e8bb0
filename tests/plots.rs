//! Charts: what they say, that nothing overlaps or leaves the canvas, and that extremes draw.
#![cfg(feature = "plot")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::cast_precision_loss, reason = "a test")]

#[path = "plots/samples.rs"]
mod samples;
#[path = "plots/svg.rs"]
mod svg;

use batchsim::outcome::{CdfFile, Judgement, Outcome};
use batchsim::plot::{Chart, ChartKind, Metric, PlotError, charts, heatmaps};
use samples::*;
use std::path::Path;
use svg::{labels, paths, size};

/// Draws every chart that applies and checks what holds for all; the pictures stay in the
/// target folder for people to look at.
fn draw(test: &str, outcome: &Outcome, cdfs: &[CdfFile]) -> Vec<(Chart, String)> {
    let all = charts(outcome, cdfs, &[]).unwrap();
    all.into_iter().map(|chart| check(test, chart)).collect()
}

fn check(test: &str, chart: Chart) -> (Chart, String) {
    let svg = chart.svg().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plots");
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{test}-{}", chart.name);
    std::fs::write(folder.join(format!("{name}.svg")), &svg).unwrap();
    let png = chart.png().unwrap();
    std::fs::write(folder.join(format!("{name}.png")), &png).unwrap();

    assert_eq!(svg, chart.clone().svg().unwrap(), "{name}: other bytes");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}: not a number");
    let (width, height) = size(&svg);
    let picture = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
    assert_eq!(
        (f64::from(picture.width()), f64::from(picture.height())),
        (2.0 * width, 2.0 * height)
    );
    let inked = picture.pixels().iter().filter(|p| p.red() < 250 || p.blue() < 250).count();
    assert!(inked > 3_000, "{name}: blank");

    let labels = labels(&svg);
    for label in &labels {
        let (left, right) = label.span();
        let inside = left >= 0.0 && right <= width && label.y >= 5.0 && label.y <= height;
        assert!(inside, "{name}: outside: {label:?}");
    }
    // Tick labels stand in lines (horizontal axis) and columns (vertical axis).
    let ticks: Vec<_> = labels.iter().filter(|l| (l.size - 11.0).abs() < 0.01).collect();
    for a in &ticks {
        for b in ticks.iter().filter(|b| !std::ptr::eq(**b, *a)) {
            let apart = (a.y - b.y).abs() >= 11.0
                || a.span().1 <= b.span().0 + 1.0
                || b.span().1 <= a.span().0 + 1.0;
            assert!(apart, "{name}: {a:?} and {b:?} touch");
        }
    }
    (chart, svg)
}

fn texts(svg: &str) -> Vec<String> {
    labels(svg).into_iter().map(|l| l.text).collect()
}

#[track_caller]
fn says(svg: &str, wanted: &[&str]) {
    let texts = texts(svg);
    for wanted in wanted {
        assert!(texts.iter().any(|t| t.contains(wanted)), "no `{wanted}` among {texts:#?}");
    }
}

#[test]
fn the_running_example() {
    let (outcome, cdfs) = quickstart();
    let drawn = draw("quickstart", &outcome, &cdfs);
    let names: Vec<&str> = drawn.iter().map(|d| d.0.name.as_str()).collect();
    assert_eq!(names, ["cdf", "curve", "batch-hist"]);
    for (_, svg) in &drawn {
        says(svg, &["none", "static", "greedy", "dynamic", "seed 42"]);
    }
    says(&drawn[0].1, &["latency (ms)", "0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    says(&drawn[0].1, &["SLO p99 < 50 ms", "overloaded", "✓ meets the SLO", "900/s offered"]);
    says(&drawn[0].1, &["95 % interval over 20 replications", "p99 35.86 ± 0.14 ms"]);
    says(&drawn[1].1, &["offered rate (/s)", "latency (ms)", "SLO p99 < 50 ms", "1,000"]);
    says(&drawn[1].1, &["capacity 118/s", "capacity 1,333/s", "ceiling 2,000/s", "p50"]);
    says(&drawn[2].1, &["none (overloaded)", "batch size (items)", "share of batches (%)"]);
    says(&drawn[2].1, &["mean 13.1", "full", "timer ran out"]);
}

#[test]
fn the_corner_of_an_objective_is_where_the_curve_crosses_it() {
    let (mut outcome, cdfs) = quickstart();
    // The objective is exactly the p99 of greedy: its third marker stands on the corner.
    outcome.slos = vec![slo(0.99, POLICIES[2].2.at(0.99))];
    let (_, svg) = draw("corner", &outcome, &cdfs).remove(0);
    let corner = paths(&svg, 1.4, "#222222").into_iter().find(|p| p.len() == 3).unwrap()[1];
    let tip = |points: &str| {
        let mut pairs = points.split_whitespace().map(|p| p.split_once(',').unwrap());
        let (x, y) = pairs.next().unwrap();
        (x.parse::<f64>().unwrap() / 10.0, y.parse::<f64>().unwrap() / 10.0 + 4.6)
    };
    let markers = svg.split("fill=\"#009E73\" points=\"").skip(1);
    let close = |(x, y): (f64, f64)| (x - corner.0).abs() < 0.2 && (y - corner.1).abs() < 0.4;
    assert!(markers.map(|m| tip(m.split('"').next().unwrap())).any(close), "{corner:?}");
}

#[test]
fn a_sweep_over_two_axes() {
    let waits = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
    let outcome = sweep(&waits, &[8.0, 12.0, 16.0, 24.0, 32.0, 64.0]);
    let drawn = draw("sweep", &outcome, &[]);
    assert_eq!(drawn.len(), 1);
    let svg = &drawn[0].1;
    says(svg, &["max_wait (ms)", "max_batch_size", "p99 latency (ms)", "over", "overloaded"]);
    says(svg, &["meets SLO p99 < 50 ms (16 cells)", "max_wait 0 ms, max_batch_size 64", "31.5"]);
    // Outline of the feasible region: one loop of six corners, closed past the second.
    let outline: Vec<_> = paths(svg, 3.0, "#222222");
    assert_eq!(outline.iter().map(Vec::len).collect::<Vec<_>>(), [8]);
    for metric in [Metric::P50, Metric::Throughput, Metric::MeanBatch] {
        for chart in heatmaps(&outcome, metric).unwrap() {
            check("metric", chart);
        }
    }
}

#[test]
fn verdicts_decide_over_point_values() {
    let mut outcome = sweep(&[0.0, 1.0], &[32.0, 64.0]);
    for (cell, judgement) in outcome.cells.iter_mut().zip([
        Judgement::Inconclusive,
        Judgement::Pass,
        Judgement::Fail,
        Judgement::Pass,
    ]) {
        cell.verdicts = vec![verdict(judgement)];
    }
    let (_, svg) = draw("verdicts", &outcome, &[]).remove(0);
    says(&svg, &["34.7?", "(2 cells)", "inconclusive"]);
}

#[test]
fn cells_that_are_missing_or_all_overloaded() {
    let mut outcome = sweep(&[0.0, 1.0, 2.0], &[16.0, 32.0]);
    outcome.cells.remove(3);
    let (_, svg) = draw("missing", &outcome, &[]).remove(0);
    says(&svg, &["–"]);
    let outcome = sweep(&[0.0, 1.0, 2.0], &[4.0, 8.0]);
    let (_, svg) = draw("all-over", &outcome, &[]).remove(0);
    says(&svg, &["over", "no cell meets"]);
    let waits: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.25).collect();
    let batches: Vec<f64> = (1..31).map(|i| f64::from(i) * 4.0).collect();
    let (_, svg) = draw("large", &sweep(&waits, &batches), &[]).remove(0);
    assert!(!texts(&svg).contains(&"over".to_owned()), "no numbers in so many cells");
}

#[test]
fn sweeps_over_one_three_and_four_axes() {
    let mut outcome = sweep(&[0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0], &[32.0]);
    outcome.axes[1].values.truncate(1);
    let drawn = draw("one-axis", &outcome, &[]);
    assert_eq!(drawn[0].0.name, "sweep-dynamic-max-wait");
    says(&drawn[0].1, &["max_wait (ms)", "p99 latency (ms)", "SLO p99 < 50 ms", "greedy"]);

    let with_axis = |outcome: &Outcome, path: &str, numbers: &[f64]| {
        let extra = axis(path, "/s", numbers);
        let mut more = outcome.clone();
        more.cells.clear();
        for cell in &outcome.cells {
            for value in &extra.values {
                let mut cell = cell.clone();
                cell.coords.insert(extra.path.clone(), value.clone());
                more.cells.push(cell);
            }
        }
        more.axes.insert(0, extra);
        more
    };
    let three = with_axis(&sweep(&[0.0, 1.0], &[16.0, 32.0]), "arrivals.rate", &[800.0, 900.0]);
    let drawn = draw("three-axes", &three, &[]);
    let names: Vec<&str> = drawn.iter().map(|d| d.0.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "heatmap-dynamic-arrivals-rate-800-s",
            "heatmap-dynamic-arrivals-rate-900-s",
            "sweep-arrivals-rate"
        ]
    );
    says(&drawn[0].1, &["arrivals.rate 800/s"]);
    let four = with_axis(&three, "server.instances", &[1.0, 2.0]);
    let error = charts(&four, &[], &[ChartKind::Heatmap]).unwrap_err();
    assert!(error.to_string().contains("4 axes"), "{error}");
}

#[test]
fn everything_overloaded_says_so() {
    let (mut outcome, _) = quickstart();
    for cell in outcome.cells.iter_mut().chain(&mut outcome.curve) {
        cell.stable = false;
        cell.latency_ms = None;
    }
    let drawn = draw("overloaded", &outcome, &[]);
    assert_eq!(drawn.len(), 3);
    says(&drawn[0].1, &["Every policy is overloaded"]);
    says(&drawn[1].1, &["overloaded at every rate"]);
}

#[test]
fn many_policies_with_awkward_labels() {
    let mut outcome = outcome();
    let mut cdfs = Vec::new();
    let odd = ["<b>&\"'", "größer ≤ 5 µs", "дельта-策略", "a\u{0}b\u{1b}[31m", ""];
    for i in 0..12 {
        let label = odd.get(i).map_or_else(
            || format!("dynamic with a rather long label that names every setting {i}@server-{i}"),
            |l| (*l).to_owned(),
        );
        let law = Law(10.0 + 2.0 * i as f64, 4.0, 0.6 + 0.02 * i as f64);
        let mut one = cell(&label, 900.0, 1000.0 + 90.0 * i as f64, law);
        one.batch_size = sizes(16 + 2 * i as u32, 8.0);
        outcome.cells.push(one);
        cdfs.push(cdf(&label, law));
        for rate in [200.0, 500.0, 800.0] {
            outcome.curve.push(cell(&label, rate, 1000.0 + 90.0 * i as f64, law));
        }
    }
    for (_, svg) in draw("many", &outcome, &cdfs) {
        says(&svg, &["<b>&\"'", "größer ≤ 5 µs", "дельта-策略", "a b [31m", "…"]);
        assert!(!svg.contains("<b>") && !svg.contains('\u{0}'));
    }
}

#[test]
fn one_policy_without_objective_or_intervals() {
    let (mut outcome, cdfs) = quickstart();
    outcome.slos.clear();
    outcome.cells = vec![outcome.cells.remove(3)];
    outcome.curve = vec![outcome.curve.pop().unwrap()];
    for cell in outcome.cells.iter_mut().chain(&mut outcome.curve) {
        cell.replications = 1;
        cell.verdicts.clear();
        cell.latency_ms.as_mut().unwrap().ci95 = None;
    }
    let mut cdf = cdfs[2].clone();
    cdf.half_width_ms.clear();
    for (_, svg) in draw("one", &outcome, &[cdf]) {
        assert!(!texts(&svg).iter().any(|t| t.contains("SLO") || t.contains("interval")));
    }
    // Without a side file the quantiles of the cell are drawn.
    assert_eq!(charts(&outcome, &[], &[ChartKind::Cdf]).unwrap().len(), 1);
}

#[test]
fn several_objectives() {
    let (mut outcome, cdfs) = quickstart();
    outcome.slos = vec![slo(0.5, 25.0), slo(0.99, 50.0), slo(0.999, 51.0), slo(0.95, 49.0)];
    outcome.slos.push(slo(0.99, 50.0));
    let drawn = draw("several", &outcome, &cdfs);
    says(&drawn[0].1, &["SLO p50 < 25 ms", "SLO p95 < 49 ms", "SLO p99.9 < 51 ms"]);
    let twice = texts(&drawn[0].1).iter().filter(|t| t.contains("SLO p99 <")).count();
    assert_eq!(twice, 1);
}

#[test]
fn extreme_values_draw() {
    let laws = [
        ("flat", Law(10.0, 0.0, 1.0)),
        ("zero", Law(0.0, 0.0, 1.0)),
        ("tiny", Law(1e-3, 1e-4, 1.0)),
        ("hour", Law(1e-3, 400_000.0, 1.0)),
        ("nan", Law(f64::NAN, 1.0, 1.0)),
        ("infinite", Law(f64::INFINITY, 1.0, 1.0)),
        ("negative", Law(-5.0, 0.0, 1.0)),
    ];
    let mut all = outcome();
    let mut files = Vec::new();
    for (name, law) in laws {
        let mut one = outcome();
        one.slos.push(slo(f64::NAN, f64::INFINITY));
        for (rate, capacity) in [(1e-3, 2e-3), (f64::NAN, 1.0), (1e9, 2e9), (0.0, f64::INFINITY)] {
            let mut point = cell(name, rate, capacity, law);
            point.stable = true;
            point.latency_ms = Some(law.latency());
            one.curve.push(point);
        }
        let mut here = cell(name, 900.0, 1000.0, law);
        here.batch_size = sizes(5_000, 700.0);
        one.cells.push(here);
        draw(&format!("extreme-{name}"), &one, &[cdf(name, law)]);
        all.cells.extend(one.cells);
        files.push(cdf(name, law));
    }
    draw("extreme-all", &all, &files);
}

#[test]
fn kinds_have_names_and_reasons() {
    for kind in ChartKind::ALL {
        assert_eq!(kind.name().parse::<ChartKind>(), Ok(kind));
    }
    let unknown = "pie".parse::<ChartKind>().unwrap_err();
    assert_eq!(unknown, PlotError::UnknownKind { name: "pie".into() });
    let empty = outcome();
    for kind in ChartKind::ALL {
        let error = charts(&empty, &[], &[kind]).unwrap_err();
        assert!(matches!(error, PlotError::NotApplicable { .. }), "{error}");
    }
    assert!(charts(&empty, &[], &[]).unwrap().is_empty());
    let sweep = sweep(&[0.0, 1.0], &[16.0, 32.0]);
    let error = charts(&sweep, &[], &[ChartKind::Cdf]).unwrap_err();
    assert!(error.to_string().contains("several points of a sweep"), "{error}");
}
