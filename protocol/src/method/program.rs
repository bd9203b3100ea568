//! Programs as methods (design section 8).

use std::path::{Path, PathBuf};

use super::file_hash::FileHashes;
use super::launch::{self, is_executable};
use super::{Common, Method, MethodKind, Program};
use crate::canonical::{Object, Value, py_strip};
use crate::input::{Refusal, index, member};
use crate::object;

/// Where an executable without a `/` in its name is looked for, in order. It is fixed, not taken from the environment,
/// so that a methods file means the same for everybody.
pub const SEARCH_PATH: &[&str] = &[
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

const KEYS: &[&str] = &[
    "name",
    "command",
    "files",
    "options",
    "env",
    "task_eligibility",
    "dataset_exclusions",
];

/// A file the program declares.
struct Declared<'a> {
    /// As written in the methods file.
    text: &'a str,
    base_name: &'a str,
    path: PathBuf,
    path_text: String,
    sha256: String,
}

/// Reads one program. `base` is the folder of the methods file.
pub(super) fn read(
    item: &Object,
    field: &str,
    at: usize,
    base: &Path,
    hashes: &mut FileHashes,
) -> Result<Method, Refusal> {
    if let Some(key) = item.keys().find(|key| !KEYS.contains(key)) {
        return Err(Refusal::new(
            member(field, key),
            format!(
                "does not belong to a program, whose keys are {}",
                KEYS.join(", ")
            ),
        ));
    }
    let common = Common::read(item, field, || format!("program_{at}"))?;
    let files = declared_files(item, field, base, hashes)?;
    let command = texts(item, "command", field)?;
    let Some((first, arguments)) = command.split_first() else {
        return Err(Refusal::new(
            member(field, "command"),
            "is empty; give the executable and its arguments",
        ));
    };
    let executable = executable(
        first,
        &files,
        &index(&member(field, "command"), 0),
        base,
        hashes,
    )?;
    let mut resolved = vec![executable.path_text.clone()];
    let mut published = vec![executable.base_name.clone()];
    for (at, argument) in arguments.iter().enumerate() {
        let field = index(&member(field, "command"), at + 1);
        let file = match declared(argument, &files, &field)? {
            None => declared_elsewise(argument, &files, &field, base)?,
            found => found,
        };
        if let Some(file) = file {
            resolved.push(file.path_text.clone());
            published.push(file.base_name.to_owned());
        } else if !argument.is_empty() && base.join(argument).is_file() {
            return Err(Refusal::new(
                field,
                format!(
                    "{argument:?} is a file that is not declared; add it to files, so that it becomes part of the \
                     method's identity and the program can read it"
                ),
            ));
        } else {
            resolved.push((*argument).to_owned());
            published.push((*argument).to_owned());
        }
    }
    check_length(&resolved, &member(field, "command"))?;
    let env = environment(item, field)?;
    let options = match item.get("options") {
        None | Some(Value::Null) => Object::new(),
        Some(Value::Object(options)) => options.clone(),
        Some(other) => {
            let problem = format!("is {}; it must be an object", other.type_name());
            return Err(Refusal::new(member(field, "options"), problem));
        }
    };

    let mut promised: Vec<_> = files
        .iter()
        .map(|file| (file.base_name, file.sha256.as_str()))
        .collect();
    promised.sort_unstable();
    let promised: Vec<Value> = promised
        .into_iter()
        .map(|(name, sha256)| object! { "name" => name, "sha256" => sha256 })
        .collect();
    let mut configuration = Object::new();
    configuration.insert("kind", "program");
    configuration.insert("command", published);
    configuration.insert("executable_sha256", executable.sha256);
    configuration.insert("files", promised);
    configuration.insert("options", options.clone());
    configuration.insert("env", env.clone());
    common.declare(&mut configuration);

    // Matheel reads these keys of every method of a bundle; the rest it ignores.
    let mut entry = configuration.clone();
    for key in ["algorithm_options", "similarity_options"] {
        entry.insert(key, Object::new());
    }
    for key in ["algorithm_path", "k", "threshold"] {
        entry.insert(key, Value::Null);
    }
    let program = Program {
        command: resolved,
        executable: executable.path,
        files: files.into_iter().map(|file| file.path).collect(),
        options: Value::Object(options),
        env,
    };
    let kind = MethodKind::Program(program);
    common.into_method(field, Value::Object(configuration), entry, kind)
}

