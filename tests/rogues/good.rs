//! Not a rogue: a worker that does everything right, to compare with.

fn main() {
    proctor_tests::talk::Talk::open("good").behave();
}
