//! The method on a device whose clock, noise and faults are programmed.
#![allow(clippy::unwrap_used, reason = "tests")]

use calibrate::device::{Device, Fault};
use calibrate::fake::{Fake, Script};
use calibrate::file::Calibration;
use calibrate::method::{Measured, Plan, Silent, Watch, measure, medians};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn run(script: Script, plan: &Plan) -> (Measured, Fake) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut fake = Fake::new(script, Arc::clone(&stop));
    let measured = measure(&mut fake, plan, &stop, &mut Silent).unwrap();
    (measured, fake)
}

fn plan() -> Plan {
    Plan { max_batch: 64, repeat: false, ..Plan::default() }
}

/// Length of a whole run without drift, seconds of the device's clock.
fn length_s() -> f64 {
    let (_, mut fake) = run(Script::default(), &plan());
    fake.now_ns() as f64 * 1e-9
}

#[test]
fn medians_are_those_of_the_device() {
    let (measured, _) = run(Script::default(), &plan());
    assert_eq!(measured.largest, 64);
    assert!(measured.warm_up.1 && !measured.drift.unwrap().flagged());
    for (n, median) in medians(&measured.sizes) {
        let truth = 8e6 + 0.5e6 * f64::from(n);
        assert!((median / truth - 1.0).abs() < 0.001, "{n}: {median}");
        assert!(measured.sizes[&n].times_ns.len() >= 30 && !measured.sizes[&n].noisy);
    }
    // The grid, and nothing more: a straight line needs no further sizes.
    assert_eq!(measured.sizes.len(), 12);
}

#[test]
fn same_seed_same_samples() {
    assert_eq!(run(Script::default(), &plan()).0.sizes, run(Script::default(), &plan()).0.sizes);
    let other = Plan { seed: 7, ..plan() };
    assert_ne!(run(Script::default(), &plan()).0.sizes, run(Script::default(), &other).0.sizes);
}

#[test]
fn a_drift_of_two_percent_is_flagged_and_kept() {
    let script = Script { drift_per_s: 0.02 / length_s(), ..Script::default() };
    let (measured, _) = run(script, &plan());
    let drift = measured.drift.unwrap();
    assert!((0.015..0.025).contains(&drift.change), "{drift:?}");
    assert!(drift.flagged() && !drift.too_far());
    assert_eq!(measured.reruns, 0);
    let file = Calibration::new(
        &measured,
        Fake::new(Script::default(), Arc::default()).describe(),
        &plan(),
        None,
    );
    assert!(file.warnings.iter().any(|w| w.contains("during the sweep")), "{:?}", file.warnings);
}

/// Ends the drift of a device when a sweep is run again.
struct Settles(Arc<AtomicBool>);

impl Watch for Settles {
    fn progress(&mut self, what: &str, _: f64, _: u64) {
        self.0.fetch_or(what.contains("again"), Ordering::Relaxed);
    }
}

