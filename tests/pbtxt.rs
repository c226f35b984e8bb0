//! Settings of a scenario written into Triton configurations: nothing else changes, byte for byte.
#![cfg(feature = "schema")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use batchsim::interop::triton::{self, Rule, Setting};
use batchsim::policy::{LevelPolicy, Policy, QueuePolicy, TimeoutAction, Triton};
use batchsim::scenario::{self, Disk, Input};
use std::fs;
use std::path::{Path, PathBuf};

fn files() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pbtxt");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 20);
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn text_of(name: &str) -> String {
    files().into_iter().find(|(path, _)| path.to_string_lossy().contains(name)).unwrap().1
}

/// What a configuration means, by way of the scenario that is imported from it.
fn meaning(text: &str) -> (Policy, u32) {
    let imported = triton::import(text, Rule::Triton)
        .unwrap_or_else(|problems| panic!("{text}\n{problems:?}"));
    let input = Input::from_text("fragment.toml", imported.toml.as_bytes());
    let disk = Disk::beside(Path::new("fragment.toml"), batchsim::interop::trace::for_scenario);
    let loaded = scenario::load(&input, &[], &disk).unwrap_or_else(|e| panic!("{e:?}"));
    let scenario = loaded.scenario;
    (scenario.policies[0].policy.clone(), scenario.servers[0].instances)
}

fn setting(text: &str) -> (Triton, u32) {
    match meaning(text) {
        (Policy::Triton(policy), instances) => (policy, instances),
        // Without dynamic_batching: as if it stood there empty.
        (_, instances) => {
            let input = triton::import(&format!("{text}\ndynamic_batching {{ }}"), Rule::Triton);
            assert!(input.is_ok());
            let (Policy::Triton(policy), _) = meaning(&format!("{text}\ndynamic_batching {{ }}"))
            else {
                panic!("{text}")
            };
            (policy, instances)
        }
    }
}

