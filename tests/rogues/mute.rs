//! Never says hello and exits with code 0.
//! Honest report: `incomplete`, 0 of 3.

fn main() {
    proctor_tests::talk::Talk::listen();
}
