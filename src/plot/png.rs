//! From SVG to PNG, with the embedded font and no font of the machine.

use super::PlotError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};
use std::sync::{Arc, OnceLock};

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

/// Draws an SVG as PNG, `scale` times its size; equal SVGs give equal bytes.
///
/// # Errors
/// The SVG does not parse, or the picture is larger than memory can hold.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PlotError> {
    let failed = |what: &dyn std::fmt::Display| PlotError::Draw(format!("PNG: {what}"));
    let options =
        Options { fontdb: fonts(), font_family: "DejaVu Sans".into(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| failed(&e))?;
    let size = tree.size().to_int_size().scale_by(scale);
    let size = size.ok_or_else(|| failed(&"the picture has no size"))?;
    let pixels = Pixmap::new(size.width(), size.height());
    let mut pixels = pixels.ok_or_else(|| failed(&"the picture is too large"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| failed(&e))
}
