//! Tries to write a file named by its first argument into the places the others name from the root on, then scores
//! everything.
//! Honest report: `completed`; nothing outside its room has changed.

use proctor_tests::misdeed::tried;
use proctor_tests::talk::Talk;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, places) = arguments.split_first().expect("a name and places");
    for place in places {
        let place = format!("/{place}");
        let file = std::path::Path::new(&place).join(name);
        tried(&format!("write {place}"), std::fs::write(&file, "x"));
        let link = file.with_extension("link");
        tried(
            &format!("link {place}"),
            std::os::unix::fs::symlink("/etc/passwd", link),
        );
    }
    Talk::open("vandal").behave();
}
