//! Fan-out: which requests form a group, how long a group takes, and what is judged about it.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "common/any.rs"]
mod any;
#[path = "common/journal.rs"]
mod journal;
#[path = "common/worlds.rs"]
mod worlds;

use any::Any;
use batchsim::arrivals::{
    GroupSize, GroupSizeKind, GroupSizeLaw, Groups, Member, Members, Process, Replay, Trace,
};
use batchsim::exact::classic;
use batchsim::outcome::{Judgement, Outcome};
use batchsim::policy::{Anchor, Reason};
use batchsim::record::{
    BatchRow, ExactLatencies, Gone, GroupSource, GroupSummary, Histogram, LatencyStore, Plan,
    Recorder, Summary,
};
use batchsim::rng::{Purpose, substream};
use batchsim::scenario::{Disk, Input, Scenario, TraceProblem, load};
use batchsim::stats::t_quantile;
use batchsim::study::{Control, Engine, Look, Options, observe, run};
use batchsim::time::Nanos;
use journal::{Both, Journal};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use worlds::{MS, bench, dynamic, greedy, linear, ms, none, rate, world};

fn groups(per_s: f64, size: u32, spread_ms: f64) -> Groups {
    Groups { rate: rate(per_s), size: GroupSize::Constant(size), spread: ms(spread_ms) }
}

fn members(params: &Groups) -> Members {
    Members::new(params, substream(42, 0, 0, Purpose::Arrivals))
}

// --- by hand ---

/// Tells a summary that these requests were answered together.
fn batch(to: &mut impl Recorder, start_ns: u64, took_ns: u64, arrivals: &[u64]) {
    let size = arrivals.len() as u32;
    let reason = Reason::Idle;
    let row = BatchRow { size, ran_as: size, slot: 0, start_ns, took_ns, held_ns: 0, reason };
    to.completed(&row, arrivals, &vec![0; arrivals.len()], true);
}

/// A summary that follows one source of groups, and its first members.
fn following(params: &Groups, plan: Plan, n: usize) -> (Summary<ExactLatencies>, Vec<Member>) {
    let rng = substream(42, 0, 0, Purpose::Arrivals);
    let source = GroupSource::new(params, rng, 0, 1);
    (Summary::new(plan).following(vec![source]), members(params).take(n).collect())
}

/// The group latencies of a summary, smallest first, ns.
fn latencies(of: &GroupSummary<ExactLatencies>) -> Vec<f64> {
    let n = of.latency.len();
    let ranks: Vec<f64> = (1..=n).map(|i| (i as f64 - 0.5) / n as f64).collect();
    of.latency.quantiles(&ranks).unwrap_or_default()
}

/// Two groups of three that overlap: A B A B B A, say. Batches of two, three and one.
#[test]
fn two_overlapping_groups_by_hand() {
    // Ten groups a spread: the first two surely overlap.
    let params = groups(1_000.0, 3, 10.0);
    let plan = Plan { client_ns: 7, group_limits_ns: vec![MS], ..Plan::default() };
    let (mut summary, all) = following(&params, plan, 60);
    let of =
        |g: u64| -> Vec<u64> { all.iter().filter(|m| m.group == g).map(|m| m.at_ns).collect() };
    let (a, b) = (of(0), of(1));
    assert_eq!((a.len(), b.len()), (3, 3));
    assert!(a[0].max(b[0]) < a[2].min(b[2]), "they overlap: {a:?} {b:?}");
    let end = a[2].max(b[2]);

    // Group A: its last member comes in the last batch, and an earlier one waits longest.
    batch(&mut summary, end + 100, 50, &[a[0], b[0]]);
    batch(&mut summary, end + 200, 50, &[b[1], b[2]]);
    assert_eq!(summary.groups.as_ref().unwrap().completed, 1, "B has had all three");
    batch(&mut summary, end + 300, 40, &[a[1], a[2]]);
    summary.ended(end + 400);
    let found = summary.groups.unwrap();
    // Latencies: A is the largest of (first of A, in the first batch) and (second, in the last).
    let latency_a = (end + 157 - a[0]).max(end + 347 - a[1]);
    let latency_b = (end + 157 - b[0]).max(end + 257 - b[1]);
    let mut want = [latency_a as f64, latency_b as f64];
    want.sort_by(f64::total_cmp);
    assert_eq!(latencies(&found), want);
    assert_eq!(found.latency_sum_ns, u128::from(latency_a + latency_b));
    assert_eq!(found.latency_max_ns, latency_a.max(latency_b));
    assert_eq!((found.completed, found.incomplete, found.offered()), (2, 0, 2));
    let within = u64::from(latency_a <= MS) + u64::from(latency_b <= MS);
    assert_eq!(found.within, [within]);
}

