//! `batchsim validate`.

use super::args::{Common, SourceArgs};
use super::exit::{Code, Failure};
use super::show::{self, say};
use super::{Done, files, input, plot, recordings};
use crate::outcome::{LoadValidation, Validation};
use crate::plot::validation_chart;
use crate::recording::{Aggregates, Recording};
use crate::report::{
    Format, batch_law_table, fit_fragment, fit_table, loads_table, miss_lines, overhead_lines,
    validation_csv, validation_glance, validation_overview, validation_table, validation_title,
};
use crate::scenario::Scenario;
use crate::study::{self, LoadTask, Model, Pacing};
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// A recording: a folder with config.json and requests.csv.gz, a request log (CSV or JSON
    /// lines, also .gz), AIPerf's profile_export.jsonl, or what perf_analyzer -f wrote; `-` reads
    /// standard input
    #[arg(value_name = "RECORDING", required = true)]
    pub(super) recordings: Vec<PathBuf>,
    /// The server and policy that predict (default: those the recording names)
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Which policy of the scenario, by label
    #[arg(long, value_name = "LABEL", requires = "scenario")]
    policy: Option<String>,
    /// Change a key of the scenario: label.key=value, as in server.overhead.inbound=0.4ms
    #[arg(long = "set", value_name = "PATH=VALUE", requires = "scenario")]
    sets: Vec<String>,
    /// Which overheads to use
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    overhead: Overheads,
    /// Each RECORDING is a folder of recordings
    #[arg(long)]
    all: bool,
    /// Fit the overheads to these recordings instead: the least busy gives inbound and response,
    /// the busiest the time between passes
    #[arg(long, conflicts_with_all = ["scenario", "all"])]
    fit: bool,
    /// For perf_analyzer: how requests of a rate were spaced
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pacing: PacingText,
    #[command(flatten)]
    pub(super) log: LogArgs,
    /// Folder for results and charts (default: batchsim-out/validate/<recording>/)
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Draw no charts
    #[arg(long)]
    no_charts: bool,
}

/// How a request log is written.
#[derive(Debug, Default, Args)]
pub(super) struct LogArgs {
    /// Format: folder, perf-analyzer, aiperf, jsonl or csv (default: recognised)
    #[arg(long, value_name = "FORMAT")]
    pub(super) recording_format: Option<String>,
    /// Unit of numeric times in a request log: ns, us, ms or s
    #[arg(long, value_name = "UNIT")]
    pub(super) unit: Option<String>,
    /// Column (key) of the moment a request was sent (default: arrival)
    #[arg(long, value_name = "NAME")]
    pub(super) arrival: Option<String>,
    /// Column of the moment its answer came (default: finish)
    #[arg(long, value_name = "NAME")]
    pub(super) finish: Option<String>,
    /// Column of the start of its pass (default: start, where there is one)
    #[arg(long, value_name = "NAME")]
    pub(super) start: Option<String>,
    /// Column of the end of its pass (default: end, where there is one)
    #[arg(long, value_name = "NAME")]
    pub(super) end: Option<String>,
    /// Column of its batch (default: batch, where there is one)
    #[arg(long, value_name = "NAME")]
    pub(super) batch: Option<String>,
    /// Column of the instance that ran it (default: instance, where there is one)
    #[arg(long, value_name = "NAME")]
    pub(super) instance: Option<String>,
    /// Column of the items of its batch (default: batch_size, else the items of its requests)
    #[arg(long, value_name = "NAME")]
    pub(super) batch_size: Option<String>,
    /// Column of its status: 2xx, 0 or ok is answered (default: status, where there is one)
    #[arg(long, value_name = "NAME")]
    pub(super) status: Option<String>,
    /// Column of its items (default: items, else 1)
    #[arg(long, value_name = "NAME")]
    pub(super) items: Option<String>,
    /// Column of its priority level (default: priority, else none)
    #[arg(long, value_name = "NAME")]
    pub(super) priority: Option<String>,
}

/// Which overheads to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Overheads {
    /// The scenario's where it has any, else the frozen ones of the server
    #[default]
    Auto,
    /// The frozen ones of the server
    Frozen,
    /// The scenario's, also where it has none
    Scenario,
}

/// How requests are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum PacingText {
    /// Evenly, as perf_analyzer does unless told otherwise
    #[default]
    Constant,
    /// At random
    Poisson,
}

