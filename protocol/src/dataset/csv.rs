//! The CSV dialect of normalized datasets: that of the pandas C reader with every column text (specs/matheel.md
//! section a). One deliberate difference: a row wider than the header is always refused.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

/// Bounds on a table.
#[derive(Debug, Clone, Copy)]
pub struct CsvLimits {
    /// Longest file, in bytes.
    pub bytes: usize,
    /// Most rows, the header not counted.
    pub rows: usize,
    /// Most columns.
    pub columns: usize,
}

impl Default for CsvLimits {
    /// 1 GiB, 20 million rows, 1,024 columns.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            rows: 20_000_000,
            columns: 1024,
        }
    }
}

/// Why a table was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct CsvError {
    /// The file as it was named.
    pub file: String,
    /// The line in the file, from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub problem: String,
}

/// A table in which every cell is text. Cells are stretches of one text, so a table costs little more than its file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// Names as pandas gives them: unnamed and repeated columns are renamed.
    pub columns: Vec<String>,
    text: String,
    cells: Vec<(u32, u32)>,
    lines: Vec<u32>,
}

impl Table {
    /// Reads a table. `file_name` is what messages call it.
    ///
    /// # Errors
    /// [`CsvError`] for text that is not UTF-8, an empty file, a quote never closed, a row wider than the header, or a
    /// limit passed.
    pub fn read_csv(bytes: &[u8], file_name: &str, limits: CsvLimits) -> Result<Self, CsvError> {
        let error = |line, problem| CsvError {
            file: file_name.to_owned(),
            line,
            problem,
        };
        if bytes.len() > limits.bytes.min(u32::MAX as usize) {
            let allowed = limits.bytes.min(u32::MAX as usize);
            return Err(error(
                1,
                format!(
                    "the file has {} bytes, more than the {allowed} allowed",
                    bytes.len()
                ),
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|fault| {
            let line = line_of(&bytes[..fault.valid_up_to()]);
            let byte = bytes.get(fault.valid_up_to()).copied().unwrap_or(0);
            error(
                line,
                format!("byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"),
            )
        })?;
        Reader::new(text, limits)
            .table()
            .map_err(|(line, problem)| error(line, problem))
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// The position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// A cell.
    ///
    /// # Panics
    /// When row or column is outside the table.
    pub fn get(&self, row: usize, column: usize) -> &str {
        assert!(column < self.columns.len(), "no column {column}");
        let (start, end) = self.cells[row * self.columns.len() + column];
        &self.text[start as usize..end as usize]
    }

    /// The line of the file on which a row begins, from 1.
    pub fn line(&self, row: usize) -> usize {
        self.lines[row] as usize
    }

    /// The cells of a column from top to bottom.
    pub fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        (0..self.rows()).map(move |row| self.get(row, column))
    }

    /// Strips every cell of a column as Python does.
    pub(super) fn strip_column(&mut self, column: usize) {
        let width = self.columns.len();
        for (start, end) in self.cells.iter_mut().skip(column).step_by(width) {
            let cell = &self.text[*start as usize..*end as usize];
            let stripped = crate::canonical::py_strip(cell);
            if stripped.len() < cell.len() {
                let before = stripped.as_ptr() as usize - cell.as_ptr() as usize;
                *start += before as u32;
                *end = *start + stripped.len() as u32;
            }
        }
    }
}

/// The line, from 1, that follows these bytes: LF, CRLF and a lone CR each end one.
fn line_of(head: &[u8]) -> usize {
    let mut lines = 1;
    for (at, &byte) in head.iter().enumerate() {
        if byte == b'\n' || (byte == b'\r' && head.get(at + 1) != Some(&b'\n')) {
            lines += 1;
        }
    }
    lines
}

type Fault = (usize, String);

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line: usize,
    limits: CsvLimits,
    has_nul: bool,
    cells: Vec<(u32, u32)>,
    // Cells that are not one stretch of the file are written here; their place counts from the end of the file.
    rewritten: String,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, limits: CsvLimits) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
            line: 1,
            limits,
            has_nul: text.as_bytes().contains(&0),
            cells: Vec::new(),
            rewritten: String::new(),
        }
    }

    fn table(mut self) -> Result<Table, Fault> {
        let Some(_) = self.record(self.limits.columns)? else {
            return Err((
                1,
                "the file is empty; the first line must name the columns".into(),
            ));
        };
        let header: Vec<String> = self
            .cells
            .drain(..)
            .map(|(start, end)| cell(self.text, &self.rewritten, start, end).to_owned())
            .collect();
        let columns = name_columns(&header);
        let width = columns.len();
        let mut lines = Vec::new();
        loop {
            let before = self.cells.len();
            let Some(line) = self.record(width)? else {
                break;
            };
            if lines.len() == self.limits.rows {
                return Err((
                    line,
                    format!("more than the {} rows allowed", self.limits.rows),
                ));
            }
            // Short rows are padded with empty cells.
            self.cells.resize(before + width, (0, 0));
            lines.push(line as u32);
        }
        let mut text = self.text.to_owned();
        text.push_str(&self.rewritten);
        Ok(Table {
            columns,
            text,
            cells: self.cells,
            lines,
        })
    }

    /// Reads the next record that is not blank; gives back the line it began on.
    fn record(&mut self, width: usize) -> Result<Option<usize>, Fault> {
        if !self.skip_blank_lines() {
            return Ok(None);
        }
        let line = self.line;
        for fields in 1.. {
            if fields > width {
                return Err((
                    line,
                    format!(
                        "the row has more than {width} fields; quote a field that holds a comma"
                    ),
                ));
            }
            let (start, end) = if self.peek() == Some(b'"') {
                self.quoted()?
            } else {
                self.plain()
            };
            self.cells.push((start, self.cut_at_nul(start, end)));
            if self.peek() == Some(b',') {
                self.at += 1;
            } else {
                self.end_line();
                break;
            }
        }
        Ok(Some(line))
    }

    /// A field ends at its first NUL.
    fn cut_at_nul(&self, start: u32, end: u32) -> u32 {
        let nul = if self.has_nul {
            cell(self.text, &self.rewritten, start, end).find('\0')
        } else {
            None
        };
        nul.map_or(end, |nul| start + nul as u32)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Passes lines that hold nothing but spaces and tabs. False at the end of the file.
    fn skip_blank_lines(&mut self) -> bool {
        let mut ahead = self.at;
        loop {
            match self.bytes.get(ahead) {
                None => return false,
                Some(b' ' | b'\t') => ahead += 1,
                Some(b'\n' | b'\r') => {
                    self.at = ahead;
                    self.end_line();
                    ahead = self.at;
                }
                Some(_) => return true,
            }
        }
    }

    fn end_line(&mut self) {
        match self.peek() {
            Some(b'\r') if self.bytes.get(self.at + 1) == Some(&b'\n') => self.at += 2,
            Some(_) => self.at += 1,
            None => return,
        }
        self.line += 1;
    }

    /// Reads an unquoted field up to its delimiter or line end.
    fn plain(&mut self) -> (u32, u32) {
        let start = self.at;
        let rest = &self.bytes[start..];
        self.at += rest
            .iter()
            .position(|byte| matches!(byte, b',' | b'\n' | b'\r'))
            .unwrap_or(rest.len());
        (start as u32, self.at as u32)
    }

    /// Reads a field that opens with a quote. What follows the closing quote is appended as it stands.
    fn quoted(&mut self) -> Result<(u32, u32), Fault> {
        let opened = self.line;
        self.at += 1;
        let first = self.stretch(opened)?;
        if matches!(self.peek(), None | Some(b',' | b'\n' | b'\r')) {
            return Ok(first);
        }
        let start = self.text.len() + self.rewritten.len();
        self.rewritten
            .push_str(&self.text[first.0 as usize..first.1 as usize]);
        while self.peek() == Some(b'"') {
            self.at += 1;
            self.rewritten.push('"');
            let (from, to) = self.stretch(opened)?;
            self.rewritten
                .push_str(&self.text[from as usize..to as usize]);
        }
        let (from, to) = self.plain();
        self.rewritten
            .push_str(&self.text[from as usize..to as usize]);
        let end = self.text.len() + self.rewritten.len();
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Ok((start, end)),
            _ => Err((opened, "the table is larger than 4 GiB".into())),
        }
    }

    /// Reads up to the next quote and passes it.
    fn stretch(&mut self, opened: usize) -> Result<(u32, u32), Fault> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return Ok((start as u32, self.at as u32 - 1)),
                b'\n' => self.line += 1,
                b'\r' if self.peek() != Some(b'\n') => self.line += 1,
                _ => {}
            }
        }
        Err((opened, "a quote is opened here and never closed".into()))
    }
}

