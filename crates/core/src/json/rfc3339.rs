//! Times as they stand in JSON.

use crate::block::Time;

/// Parses a time in the format below. None for any other format.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Time> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    // Bounds each part, so that nothing below overflows.
    let number = |part: &str, most: u64| part.parse::<u64>().ok().filter(|number| *number <= most);
    let mut date = date.splitn(3, '-').zip([500_000_000, 12, 31]).map(|(part, most)| number(part, most));
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut clock = clock.splitn(3, ':').zip([24, 60, 61]).map(|(part, most)| number(part, most));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    // The inverse of the calculation below, with years that begin in March.
    let shifted_year = year.checked_sub(u64::from(month <= 2))?;
    let year_of_era = shifted_year % 400;
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day.checked_sub(1)?;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (shifted_year / 400 * 146_097 + day_of_era).checked_sub(719_468)?;
    Some(Time(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + millis))
}

/// `2026-11-15T09:30:00.250Z`
pub fn rfc3339(time: Time) -> String {
    let (seconds, millis) = (time.0 / 1000, time.0 % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years. A year that begins in March
    // has its leap day last.
    let z = days + 719_468;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = z / 146_097 * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Several of these are written for each message, and `format!` takes five times as long.
    let mut text = String::with_capacity("2026-11-15T09:30:00.250Z".len());
    push_padded(&mut text, year, 4);
    let parts = [('-', month, 2), ('-', day, 2), ('T', hour, 2), (':', minute, 2), (':', second, 2), ('.', millis, 3)];
    for (separator, number, width) in parts {
        text.push(separator);
        push_padded(&mut text, number, width);
    }
    text.push('Z');
    text
}

/// Appends a number with leading zeros up to this width.
fn push_padded(text: &mut String, number: u64, width: u32) {
    let n_digits = number.checked_ilog10().map_or(1, |log| log + 1).max(width);
    for at in (0..n_digits).rev() {
        let digit = number / 10_u64.pow(at) % 10;
        text.push(char::from(b'0' + digit as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_rfc_3339() {
        #[rustfmt::skip]
        let cases = [
            (0,                 "1970-01-01T00:00:00.000Z"),
            (951_782_400_000,   "2000-02-29T00:00:00.000Z"),
            (1_794_735_025_250, "2026-11-15T09:30:25.250Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ];
        for (time, expected) in cases {
            assert_eq!(rfc3339(Time(time)), expected);
            assert_eq!(parse_rfc3339(expected), Some(Time(time)));
        }
    }
}
