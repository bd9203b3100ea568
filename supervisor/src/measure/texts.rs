//! What the kernel's files say, read from their texts. Pure: nothing here opens a file.
//!
//! Each reader gives a value or the reason why the text gives none; a text that is not understood is never a zero.

use std::collections::BTreeMap;

/// A text that does not have the form the kernel gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its content is not understood")]
pub struct Garbled;

/// The longest command name that is kept, in characters; the kernel keeps 15 for programs.
const NAME_CHARACTERS: usize = 15;

/// Load averages of 1, 5 and 15 minutes, from `/proc/loadavg`.
///
/// # Errors
/// The text has another form.
pub fn load_average(text: &str) -> Result<[f64; 3], Garbled> {
    let mut fields = text.split_ascii_whitespace();
    let mut next = || share(fields.next()?);
    match (next(), next(), next()) {
        (Some(one), Some(five), Some(fifteen)) => Ok([one, five, fifteen]),
        _ => Err(Garbled),
    }
}

/// A number that is finite and not negative.
fn share(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Percent of the last ten seconds in which something waited for a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    /// Some task waited.
    pub some: f64,
    /// All tasks waited; older kernels do not tell it of the processor.
    pub full: Option<f64>,
}

/// `avg10` of both lines of a file of `/proc/pressure`.
///
/// # Errors
/// The text has another form.
pub fn pressure(text: &str) -> Result<Pressure, Garbled> {
    let of = |kind: &str| {
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(kind))?;
        let field = line.split(' ').find_map(|f| f.strip_prefix("avg10="));
        Some(field.and_then(share).ok_or(Garbled))
    };
    Ok(Pressure {
        some: of("some").ok_or(Garbled)??,
        full: of("full").transpose()?,
    })
}

/// Bytes of something that `/proc/meminfo` counts, by its name there, like `MemTotal`.
///
/// # Errors
/// The text has another form, or does not count it.
pub fn memory(text: &str, name: &str) -> Result<u64, Garbled> {
    let bytes = || -> Option<u64> {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = value.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    bytes().ok_or(Garbled)
}

/// Bytes of swap in use, from `/proc/meminfo`.
///
/// # Errors
/// The text has another form.
pub fn swap_used(text: &str) -> Result<u64, Garbled> {
    let (total, free) = (memory(text, "SwapTotal")?, memory(text, "SwapFree")?);
    total.checked_sub(free).ok_or(Garbled)
}

/// Time of one core since the machine started, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoreTicks {
    /// Spent on programs, the kernel and interrupts.
    pub busy: u64,
    /// Taken by other guests of the machine this one is a guest of.
    pub stolen: u64,
}

/// The cores that are switched on, by number, from `/proc/stat`.
///
/// # Errors
/// The text has another form.
pub fn cores(text: &str) -> Result<BTreeMap<usize, CoreTicks>, Garbled> {
    let mut cores = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("cpu") else {
            break;
        };
        // The first line is the sum of all.
        if rest.starts_with(' ') {
            continue;
        }
        let (number, ticks) = core(rest).ok_or(Garbled)?;
        cores.insert(number, ticks);
    }
    if cores.is_empty() {
        return Err(Garbled);
    }
    Ok(cores)
}

fn core(line: &str) -> Option<(usize, CoreTicks)> {
    let mut fields = line.split_ascii_whitespace();
    let number = fields.next()?.parse().ok()?;
    let ticks: Vec<u64> = fields.map(|f| f.parse().ok()).collect::<Option<_>>()?;
    let [
        user,
        nice,
        system,
        _idle,
        _waiting,
        irq,
        soft_irq,
        stolen,
        ..,
    ] = ticks[..]
    else {
        return None;
    };
    let busy = [nice, system, irq, soft_irq];
    let busy = busy
        .iter()
        .try_fold(user, |sum, ticks| sum.checked_add(*ticks))?;
    Some((number, CoreTicks { busy, stolen }))
}

/// A process by its line of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessLine {
    /// Its number.
    pub pid: i32,
    /// The number of its parent.
    pub parent: i32,
    /// Its command name, fit to be published.
    pub name: String,
    /// Processor time it used so far, in clock ticks.
    pub ticks: u64,
    /// When it started, in clock ticks after the start of the machine; with `pid` it names one process for ever.
    pub started: u64,
    /// The core it ran on last.
    pub core: usize,
}

