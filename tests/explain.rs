//! `explain`: every nanosecond of a latency has one cause, traps fire where they should, and traces
//! parse.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::cost::{Affine, Cost};
use batchsim::engine::{Flight, Member, Pass};
use batchsim::interop::perfetto;
use batchsim::policy::Reason;
use batchsim::record::Ledger;
use batchsim::report::{explanation_csv, explanation_markdown, explanation_text};
use batchsim::scenario::{self, Disk, Input, Scenario};
use batchsim::study::{
    Bench, Engine, Explained, Parts, Portion, Question, Surroundings, blame, explain,
};
use batchsim::time::Nanos;
use batchsim::traps::traps;
use std::path::Path;

const MS: u64 = 1_000_000;

fn load(text: &str) -> Scenario {
    let disk = Disk::beside(Path::new("x.toml"), batchsim::interop::trace::for_scenario);
    let loaded = scenario::load(&Input::from_text("x.toml", text.as_bytes()), &[], &disk);
    loaded.unwrap_or_else(|e| panic!("{text}\n{e:?}")).scenario
}

/// The running example at a rate, with more lines for the server and a policy.
fn example(rate: &str, server: &str, policy: &str) -> Scenario {
    load(&format!(
        "schema = 1\nname = \"x\"\n[[arrivals]]\nkind = \"poisson\"\nrate = \"{rate}\"\n[server]\n\
         cost = {{ kind = \"affine\", fixed = \"8ms\", per_item = \"0.5ms\" }}\n{server}\n\
         [[policy]]\n{policy}\n"
    ))
}

fn ask(scenario: &Scenario, requests: u64) -> Explained {
    let question = Question { requests, quantile: 0.99, slowest: 3 };
    explain(scenario, &scenario.servers[0], &scenario.policies[0], &question).unwrap()
}

const TRITON: &str = "kind = \"triton\"\nmax_batch_size = 8\nmax_queue_delay_microseconds = 4000";
const OVERHEAD: &str = "overhead = { inbound = \"357us\", dispatch = \"40us\", release = \"90us\", \
                        release_per_request = \"6.7us\", response = \"258us\" }";

#[test]
fn parts_of_every_request_add_up_to_its_latency() {
    let jitter = "jitter = { kind = \"lognormal\", cv = 0.4 }\ninstances = 3";
    let ordered = format!("{TRITON}\npreserve_ordering = true");
    let queue =
        format!("{TRITON}\ndefault_queue_policy = {{ default_timeout_microseconds = 30000 }}");
    let dynamic = "kind = \"dynamic\"\nmax_batch_size = 6\nmax_wait = \"5ms\"";
    for (rate, server, policy) in [
        ("300/s", "", TRITON),
        ("620/s", OVERHEAD, TRITON),
        ("1500/s", jitter, ordered.as_str()),
        ("640/s", "", queue.as_str()),
        ("40/s", OVERHEAD, dynamic),
        ("900/s", jitter, dynamic),
        ("600/s", "queue_limit = 5", "kind = \"greedy\""),
        ("80/s", "", "kind = \"none\""),
        ("200/s", OVERHEAD, "kind = \"torchserve\"\nbatchSize = 8\nmaxBatchDelay = 5"),
        ("900/s", jitter, "kind = \"mosec\"\nmax_batch_size = 8\nmax_wait_time = 4"),
        ("900/s", jitter, "kind = \"litserve\"\nmax_batch_size = 8\nbatch_timeout = 0.004"),
    ] {
        let scenario = example(rate, server, policy);
        let found = ask(&scenario, 20_000);
        let outside = scenario.outside(&scenario.servers[0]).0;
        // What any other run says of the same requests.
        let bench = Bench {
            scenario: &scenario,
            server: &scenario.servers[0],
            policy: &scenario.policies[0].policy,
            engine: Engine::Auto,
        };
        let portion = Portion { replication: 0, measured: Some(20_000), measure_from: Nanos::ZERO };
        let mut ledger = Ledger::default();
        let _ = bench.run(portion, &mut ledger);
        let mut told: Vec<(u64, u64)> = Vec::new();
        for batch in &ledger.batches {
            let answered = batch.row.answered_ns();
            told.extend(batch.arrivals.iter().map(|at| (*at, answered - at + outside)));
        }
        let total = |p: &Parts| {
            [p.inbound, p.forming, p.queue, p.passed_over, p.formed, p.dispatch, p.service]
                .into_iter()
                .chain([p.others, p.padding, p.held, p.response])
                .sum::<u64>()
        };
        let mut sums: Vec<(u64, u64)> =
            found.blamed.iter().map(|b| (b.arrival_ns, total(&b.parts))).collect();
        told.sort_unstable();
        sums.sort_unstable();
        assert!(sums.len() > 10_000);
        assert_eq!(sums, told, "{rate} {policy}");
        for row in [&found.explanation.above, &found.explanation.all] {
            let share: f64 = row.share.parts().iter().map(|(_, v)| v).sum();
            let mean: f64 = row.mean_ms.parts().iter().map(|(_, v)| v).sum();
            assert!((share - 1.0).abs() < 1e-9 && (mean - row.latency_ms).abs() < 1e-6);
        }
    }
}

