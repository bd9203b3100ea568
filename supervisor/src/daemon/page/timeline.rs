//! The attempts of a run on a time line, as SVG. Positions are shares of the width, so that the picture fits any screen
//! without a script; what it shows is told in a table beside it, too.

use super::words::{Standing, clock, count};
use crate::render::brief;
use maud::{Markup, html};

/// Height of the line with a lane's name, in pixels.
const LABEL: usize = 20;
/// Height of a bar.
const BAR: usize = 26;
/// Height of a lane with the space below it.
const LANE: usize = LABEL + BAR + 8;
/// Height of the line with the times.
const AXIS: usize = 26;
/// Width of the picture on a small and on a wide screen, and of a character of a label, in pixels. They only decide
/// which of the labels that are sure to fit is drawn.
const SMALL: f64 = 310.0;
const WIDE: f64 = 960.0;
const CHARACTER: f64 = 7.4;
/// The most bars that are drawn; the newest are kept.
pub(super) const MOST_BARS: usize = 400;

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    /// Where it is drawn, as position among the lanes.
    pub lane: usize,
    /// Its number in the table beside the picture.
    pub number: usize,
    /// Name of the method.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// The same in a word or two.
    pub outcome: String,
    /// Seconds from the start of the picture.
    pub start: f64,
    /// Seconds from the start of the picture; of a running attempt, now.
    pub end: f64,
    /// When it was paused, in seconds from the start of the picture.
    pub pauses: Vec<(f64, f64)>,
}

/// The picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Timeline {
    /// Names of the lanes: the core sets.
    pub lanes: Vec<String>,
    /// The attempts.
    pub bars: Vec<Bar>,
    /// Seconds that the picture spans.
    pub span: f64,
}

impl Timeline {
    /// A position as a share of the width.
    fn share(&self, seconds: f64) -> f64 {
        if self.span > 0.0 && seconds.is_finite() {
            (seconds / self.span * 100.0).clamp(0.0, 100.0)
        } else {
            0.0
        }
    }

    /// The picture, or nothing when nothing has started.
    pub(super) fn markup(&self) -> Markup {
        if self.bars.is_empty() || self.lanes.is_empty() {
            return html! {};
        }
        let earlier = self.bars.len().saturating_sub(MOST_BARS);
        // Starts are known to the second: a short attempt must not vanish below a long one that began in the same second.
        let mut bars: Vec<&Bar> = self.bars.iter().skip(earlier).collect();
        bars.sort_by(|a, b| (b.end - b.start).total_cmp(&(a.end - a.start)));
        let height = self.lanes.len() * LANE + AXIS;
        let axis = self.lanes.len() * LANE;
        html! {
            svg.timeline role="img" aria-labelledby="timeline-title timeline-about" width="100%" height=(height) {
                title id="timeline-title" { "Timeline of attempts" }
                desc id="timeline-about" { (self.about()) }
                defs {
                    pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                        line.hatch x1="0" y1="0" x2="0" y2="6" {}
                    }
                }
                @for tick in ticks(self.span) {
                    @let at = percent(self.share(tick));
                    line.tick x1=(at) x2=(at) y1="0" y2=(axis + 4) {}
                    @if tick == 0.0 {
                        text.axis x=(at) y=(axis + 18) { (clock(tick)) }
                    } @else {
                        text.axis x=(at) y=(axis + 18) text-anchor="middle" { (clock(tick)) }
                    }
                }
                @for (at, lane) in self.lanes.iter().enumerate() {
                    text.lane x="0" y=(at * LANE + 14) { (lane) }
                    line.lane x1="0" x2="100%" y1=(at * LANE + LABEL + BAR) y2=(at * LANE + LABEL + BAR) {}
                }
                @for bar in bars { (self.bar(bar)) }
            }
        }
    }

    /// What the picture shows, for those who do not see it.
    fn about(&self) -> String {
        let attempts = match self.bars.len() {
            1 => "1 attempt".to_owned(),
            count => format!("{count} attempts"),
        };
        let lanes = match self.lanes.len() {
            1 => "1 core set".to_owned(),
            count => format!("{count} core sets"),
        };
        format!(
            "{attempts} on {lanes} within {}; the table of attempts says the same in words",
            clock(self.span)
        )
    }

    fn bar(&self, bar: &Bar) -> Markup {
        let start = self.share(bar.start);
        let width = (self.share(bar.end) - start).max(0.0);
        let top = bar.lane * LANE + LABEL;
        let name = brief(&bar.name);
        let within = |seconds: f64| {
            let share = (seconds - bar.start) / (bar.end - bar.start) * 100.0;
            if share.is_finite() {
                share.clamp(0.0, 100.0)
            } else {
                0.0
            }
        };
        let small = label(bar, &name, width / 100.0 * SMALL);
        let wide = label(bar, &name, width / 100.0 * WIDE);
        html! {
            g class=(format!("bar {}", bar.standing.class())) {
                title {
                    (bar.number) ": " (name) ", " (bar.outcome) ", from " (clock(bar.start)) " to " (clock(bar.end))
                    @if !bar.pauses.is_empty() { ", with " (count(bar.pauses.len() as u64, "pause")) }
                }
                line.edge x1=(percent(start)) x2=(percent(start)) y1=(top) y2=(top + BAR) {}
                svg x=(percent(start)) y=(top) width=(percent(width)) height=(BAR) {
                    rect.fill width="100%" height="100%" rx="3" {}
                    @if matches!(bar.standing, Standing::Failed) {
                        rect width="100%" height="100%" rx="3" fill="url(#hatch)" {}
                    }
                    @for (from, to) in &bar.pauses {
                        @let (from, to) = (within(*from), within(*to));
                        rect.pause x=(percent(from)) y="4" width=(percent((to - from).max(0.0))) height=(BAR - 8) {}
                    }
                    @if let Some(small) = &small { text.small x="6" y="17" { (small) } }
                    @if let Some(wide) = &wide { text.wide x="6" y="17" { (wide) } }
                }
            }
        }
    }
}

