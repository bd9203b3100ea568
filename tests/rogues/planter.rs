//! Plants links in its scratch directory to the place its argument names from the root on, and scores everything
//! correctly.
//! Honest report: `completed`; cleaning up follows no link.

use std::os::unix::fs::symlink;

use proctor_tests::talk::Talk;

fn main() {
    let target = format!("/{}", std::env::args().nth(1).expect("a place"));
    std::fs::create_dir("inner").expect("a directory can be made");
    for link in [
        "to-place",
        "inner/to-place",
        "stderr",
        "scores",
        "terminal.json",
    ] {
        symlink(&target, link).expect("a link can be made");
    }
    symlink("..", "inner/up").expect("a link can be made");
    symlink("loop", "loop").expect("a link can be made");
    symlink("/", "root").expect("a link can be made");
    Talk::open("planter").behave();
}