/// One member that has expired, one that was rejected, one group that the run did not send whole.
#[test]
fn groups_without_every_answer_are_counted_apart() {
    let params = groups(1_000.0, 3, 0.0);
    let (mut summary, all) = following(&params, Plan::default(), 4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|i| all[i].at_ns);
    assert!(all.iter().all(|m| m.count == 3), "all three at once");
    summary.gone(a, 0, a, Gone::Rejected);
    batch(&mut summary, d, 10, &[a, a, b]);
    summary.gone(b, 0, d, Gone::Expired);
    batch(&mut summary, d + 10, 10, &[b, c, c, c]);
    batch(&mut summary, d + 20, 10, &[d, d]);
    summary.ended(d + 30);
    let found = summary.groups.unwrap();
    assert_eq!((found.completed, found.incomplete), (1, 2), "the fourth was not sent whole");
    assert_eq!(latencies(&found), [(d + 20 - c) as f64]);
}

/// The first arrival of a group decides whether it is measured.
#[test]
fn warm_up_ends_with_a_first_arrival() {
    let params = groups(1_000.0, 3, 10.0);
    let all: Vec<Member> = members(&params).take(60).collect();
    let of = |g: u64| all.iter().filter(move |m| m.group == g).map(|m| m.at_ns);
    let count = |from: u64| {
        let plan = Plan { measure_from_ns: from, ..Plan::default() };
        let (mut summary, _) = following(&params, plan, 0);
        let times: Vec<u64> = (0..5).flat_map(of).collect();
        let end = times.iter().max().unwrap();
        let mut sorted = times.clone();
        sorted.sort_unstable();
        batch(&mut summary, *end, 10, &sorted);
        summary.ended(*end + 10);
        summary.groups.unwrap().completed
    };
    let mut firsts: Vec<u64> = (0..5).map(|g| of(g).min().unwrap()).collect();
    firsts.sort_unstable();
    assert_eq!((count(0), count(firsts[0]), count(firsts[0] + 1)), (5, 5, 4));
    assert_eq!((count(firsts[4]), count(firsts[4] + 1)), (1, 0));
}

/// Eight at once, and a server of eight: every group takes one pass.
#[test]
fn a_group_that_fits_takes_one_pass() {
    let process = Process::Groups(groups(1.0, 8, 0.0));
    let mut world = world(process, linear(), greedy(Some(8)));
    world.run.exact_latencies = true;
    world.run.requests = Some(1_600);
    let (outcome, ..) = run(&world, &Options::default(), &Control::default());
    let cell = &outcome.cells[0];
    let found = cell.group_latency_ms.as_ref().unwrap();
    assert_eq!((found.n, found.incomplete), (200, 0));
    let latency = cell.latency_ms.as_ref().unwrap();
    assert_eq!((found.latency.p50, found.latency.p90), (12.0, 12.0), "8 + 8 · 0.5 ms");
    assert_eq!(found.latency.p50, latency.p50, "all members alike");
}

// --- against an account of every request ---

/// Any scenario whose first source sends groups.
fn scenario() -> impl Strategy<Value = (Any, u64)> {
    let params = (5.0..200.0f64, 1u32..7, 0.0..30.0f64, any::<bool>());
    (any::scenario(), params, 0u64..50).prop_map(|(mut any, (per_s, size, spread, drawn), from)| {
        let spread = if size % 3 == 0 { 0.0 } else { spread };
        let mut params = groups(per_s, size, spread);
        if drawn {
            let (kind, mean) = (GroupSizeKind::Geometric, f64::from(size));
            params.size = GroupSize::Drawn(GroupSizeLaw { kind, mean });
        }
        any.scenario.arrivals[0].process = Process::Groups(params);
        any.scenario.arrivals[0].trace = None;
        (any, from * MS)
    })
}