#[test]
fn a_drift_of_four_percent_is_run_again() {
    let script = Script { drift_per_s: 0.04 / length_s(), ..Script::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let mut fake = Fake::new(script.clone(), stop.clone());
    let mut settles = Settles(script.steady.clone());
    let measured = measure(&mut fake, &plan(), &stop, &mut settles).unwrap();
    assert_eq!(measured.reruns, 1);
    assert!(!measured.drift.unwrap().flagged(), "{:?}", measured.drift);
    let truth = 8.5e6;
    assert!((medians(&measured.sizes)[0].1 / truth - 1.0).abs() < 0.001);
    // One that goes on is kept after the second try, and flagged.
    let goes_on = Script { steady: Arc::default(), ..script };
    let (measured, _) = run(goes_on, &plan());
    assert_eq!(measured.reruns, 1);
    assert!(measured.drift.unwrap().too_far());
}

#[test]
fn a_cold_start_leaves_no_trace() {
    let script = Script { cold: (25, 3.0), ..Script::default() };
    let (measured, _) = run(script, &plan());
    assert!(measured.warm_up.1 && measured.warm_up.0 >= 30);
    let most = |n: u32| measured.sizes[&n].times_ns.iter().copied().fold(0.0, f64::max);
    assert!(most(64) < 1.01 * 40e6 && most(1) < 1.01 * 8.5e6);
}

#[test]
fn the_largest_batch_is_found_exactly() {
    for limit in [1, 2, 37, 63] {
        let script = Script { memory_max_batch: limit, ..Script::default() };
        let (measured, _) = run(script, &plan());
        assert_eq!(measured.largest, limit);
        assert_eq!(measured.sizes.keys().max(), Some(&limit));
        assert!(measured.limit.contains("does not fit"), "{}", measured.limit);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let script = Script { memory_max_batch: 0, ..Script::default() };
    let failed = measure(&mut Fake::new(script, stop.clone()), &plan(), &stop, &mut Silent);
    assert!(matches!(failed, Err(Fault::DoesNotFit { batch: 1, .. })));
}

#[test]
fn tiles_are_measured_on_both_sides_and_closed_in_upon() {
    let script = Script { tile: 8, ..Script::default() };
    let (measured, _) = run(script, &plan());
    for edge in [8, 16, 32, 64] {
        assert!(measured.sizes.contains_key(&edge));
        assert!(edge == 64 || measured.sizes.contains_key(&(edge + 1)));
    }
    assert!(!measured.refined.is_empty() && measured.refined.len() <= 12);
}

#[test]
fn noise_takes_more_samples_and_says_when_it_wins() {
    let quiet = run(Script::default(), &plan()).1.passes();
    let (measured, fake) = run(Script { noise: 0.02, ..Script::default() }, &plan());
    assert!(fake.passes() > 2 * quiet);
    assert!(measured.sizes.values().all(|s| !s.noisy));
    let few = Plan { max_samples: 40, refine_most: 0, ..plan() };
    let (measured, _) = run(Script { noise: 0.1, ..Script::default() }, &few);
    assert!(measured.sizes.values().all(|s| s.noisy));
}

#[test]
fn a_second_sweep_says_how_well_it_repeats() {
    let (measured, _) = run(Script::default(), &Plan { repeat: true, ..plan() });
    let (median, worst) = measured.repeatability.unwrap();
    assert!(median > 0.0 && median <= worst && worst < 0.002);
}

#[test]
fn an_interrupt_keeps_what_is_measured() {
    let all = run(Script::default(), &plan()).1.passes();
    for after in [1, 20, 100, all / 2, all - 3] {
        let stop = Arc::new(AtomicBool::new(false));
        let script = Script { interrupt_after: Some(after), ..Script::default() };
        let mut fake = Fake::new(script, Arc::clone(&stop));
        let measured = measure(&mut fake, &plan(), &stop, &mut Silent).unwrap();
        assert!(measured.interrupted);
        // No pass follows the one during which the signal came, but those of its visit's discards.
        assert!(fake.passes() <= after + 1, "{} {after}", fake.passes());
        assert!(measured.sizes.values().all(|s| !s.times_ns.is_empty()));
        assert!(after < 100 || !measured.sizes.is_empty());
        let file = Calibration::new(&measured, fake.describe(), &plan(), None);
        let json = serde_json::to_value(&file).unwrap();
        assert_eq!(json["checks"]["interrupted"], true);
        assert_eq!(json["cost"]["points"].as_array().unwrap().len(), measured.sizes.len());
    }
}

#[test]
fn progress_never_promises_more_than_the_budget() {
    #[derive(Default)]
    struct Seen(Vec<(f64, u64)>);
    impl Watch for Seen {
        fn progress(&mut self, _: &str, done: f64, left_ns: u64) {
            self.0.push((done, left_ns));
        }
    }
    let (stop, mut seen) = (Arc::new(AtomicBool::new(false)), Seen::default());
    let mut fake = Fake::new(Script::default(), stop.clone());
    measure(&mut fake, &plan(), &stop, &mut seen).unwrap();
    assert_eq!(seen.0.last().unwrap(), &(1.0, 0));
    assert!(seen.0.iter().all(|(d, l)| (0.0..=1.0).contains(d) && *l <= plan().budget_ns));
}

#[test]
fn nothing_is_concluded_from_times_that_do_not_repeat() {
    let file = |noise: f64| {
        let plan = Plan { repeat: true, max_samples: 40, refine_most: 0, ..plan() };
        let (measured, fake) = run(Script { noise, ..Script::default() }, &plan);
        Calibration::new(&measured, fake.describe(), &plan, None)
    };
    assert!(file(0.001).meaning[1].starts_with("Batching pays"));
    let wild = file(0.8);
    assert_eq!(wild.meaning.len(), 1);
    assert!(wild.meaning[0].contains("too uncertain"), "{:?}", wild.meaning);
    assert!(wild.warnings.iter().any(|w| w.contains("cannot be told")), "{:?}", wild.warnings);
}
