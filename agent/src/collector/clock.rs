//! The device's clock on the wall: of a time of the tracer's clock it says what the wall clock
//! showed, and which minute of which local day that is. It is read again and again, so that it
//! follows a clock that is set; both clocks count time asleep.

use rustix::time::{ClockId, clock_gettime};

use crate::tables::timeline::now_ns;

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// As of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// Wall clock less the tracer's.
    ahead_ns: i64,
    /// Local time less UTC.
    pub utc_offset_s: i64,
}

impl WallClock {
    /// Reads the clocks and the time zone.
    pub fn read() -> Self {
        let now = clock_gettime(ClockId::Realtime);
        let unix_ns = now.tv_sec * SECOND_NS + now.tv_nsec;
        WallClock { ahead_ns: unix_ns - now_ns(), utc_offset_s: utc_offset_s(unix_ns) }
    }

    /// Since 1970, of a time of the tracer's clock.
    pub fn unix_ns(&self, time_ns: i64) -> i64 {
        time_ns + self.ahead_ns
    }

    fn local_s(&self, unix_ns: i64) -> i64 {
        unix_ns.div_euclid(SECOND_NS) + self.utc_offset_s
    }

    /// YYYY-MM-DD.
    pub fn day(&self, unix_ns: i64) -> String {
        let (year, month, day) = civil(self.local_s(unix_ns).div_euclid(DAY_S));
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// Minutes since local midnight.
    pub fn minute(&self, unix_ns: i64) -> i64 {
        self.local_s(unix_ns).rem_euclid(DAY_S) / 60
    }
}

unsafe extern "C" {
    /// tzset(3), which the libc crate lacks. localtime_r need not call it, and of glibc looks at
    /// the zone only once; this looks whether TZ or /etc/localtime are others now.
    fn tzset();
}

fn utc_offset_s(unix_ns: i64) -> i64 {
    let seconds: libc::time_t = unix_ns.div_euclid(SECOND_NS);
    // SAFETY: no other thread of this process changes the environment, or asks for the time zone.
    unsafe { tzset() };
    // SAFETY: of numbers and a pointer, for which 0 is a value.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are ours, and no other thread of this process changes the environment.
    let found = unsafe { libc::localtime_r(&raw const seconds, &raw mut local) };
    if found.is_null() { 0 } else { local.tm_gmtoff }
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms", civil_from_days).
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_of_year = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_of_year + 2) / 5 + 1;
    let month = if month_of_year < 10 { month_of_year + 3 } else { month_of_year - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_that_of_the_time_zone() {
        let clock = WallClock { ahead_ns: 5, utc_offset_s: 9 * 3600 };
        // date -u -d @1436540399: 2015-07-10 14:59:59
        let before = 1_436_540_399 * SECOND_NS;
        assert_eq!((clock.day(before).as_str(), clock.minute(before)), ("2015-07-10", 1439));
        let after = before + SECOND_NS;
        assert_eq!((clock.day(after).as_str(), clock.minute(after)), ("2015-07-11", 0));
        assert_eq!(clock.unix_ns(before - 5), before);
        let utc = WallClock { ahead_ns: 0, utc_offset_s: 0 };
        for (seconds, day) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (951_782_400, "2000-02-29"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(utc.day(seconds * SECOND_NS), day);
        }
    }
}