/// Runs the verb.
pub(super) fn run(args: &ValidateArgs, common: &Common) -> Done {
    input::threads(common)?;
    if args.fit {
        return fit(args, common);
    }
    let scenario = match &args.scenario {
        Some(file) => {
            let source = SourceArgs { scenario: file.clone(), sets: args.sets.clone(), seed: None };
            Some(input::load(&source, None, common)?.scenario)
        }
        None => None,
    };
    let places = recordings::places(&args.recordings, args.all)?;
    let mut found = Vec::new();
    for place in &places {
        match recordings::read(place, &args.log)? {
            recordings::Found::Requests(recording) => {
                let model = model(args, scenario.as_ref(), Some(&recording))?;
                let validation = study::validate(&recording, &model);
                found.push(validation.map_err(|what| unfit(&what))?);
            }
            recordings::Found::Loads(aggregates) => {
                if places.len() > 1 {
                    let help = "validate it alone";
                    return Err(Failure::usage(
                        format!("{} holds loads, not requests", place.display()),
                        help,
                    ));
                }
                let model = model(args, scenario.as_ref(), None)?;
                return loads(args, common, &aggregates, &model);
            }
        }
    }
    print(args, common, &places, &found)?;
    save(args, &found)?;
    Ok(Code::Fine)
}

fn unfit(what: &str) -> Failure {
    Failure::usage(what, "docs/VALIDATION.md says what a recording needs")
}

fn print(
    args: &ValidateArgs,
    common: &Common,
    places: &[PathBuf],
    found: &[Validation],
) -> Result<(), Failure> {
    let text = match (common.format, found) {
        (Format::Json, [one]) if !args.all => show::json(one)?,
        (Format::Json, all) => show::json(&all)?,
        (Format::Csv, all) => validation_csv(all),
        (Format::Table, [one]) if !args.all => table(one),
        (Format::Markdown, [one]) if !args.all => markdown(one),
        (Format::Table, all) => validation_glance(all).to_text(),
        (Format::Markdown, all) => {
            let glance = validation_glance(all).to_markdown();
            let overview = validation_overview(all).to_markdown();
            format!("{glance}{}\n{overview}", recordings::causes(places, all)?)
        }
    };
    show::print(&text)
}

fn table(v: &Validation) -> String {
    let mut text = format!("{}\n", validation_title(v));
    overhead_lines(&v.overhead_ms).iter().for_each(|line| text += &format!("{line}\n"));
    text += &format!("\n{}", validation_table(v).to_text());
    if let Some(law) = batch_law_table(v) {
        text += &format!("\n{}", law.to_text());
    }
    text += "\n";
    miss_lines(v).iter().for_each(|line| text += &format!("{line}\n"));
    text
}

fn markdown(v: &Validation) -> String {
    let mut text = format!("{}\n\n{}", validation_title(v), validation_table(v).to_markdown());
    if let Some(law) = batch_law_table(v) {
        text += &format!("\n{}", law.to_markdown());
    }
    text += "\n";
    let lines = overhead_lines(&v.overhead_ms).into_iter().chain(miss_lines(v));
    lines.for_each(|line| text += &format!("- {line}\n"));
    text
}

/// The folder for one recording.
fn folder(args: &ValidateArgs, name: &str) -> PathBuf {
    match (&args.output, args.all || args.recordings.len() > 1) {
        (Some(folder), false) => folder.clone(),
        (Some(folder), true) => folder.join(files::slug(name)),
        (None, _) => Path::new("batchsim-out").join("validate").join(files::slug(name)),
    }
}

fn save(args: &ValidateArgs, found: &[Validation]) -> Result<(), Failure> {
    let one = |v: &Validation| {
        let folder = folder(args, &v.recording.name);
        files::folder(&folder)?;
        files::write(&folder.join("validation.json"), show::json(v)?.as_bytes())?;
        if args.no_charts { Ok(()) } else { plot::save(&[validation_chart(v)], &folder) }
    };
    found.par_iter().map(one).collect::<Result<(), Failure>>()?;
    if let [v] = found {
        say(&format!("results in {}", folder(args, &v.recording.name).display()));
    }
    Ok(())
}

