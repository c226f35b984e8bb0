//! The gallery in `plots/`: which charts of which scenarios. Used by the example that makes it and
//! by the test that compares it.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "a module of a test and an example")]

use batchsim::interop::recording::{Input, Mapping, Recorded, read};
use batchsim::plot::{charts, validation_chart};
use batchsim::scenario::{self, Disk, load};
use batchsim::study::{self, Control, Options};
use batchsim::{interop, outcome::Outcome};
use std::path::Path;

/// Scenario, and the charts of it that are shown.
pub const SHOWN: [(&str, &[&str]); 4] = [
    ("quickstart", &["cdf", "curve", "batch-hist"]),
    ("heatmap", &["heatmap"]),
    ("bursty", &["cdf"]),
    ("two-instances", &["cdf", "batch-hist"]),
];

/// Name and SVG of every chart in the gallery.
pub fn draw() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut all = Vec::new();
    for (name, shown) in SHOWN {
        let path = root.join(format!("{name}.toml"));
        let disk = Disk::beside(&path, interop::trace::for_scenario);
        let loaded = load(&scenario::Input::open(&path).unwrap(), &[], &disk).unwrap();
        let control = Control::default();
        let options = Options::default();
        let (outcome, cdfs) = if loaded.scenario.sweep.is_empty() {
            let (outcome, cdfs, _) = study::run(&loaded.scenario, &options, &control);
            (outcome, cdfs)
        } else {
            (sweep(&loaded, &options, &control), Vec::new())
        };
        let mut outcome = outcome;
        // The charts of one commit would never be those of the next.
        outcome.tool.commit = "unknown".into();
        for chart in charts(&outcome, &cdfs, &[]).unwrap() {
            if shown.contains(&chart.name.as_str()) {
                all.push((format!("{name}-{}", chart.name), chart.svg().unwrap()));
            }
        }
    }
    let wanted: usize = SHOWN.iter().map(|(_, shown)| shown.len()).sum();
    assert_eq!(all.len(), wanted, "a chart of the gallery was not drawn");
    all.push(validation());
    all
}

/// A recorded server beside what is predicted for it.
fn validation() -> (String, String) {
    const NAME: &str = "triton-B";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings").join(NAME);
    let config = std::fs::read(folder.join("config.json")).unwrap();
    let input = Input {
        name: NAME,
        config: Some(&config),
        body: Box::new(std::fs::File::open(folder.join("requests.csv.gz")).unwrap()),
        format: None,
        columns: &Mapping::default(),
    };
    let Recorded::Requests(recording) = read(input).unwrap() else { unreachable!() };
    let model = study::Model::of_recording(&recording).unwrap();
    let found = study::validate(&recording, &model).unwrap();
    (format!("validation-{NAME}"), validation_chart(&found).svg().unwrap())
}

fn sweep(loaded: &batchsim::scenario::Loaded, options: &Options, control: &Control) -> Outcome {
    let mut outcome = study::outcome_frame("sweep", &loaded.scenario);
    outcome.axes = study::axis_values(&loaded.scenario);
    for cell in study::plan_sweep(&loaded.scenario) {
        let done = cell.simulate(loaded, options, control).unwrap().unwrap();
        outcome.cells.push(done.cell);
    }
    outcome
}
