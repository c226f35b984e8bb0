//! A root of a continuous function on a bracket.

/// A point and the value there.
pub(crate) type Point = (f64, f64);

/// Closes in on the sign change between `a` and `b`, whose values differ in sign, until the
/// bracket is no wider than `tolerance`. Returns the two ends of the last bracket, first the one
/// whose value is not negative; `None` when the function gives no value.
///
/// Chandrupatla's method (1997): inverse quadratic steps where three points support them, halving
/// elsewhere. It keeps the bracket, so a kink or a flat stretch costs time and nothing else.
pub(crate) fn close_in(
    f: &mut dyn FnMut(f64) -> Option<f64>,
    a: Point,
    b: Point,
    tolerance: f64,
) -> Option<(Point, Point)> {
    let (mut new, mut old) = (a, b);
    let mut step: f64 = 0.5;
    for _ in 0..200 {
        let width = (old.0 - new.0).abs();
        let least = (0.5 * tolerance + 2.0 * f64::EPSILON * new.0.abs()) / width;
        if width <= tolerance || least >= 0.5 || new.1 == 0.0 || old.1 == 0.0 {
            break;
        }
        let at = new.0 + step.clamp(least, 1.0 - least) * (old.0 - new.0);
        let next = (at, f(at)?);
        let third = if (next.1 >= 0.0) == (new.1 >= 0.0) {
            std::mem::replace(&mut new, next)
        } else {
            let third = std::mem::replace(&mut old, new);
            new = next;
            third
        };
        step = quadratic(new, old, third).unwrap_or(0.5);
    }
    Some(if new.1 >= 0.0 { (new, old) } else { (old, new) })
}

/// The inverse quadratic step through three points, where Chandrupatla's test trusts it.
fn quadratic(new: Point, old: Point, third: Point) -> Option<f64> {
    let xi = (new.0 - old.0) / (third.0 - old.0);
    let phi = (new.1 - old.1) / (third.1 - old.1);
    let trusted = phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi;
    let step = new.1 / (old.1 - new.1) * (third.1 / (old.1 - third.1))
        + (third.0 - new.0) / (old.0 - new.0)
            * (new.1 / (third.1 - new.1))
            * (old.1 / (third.1 - old.1));
    (trusted && step.is_finite()).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(f: impl Fn(f64) -> f64, a: f64, b: f64) -> (f64, usize) {
        let mut calls = 0;
        let mut counted = |x| {
            calls += 1;
            Some(f(x))
        };
        let ((x, y), _) = close_in(&mut counted, (a, f(a)), (b, f(b)), 1e-12).unwrap();
        assert!(y >= 0.0);
        (x, calls)
    }

    #[test]
    fn smooth_kinked_and_steep_functions() {
        let (x, calls) = root(|x| 2.0 - x * x, 0.0, 2.0);
        assert!((x - 2f64.sqrt()).abs() < 1e-11 && calls < 15, "{x} {calls}");
        let (x, calls) = root(|x| (1.0 - x).min(10.0 - 20.0 * x), 0.0, 1.0);
        assert!((x - 0.5).abs() < 1e-11 && calls < 45, "{x} {calls}");
        let (x, calls) = root(|x| -(x - 0.3).powi(9), 0.0, 1.0);
        assert!((x - 0.3).abs() < 1e-2 && calls < 200, "{x} {calls}");
        let (x, _) = root(|x| if x < 0.7 { 1.0 } else { -1e6 }, 0.0, 1.0);
        assert!((x - 0.7).abs() < 1e-11 && x <= 0.7);
    }

    #[test]
    fn the_ends_may_come_in_either_order() {
        let (x, _) = root(|x| x - 0.25, 1.0, 0.0);
        assert!((x - 0.25).abs() < 1e-11);
    }

    #[test]
    fn no_value_ends_the_search() {
        assert_eq!(close_in(&mut |_| None, (0.0, 1.0), (1.0, -1.0), 1e-9), None);
    }
}