fn loads(args: &ValidateArgs, common: &Common, aggregates: &Aggregates, model: &Model) -> Done {
    let pacing = match args.pacing {
        PacingText::Constant => Pacing::Constant,
        PacingText::Poisson => Pacing::Poisson,
    };
    let task = LoadTask { aggregates, pacing };
    let v: LoadValidation = study::validate_loads(&task, model).map_err(|what| unfit(&what))?;
    let overheads = overhead_lines(&v.overhead_ms).join("\n");
    show::print(&match common.format {
        Format::Json => show::json(&v)?,
        Format::Csv => loads_table(&v).to_csv(),
        Format::Table => format!("{}\n{overheads}\n\n{}", v.name, loads_table(&v).to_text()),
        Format::Markdown => {
            format!("{}\n\n{}\n- {overheads}\n", v.name, loads_table(&v).to_markdown())
        }
    })?;
    let folder = folder(args, &v.name);
    files::folder(&folder)?;
    files::write(&folder.join("validation.json"), show::json(&v)?.as_bytes())?;
    say(&format!("results in {}", folder.display()));
    Ok(Code::Fine)
}

fn fit(args: &ValidateArgs, common: &Common) -> Done {
    let mut found = Vec::new();
    for place in recordings::places(&args.recordings, false)? {
        match recordings::read(&place, &args.log)? {
            recordings::Found::Requests(recording) => found.push(*recording),
            recordings::Found::Loads(_) => {
                let what = format!("{} holds loads, not requests", place.display());
                return Err(Failure::usage(what, "overheads are fitted to single requests"));
            }
        }
    }
    let fitted = study::fit(&found).map_err(|what| unfit(&what))?;
    let fragment = fit_fragment(&fitted);
    show::print(&match common.format {
        Format::Json => show::json(&fitted)?,
        Format::Csv => fit_table(&fitted).to_csv(),
        Format::Table => format!("{}\n{fragment}", fit_table(&fitted).to_text()),
        Format::Markdown => {
            format!("{}\n```toml\n{fragment}```\n", fit_table(&fitted).to_markdown())
        }
    })?;
    Ok(Code::Fine)
}

/// What predicts: the server that the recording names, or one of the scenario.
fn model(
    args: &ValidateArgs,
    scenario: Option<&Scenario>,
    recording: Option<&Recording>,
) -> Result<Model, Failure> {
    let Some(scenario) = scenario else {
        let help = "add --scenario FILE, and --policy LABEL where it has several";
        let what = "this recording says nothing of its server".to_owned();
        let Some(recording) = recording else { return Err(Failure::usage(what, help)) };
        return Model::of_recording(recording).map_err(|what| Failure::usage(what, help));
    };
    let kind = recording.and_then(|r| r.setup.as_ref()).map(|s| s.server.as_str());
    let cells = || {
        scenario.servers.iter().flat_map(|server| {
            scenario.policies.iter().map(move |p| (scenario.cell_label(server, p), server, p))
        })
    };
    let chosen = match &args.policy {
        Some(label) => cells().find(|(l, ..)| l == label),
        None => cells()
            .find(|(.., p)| kind == Some(p.policy.kind()))
            .or_else(|| cells().next().filter(|_| cells().count() == 1)),
    };
    let Some((label, server, policy)) = chosen else {
        let labels: Vec<String> = cells().map(|(label, ..)| label).collect();
        let what = match &args.policy {
            Some(label) => format!("the scenario has no policy {label:?}"),
            None => "the scenario has several policies".to_owned(),
        };
        return Err(Failure::usage(what, format!("write --policy {}", labels.join(" or "))));
    };
    let mut server = server.clone();
    let own = server.overhead != crate::scenario::Overhead::default();
    let mut source = if own { "the scenario" } else { "none" }.to_owned();
    let frozen = study::frozen(&policy.policy);
    let wanted = match args.overhead {
        Overheads::Frozen if frozen.is_none() => {
            return Err(Failure::usage(
                format!("there are no frozen overheads for {}", policy.policy.kind()),
                "they exist for triton, torchserve, mosec and litserve",
            ));
        }
        Overheads::Frozen => true,
        Overheads::Auto => !own,
        Overheads::Scenario => false,
    };
    if let Some(frozen) = frozen.filter(|_| wanted) {
        server.overhead = frozen.overhead;
        source = frozen.source();
    }
    Ok(Model {
        label,
        policy: policy.policy.clone(),
        server,
        client: scenario.client,
        timeout: scenario.arrivals.first().and_then(|s| s.timeout),
        source,
    })
}