/// A list of texts; absent is empty.
fn texts<'a>(item: &'a Object, key: &str, field: &str) -> Result<Vec<&'a str>, Refusal> {
    let field = member(field, key);
    let items = match item.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(other) => {
            let problem = format!("is {}; it must be a list of texts", other.type_name());
            return Err(Refusal::new(field, problem));
        }
    };
    let text = |(at, item): (usize, &'a Value)| {
        item.as_str()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| {
                Refusal::new(index(&field, at), "must be a text without a zero character")
            })
    };
    items.iter().enumerate().map(text).collect()
}

fn declared_files<'a>(
    item: &'a Object,
    field: &str,
    base: &Path,
    hashes: &mut FileHashes,
) -> Result<Vec<Declared<'a>>, Refusal> {
    let mut files: Vec<Declared<'a>> = Vec::new();
    for (at, text) in texts(item, "files", field)?.into_iter().enumerate() {
        let field = index(&member(field, "files"), at);
        let path = base.join(text);
        let (Some(path_text), Some(base_name)) = (
            path.to_str(),
            Path::new(text).file_name().and_then(|name| name.to_str()),
        ) else {
            return Err(Refusal::new(
                field,
                format!("{text:?} does not name a file"),
            ));
        };
        let sha256 = hashes
            .sha256(&path)
            .map_err(|error| unreadable(&field, &path, &error))?;
        if files.iter().any(|file| file.path == path) {
            return Err(Refusal::new(
                field,
                format!("{text:?} is declared twice; keep one"),
            ));
        }
        let path_text = path_text.to_owned();
        files.push(Declared {
            text,
            base_name,
            path,
            path_text,
            sha256,
        });
    }
    Ok(files)
}

fn unreadable(field: &str, path: &Path, error: &std::io::Error) -> Refusal {
    let problem = format!(
        "{}: cannot be read: {error}; give a regular file that whoever runs the method may read",
        path.display()
    );
    Refusal::new(field, problem)
}

/// The declared file that an argument means: by its text, its path or its base name.
fn declared<'f, 'a>(
    argument: &str,
    files: &'f [Declared<'a>],
    field: &str,
) -> Result<Option<&'f Declared<'a>>, Refusal> {
    let exact = files
        .iter()
        .find(|file| file.text == argument || file.path_text == argument);
    let file = exact.or_else(|| files.iter().find(|file| file.base_name == argument));
    file.map(|file| unambiguous(file, argument, files, field))
        .transpose()
}

/// The declared file that an argument means under another spelling: through `..`, a link, or as an absolute path. Only
/// arguments are looked at like this: an interpreter behind a link goes by the name of the link.
fn declared_elsewise<'f, 'a>(
    argument: &str,
    files: &'f [Declared<'a>],
    field: &str,
    base: &Path,
) -> Result<Option<&'f Declared<'a>>, Refusal> {
    if argument.is_empty() {
        return Ok(None);
    }
    let path = base.join(argument);
    let Ok(real) = path.canonicalize() else {
        return Ok(None);
    };
    let same: Vec<_> = files
        .iter()
        .filter(|file| file.path.canonicalize().is_ok_and(|path| path == real))
        .collect();
    // A file may be declared under its own name and that of a link to it.
    let named = same
        .iter()
        .find(|file| path.file_name() == Some(file.base_name.as_ref()));
    let file = named.or(same.first()).copied();
    file.map(|file| unambiguous(file, argument, files, field))
        .transpose()
}

