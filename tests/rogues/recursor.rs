//! Calls itself until its stack overflows.
//! Honest report: `signal(6)`, with which Rust answers an overflow; one attempt, one verdict.

use proctor_tests::talk::Talk;

#[expect(unconditional_recursion, reason = "the misdeed")]
fn deeper(depth: u64) -> u64 {
    std::hint::black_box(deeper(std::hint::black_box(depth + 1))) + depth
}

fn main() {
    let mut talk = Talk::open("recursor");
    talk.next_dataset();
    deeper(0);
}
