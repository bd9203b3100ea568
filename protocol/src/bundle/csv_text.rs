//! CSV as Python's writer lays it out: LF, quotes only where they are needed.

/// Appends a field. A field with a lone CR is quoted too, which CPython 3.11 forgets.
pub(crate) fn push_field(out: &mut String, field: &str) {
    if field.contains([',', '"', '\n', '\r']) {
        out.push('"');
        for (n, piece) in field.split('"').enumerate() {
            if n > 0 {
                out.push_str("\"\"");
            }
            out.push_str(piece);
        }
        out.push('"');
    } else {
        out.push_str(field);
    }
}

/// Appends a record. One empty field is quoted, so that the line is not blank.
pub(crate) fn push_record<'a>(out: &mut String, fields: impl IntoIterator<Item = &'a str>) {
    let start = out.len();
    for (n, field) in fields.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        push_field(out, field);
    }
    if out.len() == start {
        out.push_str("\"\"");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_where_a_reader_needs_them() {
        let mut out = String::new();
        push_record(&mut out, ["a b", "c,d", "e\"f", "g\rh", " ü"]);
        push_record(&mut out, [""]);
        assert_eq!(out, "a b,\"c,d\",\"e\"\"f\",\"g\rh\", ü\n\"\"\n");
    }
}
