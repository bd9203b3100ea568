use super::*;
use proptest::prelude::*;

fn read(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let table = Table::read_csv(text.as_bytes(), "t.csv", CsvLimits::default()).unwrap();
    let rows = (0..table.rows())
        .map(|row| {
            (0..table.columns.len())
                .map(|column| table.get(row, column).to_owned())
                .collect()
        })
        .collect();
    (table.columns, rows)
}

fn refused(bytes: &[u8], limits: CsvLimits) -> String {
    Table::read_csv(bytes, "t.csv", limits)
        .unwrap_err()
        .to_string()
}

/// Each answer is that of pandas 3.0.6.
#[test]
fn the_dialect_is_that_of_pandas() {
    for (text, columns, rows) in [
        ("a,b\n1,2", &["a", "b"][..], &[&["1", "2"][..]][..]),
        ("\u{feff}a,b\r\n1\r\n", &["a", "b"], &[&["1", ""]]),
        ("a\rx\ry", &["a"], &[&["x"], &["y"]]),
        ("\n \t\na\n\n\"\"\n \n", &["a"], &[&[""]]),
        ("a,b\n,\n", &["a", "b"], &[&["", ""]]),
        ("a\n\"q\"w\n\"a\"b\"c\"\n", &["a"], &[&["qw"], &["ab\"c\""]]),
        (
            "a\n\"x\"\"y\"\nx\"y\n \"z\"\n",
            &["a"],
            &[&["x\"y"], &["x\"y"], &[" \"z\""]],
        ),
        (
            "a,b\n\"1\r\n2\n3\r4\",\"5,6\"\n",
            &["a", "b"],
            &[&["1\r\n2\n3\r4", "5,6"]],
        ),
        (" a , b\n 1 ,\t2\n", &[" a ", " b"], &[&[" 1 ", "\t2"]]),
        ("a,b\nx\0y,\"p\0q\"\"r\"\n", &["a", "b"], &[&["x", "p"]]),
        ("a,,a,a\n", &["a", "Unnamed: 1", "a.1", "a.2"], &[]),
        ("a,a,a.1\n", &["a", "a.2", "a.1"], &[]),
        (
            "a.1,a,a,,a.1\n",
            &["a.1", "a", "a.2", "Unnamed: 3", "a.1.1"],
            &[],
        ),
        ("\"Unnamed: 1\",\n", &["Unnamed: 1", "Unnamed: 1.1"], &[]),
        ("NA,null\nnan,001\n", &["NA", "null"], &[&["nan", "001"]]),
    ] {
        let (seen_columns, seen_rows) = read(text);
        assert_eq!(seen_columns, columns, "{text:?}");
        assert_eq!(seen_rows, rows, "{text:?}");
    }
}

#[test]
fn refusals_name_the_line() {
    let limits = CsvLimits {
        bytes: 40,
        rows: 2,
        columns: 3,
    };
    for (bytes, message) in [
        (
            &b"\xef\xbb\xbf \n\n"[..],
            "t.csv, line 1: the file is empty; the first line must name the columns",
        ),
        (
            b"a\r\nb\rc\xff",
            "t.csv, line 3: byte 0xff is not UTF-8; save the file as UTF-8",
        ),
        (
            b"a,b\n\n\"x\ny\",2\n1,2,3\n",
            "t.csv, line 5: the row has more than 2 fields; quote a field that holds a comma",
        ),
        (
            b"a\n\"1\n2",
            "t.csv, line 2: a quote is opened here and never closed",
        ),
        (
            b"a,b,c,d\n",
            "t.csv, line 1: the row has more than 3 fields; quote a field that holds a comma",
        ),
        (
            b"a\n1\n2\n3\n",
            "t.csv, line 4: more than the 2 rows allowed",
        ),
        (
            &[b'a'; 41],
            "t.csv, line 1: the file has 41 bytes, more than the 40 allowed",
        ),
    ] {
        assert_eq!(refused(bytes, limits), message);
    }
}

#[test]
fn columns_are_found_and_stripped() {
    let bytes = b"id,x\n\xc2\xa0a\x1c, b \n";
    let mut table = Table::read_csv(bytes, "t.csv", CsvLimits::default()).unwrap();
    assert_eq!(table.column("x"), Some(1));
    assert_eq!(table.column("X"), None);
    table.strip_column(0);
    assert_eq!(table.get(0, 0), "a");
    assert_eq!(table.get(0, 1), " b ");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(
            prop_oneof![
                8 => prop::sample::select(b",\"\n\r \ta\0".to_vec()),
                1 => any::<u8>(),
            ],
            0..80,
        )
    ) {
        if let Ok(mut table) = Table::read_csv(&bytes, "t.csv", CsvLimits::default()) {
            for column in 0..table.columns.len() {
                table.strip_column(column);
                prop_assert_eq!(table.cells(column).count(), table.rows());
            }
            let mut names = table.columns.clone();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), table.columns.len());
        }
    }

    #[test]
    fn quoted_tables_read_back(
        rows in prop::collection::vec(prop::collection::vec("[^\0]{0,6}", 3), 0..8),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let mut text = format!("a,b,c{ending}");
        for row in &rows {
            let cells: Vec<String> = row
                .iter()
                .map(|cell| format!("\"{}\"", cell.replace('"', "\"\"")))
                .collect();
            text.push_str(&cells.join(","));
            text.push_str(ending);
        }
        prop_assert_eq!(read(&text).1, rows);
    }
}
