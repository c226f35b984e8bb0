//! Subset selection under common random numbers.
//!
//! Settings are simulated with the same streams in rounds of growing length. After each round a
//! setting is dropped where it is surely infeasible, or surely outside the indifference zone of
//! another one: where a paired t-interval of `value − (1 + δ) · other` lies above zero. Every
//! comparison is made at its share of the 5 % (over all rounds and rivals), so a setting within
//! the zone of the best stays with 95 % confidence, however the rounds went (Gupta 1965; Nelson,
//! Swann, Goldsman & Song 2001 for screening in stages). It ends when everything left is surely
//! inside, or the requests are spent.

use super::contest::{Candidate, each, one_replay};
use super::score::{Judge, Score};
use crate::decide::setting::{Blank, Reading};
use crate::scenario::Tune;
use crate::stats::t_quantile;
use crate::study::Observed;
use std::collections::BTreeMap;

/// Requests of each setting in the first round; quadrupled from round to round.
const FIRST_ROUND: u64 = 100_000;
const ROUNDS: u32 = 6;

/// How a simulated setting fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Tied,
    Worse,
    Infeasible,
}

/// Everything that was found.
pub(super) struct Screened {
    pub(super) found: BTreeMap<usize, (Score, Verdict)>,
    /// The best value, exact ones included, at face value.
    pub(super) best: Option<f64>,
    pub(super) guarantee: String,
    pub(super) spent: u64,
}

/// A setting still in the race.
struct Entrant {
    number: usize,
    marks: Reading,
    score: Score,
    value: f64,
    sections: Vec<f64>,
}

impl Entrant {
    fn new(
        number: usize,
        candidate: &Candidate,
        (marks, seen): (Reading, Observed),
        judge: &Judge<'_>,
    ) -> Self {
        Self {
            number,
            score: judge.of_look(&candidate.setting(), &marks, &seen),
            marks,
            value: judge.sampled_value(&seen.pooled),
            sections: seen.sections.iter().map(|s| judge.sampled_value(s)).collect(),
        }
    }

    /// The interval of `value − (1 + zone) · other`, paired by replication.
    fn against(&self, other: &Rival<'_>, zone: f64, t: f64) -> (f64, f64) {
        let scale = 1.0 + zone;
        let pooled = self.value - scale * other.value;
        let difference = |r: usize, mine: &f64| {
            mine - scale * other.sections.get(r).copied().unwrap_or(other.value)
        };
        let parts: Vec<f64> =
            self.sections.iter().enumerate().map(|(r, mine)| difference(r, mine)).collect();
        let half = paired_half(pooled, &parts, t);
        (pooled - half, pooled + half)
    }
}

/// What a setting is compared with: another one, or an exact value.
struct Rival<'a> {
    value: f64,
    sections: &'a [f64],
}

#[expect(clippy::cast_precision_loss, reason = "a handful of replications")]
fn paired_half(pooled: f64, parts: &[f64], t: f64) -> f64 {
    let r = parts.len();
    if r < 2 {
        return 0.0;
    }
    let squares: f64 = parts.iter().map(|p| (p - pooled).powi(2)).sum();
    t * (squares / (r - 1) as f64 / r as f64).sqrt()
}

