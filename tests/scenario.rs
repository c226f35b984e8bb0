//! Reading scenarios.
#![cfg(feature = "schema")]

use batchsim::arrivals::{Replay, Trace};
use batchsim::scenario::{Files, Input, TraceProblem, load};
use std::io;
use std::path::Path;

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }

    fn trace(&self, _: &Replay, _: Vec<u8>) -> Result<Trace, TraceProblem> {
        Ok(Trace::default())
    }
}

#[test]
fn quickstart_reads() {
    let source = Input::open(Path::new("scenarios/quickstart.toml")).unwrap();
    let loaded = load(&source, &[], &NoFiles)
        .map_err(|all| all.iter().map(|d| d.render(false)).collect::<String>())
        .unwrap_or_else(|e| panic!("{e}"));
    eprintln!("{:#?}", loaded.scenario);
}
