//! Tells the program which commit it is built from; `unknown` outside a checkout.
#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=BATCHSIM_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    // Grows with every commit, unlike HEAD, which names the branch.
    if Path::new(".git/logs/HEAD").exists() {
        println!("cargo:rerun-if-changed=.git/logs/HEAD");
    }
    let given = std::env::var("BATCHSIM_COMMIT").ok();
    let commit = given.or_else(head).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=BATCHSIM_COMMIT={commit}");
}

/// The commit of this checkout; a source package unpacked inside another repository is none.
fn head() -> Option<String> {
    if !Path::new(".git").exists() {
        return None;
    }
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
