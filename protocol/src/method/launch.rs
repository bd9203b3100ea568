//! Whether a file can be started as a program, as far as its first bytes tell.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// How many bytes the kernel looks at.
const HEAD_BYTES: u64 = 256;

/// True of a regular file that somebody may execute.
pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Why the kernel would not start this file, to follow its name; `None` when nothing speaks against it. A format of
/// which nothing is known may be registered on the machine, so it is not refused.
pub(super) fn cannot_start(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head))
        .ok()?;
    let Some(line) = head.strip_prefix(b"#!") else {
        let text = head
            .iter()
            .all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e));
        let problem = if head.is_empty() {
            "is empty; name a program"
        } else {
            "is text whose first line names no interpreter; begin it with a line like #!/usr/bin/env python3, or name \
             its interpreter first and declare it in files"
        };
        return text.then(|| problem.to_owned());
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let interpreter = line.split(blank).find(|word| !word.is_empty());
    let Some(interpreter) = interpreter else {
        return Some("has a first line that names no interpreter after #!".to_owned());
    };
    let interpreter = String::from_utf8_lossy(interpreter);
    let interpreter = interpreter.as_ref();
    if interpreter.ends_with('\r') {
        return Some(
            "ends its #! line with a carriage return; save it with LF line ends".to_owned(),
        );
    }
    if !interpreter.starts_with('/') {
        let problem = format!(
            "names the interpreter {interpreter:?} in its #! line; name it by its absolute path"
        );
        return Some(problem);
    }
    (!is_executable(Path::new(interpreter))).then(|| {
        format!("names the interpreter {interpreter:?} in its #! line, which is no executable file here; correct it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_would_refuse_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        for (content, problem) in [
            (&b""[..], "is empty"),
            (b"print('x')\n", "names no interpreter"),
            (b"#!\n", "names no interpreter"),
            (b"#!/no/such/interpreter -x\n", "\"/no/such/interpreter\""),
            (b"#!  /no/such", "\"/no/such\""),
            (b"#!python3\n", "absolute path"),
            (b"#!/bin/sh\r\n", "carriage return"),
            (b"#!/\n", "no executable file"),
        ] {
            std::fs::write(&path, content).unwrap();
            let found = cannot_start(&path).unwrap();
            assert!(found.contains(problem), "{found}");
        }
        for content in [
            &b"#!/bin/sh\n"[..],
            b"#! /bin/sh -e\n",
            b"\x7fELF\x02",
            b"PK\x03\x04",
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(cannot_start(&path), None);
        }
    }
}