/// What an account of every request says of groups: latencies in order, incomplete ones.
fn account(any: &Any, journal: &Journal, from_ns: u64) -> (Vec<u64>, u64) {
    let (mut latencies, mut incomplete) = (Vec::new(), 0);
    let end = journal.arrivals.iter().max().copied().unwrap_or(0);
    for (number, source) in (0..).zip(any.sources()) {
        let Process::Groups(params) = &source.process else { continue };
        let rng = substream(any.scenario.seed, 3, number, Purpose::Arrivals);
        let known: Vec<Member> = Members::new(params, rng).take_while(|m| m.at_ns <= end).collect();
        let group_at: BTreeMap<u64, u64> = known.iter().map(|m| (m.at_ns, m.group)).collect();
        // First arrival, size, ends, the largest latency, whether one has none.
        let mut all: BTreeMap<u64, (u64, u32, u32, u64, bool)> = BTreeMap::new();
        for m in known.iter().rev() {
            let group = all.entry(m.group).or_default();
            (group.0, group.1) = (m.at_ns, m.size);
        }
        let mut end = |(arrival, tag): (u64, u8), latency: Option<u64>| {
            if u32::from(tag) == number {
                let group = all.get_mut(&group_at[&arrival]).unwrap();
                group.2 += 1;
                group.3 = group.3.max(latency.unwrap_or(0));
                group.4 |= latency.is_none();
            }
        };
        for b in &journal.batches {
            b.members.iter().for_each(|m| end(*m, Some(b.answered() - m.0)));
        }
        journal.left.iter().for_each(|l| end(l.request, None));
        for (first, size, ends, latency, lost) in all.into_values() {
            match (first >= from_ns && ends == size, lost) {
                (true, true) => incomplete += 1,
                (true, false) => latencies.push(latency),
                _ => {}
            }
        }
    }
    latencies.sort_unstable();
    (latencies, incomplete)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Every policy, limits, timeouts, instances, a cut, closed loops beside; both engines.
    #[test]
    fn group_latency_is_what_an_account_of_every_request_says((any, from_ns) in scenario()) {
        for engine in [Engine::Auto, Engine::Event] {
            let mut journal = Journal::default();
            let bench = any.bench(engine);
            let portion = any.portion();
            let mut summary: Summary<ExactLatencies> =
                Summary::new(bench.plan(&[], Nanos(from_ns)))
                    .following(bench.group_sources(portion.replication));
            bench.run(portion, &mut Both(&mut journal, &mut summary));
            let found = summary.groups.unwrap();
            let (want, incomplete) = account(&any, &journal, from_ns);
            let found_latencies: Vec<u64> = latencies(&found).iter().map(|l| *l as u64).collect();
            prop_assert_eq!((found_latencies, found.incomplete), (want, incomplete));
        }
    }
}

/// The account above sees groups of every fate; else it would prove little.
#[test]
fn accounts_see_complete_and_incomplete_groups() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut complete, mut incomplete) = (0, 0);
    for _ in 0..200 {
        let (any, from_ns) = scenario().new_tree(&mut runner).unwrap().current();
        let mut journal = Journal::default();
        any.bench(Engine::Auto).run(any.portion(), &mut journal);
        let (latencies, lost) = account(&any, &journal, from_ns);
        (complete, incomplete) = (complete + latencies.len(), incomplete + lost);
    }
    println!("{complete} complete groups, {incomplete} incomplete");
    assert!(complete > 500 && incomplete > 500);
}

// --- theory ---

/// M[X]/D/1: the wait of single requests, by the closed form.
#[test]
fn the_mean_wait_is_that_of_group_arrivals() {
    let geometric = GroupSize::Drawn(GroupSizeLaw { kind: GroupSizeKind::Geometric, mean: 4.0 });
    let cases = [
        (GroupSize::Constant(2), 0.5),
        (GroupSize::Constant(4), 0.7),
        (GroupSize::Constant(8), 0.3),
        (geometric, 0.5),
    ];
    let limit = t_quantile(1.0 - 0.0005 / cases.len() as f64, 19);
    for (size, load) in cases {
        let service_ms = 8.5;
        let mean = size.mean();
        let per_s = load * 1e3 / service_ms / mean;
        let params = Groups { rate: rate(per_s), size, spread: Nanos::ZERO };
        let world = world(Process::Groups(params), linear(), none());
        let m = worlds::measure::<Histogram<10>>(&world, 8_000_000, &[]);
        // E[X(X − 1)] = (E[X²] / E[X] − 1) · E[X].
        let pairs = (size.idc_limit() - 1.0) * mean;
        let want = classic::group_wait_ms(per_s, mean, pairs, service_ms, 0.0);
        let wait =
            |s: &Summary<Histogram<10>>| s.wait_sum_ns as f64 / s.counts.completed as f64 / 1e6;
        let value = wait(&m.pooled);
        let r = m.sections.len() as f64;
        let squares: f64 = m.sections.iter().map(|s| (wait(s) - value).powi(2)).sum();
        let error = (squares / (r - 1.0) / r).sqrt();
        println!("{size:?} at {load}: {value:.4} ± {error:.4} ms, exactly {want:.4}");
        assert!((value - want).abs() < limit * error, "{size:?}: {value} ± {error}, not {want}");
        assert!(error / want < 0.005, "too imprecise to tell");
    }
}

