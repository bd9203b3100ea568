//! What every rogue must end with. `docs/outcomes.md` and the worker protocol are where it comes from.

/// A rogue, and the truth about it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name.
    pub rogue: &'static str,
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// The outcome, in the short form.
    pub outcome: &'static str,
    /// On how many datasets it has a score.
    pub scored: usize,
    /// A part of what the outcome says, besides its kind.
    pub says: &'static str,
    /// How many processes it leaves behind.
    pub leaves: u64,
    /// Something still held its stdout.
    pub holds_pipe: bool,
    /// Scores that came after its last word or its deadline; `None` for one that goes on sending, of which one more or less
    /// may come before it is killed.
    pub late_rows: Option<u64>,
    /// What it says when it gives up.
    pub gives_up: Option<&'static str>,
}

impl Case {
    /// The name of the method: the rogue and its arguments.
    pub fn name(&self) -> String {
        std::iter::once(self.rogue)
            .chain(self.arguments.iter().copied())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// True when the worker ended by itself, so that what it left was counted.
    pub fn ended_by_itself(&self) -> bool {
        !(self.outcome == "timeout"
            || self.outcome == "protocol_error"
            || self.outcome == "resource_limit")
    }

    const fn with(mut self, arguments: &'static [&'static str]) -> Self {
        self.arguments = arguments;
        self
    }

    const fn saying(mut self, part: &'static str) -> Self {
        self.says = part;
        self
    }

    const fn leaving(mut self, processes: u64) -> Self {
        self.leaves = processes;
        self
    }

    const fn holding_the_pipe(mut self) -> Self {
        self.holds_pipe = true;
        self
    }

    const fn late(mut self, rows: u64) -> Self {
        self.late_rows = Some(rows);
        self
    }

    const fn sending_to_the_end(mut self) -> Self {
        self.late_rows = None;
        self
    }

    const fn giving_up(mut self, words: &'static str) -> Self {
        self.gives_up = Some(words);
        self
    }
}

const fn case(rogue: &'static str, outcome: &'static str, scored: usize) -> Case {
    Case {
        rogue,
        arguments: &[],
        outcome,
        scored,
        says: "",
        leaves: 0,
        holds_pipe: false,
        late_rows: Some(0),
        gives_up: None,
    }
}

const fn broken(rogue: &'static str, says: &'static str) -> Case {
    case(rogue, "protocol_error", 0).saying(says)
}

const fn number(spelling: &'static [&'static str]) -> Case {
    broken("not-a-number", "stdout line 2 is not a message").with(spelling)
}

/// Those that end by themselves or at the first wrong word, whatever the budget. The first one is what every score is
/// compared with.
pub const QUICK: &[Case] = &[
    case("good", "completed", 3),
    case("recorder", "completed", 3),
    case("plodder", "completed", 3),
    // Words.
    number(&["NaN"]),
    number(&["nan", "in lower case"]),
    number(&["-NaN"]),
    number(&["Infinity"]),
    number(&["-Infinity"]),
    number(&["inf"]),
    number(&["-inf"]),
    number(&["1e999"]),
    number(&["-1e999"]),
    number(&["\"NaN\""]),
    number(&["\"0.5\""]),
    number(&["null"]),
    number(&["true"]),
    number(&["[0.5]"]),
    number(&["0x1p-1"]),
    number(&["+0.5"]),
    number(&[".5"]),
    number(&["0,5e"]),
    broken("digger", "stdout line 2 is not a message"),
    broken("mojibake", "stdout line 2 is not a message"),
    broken("nuller", "stdout line 2 is not a message"),
    broken("stranger", "`dataset_done` names dataset 41, open is 0"),
    broken("skipper", "start at 4, expected was 3"),
    broken("overfiller", "more scores than the"),
    broken("duplicator", "start at 0, expected was 2"),
    broken("greeter", "`hello` came twice"),
    broken("anachronist", "speaks version 2, this build version 1"),
    broken("rude", "`scores` came before `hello`"),
    // Whether the first dataset was opened already is chance.
    broken("eager", "asked"),
    broken(
        "finisher",
        "`done` came before the worker was told to finish",
    ),
    broken("smuggler", "unknown field"),
    broken("repeater", "duplicate field"),
    broken(
        "printer",
        "stdout line 2 is not a message: \"Loading model weights",
    ),
    broken(
        "painter",
        "stdout line 2 is not a message: \"\\u{1b}]0;completed",
    ),
    broken("pretender", "stdout line 2 is not a message").with(&["outcome"]),
    broken("pretender", "stdout line 2 is not a message").with(&["terminal"]),
    broken("pretender", "stdout line 2 is not a message").with(&["checkpoint"]),
    broken("pretender", "stdout line 2 is not a message").with(&["ended"]),
    broken("pretender", "stdout line 2 is not a message").with(&["metrics"]),
    case("forger", "protocol_error", 1)
        .with(&["1"])
        .saying("after 0 of"),
    broken("flood", "is longer than 65536 bytes"),
    case("rattle", "resource_limit", 0).saying("output: more than"),
    case("chatterbox", "completed", 3),
    case("boaster", "completed", 3),
    case("afterthought", "completed", 3).late(2),
    case("ghostwriter", "completed", 3)
        .leaving(1)
        .holding_the_pipe()
        .late(2),
    case("heckler", "completed", 3).leaving(1),
    case("mumbler", "incomplete(2/3)", 2),
    case("mute", "incomplete(0/3)", 0),
    case("quitter", "incomplete(0/3)", 0),
    case("quitter", "incomplete(2/3)", 2).with(&["2"]),
    case("giver-up", "incomplete(0/3)", 0).giving_up("no model here"),
    case("refuser", "dataset_errors(1/3)", 2),
    // Ends.
    case("exiter", "exit(3)", 2),
    case("impostor", "exit(137)", 1).with(&["1"]),
    case("self-killer", "signal(9)", 2).with(&["2"]),
    // It answered everything, and died before it said so.
    case("self-killer", "signal(9)", 2).with(&["3"]),
    case("group-killer", "signal(9)", 0),
    case("crasher", "signal(11)", 1).with(&["1"]),
    case("aborter", "signal(6)", 1).with(&["1"]),
    case("recursor", "signal(6)", 0),
    // Processes.
    case("daemon", "completed", 3).leaving(1),
    case("holder", "completed", 3).leaving(1).holding_the_pipe(),
    case("litter", "completed", 3).leaving(20),
    case("disguised", "completed", 3).leaving(1),
    case("zombie-maker", "completed", 3),
    case("orphan-maker", "completed", 3),
    case("descriptor-hoarder", "completed", 3),
    // Files.
    case("inode-filler", "completed", 3),
    case("burrower", "completed", 3),
];