/// Arrivals every so many milliseconds.
fn steady(gap_ms: u32, policy: &str) -> Scenario {
    load(&format!(
        "schema = 1\nname = \"x\"\n[run]\nwarmup = \"0ms\"\n[[arrivals]]\n\
         kind = \"deterministic\"\nrate = \"{}/s\"\n[server]\ncost = {{ kind = \"affine\", \
         fixed = \"8ms\", per_item = \"0.5ms\" }}\n[[policy]]\n{policy}\n",
        1000.0 / f64::from(gap_ms)
    ))
}

fn parts_at(found: &Explained, arrival_ms: u64) -> Parts {
    found.blamed.iter().find(|b| b.arrival_ns == arrival_ms * MS).expect("it was answered").parts
}

#[test]
fn waits_have_the_causes_that_they_have_on_paper() {
    // The first is held for 5 ms on an idle server. Each later one comes while the pass before
    // runs for another 3.5 ms, and is held for the 1.5 ms that are left of its 5.
    let found = ask(&steady(10, "kind = \"dynamic\"\nmax_batch_size = 4\nmax_wait = \"5ms\""), 50);
    let service = Parts { service: 85 * MS / 10, ..Parts::default() };
    assert_eq!(parts_at(&found, 0), Parts { forming: 5 * MS, ..service });
    let later = Parts { queue: 35 * MS / 10, forming: 15 * MS / 10, ..service };
    assert_eq!(parts_at(&found, 200), later);
}

#[test]
fn a_frozen_batch_is_told_from_a_queue() {
    // Batches of 2 leave at 5, 14, 23, 32, 41, 50 ms, formed when their first is 5 ms old.
    let policy = "kind = \"triton\"\nmax_batch_size = 8\nmax_queue_delay_microseconds = 5000";
    let found = ask(&steady(4, policy), 60);
    let pair = Parts { service: 85 * MS / 10, others: MS / 2, ..Parts::default() };
    assert_eq!(parts_at(&found, 0), Parts { forming: 5 * MS, ..pair });
    assert_eq!(parts_at(&found, 8), Parts { queue: 5 * MS, formed: MS, ..pair });
    // The one of 32 ms comes as a batch of 2 leaves, with room for 6 more, and goes with the next.
    assert_eq!(parts_at(&found, 32), Parts { passed_over: 5 * MS, formed: 4 * MS, ..pair });
    let last = Parts { queue: MS, passed_over: 4 * MS, formed: 5 * MS, ..pair };
    assert_eq!(parts_at(&found, 40), last);
}

#[test]
fn padding_is_told_from_the_others() {
    let cost = Cost::Affine(Affine { fixed: Nanos(8 * MS), per_item: Nanos(MS / 2) });
    let around = Surroundings {
        cost: &cost,
        instances: 1,
        cap: 8,
        inbound: Nanos::ZERO,
        dispatch: Nanos::ZERO,
        release: [Nanos::ZERO; 2],
        response: Nanos::ZERO,
    };
    // Two requests of one and of two items that run as 8; the pass takes twice its 12 ms.
    let member = |items| Member { arrival_ns: 0, formed_ns: 0, items };
    let pass = Pass {
        left_ns: 0,
        took_ns: Some(24 * MS),
        slot: 0,
        size: 3,
        ran_as: 8,
        reason: Reason::Idle,
        members: 0..2,
    };
    let flight =
        Flight { passes: vec![pass], members: vec![member(1), member(2)], in_order: false };
    let parts: Vec<Parts> = blame(&flight, &around).iter().map(|b| b.parts).collect();
    // Alone 8.5 ms and 9 ms, together 9.5 ms, padded 12 ms; all twice.
    let padding = 5 * MS;
    assert_eq!(parts[0], Parts { service: 17 * MS, others: 2 * MS, padding, ..Parts::default() });
    assert_eq!(parts[1], Parts { service: 18 * MS, others: MS, padding, ..Parts::default() });
}

