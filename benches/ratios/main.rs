//! The table of ratios alone, without criterion.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench speaks to people and stops where it is misused"
)]

#[allow(unreachable_pub, reason = "a module of this bench")]
#[path = "../jobs/mod.rs"]
mod jobs;
#[allow(dead_code, unreachable_pub, reason = "a module of this bench")]
#[path = "../limit/mod.rs"]
mod limit;
#[allow(unreachable_pub, reason = "a module of this bench")]
#[path = "mod.rs"]
mod ratios;

fn main() {
    ratios::print_all();
}