/// Those that reach for what is not theirs, and behave otherwise. Every attempt that worked stands on their stderr.
pub const REACHING: &[Case] = &[
    case("good", "completed", 3),
    case("nester", "completed", 3),
    case("tracer", "completed", 3),
    case("memory-reader", "completed", 3),
    case("fugitive", "completed", 3),
    case("typist", "completed", 3),
    case("tinkerer", "completed", 3),
    case("grabber", "completed", 3),
    case("caller", "completed", 3),
    case("spy", "completed", 3),
    case("vandal", "completed", 3),
    case("planter", "completed", 3),
];

/// Those that attack whoever watches them. Behind a wall, or with a user of their own, they hit nobody. Where neither
/// holds (K1 and K3b without root) they cost the attempt, and may cost the run, but never give a false success.
pub const ATTACKING: &[Case] = &[
    case("good", "completed", 3),
    case("parent-killer", "completed", 3),
    case("parent-stopper", "completed", 3),
    case("pack-killer", "completed", 3),
    case("all-killer", "completed", 3),
];

/// Those that go on until their time is up.
pub const HANGING: &[Case] = &[
    case("good", "completed", 3),
    case("sleeper", "timeout", 1).with(&["1"]),
    case("busy", "timeout", 2).with(&["2"]),
    case("burners", "timeout", 0),
    case("latecomer", "timeout", 0).sending_to_the_end(),
    case("trickler", "timeout", 0),
    case("lingerer", "timeout", 2),
    case("deaf", "timeout", 0),
    case("plugged", "timeout", 0),
    case("closer", "timeout", 1).with(&["1"]),
    case("stray", "timeout", 0),
    case("phoenix", "timeout", 0),
    case("swarm", "timeout", 0),
    case("hydra", "timeout", 0),
    case("heir", "timeout", 0),
    case("statue", "timeout", 0),
    // The second dataset has 30 pairs, and all of them come too late.
    case("deathbed", "timeout", 1).with(&["1"]).late(30),
];

/// Those that take all they can get, with the outcome where the kernel counts what a room uses. Where only the process
/// itself is limited (no control groups: rungs without root), nobody counts, and nobody may claim to know: what is
/// seen is the worker's own end, the last column.
pub const GREEDY: &[(Case, &str)] = &[
    (case("hog", "out_of_memory", 0), "signal(6)"),
    (
        case("fork-bomb", "resource_limit", 0).saying("processes: more than 64"),
        "exit(4)",
    ),
    (
        case("thread-bomb", "resource_limit", 0).saying("processes: more than 64"),
        "exit(4)",
    ),
    (case("filler", "completed", 3), "completed"),
    (
        case("whale", "resource_limit", 0).saying("disk: a file of more than"),
        "resource_limit",
    ),
    (case("good", "completed", 3), "completed"),
];

/// Every rogue of every table, by name.
pub fn rogues() -> std::collections::BTreeSet<&'static str> {
    all().map(|case| case.rogue).collect()
}

/// Every case of every table.
pub fn all() -> impl Iterator<Item = &'static Case> {
    let greedy = GREEDY.iter().map(|(case, _)| case);
    [QUICK, REACHING, ATTACKING, HANGING]
        .into_iter()
        .flatten()
        .chain(greedy)
}
