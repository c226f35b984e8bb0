//! The `batchsim` command.

fn main() -> std::process::ExitCode {
    batchsim::cli::main()
}
