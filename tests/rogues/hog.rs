//! Takes memory and touches it, up to a gigabyte.
//! Honest report: `out_of_memory` where the kernel counts it; `signal(6)`, its own end, where memory was only refused.

use proctor_tests::talk::{Talk, sleep_for_ever};

fn main() {
    let _talk = Talk::open("hog");
    let mut all = Vec::new();
    for _ in 0..1024 {
        let mut block = vec![0_u8; 1 << 20];
        block.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        all.push(block);
    }
    sleep_for_ever();
}
