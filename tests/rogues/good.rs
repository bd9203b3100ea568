//! Not a rogue: a worker that does everything right, to compare with.
//! Honest report: `completed`, a score for everything.

fn main() {
    proctor_tests::talk::Talk::open("good").behave();
}
