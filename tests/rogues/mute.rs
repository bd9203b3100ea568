//! Never says hello and exits with code 0.

fn main() {
    proctor_tests::talk::Talk::listen();
}
