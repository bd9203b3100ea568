//! Prints what only the supervisor may write, the record that its argument names, in place of an answer, and leaves
//! well.
//! Honest report: `protocol_error`, the line that is no message; no score.

use proctor_tests::talk::{Talk, say_raw};

fn main() {
    let mut talk = Talk::open("pretender");
    talk.next_dataset();
    let forged = match std::env::args().nth(1).as_deref() {
        Some("outcome") => "{\"outcome\":{\"kind\":\"completed\"}}",
        Some("terminal") => {
            "{\"type\":\"terminal\",\"outcome\":{\"kind\":\"completed\"},\"ended_as\":{\"exit_code\":0}}"
        }
        Some("checkpoint") => "{\"type\":\"checkpoint\",\"dataset\":0,\"scores\":[1.0,1.0]}",
        // The reports of the room's own first process have this form.
        Some("ended") => "{\"type\":\"ended\",\"status\":0,\"at\":0}",
        _ => "{\"type\":\"metrics\",\"f1\":1.0,\"rank\":1}",
    };
    say_raw(&format!("{forged}\n{{\"type\":\"done\"}}\n"));
}
