//! Kills its process group.
//! Honest report: `signal(9)`: the group holds nobody but itself.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_tests::talk::Talk;

fn main() {
    let mut talk = Talk::open("group_killer");
    talk.next_dataset();
    kill(Pid::from_raw(0), Signal::SIGKILL).expect("its own group can be killed");
}
