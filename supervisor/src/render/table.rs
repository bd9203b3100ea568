//! Plain text tables.

use super::plain;
use unicode_width::UnicodeWidthStr;

/// How a column is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table with a header line; cells are made harmless for a terminal.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Self {
            columns: columns
                .into_iter()
                .map(|(name, align)| (plain(name), align))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows
            .push(cells.into_iter().map(|cell| plain(&cell)).collect());
    }

    /// The text, each line ended.
    pub fn text(&self) -> String {
        let width = |text: &str| text.width();
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| width(name)).collect();
        for row in &self.rows {
            for (most, cell) in widths.iter_mut().zip(row) {
                *most = (*most).max(width(cell));
            }
        }
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (at, ((_, align), most)) in self.columns.iter().zip(&widths).enumerate() {
                let cell = row.get(at).map_or("", String::as_str);
                let space = " ".repeat(most - width(cell));
                if at > 0 {
                    line.push_str("  ");
                }
                match align {
                    Align::Left => line.extend([cell, &space]),
                    Align::Right => line.extend([&space, cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("method", Align::Left), ("f1", Align::Right)]);
        table.row(["Größe".into(), "0.5".into()]);
        table.row(["b".into(), "0.25".into()]);
        assert_eq!(table.text(), "method    f1\nGröße    0.5\nb       0.25\n");
        // A terminal gives two columns to each of these, and none to a combining accent.
        let mut table = Table::new([("method", Align::Left), ("f1", Align::Right)]);
        table.row(["方法🦀".into(), "0.5".into()]);
        table.row(["e\u{301}".into(), "0.25".into()]);
        assert_eq!(
            table.text(),
            "method    f1\n方法🦀   0.5\ne\u{301}       0.25\n"
        );
    }
}
