//! Makes thousands of empty files in many directories, and scores everything correctly.
//! Honest report: `completed`; nothing of it is left.

use proctor_tests::talk::Talk;

fn main() {
    for directory in 0..20 {
        if std::fs::create_dir(format!("d{directory}")).is_err() {
            break;
        }
        for file in 0..250 {
            if std::fs::write(format!("d{directory}/{file}"), "").is_err() {
                break;
            }
        }
    }
    Talk::open("inode_filler").behave();
}
