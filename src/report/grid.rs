//! A grid of text and its renderings.

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column: its title and alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Title, with the unit.
    pub title: String,
    /// Alignment of its cells.
    pub align: Align,
}

/// Rows of text under titled columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each as long as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Grid {
    /// An empty grid; a title starting with `<` is left-aligned (and loses it).
    #[must_use]
    pub fn new(titles: &[&str]) -> Self {
        let column = |title: &&str| match title.strip_prefix('<') {
            Some(title) => Column { title: title.to_owned(), align: Align::Left },
            None => Column { title: (*title).to_owned(), align: Align::Right },
        };
        Self { columns: titles.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Aligned columns, two spaces apart, no trailing blanks.
    #[must_use]
    pub fn to_text(&self) -> String {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(i)).map(String::as_str);
            cells.chain([self.columns[i].title.as_str()]).map(wide).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let titles: Vec<String> = self.columns.iter().map(|c| c.title.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(&widths) {
                let pad = " ".repeat(width.saturating_sub(wide(cell)));
                if !line.is_empty() {
                    line.push_str("  ");
                }
                match column.align {
                    Align::Left => line.extend([cell.as_str(), &pad]),
                    Align::Right => line.extend([&pad, cell.as_str()]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// A Markdown table.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|c| c.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(&mut self.columns.iter().map(|c| c.title.clone()));
        text += &line(&mut self.columns.iter().map(|c| match c.align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        }));
        for row in &self.rows {
            text += &line(&mut row.iter().cloned());
        }
        text
    }

    /// RFC 4180 CSV.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let titles = self.columns.iter().map(|c| c.title.as_str());
        // Writing to memory cannot fail.
        let _ = writer.write_record(titles);
        for row in &self.rows {
            let _ = writer.write_record(row);
        }
        writer.into_inner().ok().and_then(|b| String::from_utf8(b).ok()).unwrap_or_default()
    }
}

/// Columns a text takes on a terminal, taking every character as one.
fn wide(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_renderings() {
        let mut grid = Grid::new(&["<policy", "p99 ms"]);
        grid.row(vec!["dynamic".into(), "38.56 ±0.12".into()]);
        grid.row(vec!["a|b".into(), "9,000".into()]);
        assert_eq!(
            grid.to_text(),
            "policy        p99 ms\ndynamic  38.56 ±0.12\na|b            9,000\n"
        );
        assert_eq!(
            grid.to_markdown(),
            "| policy | p99 ms |\n| --- | ---: |\n| dynamic | 38.56 ±0.12 |\n| a\\|b | 9,000 |\n"
        );
        assert_eq!(grid.to_csv(), "policy,p99 ms\ndynamic,38.56 ±0.12\na|b,\"9,000\"\n");
    }
}
