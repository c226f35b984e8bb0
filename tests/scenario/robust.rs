//! Inputs that nobody means: huge, deep, mutated.

use super::{Beside, QUICKSTART, quickstart, read_text, render};
use batchsim::scenario::{Input, load};
use proptest::prelude::*;
use std::path::Path;

#[test]
fn unlikely_inputs_are_named() {
    let refused = |name: &str, bytes: Vec<u8>| {
        let files = Beside::new(Path::new("scenarios/x"));
        match load(&Input::from_text(name, bytes), &[], &files) {
            Ok(_) => panic!("{name} reads"),
            Err(all) => render(&all),
        }
    };
    assert!(refused("big.toml", vec![b'#'; (16 << 20) + 1]).contains("larger than 16 MiB"));
    assert!(refused("utf16.toml", vec![0xff, 0xfe, 0x20, 0]).contains("UTF-16"));
    let deep = |open: &str, n: usize| open.repeat(n);
    for (name, text) in [
        ("deep.json", format!("{{\"a\": {}", deep("[", 100_000))),
        ("deep.yaml", format!("a: {}", deep("[", 100_000))),
        ("deep.toml", format!("a = {}", deep("[", 100_000))),
        ("nested.json", format!("{{\"a\": {}1{}}}", deep("[", 100), deep("]", 100))),
        ("nested.yaml", format!("a: {}1{}", deep("[", 100), deep("]", 100))),
        ("nested.toml", format!("a = {}1{}", deep("[", 60), deep("]", 60))),
    ] {
        assert!(!refused(name, text.into_bytes()).is_empty());
    }
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned()
        + &(b'b'..=b'k')
            .map(|c| {
                let (this, last) = (char::from(c), char::from(c - 1));
                format!("{this}: &{this} [*{last}, *{last}, *{last}, *{last}, *{last}, *{last}]\n")
            })
            .collect::<String>();
    assert!(refused("bomb.yaml", bomb.into_bytes()).contains("explode"));
    let folder = Input::open(Path::new("scenarios")).unwrap_err();
    assert!(folder.message.contains("is a directory"));
    let nowhere = Input::open(Path::new("scenarios/nowhere.toml")).unwrap_err();
    assert!(nowhere.message.contains("cannot read"));
}

fn survives(name: &str, bytes: Vec<u8>) {
    let files = Beside::new(Path::new("scenarios/x"));
    match load(&Input::from_text(name, bytes), &[], &files) {
        Ok(loaded) => {
            let _ = render(&loaded.warnings);
        }
        Err(all) => assert!(!render(&all).is_empty()),
    }
}

/// Bytes replaced, inserted, removed or repeated at places of a text.
fn mutate(text: &str, edits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, how, byte) in edits {
        let at = at % bytes.len().max(1);
        match how % 4 {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 if bytes.len() > 1 => drop(bytes.remove(at)),
            _ => {
                let end = (at + usize::from(*byte)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn cases() -> ProptestConfig {
    ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn no_mutation_panics(
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..4),
    ) {
        survives("x.toml", mutate(QUICKSTART, &edits));
        survives("x.yaml", mutate(include_str!("../../scenarios/quickstart.yaml"), &edits));
        survives("x.json", mutate(include_str!("../../scenarios/quickstart.json"), &edits));
        survives("x.toml", mutate(include_str!("../../scenarios/heatmap.toml"), &edits));
    }

    #[test]
    fn no_set_panics(path in "[a-z._]{0,20}", value in "\\PC{0,20}") {
        let _ = quickstart(&[&format!("{path}={value}")]);
        let _ = quickstart(&[&format!("dynamic.{path}={value}")]);
        let _ = quickstart(&[&format!("server.{path}={value}")]);
        let expr = format!("[[threshold]]\nexpr = {value:?}\n");
        let _ = read_text("x.toml", &format!("{QUICKSTART}\n{expr}"), &[]);
    }
}