/// Reads a line of `/proc/PID/stat`. The command name in it may hold spaces, parentheses and bytes that are no text.
///
/// # Errors
/// The text has another form.
pub fn process(stat: &[u8]) -> Result<ProcessLine, Garbled> {
    parse_process(stat).ok_or(Garbled)
}

fn parse_process(stat: &[u8]) -> Option<ProcessLine> {
    let begins = stat.iter().position(|byte| *byte == b'(')?;
    let ends = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&stat[..begins])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let name = command_name(stat.get(begins + 1..ends)?);
    let rest = std::str::from_utf8(&stat[ends + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let user: u64 = fields.nth(9)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let started = fields.nth(6)?.parse().ok()?;
    let core = fields.nth(16)?.parse().ok()?;
    Some(ProcessLine {
        pid,
        parent,
        name,
        ticks: user.checked_add(system)?,
        started,
        core,
    })
}

/// A command name that can stand in a public record: a few ordinary characters, the others `_`. A process chooses its own
/// name, so it may hold anything.
pub fn command_name(raw: &[u8]) -> String {
    let kept = |byte: &u8| {
        let ordinary = byte.is_ascii_alphanumeric() || b"._+-".contains(byte);
        if ordinary { char::from(*byte) } else { '_' }
    };
    raw.iter().take(NAME_CHARACTERS).map(kept).collect()
}

/// Model name of the processor, from `/proc/cpuinfo`.
///
/// # Errors
/// The text names none, as on some architectures.
pub fn processor(text: &str) -> Result<String, Garbled> {
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| Some(line.split_once(':')?.1.trim()));
    name.filter(|name| !name.is_empty())
        .map(|name| name.chars().filter(|c| !c.is_control()).take(200).collect())
        .ok_or(Garbled)
}

/// The choice in brackets, as in `always [madvise] never`.
///
/// # Errors
/// The text has another form.
pub fn chosen(text: &str) -> Result<String, Garbled> {
    let (_, rest) = text.split_once('[').ok_or(Garbled)?;
    let (chosen, _) = rest.split_once(']').ok_or(Garbled)?;
    word(chosen)
}

/// A short word, such as the name of a governor.
///
/// # Errors
/// The text is not one.
pub fn word(text: &str) -> Result<String, Garbled> {
    let text = text.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_word = (1..=40).contains(&text.len()) && text.chars().all(fits);
    is_word.then(|| text.to_owned()).ok_or(Garbled)
}

/// How addresses are randomized, from `/proc/sys/kernel/randomize_va_space`.
///
/// # Errors
/// The text has another form.
pub fn randomization(text: &str) -> Result<&'static str, Garbled> {
    match text.trim() {
        "0" => Ok("off"),
        "1" => Ok("partial"),
        "2" => Ok("full"),
        _ => Err(Garbled),
    }
}

/// True for `1`, false for `0`.
///
/// # Errors
/// The text has another form.
pub fn switch(text: &str) -> Result<bool, Garbled> {
    match text.trim() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Garbled),
    }
}

