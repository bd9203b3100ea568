//! Every command line in the documentation is one that the program accepts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::args;
use crate::support::proctor::proctor;
use crate::support::repository;

/// The lines of the `sh` blocks of a page, continuation lines joined.
fn commands(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in page.replace("\\\n", " ").lines() {
        match line.trim() {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines
}

/// Every page there is for people.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = [
        "README.md",
        "CONTRIBUTING.md",
        "fixtures/README.md",
        "benches/README.md",
    ]
    .map(|page| repository().join(page))
    .into();
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .expect("a folder of pages")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

#[test]
fn pages_name_only_commands_and_options_that_exist() {
    let mut seen = BTreeSet::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for line in commands(&text) {
            let mut words = line.split_whitespace();
            if words.next() != Some("proctor") {
                continue;
            }
            let words: Vec<_> = words
                .take_while(|word| !["|", ">", "#", "&&"].contains(word))
                .collect();
            // `protocol export` and `dataset check` are two words.
            let depth = if ["protocol", "dataset"].contains(&words[0]) {
                2
            } else {
                1
            };
            let mut help: Vec<&str> = words[..depth].to_vec();
            seen.insert(help.join(" "));
            help.push("--help");
            let help = proctor(&help).exits(0).stdout;
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let name = option.split('=').next().expect("a name");
                assert!(help.contains(name), "{}: {line}: no {name}", page.display());
            }
        }
    }
    let help = proctor(args!["--help"]).exits(0).stdout;
    for command in [
        "freeze",
        "run",
        "resume",
        "status",
        "merge",
        "validate",
        "methods",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(command), "{command}");
        assert!(seen.contains(command), "no page shows `proctor {command}`");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for part in text.split("](").skip(1) {
            let target = part.split(')').next().expect("an end");
            let file = target.split('#').next().expect("a file");
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let path = page.parent().expect("a folder").join(file);
            assert!(path.exists(), "{}: {target}", page.display());
        }
    }
}