/// The traps that a scenario walks into.
fn fired(scenario: &Scenario) -> Vec<&'static str> {
    traps(scenario, &scenario.servers[0], &scenario.policies[0]).iter().map(|t| t.id).collect()
}

fn triton(rate: &str, lines: &str) -> Scenario {
    example(rate, "", &format!("kind = \"triton\"\n{lines}"))
}

#[test]
fn each_trap_fires_on_its_setting_and_not_on_a_clean_one() {
    let delay = "max_batch_size = 8\nmax_queue_delay_microseconds = 4000\n";
    let queue = |policy: &str| format!("max_batch_size = 8\ndefault_queue_policy = {{ {policy} }}");
    let clean = "max_batch_size = 8".to_owned();
    for (id, bad, good) in [
        (
            "triton-preferred-caps",
            "max_batch_size = 16\npreferred_batch_size = [4]".to_owned(),
            "max_batch_size = 16\npreferred_batch_size = [4, 16]".to_owned(),
        ),
        ("triton-delay-costs-a-pass", delay.to_owned(), clean.clone()),
        (
            "triton-delay-costs-a-pass",
            delay.to_owned(),
            format!("{delay}default_queue_policy = {{ max_queue_size = 10000 }}"),
        ),
        (
            "triton-preferred-plus-one",
            format!("{delay}preferred_batch_size = [4]"),
            format!("{delay}preferred_batch_size = [4, 8]"),
        ),
        (
            "triton-override-void",
            queue("allow_timeout_override = true"),
            queue("allow_timeout_override = true, default_timeout_microseconds = 900000"),
        ),
        (
            "triton-limit-counts-waiting",
            queue("max_queue_size = 1"),
            queue("max_queue_size = 10000"),
        ),
        (
            "triton-late-expiry",
            queue("default_timeout_microseconds = 20000"),
            queue("default_timeout_microseconds = 20000, timeout_action = \"DELAY\""),
        ),
        ("triton-idle-stall", queue("max_queue_size = 10000"), clean.clone()),
        (
            "triton-idle-stall",
            "max_batch_size = 8\npriority_levels = 2\ndefault_priority_level = 1".to_owned(),
            format!("{}\nidle_stall = 0.1", queue("max_queue_size = 10000")),
        ),
        (
            "triton-ordering-void",
            "max_batch_size = 8\npreserve_ordering = true\nrelease = \"2.61\"".to_owned(),
            "max_batch_size = 8\npreserve_ordering = true".to_owned(),
        ),
        (
            "cap-out-of-reach",
            "max_batch_size = 256\nmax_queue_delay_microseconds = 4000".to_owned(),
            "max_batch_size = 8\nmax_queue_delay_microseconds = 4000".to_owned(),
        ),
    ] {
        let (bad, good) = (fired(&triton("300/s", &bad)), fired(&triton("300/s", &good)));
        assert!(bad.contains(&id), "{id}: {bad:?}");
        assert!(!good.contains(&id), "{id}: {good:?}");
    }
    assert!(fired(&triton("300/s", &clean)).is_empty());
    // At a light load nobody waits for a pass.
    assert!(!fired(&triton("2/s", delay)).contains(&"triton-delay-costs-a-pass"));
}