#[track_caller]
fn export(text: &str, policy: &Triton, instances: u32) -> triton::Exported {
    triton::export("config.pbtxt", text, Setting { policy, instances })
        .unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

/// Bytes that two texts have in common at the front and at the back.
fn common(a: &str, b: &str) -> (usize, usize) {
    let front = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let most = a.len().min(b.len()) - front;
    let back = a.bytes().rev().zip(b.bytes().rev()).take(most).take_while(|(x, y)| x == y).count();
    (front, back)
}

#[test]
fn the_same_settings_change_nothing() {
    let mut checked = 0;
    for (path, text) in files() {
        let (Policy::Triton(policy), instances) = meaning(&text) else { continue };
        let exported = export(&text, &policy, instances);
        assert_eq!(exported.text, text, "{}", path.display());
        assert!(exported.diff.is_empty() && exported.notes.is_empty(), "{exported:?}");
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}

#[test]
fn a_changed_delay_changes_its_digits_or_adds_its_field() {
    let (mut replaced, mut added) = (0, 0);
    for (path, text) in files() {
        let (mut policy, instances) = setting(&text);
        let old = policy.max_queue_delay_microseconds;
        policy.max_queue_delay_microseconds = 123_456_789;
        let exported = export(&text, &policy, instances);
        let (front, back) = common(&text, &exported.text);
        if old > 0 {
            let from = text[front..text.len() - back].to_owned();
            let to = &exported.text[front..exported.text.len() - back];
            assert!(from.bytes().all(|b| b.is_ascii_digit()), "{}: {from}", path.display());
            assert!(to.bytes().all(|b| b.is_ascii_digit()), "{}: {to}", path.display());
            assert!(old.to_string().contains(&from));
            replaced += 1;
        } else {
            assert!(front + back >= text.len(), "{}\n{}", path.display(), exported.text);
            added += 1;
        }
        assert_eq!(meaning(&exported.text), (Policy::Triton(policy), instances));
        let removed = exported.diff.lines().filter(|l| l.starts_with('-')).count();
        assert!(removed <= 2 && exported.diff.contains("123456789"), "{}", exported.diff);
    }
    assert!(replaced >= 15 && added >= 6, "{replaced} {added}");
}

fn level(level: u32, max_queue_size: u32) -> LevelPolicy {
    LevelPolicy {
        level,
        timeout_action: TimeoutAction::Delay,
        default_timeout_microseconds: 5_000,
        allow_timeout_override: false,
        max_queue_size,
    }
}

/// Settings that differ from any of the files.
fn settings() -> Vec<Triton> {
    let plain = |max_batch_size| Triton { max_batch_size, ..Triton::default() };
    let queue = QueuePolicy { max_queue_size: 10_000, ..QueuePolicy::default() };
    let strict = QueuePolicy {
        timeout_action: TimeoutAction::Reject,
        default_timeout_microseconds: 40_000,
        allow_timeout_override: true,
        max_queue_size: 7,
    };
    vec![
        plain(100),
        Triton { preferred_batch_size: vec![3], ..plain(7) },
        Triton { preferred_batch_size: vec![2, 6, 100], ..plain(100) },
        Triton { max_queue_delay_microseconds: 55, preserve_ordering: true, ..plain(9) },
        Triton { default_queue_policy: Some(queue), ..plain(64) },
        Triton { default_queue_policy: Some(strict), ..plain(2) },
        Triton {
            priority_levels: 3,
            default_priority_level: 3,
            priority_queue_policy: vec![level(1, 3), level(2, 4)],
            ..plain(50)
        },
    ]
}

#[test]
fn any_setting_can_be_written_into_any_file() {
    for (path, text) in files() {
        for wanted in settings() {
            let (old, _) = setting(&text);
            let listed = path.to_string_lossy().contains("23-policy-list");
            let lost =
                |l: &LevelPolicy| wanted.priority_queue_policy.iter().all(|w| w.level != l.level);
            let wanted = Triton { enforce_shapes: old.enforce_shapes, ..wanted.clone() };
            let made = triton::export("x", &text, Setting { policy: &wanted, instances: 4 });
            if listed && old.priority_queue_policy.iter().any(lost) {
                // An entry of a list is not taken out; the place is named.
                assert_eq!(made.unwrap_err()[0].line, 8, "{}", path.display());
                continue;
            }
            let made = made.unwrap_or_else(|e| panic!("{}\n{text}\n{e:?}", path.display()));
            let (policy, instances) = meaning(&made.text);
            assert_eq!(policy, Policy::Triton(wanted), "{}\n{}", path.display(), made.text);
            assert!(instances == 4 || !made.notes.is_empty(), "{}", made.text);
            kept(&text, &made.text);
        }
    }
}

/// Comments, line ends and the mark at the front are as they were.
fn kept(old: &str, new: &str) {
    let comments = |text: &str| -> Vec<String> {
        let full = |l: &&str| l.trim_start().starts_with('#');
        text.lines().filter(full).map(str::to_owned).collect()
    };
    assert_eq!(comments(old), comments(new), "{new}");
    assert_eq!(old.starts_with('\u{feff}'), new.starts_with('\u{feff}'));
    if old.contains("\r\n") {
        assert!(!new.replace("\r\n", "").contains('\n'), "{new:?}");
    } else {
        assert!(!new.contains('\r'));
    }
}

#[test]
fn what_is_added_looks_like_its_surroundings() {
    let with = |name: &str, change: &dyn Fn(&mut Triton)| {
        let text = text_of(name);
        let (mut policy, instances) = setting(&text);
        change(&mut policy);
        export(&text, &policy, instances).text
    };
    let delay = |p: &mut Triton| p.max_queue_delay_microseconds = 70;
    let queue = |p: &mut Triton| {
        let policy = QueuePolicy { max_queue_size: 9, ..QueuePolicy::default() };
        p.default_queue_policy = Some(policy);
    };
    assert!(with("05-", &delay).contains("dynamic_batching { max_queue_delay_microseconds: 70 }"));
    assert!(with("06-", &delay).contains("dynamic_batching{ max_queue_delay_microseconds: 70 }"));
    let lines = "dynamic_batching {\n  max_queue_delay_microseconds: 70\n}\n";
    assert!(with("07-", &delay).contains(lines), "{}", with("07-", &delay));
    assert!(
        with("19-", &delay).ends_with("dynamic_batching { max_queue_delay_microseconds: 70 }\n")
    );
    let block = "# us!\n  # trailing comment\n";
    assert!(with("11-", &delay).contains(block));
    let crlf = with("08-", &queue);
    let block = "1000\r\n  default_queue_policy {\r\n    max_queue_size: 9\r\n  }\r\n}\r\n";
    assert!(crlf.ends_with(block), "{crlf:?}");
    let semi = with("15-", &queue);
    assert!(semi.contains("  preserve_ordering: true;\n  default_queue_policy {\n"), "{semi}");
    assert!(semi.contains("    max_queue_size: 9\n  };\n};\n"), "{semi}");
    let angle = with("13-", &queue);
    assert!(angle.contains("  default_queue_policy <\n    max_queue_size: 9\n  >\n>"), "{angle}");
    let one = with("03-", &queue);
    assert!(one.contains("microseconds: 100 default_queue_policy { max_queue_size: 9 } }\n"));
    let preferred = |p: &mut Triton| p.preferred_batch_size = vec![2, 4];
    assert!(with("04-", &preferred).contains("preferred_batch_size: [2,4], max_queue"));
    assert!(with("01-", &preferred).contains("preferred_batch_size: [ 2, 4 ]\n"));
}

#[test]
fn fields_alone_mean_the_same() {
    for wanted in settings() {
        let text = triton::fields(Setting { policy: &wanted, instances: 3 });
        assert_eq!(meaning(&text), (Policy::Triton(wanted), 3), "{text}");
    }
}

#[test]
fn bad_configurations_point_at_their_place() {
    let policy = Triton { max_batch_size: 8, ..Triton::default() };
    for (text, line, column) in [
        ("max_batch_size: 8\ndynamic_batching {\n  max_queue_delay_microseconds 5 }", 3, 32),
        ("max_batch_size: 8\n  sequence_batching { }", 2, 3),
        ("instance_group [ {\n count: 1\n rate_limiter { priority: 1 } } ]", 3, 2),
        ("max_batch_size: 8 }", 1, 19),
    ] {
        let setting = Setting { policy: &policy, instances: 1 };
        let problems = triton::export("x", text, setting).unwrap_err();
        assert_eq!((problems[0].line, problems[0].column), (line, column), "{text}");
    }
}

/// What the program says.
#[cfg(feature = "cli")]
mod program {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    fn scratch(name: &str) -> PathBuf {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pbtxt").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn batchsim(arguments: &[&str], dir: &Path) -> Output {
        Command::new(env!("CARGO_BIN_EXE_batchsim"))
            .args(arguments)
            .args(["--progress", "never", "--color", "never"])
            .current_dir(dir)
            .output()
            .unwrap()
    }

    #[test]
    fn what_is_out_of_scope_is_refused_by_name_and_line() {
        let dir = scratch("refused");
        for (text, place, name) in [
            ("max_batch_size: 4\nsequence_batching { }\n", "c.pbtxt:2:1", "sequence"),
            (
                "max_batch_size: 4\ninstance_group [ {\n  count: 1\n  rate_limiter { }\n} ]\n",
                "c.pbtxt:4:3",
                "rate limiter",
            ),
        ] {
            fs::write(dir.join("c.pbtxt"), text).unwrap();
            let output = batchsim(&["import", "triton", "c.pbtxt"], &dir);
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{err}");
            assert!(output.stdout.is_empty() && err.contains(place), "{err}");
            assert!(err.to_lowercase().contains(name), "{err}");
        }
    }
}