/// A cell while the file and the rewritten cells are still apart.
fn cell<'a>(text: &'a str, rewritten: &'a str, start: u32, end: u32) -> &'a str {
    let (start, end) = (start as usize, end as usize);
    if start >= text.len() && end > text.len() {
        &rewritten[start - text.len()..end - text.len()]
    } else {
        &text[start..end]
    }
}

/// Names columns as pandas does: an empty name becomes `Unnamed: <index>`, a repeated one gets the first free suffix
/// `.1`, `.2`, ... that is not in the header; named columns come before unnamed ones.
fn name_columns(header: &[String]) -> Vec<String> {
    let mut names: Vec<String> = header
        .iter()
        .enumerate()
        .map(|(index, name)| {
            if name.is_empty() {
                format!("Unnamed: {index}")
            } else {
                name.clone()
            }
        })
        .collect();
    let (given, made_up): (Vec<usize>, Vec<usize>) =
        (0..header.len()).partition(|&index| !header[index].is_empty());
    let mut uses: HashMap<String, usize> = HashMap::new();
    let mut present: HashMap<String, usize> = HashMap::new();
    for name in &names {
        *present.entry(name.clone()).or_default() += 1;
    }
    for index in given.into_iter().chain(made_up) {
        let original = names[index].clone();
        let mut name = original.clone();
        let mut count = uses.get(&original).copied().unwrap_or(0);
        while count > 0 {
            uses.insert(original.clone(), count + 1);
            name = format!("{original}.{count}");
            if present.contains_key(&name) {
                count += 1;
            } else {
                count = uses.get(&name).copied().unwrap_or(0);
            }
        }
        if let Some(left) = present.get_mut(&original) {
            *left -= 1;
            if *left == 0 {
                present.remove(&original);
            }
        }
        *present.entry(name.clone()).or_default() += 1;
        *uses.entry(name.clone()).or_default() += 1;
        names[index] = name;
    }
    names
}
