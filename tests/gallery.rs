//! The committed gallery is what the scenarios give today: the same texts, and the same geometry
//! to less than a pixel (floating point may differ in the last digit between targets).
#![cfg(feature = "plot")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

#[path = "common/gallery.rs"]
mod gallery;

/// Cuts a text into numbers and what stands between them.
fn tokens(svg: &str) -> (Vec<f64>, Vec<String>) {
    let (mut numbers, mut words) = (Vec::new(), vec![String::new()]);
    let mut digits = String::new();
    for c in svg.chars().chain([' ']) {
        let point = c == '.' && !digits.is_empty() && !digits.contains('.');
        if c.is_ascii_digit() || point {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            let number = digits.trim_end_matches('.');
            numbers.push(number.parse().unwrap());
            words.push(digits[number.len()..].to_owned());
            digits.clear();
        }
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    (numbers, words)
}

fn differs(a: &str, b: &str) -> Option<String> {
    let ((na, wa), (nb, wb)) = (tokens(a), tokens(b));
    if let Some((x, y)) = wa.iter().zip(&wb).find(|(x, y)| x != y) {
        return Some(format!("`{x}` is now `{y}`"));
    }
    if na.len() != nb.len() {
        return Some(format!("{} numbers are now {}", na.len(), nb.len()));
    }
    // Coordinates are in pixels; numbers in texts are printed to fewer digits than they are known.
    let far = na.iter().zip(&nb).find(|(x, y)| (*x - *y).abs() > 0.6_f64.max(0.002 * x.abs()));
    far.map(|(x, y)| format!("{x} is now {y}"))
}

#[test]
fn the_gallery_is_current() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plots");
    for (name, svg) in gallery::draw() {
        let path = folder.join(format!("{name}.svg"));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        if let Some(what) = differs(&committed, &svg) {
            panic!(
                "plots/{name}.svg is out of date ({what}): cargo run --release --example gallery"
            );
        }
    }
}

#[test]
fn a_moved_point_and_a_changed_text_are_noticed() {
    let svg = "<text x='10'>p99</text><path d='M 1.5 2'/>";
    assert_eq!(differs(svg, svg), None);
    assert_eq!(differs(svg, &svg.replace("1.5", "1.6")), None);
    assert!(differs(svg, &svg.replace("1.5", "3.5")).is_some());
    assert!(differs(svg, &svg.replace("p99", "q99")).is_some());
}
