//! Writes one file that never ends.
//! Honest report: `resource_limit`, disk, or `exit(4)` where the disk of the room was full first; no score.

use std::io::Write;

use proctor_tests::talk::Talk;

fn main() {
    let _talk = Talk::open("whale");
    let mut file = std::fs::File::create("whale").expect("a file can be made");
    let block = vec![1_u8; 1 << 20];
    for _ in 0..64 {
        if file.write_all(&block).is_err() {
            break;
        }
    }
    std::process::exit(4);
}
