//! How often a bridge may be put right. Pure: time is an argument.

use std::time::{Duration, Instant};

/// Disturbances in a second that are taken for a fight, where they go on.
const MANY: u32 = 5;
/// For how many seconds in a row.
const LASTING: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);
/// How long nothing may happen until the fight is over.
const QUIET: Duration = Duration::from_secs(10);

/// When to put right what somebody disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// At once.
    Now,
    /// Not before this.
    At(Instant),
}

/// Watches how often others undo what we do: more than five times a second for ten seconds means
/// that to answer at once only feeds the fight. Repairs then come a second apart, and further apart
/// the longer it lasts, until there was quiet for ten seconds.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    longest: Duration,
    /// The second that is being counted.
    second: Option<Instant>,
    count: u32,
    /// Seconds in a row with too many.
    streak: u32,
    slowed: Option<Slowed>,
}

#[derive(Clone, Copy, Debug)]
struct Slowed {
    pause: Duration,
    next: Instant,
    last: Instant,
}

impl Contention {
    /// No fight yet; repairs are at most `longest` apart.
    #[must_use]
    pub(super) const fn new(longest: Duration) -> Self {
        Self {
            longest,
            second: None,
            count: 0,
            streak: 0,
            slowed: None,
        }
    }

    /// Somebody has undone something; when to put it right.
    pub(super) fn disturbed(&mut self, now: Instant) -> Pace {
        self.settle(now);
        self.count(now);
        match &mut self.slowed {
            Some(slowed) => {
                slowed.last = now;
                Pace::At(slowed.next)
            }
            None if self.streak >= LASTING => {
                let slowed = Slowed {
                    pause: SECOND,
                    next: now + SECOND,
                    last: now,
                };
                self.slowed = Some(slowed);
                Pace::At(slowed.next)
            }
            None => Pace::Now,
        }
    }

    /// A pass over the bridge is over; after one that put something right the next repair of a fight
    /// is due later. The others, such as periodic checks, neither feed the fight nor prolong it.
    pub(super) fn passed(&mut self, now: Instant, has_repaired: bool) {
        if has_repaired && let Some(slowed) = &mut self.slowed {
            // The one that this repair answers; what comes after it makes the next pause longer.
            slowed.next = now + slowed.pause;
            slowed.pause = (slowed.pause * 2).min(self.longest);
        }
    }

    /// Whether repairs are slowed down.
    #[must_use]
    pub(super) fn contended(&mut self, now: Instant) -> bool {
        self.settle(now);
        self.slowed.is_some()
    }

    /// When the fight is over if nothing more happens.
    #[must_use]
    pub(super) fn quiet_at(&self) -> Option<Instant> {
        // Quiet counts from the last repair: before it there may be nothing left to disturb.
        let slowed = self.slowed?;
        Some(slowed.last.max(slowed.next) + QUIET)
    }

    fn settle(&mut self, now: Instant) {
        if self.quiet_at().is_some_and(|quiet| now >= quiet) {
            *self = Self::new(self.longest);
        }
    }

    fn count(&mut self, now: Instant) {
        match self.second {
            Some(start) if now < start + SECOND => self.count += 1,
            Some(start) => {
                let is_next = now < start + 2 * SECOND;
                let had_many = self.count > MANY;
                self.streak = if had_many && is_next {
                    self.streak + 1
                } else {
                    0
                };
                // A streak is measured on seconds that follow each other without a gap.
                self.second = Some(if is_next { start + SECOND } else { now });
                self.count = 1;
            }
            None => {
                self.second = Some(now);
                self.count = 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: Duration = Duration::from_secs(15);

    /// Disturbs at a steady rate for a while; the paces that were answered.
    fn disturb(
        contention: &mut Contention,
        start: Instant,
        every: Duration,
        lasting: Duration,
    ) -> Vec<Pace> {
        let times = u32::try_from(lasting.as_micros() / every.as_micros()).unwrap();
        (0..times)
            .map(|nth| contention.disturbed(start + every * nth))
            .collect()
    }

    #[test]
    fn a_manager_that_undoes_us_every_second_is_answered_at_once_for_ever() {
        let mut contention = Contention::new(CHECK);
        let hour = Duration::from_secs(3600);
        let paces = disturb(&mut contention, Instant::now(), SECOND, hour);
        assert!(paces.iter().all(|pace| *pace == Pace::Now));
        assert!(!contention.contended(Instant::now()));
    }

    #[test]
    fn five_times_a_second_is_not_too_often_and_a_burst_does_not_last() {
        let start = Instant::now();
        let mut contention = Contention::new(CHECK);
        let five = Duration::from_millis(200);
        let paces = disturb(&mut contention, start, five, Duration::from_secs(60));
        assert!(paces.iter().all(|pace| *pace == Pace::Now));

        let mut contention = Contention::new(CHECK);
        let burst = Duration::from_millis(10);
        let paces = disturb(&mut contention, start, burst, Duration::from_secs(9));
        assert!(paces.iter().all(|pace| *pace == Pace::Now));
    }

    #[test]
    fn more_than_five_times_a_second_for_ten_seconds_slows_the_repairs_down() {
        let start = Instant::now();
        let mut contention = Contention::new(CHECK);
        let ten = Duration::from_millis(100);
        let paces = disturb(&mut contention, start, ten, Duration::from_secs(11));
        let first = paces.iter().position(|pace| *pace != Pace::Now).unwrap();
        assert_eq!(first, 100, "at the tenth second's end");
        assert_eq!(paces[first], Pace::At(start + 11 * SECOND));
        assert!(contention.contended(start + 11 * SECOND));
    }

    #[test]
    fn each_repair_of_a_fight_makes_the_next_come_later_up_to_the_check_interval() {
        let start = Instant::now();
        let mut contention = Contention::new(CHECK);
        let ten = Duration::from_millis(100);
        disturb(&mut contention, start, ten, Duration::from_secs(11));
        let mut now = start + 11 * SECOND;
        let mut pauses = Vec::new();
        for _ in 0..6 {
            contention.passed(now, true);
            let Pace::At(next) = contention.disturbed(now + ten) else {
                panic!("not slowed");
            };
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15]);
    }

    #[test]
    fn ten_quiet_seconds_after_a_repair_end_the_fight() {
        let start = Instant::now();
        let mut contention = Contention::new(CHECK);
        let ten = Duration::from_millis(100);
        disturb(&mut contention, start, ten, Duration::from_secs(11));
        let repaired = start + 12 * SECOND;
        contention.passed(repaired, true);
        let quiet = contention.quiet_at().unwrap();
        assert_eq!(quiet, repaired + SECOND + QUIET);
        assert!(contention.contended(quiet - ten));
        assert!(!contention.contended(quiet));
        assert_eq!(contention.disturbed(quiet + ten), Pace::Now);
    }

    #[test]
    fn checks_that_find_nothing_to_do_do_not_prolong_a_fight() {
        let start = Instant::now();
        let mut contention = Contention::new(CHECK);
        let ten = Duration::from_millis(100);
        disturb(&mut contention, start, ten, Duration::from_secs(11));
        let mut now = start + 11 * SECOND;
        for _ in 0..6 {
            contention.passed(now, true);
            let Pace::At(next) = contention.disturbed(now + ten) else {
                panic!("not slowed");
            };
            now = next;
        }
        let last = now;
        contention.passed(last, true);
        for nth in 1..=4 {
            contention.passed(last + CHECK * nth, false);
        }
        assert!(!contention.contended(last + CHECK * 4));
    }
}
