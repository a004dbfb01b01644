//! Formats and parses times.

use aside_core::block::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::HintedError;
use crate::session_recorder::now;

fn timestamp(time: Time) -> Timestamp {
    let millis = i64::try_from(time.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub fn rfc3339(time: Time) -> String {
    timestamp(time).to_string()
}

/// Date and minute in the user's time zone.
pub fn local(time: Time) -> String {
    timestamp(time).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// The current time for use in a file name.
pub(crate) fn file_stamp() -> String {
    jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string()
}

/// The current offset from UTC in minutes.
pub fn utc_offset_minutes() -> i32 {
    jiff::Zoned::now().offset().seconds() / 60
}

/// Parses a date or time (`2026-11-15`, `2026-11-15T10:00`) or an age (`7d`,
/// `12h`).
pub fn parse(word: &str, now: Time) -> Option<Time> {
    let ago = |unit: char, millis: u64| {
        let count: u64 = word.strip_suffix(unit)?.parse().ok()?;
        Some(Time(now.0.saturating_sub(count.saturating_mul(millis))))
    };
    const HOUR: u64 = 3_600_000;
    if let Some(time) = ago('d', 24 * HOUR).or_else(|| ago('h', HOUR)).or_else(|| ago('m', 60_000)) {
        return Some(time);
    }
    let local = |date: jiff::civil::DateTime| date.to_zoned(TimeZone::system()).ok().map(|zoned| zoned.timestamp());
    let moment = word.parse::<Timestamp>().ok();
    let moment = moment.or_else(|| word.parse::<jiff::civil::DateTime>().ok().and_then(local));
    moment.and_then(|moment| u64::try_from(moment.as_millisecond()).ok()).map(Time)
}

/// The same for an argument of a command, counted from now.
pub fn parse_past(word: &str) -> Result<Time, HintedError> {
    let hint = "7d, 12h, 30m, 2026-11-15 or 2026-11-15T10:00";
    parse(word, now()).ok_or_else(|| HintedError::new(format!("`{word}` is not a time")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_a_timestamp_or_an_age() {
        let now = Time(10 * 86_400_000);
        assert_eq!(parse("7d", now), Some(Time(3 * 86_400_000)));
        assert_eq!(parse("24h", now), Some(Time(9 * 86_400_000)));
        assert_eq!(parse("1970-01-02T00:00:00Z", now), Some(Time(86_400_000)));
        assert!(parse("2026-11-15", now).is_some());
        assert_eq!(parse("soon", now), None);
    }
}