/// The fullest label that is sure to fit into `pixels`.
fn label(bar: &Bar, name: &str, pixels: f64) -> Option<String> {
    let number = bar.number;
    let full = format!("{number} {name}: {}", bar.outcome);
    let shorter = format!("{number} {}", bar.outcome);
    [full, shorter, number.to_string()]
        .into_iter()
        .find(|text| text.chars().count() as f64 * CHARACTER + 12.0 <= pixels)
}

fn percent(share: f64) -> String {
    format!("{share:.3}%")
}

/// Times that are worth a mark: five at most, at round distances, none so far right that its label would be cut.
fn ticks(span: f64) -> Vec<f64> {
    const STEPS: [f64; 18] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
        10_800.0, 21_600.0, 43_200.0, 86_400.0,
    ];
    if !span.is_finite() || span <= 0.0 {
        return vec![0.0];
    }
    let days = (span / 5.0 / 86_400.0).ceil().max(1.0) * 86_400.0;
    let step = STEPS.into_iter().find(|step| span / step <= 5.0);
    let step = step.unwrap_or(days);
    let marks = (0..=5).map(|at| f64::from(at) * step);
    marks.filter(|mark| *mark <= span * 0.93).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, start: f64, end: f64) -> Bar {
        Bar {
            lane: 0,
            number: 3,
            name: name.into(),
            standing: Standing::Failed,
            outcome: "timeout".into(),
            start,
            end,
            pauses: vec![(2.0, 3.0)],
        }
    }

    fn picture(bars: Vec<Bar>) -> String {
        let timeline = Timeline {
            lanes: vec!["cores 0-1".into()],
            bars,
            span: 8.0,
        };
        timeline.markup().into_string()
    }

    #[test]
    fn a_bar_lies_where_its_times_say() {
        let text = picture(vec![bar("m", 2.0, 4.0)]);
        assert!(
            text.contains(r#"<svg x="25.000%" y="20" width="25.000%""#),
            "{text}"
        );
        // The pause is the first half of the bar.
        assert!(
            text.contains(r#"class="pause" x="0.000%" y="4" width="50.000%""#),
            "{text}"
        );
        assert!(
            text.contains("3: m, timeout, from 2 s to 4 s, with 1 pause"),
            "{text}"
        );
        assert!(
            text.contains("1 attempt on 1 core set within 8 s"),
            "{text}"
        );
    }

    #[test]
    fn a_label_is_drawn_where_it_fits() {
        let long = bar("a method with a long name", 0.0, 8.0);
        assert_eq!(
            label(&long, &long.name, SMALL).as_deref(),
            Some("3 a method with a long name: timeout")
        );
        assert_eq!(label(&long, &long.name, 90.0).as_deref(), Some("3 timeout"));
        assert_eq!(label(&long, &long.name, 20.0).as_deref(), Some("3"));
        assert_eq!(label(&long, &long.name, 8.0), None);
    }

    #[test]
    fn a_short_attempt_is_drawn_over_a_long_one_of_the_same_second() {
        let text = picture(vec![bar("short", 0.0, 0.1), bar("long", 0.0, 8.0)]);
        assert!(text.find("short") > text.find("long"), "{text}");
    }

    #[test]
    fn times_that_make_no_sense_draw_nothing_outside() {
        let text = picture(vec![bar("m", f64::NAN, f64::INFINITY), bar("n", 9.0, -1.0)]);
        assert!(!text.contains("NaN"), "{text}");
        assert!(picture(Vec::new()).is_empty());
        assert_eq!(ticks(f64::NAN), [0.0]);
    }

    #[test]
    fn marks_are_round_and_few() {
        assert_eq!(ticks(8.0), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(ticks(100.0), [0.0, 30.0, 60.0, 90.0]);
        assert_eq!(
            ticks(86_400.0 * 12.0),
            [0.0, 259_200.0, 518_400.0, 777_600.0]
        );
        assert_eq!(ticks(0.5), [0.0]);
    }
}
