//! Makes the gallery in `plots/` from the scenarios: `cargo run --release --example gallery`.

#[path = "../tests/common/gallery.rs"]
mod gallery;

fn main() -> std::io::Result<()> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plots");
    for (name, svg) in gallery::draw() {
        std::fs::write(folder.join(format!("{name}.svg")), svg)?;
    }
    Ok(())
}