// --- scenarios, thresholds, results ---

fn no_trace(_: &Replay, _: Vec<u8>) -> Result<Trace, TraceProblem> {
    panic!("no trace here");
}

const FAN_OUT: &str = include_str!("../scenarios/fan-out.toml");
const SOURCE: &str = "kind = \"groups\"\nrate = \"20/s\"\nsize = 8\nspread = \"2ms\"\n";
const POISSON: &str = "kind = \"poisson\"\nrate = \"160/s\"\n";
const LIMIT: &str = "group.p(99) < 30ms";

fn loaded(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let files = Disk::beside(Path::new("x"), no_trace);
    let read = load(&Input::from_text("fan-out.toml", text), &sets, &files);
    read.map(|l| l.scenario).map_err(|all| format!("{all:?}"))
}

fn short(edits: &[(&str, &str)], sets: &[&str]) -> Outcome {
    let sets = [&["run.requests=160_000"], sets].concat();
    let scenario = loaded(&with(edits), &sets).unwrap();
    run(&scenario, &Options::default(), &Control::default()).0
}

/// Waiting for the burst lowers the mean, of requests and more so of groups.
#[test]
fn a_wait_as_wide_as_the_burst_pays() {
    let outcome = short(&[], &[]);
    let [greedy, dynamic] = outcome.cells.as_slice() else { panic!() };
    for (what, old, new) in [
        ("mean", greedy.latency_ms.as_ref(), dynamic.latency_ms.as_ref()),
        (
            "group mean",
            greedy.group_latency_ms.as_ref().map(|g| &g.latency),
            dynamic.group_latency_ms.as_ref().map(|g| &g.latency),
        ),
    ] {
        let (old, new) = (old.unwrap(), new.unwrap());
        let half = |l: &batchsim::outcome::Latency| l.ci95.as_ref().unwrap().mean;
        println!("{what}: {:.3} ±{:.3} → {:.3} ±{:.3}", old.mean, half(old), new.mean, half(new));
        assert!(new.mean + half(new) < old.mean - half(old), "{what}");
    }
    // A group takes at least as long as its slowest member.
    for cell in [greedy, dynamic] {
        let (l, g) = (cell.latency_ms.as_ref().unwrap(), cell.group_latency_ms.as_ref().unwrap());
        assert!(g.latency.mean > l.mean && g.latency.p50 > l.p50);
        assert!(g.latency.max.unwrap() <= l.max.unwrap());
        assert!(g.n * 8 <= cell.requests.offered && g.n * 8 + 8 * 20 >= cell.requests.offered);
    }
}

#[test]
fn the_same_bytes_at_any_thread_count() {
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let set = ["server.instances=3", "server.queue_limit=20", "arrivals.timeout=\"40ms\""];
        pool.install(|| serde_json::to_vec(&short(&[], &set)).unwrap())
    };
    let one = bytes(1);
    assert!(String::from_utf8_lossy(&one).contains("\"incomplete\":"));
    assert!(one == bytes(2) && one == bytes(7));
}

#[test]
fn an_outcome_reads_back_as_it_was_written() {
    let outcome = short(&[], &[]);
    let text = serde_json::to_string(&outcome).unwrap();
    assert!(text.contains("\"group_latency_ms\":{\"n\":"));
    assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
    let plain = short(&[(SOURCE, POISSON), ("group.p(99)", "p(99)")], &[]);
    let text = serde_json::to_string(&plain).unwrap();
    assert!(!text.contains("group_latency_ms"), "absent without groups");
}

#[test]
fn thresholds_about_groups_are_judged_on_groups() {
    let verdict = |expr: &str| {
        let outcome = short(&[(LIMIT, expr)], &[]);
        let cell = &outcome.cells[1];
        (cell.verdicts[0].clone(), cell.clone())
    };
    let (far, cell) = verdict("group.p(99) < 100ms");
    assert_eq!(far.judgement, Judgement::Pass, "{}", far.evidence);
    assert!(far.evidence.contains("of the offered groups miss 100 ms, allowed 1 %"));
    let p99 = cell.group_latency_ms.as_ref().unwrap().latency.p99;
    let (near, _) = verdict(&format!("group.p(99) < {}ms", p99 * 0.9));
    assert_eq!(near.judgement, Judgement::Fail, "{}", near.evidence);
    let (mean, _) = verdict("group.mean < 50ms");
    assert_eq!(mean.judgement, Judgement::Pass);
    assert!(mean.evidence.starts_with("mean group latency "), "{}", mean.evidence);
    // What p99 itself is, half of all groups are far from missing.
    let (half, _) = verdict(&format!("group.p(50) < {p99}ms"));
    assert_eq!(half.judgement, Judgement::Pass);
}