/// Refuses a file whose base name another declared file has.
fn unambiguous<'f, 'a>(
    file: &'f Declared<'a>,
    argument: &str,
    files: &[Declared<'a>],
    field: &str,
) -> Result<&'f Declared<'a>, Refusal> {
    // The identity holds base names only, so two files of one name could be swapped unseen.
    if files
        .iter()
        .filter(|other| other.base_name == file.base_name)
        .count()
        > 1
    {
        return Err(Refusal::new(
            field,
            format!(
                "{argument:?} is ambiguous: two declared files are called {}; rename one",
                file.base_name
            ),
        ));
    }
    Ok(file)
}

struct Executable {
    path: PathBuf,
    path_text: String,
    base_name: String,
    sha256: String,
}

fn executable(
    name: &str,
    files: &[Declared<'_>],
    field: &str,
    base: &Path,
    hashes: &mut FileHashes,
) -> Result<Executable, Refusal> {
    let path = if let Some(file) = declared(name, files, field)? {
        file.path.clone()
    } else if name.contains('/') {
        base.join(name)
    } else {
        let mut candidates = SEARCH_PATH
            .iter()
            .map(|folder| Path::new(folder).join(name));
        candidates
            .find(|path| !name.is_empty() && is_executable(path))
            .ok_or_else(|| {
                let folders = SEARCH_PATH.join(", ");
                let problem = format!("no executable {name:?} in {folders}; give its path");
                Refusal::new(field, problem)
            })?
    };
    let sha256 = hashes
        .sha256(&path)
        .map_err(|error| unreadable(field, &path, &error))?;
    if !is_executable(&path) {
        let problem = format!(
            "{} is not executable; make it so (chmod +x) or name its interpreter first",
            path.display()
        );
        return Err(Refusal::new(field, problem));
    }
    if let Some(problem) = launch::cannot_start(&path) {
        return Err(Refusal::new(field, format!("{} {problem}", path.display())));
    }
    let (Some(path_text), Some(base_name)) = (
        path.to_str(),
        path.file_name().and_then(|name| name.to_str()),
    ) else {
        return Err(Refusal::new(
            field,
            format!("{} is not UTF-8; rename it", path.display()),
        ));
    };
    let (path_text, base_name) = (path_text.to_owned(), base_name.to_owned());
    Ok(Executable {
        path,
        path_text,
        base_name,
        sha256,
    })
}

/// The longest argument the kernel passes on, its closing zero included.
const MAX_ARGUMENT_BYTES: usize = 128 << 10;
/// The longest command; the kernel allows more, and wants room for the environment too.
const MAX_COMMAND_BYTES: usize = 1 << 20;

/// Refuses a command that is too long for the kernel.
fn check_length(command: &[String], field: &str) -> Result<(), Refusal> {
    let hint = "put it into a declared file or into options";
    for (at, argument) in command.iter().enumerate() {
        if argument.len() >= MAX_ARGUMENT_BYTES {
            let length = argument.len();
            let problem = format!("has {length} bytes, more than a program can be given; {hint}");
            return Err(Refusal::new(index(field, at), problem));
        }
    }
    let length: usize = command.iter().map(|argument| argument.len() + 1).sum();
    if length > MAX_COMMAND_BYTES {
        let problem = format!("has {length} bytes, more than a program can be given; {hint}");
        return Err(Refusal::new(field, problem));
    }
    Ok(())
}

/// Names of environment variables, sorted; their values are not part of the identity.
fn environment(item: &Object, field: &str) -> Result<Vec<String>, Refusal> {
    let mut names: Vec<String> = Vec::new();
    for (at, name) in texts(item, "env", field)?.into_iter().enumerate() {
        let field = index(&member(field, "env"), at);
        let sound = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !sound {
            let problem = format!(
                "{:?} is not the name of an environment variable; list names, never values",
                py_strip(name)
            );
            return Err(Refusal::new(field, problem));
        }
        if names.iter().any(|other| other == name) {
            return Err(Refusal::new(
                field,
                format!("{name} is listed twice; keep one"),
            ));
        }
        names.push(name.to_owned());
    }
    names.sort_unstable();
    Ok(names)
}