/// Screens the settings that have no exact solution, beside the best exact value.
///
/// # Errors
/// It was stopped.
pub(super) fn screen(
    candidates: &[Candidate],
    numbers: &[usize],
    best_exact: Option<f64>,
    tune: &Tune,
    judge: &Judge<'_>,
) -> Result<Screened, Blank> {
    let mut screened =
        Screened { found: BTreeMap::new(), best: best_exact, guarantee: String::new(), spent: 0 };
    let mut alive: Vec<usize> = numbers.to_vec();
    let rivals = numbers.len().max(2) - 1 + usize::from(best_exact.is_some());
    let comparisons = u32::try_from(numbers.len()).unwrap_or(u32::MAX).saturating_mul(ROUNDS);
    let mut requests = FIRST_ROUND.min(judge.ask.most);
    for round in 1..=ROUNDS {
        if alive.is_empty() {
            break;
        }
        let looks = each(&alive, |i| judge.look(&candidates[i].setting(), requests, comparisons));
        let mut entrants = Vec::with_capacity(alive.len());
        for (i, look) in alive.iter().zip(looks) {
            let look = look?;
            screened.spent += look.1.requests;
            entrants.push(Entrant::new(*i, &candidates[*i], look, judge));
        }
        let sections = entrants.iter().map(|e| e.sections.len()).min().unwrap_or(1);
        let level = 0.05 / f64::from(ROUNDS) / rivals as f64;
        let t = if sections > 1 { t_quantile(1.0 - 0.5 * level, sections as u64 - 1) } else { 0.0 };
        let last = round == ROUNDS || requests >= judge.ask.most || sections < 2;
        let sorted = sort(entrants, best_exact, tune.indifference, t);
        let settled = last || sorted.undecided == 0;
        alive.clear();
        for (entrant, verdict) in sorted.entrants {
            let verdict = match verdict {
                Verdict::Tied if settled && entrant.marks.face() < 0.0 => Verdict::Infeasible,
                verdict => verdict,
            };
            if verdict == Verdict::Tied && !settled {
                alive.push(entrant.number);
            } else if verdict == Verdict::Tied {
                let best = screened.best.unwrap_or(f64::INFINITY);
                screened.best = Some(best.min(entrant.value));
            }
            screened.found.insert(entrant.number, (entrant.score, verdict));
        }
        (0..numbers.len() - alive.len()).for_each(|_| judge.control.add_cell());
        requests = requests.saturating_mul(4).min(judge.ask.most);
    }
    let replays = numbers.iter().any(|i| candidates[*i].setting().replays());
    screened.guarantee = match replays {
        true => one_replay(tune.indifference),
        false => said(tune.indifference, rivals),
    };
    Ok(screened)
}

struct Sorted {
    entrants: Vec<(Entrant, Verdict)>,
    /// How many are neither dropped nor surely inside the zone.
    undecided: usize,
}

/// Drops what is surely infeasible or surely outside the zone of another.
fn sort(entrants: Vec<Entrant>, best_exact: Option<f64>, zone: f64, t: f64) -> Sorted {
    let holds = |e: &&Entrant| e.marks.face() >= 0.0;
    let mut rivals: Vec<(Option<usize>, Rival<'_>)> = entrants
        .iter()
        .filter(holds)
        .map(|e| (Some(e.number), Rival { value: e.value, sections: &e.sections }))
        .collect();
    rivals.extend(best_exact.map(|value| (None, Rival { value, sections: &[] })));
    let mut undecided = 0;
    let judged = entrants.iter().map(|entrant| {
        if entrant.marks.hope() < 0.0 {
            return Verdict::Infeasible;
        }
        let others = rivals.iter().filter(|(number, _)| *number != Some(entrant.number));
        let spans: Vec<(f64, f64)> =
            others.map(|(_, rival)| entrant.against(rival, zone, t)).collect();
        if spans.iter().any(|span| span.0 > 0.0) {
            return Verdict::Worse;
        }
        let inside = spans.iter().all(|span| span.1 <= 0.0);
        undecided += usize::from(!inside || !entrant.marks.clear());
        Verdict::Tied
    });
    let verdicts: Vec<Verdict> = judged.collect();
    Sorted { entrants: entrants.into_iter().zip(verdicts).collect(), undecided }
}

fn said(zone: f64, rivals: usize) -> String {
    format!(
        "every setting within {} % of the best is among them with 95 % confidence: subset \
         selection by paired t-tests under common random numbers, Bonferroni over {rivals} rivals \
         and {ROUNDS} rounds",
        zone * 100.0
    )
}
