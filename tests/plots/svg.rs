//! As much of an SVG reader as the checks need.

/// A text with its place in logical pixels.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) size: f64,
    pub(crate) anchor: String,
}

impl Label {
    /// Left and right end, by the mean width of a letter.
    pub(crate) fn span(&self) -> (f64, f64) {
        let wide = self.text.chars().count() as f64 * self.size * 0.58;
        match self.anchor.as_str() {
            "start" => (self.x, self.x + wide),
            "middle" => (self.x - wide / 2.0, self.x + wide / 2.0),
            _ => (self.x - wide, self.x),
        }
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let from = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[from..].split('"').next()
}

fn number(tag: &str, name: &str) -> f64 {
    attribute(tag, name).and_then(|v| v.parse().ok()).unwrap_or(f64::NAN)
}

/// Width and height of the document.
pub(crate) fn size(svg: &str) -> (f64, f64) {
    (number(svg, "width"), number(svg, "height"))
}

/// Every text, entities resolved.
pub(crate) fn labels(svg: &str) -> Vec<Label> {
    let plain = |text: &str| {
        let entities =
            [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
        entities.iter().fold(text.trim().to_owned(), |t, (from, to)| t.replace(from, to))
    };
    svg.split("<text")
        .skip(1)
        .map(|rest| {
            let (tag, rest) = rest.split_once('>').expect("a closed tag");
            let text = rest.split("</text>").next().expect("a closed text");
            assert!(!text.contains('<'), "{text}");
            Label {
                text: plain(text),
                x: number(tag, "x") / 10.0,
                y: number(tag, "y") / 10.0,
                size: number(tag, "font-size") / 10.0,
                anchor: attribute(tag, "text-anchor").expect("an anchor").to_owned(),
            }
        })
        .collect()
}

/// Points of every polyline of that stroke width (logical pixels) and colour.
pub(crate) fn paths(svg: &str, width: f64, color: &str) -> Vec<Vec<(f64, f64)>> {
    let tags = svg.split("<polyline").skip(1).map(|rest| rest.split("/>").next().unwrap_or(""));
    tags.filter(|tag| {
        (number(tag, "stroke-width") / 10.0 - width).abs() < 1e-9
            && attribute(tag, "stroke") == Some(color)
    })
    .map(|tag| {
        let points = attribute(tag, "points").unwrap_or("").split_whitespace();
        let pair = |p: &str| {
            let (x, y) = p.split_once(',').expect("a pair");
            (x.parse::<f64>().expect("x") / 10.0, y.parse::<f64>().expect("y") / 10.0)
        };
        points.map(pair).collect()
    })
    .collect()
}