#[test]
fn traps_say_what_was_promised() {
    let scenario = triton("300/s", "max_batch_size = 16\npreferred_batch_size = [4]");
    let found = &traps(&scenario, &scenario.servers[0], &scenario.policies[0])[0];
    let wanted = "preferred_batch_size [4] with delay 0 never runs more than 4";
    assert!(found.what.starts_with(wanted), "{}", found.what);
    // 4 / 10 ms and 16 / 16 ms.
    assert!(found.what.contains("400/s") && found.what.contains("1,000/s"), "{}", found.what);
    let scenario = triton("300/s", "max_batch_size = 8\nmax_queue_delay_microseconds = 4000");
    let found = &traps(&scenario, &scenario.servers[0], &scenario.policies[0])[0];
    assert!(found.what.contains("on the default path costs a whole service time under load"));
    assert!(found.what.contains("8.5 ms to 12 ms"), "{}", found.what);
    assert!(found.help.contains("rare stalls of up to 500 ms"), "{}", found.help);
}

#[test]
fn mixed_shapes_and_objectives() {
    let shapes = |second: &str| {
        load(&format!(
            "schema = 1\n[[arrivals]]\nkind = \"poisson\"\nrate = \"200/s\"\nname = \"a\"\n\
             shape = \"short\"\n[[arrivals]]\nkind = \"poisson\"\nrate = \"200/s\"\nname = \"b\"\n\
             shape = \"{second}\"\n[server]\ncost = {{ kind = \"affine\", fixed = \"8ms\", \
             per_item = \"0.5ms\" }}\n[[policy]]\nkind = \"triton\"\nmax_batch_size = 16\n\
             enforce_shapes = true\n"
        ))
    };
    assert_eq!(fired(&shapes("long")), ["triton-shapes-split"]);
    assert!(fired(&shapes("short")).is_empty());
    let objective = |limit: &str| {
        let scenario = format!("{TRITON}\n[[threshold]]\nexpr = \"p(99) < {limit}\"");
        fired(&example("5/s", "", &scenario))
    };
    // 4 ms and 8.5 ms.
    assert!(objective("12ms").contains(&"wait-over-objective"));
    assert!(!objective("13ms").contains(&"wait-over-objective"));
}

#[test]
fn traps_of_the_other_servers() {
    let fired = |server: &str, policy: &str| fired(&example("300/s", server, policy));
    let serve = |lines: &str| fired("", &format!("kind = \"torchserve\"\n{lines}"));
    assert_eq!(serve("batchSize = 8\nmaxBatchDelay = 0"), ["torchserve-delay-zero-pairs"]);
    assert!(serve("batchSize = 2\nmaxBatchDelay = 0").is_empty());
    assert_eq!(serve("batchSize = 8\nmaxBatchDelay = 6"), ["torchserve-timer-restarts"]);
    assert!(serve("batchSize = 8\nmaxBatchDelay = 1").is_empty());
    assert!(serve("batchSize = 1").is_empty());
    assert_eq!(serve("batchSize = 1\nclientTimeoutInMills = 50"), ["torchserve-silent-expiry"]);
    let mosec = |server: &str, wait: u32| {
        fired(server, &format!("kind = \"mosec\"\nmax_batch_size = 8\nmax_wait_time = {wait}"))
    };
    assert_eq!(mosec("", 0), ["mosec-zero-wait-is-ten"]);
    assert_eq!(mosec("", 6), ["mosec-timer-restarts"]);
    assert!(mosec("", 1).is_empty());
    assert_eq!(mosec("instances = 2", 1), ["mosec-workers-compete"]);
    let lit = |server: &str, seconds: &str| {
        let policy = "kind = \"litserve\"\nmax_batch_size = 8\nbatch_timeout";
        fired(server, &format!("{policy} = {seconds}"))
    };
    assert_eq!(lit("", "0.005"), ["litserve-windows-restart"]);
    assert!(lit("", "0.001").is_empty() && lit("", "0").is_empty());
    assert_eq!(lit("instances = 2", "0"), ["litserve-workers-compete"]);
}

