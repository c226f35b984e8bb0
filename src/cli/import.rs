//! `batchsim import`.

use super::args::{Common, ImportArgs, ImportVerb};
use super::exit::{Code, Failure};
use super::show::{print, say};
use super::{Done, files, trace};
use crate::interop::torchserve;
use crate::interop::triton::{self, ParseProblem, Rule};
use std::path::{Path, PathBuf};

/// Runs the verb.
pub(super) fn run(args: &ImportArgs, _: &Common) -> Done {
    match &args.server {
        ImportVerb::Triton { file, output, textbook } => {
            let rule = if *textbook { Rule::Textbook } else { Rule::Triton };
            triton_config(file, output.as_deref(), rule)
        }
        ImportVerb::Torchserve { files, model, output } => {
            torchserve_config(files, model.as_deref(), output.as_deref())
        }
    }
}

/// A config.pbtxt as text.
pub(super) fn pbtxt(file: &Path) -> Result<String, Failure> {
    String::from_utf8(trace::read(file)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Failure::usage(
            format!("{}: byte {at} is not UTF-8 text", file.display()),
            "a config.pbtxt is protobuf in its text form; is this the binary form?",
        )
    })
}

/// Says what is wrong with a config.pbtxt.
pub(super) fn complain(file: &Path, problems: &[ParseProblem]) -> Code {
    for p in problems {
        say(&format!("error: {}:{}:{}: {}", file.display(), p.line, p.column, p.message));
        if !p.help.is_empty() {
            say(&format!("help: {}", p.help));
        }
    }
    Code::Usage
}

/// Prints the scenario a config.pbtxt comes to, and on standard error what it leaves out.
fn triton_config(file: &Path, output: Option<&Path>, rule: Rule) -> Done {
    let place = file.display();
    let imported = match triton::import(&pbtxt(file)?, rule) {
        Ok(imported) => imported,
        Err(problems) => return Ok(complain(file, &problems)),
    };
    match output {
        Some(path) => files::write(path, imported.toml.as_bytes())?,
        None => print(&imported.toml)?,
    }
    imported.notes.iter().for_each(|note| say(&format!("note: {note}")));
    for field in &imported.ignored {
        let (line, column) = (field.line, field.column);
        say(&format!("ignored: {} ({place}:{line}:{column}): {}", field.path, field.why));
    }
    Ok(Code::Fine)
}

/// Prints the scenario that files of TorchServe come to, and on standard error what they leave out.
fn torchserve_config(paths: &[PathBuf], model: Option<&str>, output: Option<&Path>) -> Done {
    let configs: Vec<_> = paths.iter().map(|path| config(path)).collect::<Result<_, _>>()?;
    let imported = torchserve::import(&configs, model).map_err(Failure::Input)?;
    match output {
        Some(path) => files::write(path, imported.toml.as_bytes())?,
        None => print(&imported.toml)?,
    }
    imported.notes.iter().for_each(|note| say(&format!("note: {note}")));
    for key in &imported.ignored {
        let torchserve::Ignored { path, file, line, column, why } = key;
        say(&format!("ignored: {path} ({file}:{line}:{column}): {why}"));
    }
    Ok(Code::Fine)
}

/// A configuration file of TorchServe.
pub(super) fn config(path: &Path) -> Result<torchserve::File, Failure> {
    let name = path.display().to_string();
    match String::from_utf8(trace::read(path)?) {
        Ok(text) => Ok(torchserve::File { name, text }),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let what = format!("{name}: byte {at} is not UTF-8 text");
            Err(Failure::usage(what, "write the file in UTF-8"))
        }
    }
}