/// A frequency in MHz from one in kHz, as the files of `cpufreq` have it.
///
/// # Errors
/// The text has another form.
pub fn megahertz(text: &str) -> Result<f64, Garbled> {
    let khz: u64 = text.trim().parse().map_err(|_| Garbled)?;
    if khz == 0 {
        return Err(Garbled);
    }
    Ok(khz as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Recorded from machines: a guest with two cores, kernel 6.18, and a desktop.
    const STAT: &str = "cpu  1307774 9656 294041 589549 14060 0 2999 1396 0 0\n\
        cpu0 626877 5111 140021 330982 5296 0 157 676 0 0\n\
        cpu1 680897 4545 154019 258567 8763 0 2841 719 0 0\n\
        intr 12628417 0 0 0\nctxt 1\nbtime 2\n";
    const PRESSURE: &str = "some avg10=44.09 avg60=11.84 avg300=5.98 total=5770389128\n\
        full avg10=0.25 avg60=0.00 avg300=0.00 total=0\n";
    const MEMINFO: &str = "MemTotal:       24684084 kB\nMemFree:         6361052 kB\n\
        SwapCached:            0 kB\nSwapTotal:       2097148 kB\nSwapFree:        2096124 kB\n";

    #[test]
    fn recorded_texts_are_read() {
        assert_eq!(
            load_average("0.82 0.80 1.48 5/127 26186\n"),
            Ok([0.82, 0.8, 1.48])
        );
        let both = Pressure {
            some: 44.09,
            full: Some(0.25),
        };
        assert_eq!(pressure(PRESSURE), Ok(both));
        let old = "some avg10=1.50 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(
            pressure(old),
            Ok(Pressure {
                some: 1.5,
                full: None
            })
        );
        assert_eq!(swap_used(MEMINFO), Ok(1024 * 1024));
        let ticks = cores(STAT).unwrap();
        let first = CoreTicks {
            busy: 626_877 + 5111 + 140_021 + 157,
            stolen: 676,
        };
        assert_eq!(ticks.keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(ticks[&0], first);
        let info = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n";
        assert_eq!(processor(info).as_deref(), Ok("AMD EPYC"));
        let info = "vendor_id\t: x\nmodel name\t: Fast CPU @ 3\n";
        assert_eq!(processor(info).as_deref(), Ok("Fast CPU @ 3"));
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Ok("madvise"));
        assert_eq!(word("performance\n").as_deref(), Ok("performance"));
        assert_eq!(randomization("2\n"), Ok("full"));
        assert_eq!((switch("0\n"), switch("1")), (Ok(false), Ok(true)));
        assert_eq!(megahertz("2596128\n"), Ok(2596.128));
    }

    #[test]
    fn a_process_is_read_whatever_it_calls_itself() {
        let line = b"26199 (a) R 1 (\xff\n) R 26182 26182 19827 0 -1 4194304 99 0 0 0 31 11 5 6 20 0 1 0 1113506 \
            3133440 390 18446744073709551615 9 9 9 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 9 9 9 9 9 9 9 0";
        let expected = ProcessLine {
            pid: 26199,
            parent: 26182,
            name: "a__R_1____".into(),
            ticks: 42,
            started: 1_113_506,
            core: 1,
        };
        assert_eq!(process(line), Ok(expected));
    }

    #[test]
    fn names_are_short_and_hold_nothing_odd() {
        assert_eq!(
            command_name(b"kworker/0:1-events_unbound"),
            "kworker_0_1-eve"
        );
        assert_eq!(command_name(b"\x1b[2J\xff<b>"), "__2J__b_");
        assert_eq!(command_name(b"/home/me/.key"), "_home_me_.key");
        assert_eq!(command_name(b""), "");
    }

    #[test]
    fn what_is_not_understood_is_no_number() {
        for text in ["", "x", "1 2", "nan 0 0", "-1 0 0", "inf 1 1"] {
            assert_eq!(load_average(text), Err(Garbled), "{text}");
        }
        for text in [
            "",
            "full avg10=1.00\n",
            "some avg60=1.00\n",
            "some avg10=x\n",
            "some avg10=NaN\n",
        ] {
            assert_eq!(pressure(text), Err(Garbled), "{text}");
        }
        for text in [
            "",
            "SwapTotal: 1 kB\n",
            "SwapTotal: 1 kB\nSwapFree: 2 kB\n",
            "SwapTotal: 1\nSwapFree: 1\n",
            "SwapTotal: 18446744073709551615 kB\nSwapFree: 0 kB\n",
        ] {
            assert_eq!(swap_used(text), Err(Garbled), "{text}");
        }
        for text in [
            "",
            "cpu  1 2 3\n",
            "cpu0 1 2 3\n",
            "cpux 1 2 3 4 5 6 7 8\n",
            "cpu0 1 2 3 4 5 6 7 -8\n",
        ] {
            assert_eq!(cores(text), Err(Garbled), "{text}");
        }
        for text in ["", "model name\t:\n", "Processor : x\n"] {
            assert_eq!(processor(text), Err(Garbled), "{text}");
        }
        for text in ["", "always", "[", "[a", "[a b]", "]a["] {
            assert_eq!(chosen(text), Err(Garbled), "{text}");
        }
        assert_eq!(word(&"x".repeat(41)), Err(Garbled));
        assert_eq!(randomization("3"), Err(Garbled));
        assert_eq!(switch(""), Err(Garbled));
        assert_eq!(
            (megahertz("0"), megahertz("x")),
            (Err(Garbled), Err(Garbled))
        );
        assert_eq!(process(b"1 (x) S 1"), Err(Garbled));
        assert_eq!(process(b")("), Err(Garbled));
    }

    proptest! {
        #[test]
        fn no_text_panics_a_reader(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = (load_average(&text), pressure(&text), swap_used(&text), cores(&text));
            let _ = (processor(&text), chosen(&text), word(&text), megahertz(&text));
            let _ = process(&bytes);
            prop_assert!(command_name(&bytes).len() <= NAME_CHARACTERS);
        }
    }
}