#[test]
fn other_servers_say_what_was_promised() {
    let words = |policy: &str| {
        let scenario = example("300/s", "", policy);
        traps(&scenario, &scenario.servers[0], &scenario.policies[0]).swap_remove(0)
    };
    let pairs = words("kind = \"torchserve\"\nbatchSize = 8\nmaxBatchDelay = 0");
    assert!(pairs.what.starts_with("maxBatchDelay 0 caps batches at 2"), "{}", pairs.what);
    // 2 / 9 ms and 8 / 12 ms.
    assert!(pairs.what.contains("222/s") && pairs.what.contains("667/s"), "{}", pairs.what);
    // 12 ms and 6 ms.
    let again = words("kind = \"torchserve\"\nbatchSize = 8\nmaxBatchDelay = 6");
    assert!(again.what.contains("here 18 ms"), "{}", again.what);
    let again = words("kind = \"mosec\"\nmax_batch_size = 8\nmax_wait_time = 6");
    assert!(again.what.contains("here 19 ms"), "{}", again.what);
    let zero = words("kind = \"mosec\"\nmax_batch_size = 8");
    assert!(zero.what.contains("takes 19.5 ms instead of 8.5 ms"), "{}", zero.what);
    let windows = words("kind = \"litserve\"\nmax_batch_size = 8\nbatch_timeout = 0.006");
    assert!(windows.what.contains("3 ms on average"), "{}", windows.what);
}

#[test]
fn ways_out_are_simulated() {
    let found = ask(&example("300/s", "", TRITON), 30_000);
    let trap = &found.explanation.traps[0];
    assert_eq!(trap.id, "triton-delay-costs-a-pass");
    let p99: Vec<f64> = trap.trials.iter().map(|t| t.p99_ms.unwrap()).collect();
    // 29.9 ms as it is; 22 and less without the look-ahead.
    assert_eq!(p99.len(), 2);
    assert!(p99.iter().all(|p| p + 3.0 < found.explanation.latency_ms), "{p99:?}");
}

#[test]
fn bursts_share_no_moment_and_reasons_count_every_batch() {
    let found = ask(&example("500/s", OVERHEAD, TRITON), 30_000);
    let e = &found.explanation;
    assert_eq!(e.bursts.len(), 3);
    assert!(e.bursts.windows(2).all(|w| w[0].latency_ms >= w[1].latency_ms));
    for (i, (from, to)) in found.spells.iter().enumerate() {
        for (begin, end) in &found.spells[i + 1..] {
            assert!(to < begin || from > end);
        }
    }
    for burst in &e.bursts {
        assert_eq!(burst.batches.iter().filter(|b| b.own).count(), 1);
        assert!(burst.batches.last().unwrap().own);
        assert!(burst.batches.windows(2).all(|w| w[0].at_ms <= w[1].at_ms));
        let sum: f64 = burst.blame_ms.parts().iter().map(|(_, v)| v).sum();
        assert!((sum - burst.latency_ms).abs() < 1e-6);
    }
    let share: f64 = e.reasons.iter().map(|r| r.share).sum();
    assert!((share - 1.0).abs() < 1e-9);
    assert_eq!(e.requests.completed, e.all.requests);
    let [text, markdown] = [explanation_text(e), explanation_markdown(e)];
    for part in ["forming", "passed over", "in a formed batch", "other items", "100.0 %"] {
        assert!(text.contains(part) && markdown.contains(part), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
    assert_eq!(explanation_csv(e).lines().count(), 9);
}

#[test]
fn traces_parse_and_are_consistent() {
    let scenario = example("900/s", "instances = 2", TRITON);
    let found = ask(&scenario, 20_000);
    let value = perfetto::trace("x", &found.flight, Nanos::ZERO, &found.spells);
    let text = serde_json::to_string(&value).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = read["traceEvents"].as_array().unwrap();
    let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).collect::<Vec<_>>();
    let names: Vec<&str> = of("M").iter().map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["x", "arrivals", "instance 0", "instance 1"]);
    for tid in [1, 2] {
        let mut slices: Vec<(f64, f64)> = of("X")
            .iter()
            .filter(|e| e["tid"] == tid)
            .map(|e| (e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap()))
            .collect();
        assert!(!slices.is_empty());
        slices.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(slices.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0 + 1e-3), "{slices:?}");
    }
    let ids = |ph: &str| of(ph).iter().map(|e| e["id"].as_u64().unwrap()).collect::<Vec<_>>();
    assert!(!ids("s").is_empty());
    assert_eq!(ids("s"), ids("f"), "every arrow has two ends");
    let counts: Vec<i64> =
        of("C").iter().map(|e| e["args"]["requests"].as_i64().unwrap()).collect();
    assert!(counts.iter().all(|n| *n >= 0) && counts.iter().any(|n| *n > 2), "{counts:?}");
}
