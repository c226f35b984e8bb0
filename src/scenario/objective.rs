//! What `tune` seeks: `max rate`, `min p99`, `min gpu-time`, ….

use std::fmt;

/// What makes one setting better than another; all of them under the thresholds as constraints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// `max rate`: the highest total rate at which all thresholds hold.
    MaxRate,
    /// `min p(q)`: a latency quantile at the offered load, as a share (0.99).
    MinQuantile(f64),
    /// `min mean`: the mean latency at the offered load.
    MinMean,
    /// `min group p(q)`: a quantile of the group latency at the offered load.
    MinGroupQuantile(f64),
    /// `min group mean`: the mean group latency at the offered load.
    MinGroupMean,
    /// `min instances`: the fewest instances that hold all thresholds at the offered load.
    MinInstances,
    /// `min gpu-time`: busy seconds of all instances per thousand requests.
    MinGpuTime,
}

/// Every objective, as it is written.
const KNOWN: &[&str] = &[
    "max rate",
    "min p99",
    "min p(99)",
    "min mean",
    "min group p99",
    "min group mean",
    "min instances",
    "min gpu-time",
];

/// Objectives of later versions, and what they wait for.
const LATER: &[(&str, &str)] = &[
    ("min cost", "it needs `usd_per_hour` of a server"),
    ("max throughput", "write \"max rate\", the highest rate at which all thresholds hold"),
];

/// Why a text is no objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoObjective {
    pub(crate) what: String,
    pub(crate) help: String,
    /// Part of the language, but of a later version.
    pub(crate) later: bool,
}

impl Objective {
    /// Reads an objective.
    ///
    /// # Errors
    /// It is none; what to write instead.
    pub(crate) fn read(text: &str) -> Result<Self, NoObjective> {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let found = match plain.as_str() {
            "max rate" => Some(Self::MaxRate),
            "min mean" => Some(Self::MinMean),
            "min group mean" | "min mean group latency" => Some(Self::MinGroupMean),
            "min instances" => Some(Self::MinInstances),
            "min gpu-time" | "min gpu time" => Some(Self::MinGpuTime),
            other => {
                let group = other.strip_prefix("min group p").and_then(quantile);
                let plain = other.strip_prefix("min p").and_then(quantile);
                group.map(Self::MinGroupQuantile).or(plain.map(Self::MinQuantile))
            }
        };
        let known = KNOWN.join("\", \"");
        let later = LATER.iter().find(|(name, _)| *name == plain);
        found.ok_or_else(|| match later {
            Some((name, why)) => NoObjective {
                what: format!("the objective \"{name}\" is not known to this version"),
                help: format!("{why}; known are \"{known}\""),
                later: true,
            },
            None => NoObjective {
                what: format!("\"{text}\" is no objective"),
                help: format!(
                    "write one of \"{known}\", or another percentile as in \"min p(95)\""
                ),
                later: false,
            },
        })
    }

    /// Whether it is about groups of requests.
    #[must_use]
    pub fn about_groups(self) -> bool {
        matches!(self, Self::MinGroupQuantile(_) | Self::MinGroupMean)
    }

    /// Whether larger is better.
    #[must_use]
    pub fn maximises(self) -> bool {
        self == Self::MaxRate
    }

    /// Unit of its value.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::MaxRate => "/s",
            Self::MinQuantile(_)
            | Self::MinMean
            | Self::MinGroupQuantile(_)
            | Self::MinGroupMean => "ms",
            Self::MinInstances => "instances",
            Self::MinGpuTime => "GPU s per 1,000 requests",
        }
    }

    /// What it measures, for a column: `highest rate`, `p99`, ….
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::MaxRate => "highest rate".into(),
            Self::MinQuantile(q) => format!("p{}", percent(q)),
            Self::MinMean => "mean".into(),
            Self::MinGroupQuantile(q) => format!("group p{}", percent(q)),
            Self::MinGroupMean => "group mean".into(),
            Self::MinInstances => "instances".into(),
            Self::MinGpuTime => "GPU time".into(),
        }
    }
}

/// `99`, `(99)`, `(99.9)`: a percentile as a share.
fn quantile(text: &str) -> Option<f64> {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).unwrap_or(text);
    let percent: f64 = inner.trim().trim_end_matches('%').parse().ok()?;
    // 99.9 / 100 is not the number nearest to 0.999.
    (percent > 0.0 && percent < 100.0).then_some((percent * 1e6).round() / 1e8)
}

fn percent(q: f64) -> f64 {
    (q * 1e8).round() / 1e6
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxRate => f.write_str("max rate"),
            Self::MinQuantile(q) => write!(f, "min p({})", percent(*q)),
            Self::MinMean => f.write_str("min mean"),
            Self::MinGroupQuantile(q) => write!(f, "min group p({})", percent(*q)),
            Self::MinGroupMean => f.write_str("min group mean"),
            Self::MinInstances => f.write_str("min instances"),
            Self::MinGpuTime => f.write_str("min gpu-time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_read_and_write() {
        for (text, wanted) in [
            ("max rate", Objective::MaxRate),
            ("min p99", Objective::MinQuantile(0.99)),
            ("MIN  p(99.9)", Objective::MinQuantile(0.999)),
            ("min mean", Objective::MinMean),
            ("min group p99", Objective::MinGroupQuantile(0.99)),
            ("min mean group latency", Objective::MinGroupMean),
            ("min instances", Objective::MinInstances),
            ("min gpu-time", Objective::MinGpuTime),
        ] {
            let read = Objective::read(text).unwrap();
            assert_eq!((read, Objective::read(&read.to_string())), (wanted, Ok(wanted)));
        }
        for text in ["", "max", "min p", "min p(0)", "min p(100)", "min pelican", "rate"] {
            assert!(!Objective::read(text).unwrap_err().later, "{text}");
        }
        assert!(Objective::read("min cost").unwrap_err().later);
    }
}