/// A group that lacks an answer misses every limit.
#[test]
fn rejected_members_count_against_the_limit() {
    let outcome = short(&[(LIMIT, "group.p(50) < 10s")], &["server.queue_limit=4"]);
    for cell in &outcome.cells {
        let found = cell.group_latency_ms.as_ref();
        let incomplete = found.map_or(u64::MAX, |g| g.incomplete);
        assert!(incomplete > found.map_or(0, |g| g.n), "eight rarely fit");
        assert_eq!(cell.verdicts[0].judgement, Judgement::Fail, "{}", cell.verdicts[0].evidence);
        assert!(cell.warnings.iter().any(|w| w.starts_with("groups without every answer: ")));
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let size = "size = 8";
    for (edits, what) in [
        (&[(size, "size = 0")][..], "a group has 1 to 10000 requests, not 0"),
        (
            &[(size, "size = { kind = \"geometric\", mean = 0.5 }")],
            "the mean size lies between 1 and 10000, not 0.5",
        ),
        (&[(size, "size = { kind = \"uniform\", mean = 4 }")], "geometric"),
        (&[(size, "size = \"8\"")], "a number of requests such as 8"),
        (
            &[(size, "size = 1000"), ("\"2ms\"\n\n[server]", "\"1h\"\n\n[server]")],
            "by the millions",
        ),
        (&[(SOURCE, POISSON)], "no source of arrivals sends groups"),
        (
            &[
                (SOURCE, &format!("{SOURCE}class = \"a\"\n")),
                (&format!("expr = \"{LIMIT}\""), &format!("expr = \"{LIMIT}\"\nclass = \"a\"")),
            ],
            "about all of them, not about a class",
        ),
        (&[("group.p(99)", "group.p")], "write group.p(99)"),
    ] {
        let error = loaded(&with(edits), &[]).unwrap_err();
        assert!(error.contains(what), "{edits:?}: {error}");
    }
}

/// Requests are what rates count; groups come in proportion, and stay as large.
#[test]
fn rates_are_in_requests() {
    let scenario = loaded(FAN_OUT, &[]).unwrap();
    assert_eq!(scenario.total_rate_per_s(), Some(160.0));
    let faster = scenario.with_total_rate(400.0).unwrap();
    let Process::Groups(p) = &faster.arrivals[0].process else { panic!() };
    assert_eq!((p.rate.per_s(), p.size), (50.0, GroupSize::Constant(8)));
    assert_eq!(faster.total_rate_per_s(), Some(400.0));
}

/// The shipped scenario with these parts of its text replaced.
fn with(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(FAN_OUT.to_owned(), |text, (old, new)| {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text.replace(old, new)
    })
}

/// A searching study sees groups as it sees requests.
#[test]
fn observed_cells_hold_group_latency() {
    let process = Process::Groups(groups(20.0, 8, 2.0));
    let mut world = world(process, linear(), dynamic(32, 2.0, Anchor::OldestArrival));
    world.thresholds =
        loaded(&with(&[("group.p(99) < 30ms", "group.p(90) < 30ms")]), &[]).unwrap().thresholds;
    let thresholds: Vec<_> = world.thresholds.iter().collect();
    let look =
        Look { thresholds: &thresholds, requests: 64_000, warmup: None, quantiles: &[0.5, 0.9] };
    let seen = observe(&bench(&world), &look, &Control::default()).unwrap();
    let latency = seen.group_latency_ms.unwrap().latency;
    let (p90, half) = seen.values[0];
    assert!((p90 - latency.p90).abs() < 1e-9 && half.unwrap() > 0.0);
    assert_eq!(seen.evidence[0].sections.len(), 20);
    let means: Vec<f64> = seen.sections.iter().map(|s| s.group_mean_ms.unwrap()).collect();
    let mean = means.iter().sum::<f64>() / 20.0;
    assert!((mean / latency.mean - 1.0).abs() < 0.01, "{mean} against {}", latency.mean);
    assert!(seen.sections.iter().all(|s| s.group_quantiles_ms.len() == 2));
}
