//! The names of one model: with and without a date, a region and its maker.

/// Prefixes of cross-region names.
const REGIONS: [&str; 7] = ["us.", "eu.", "apac.", "jp.", "au.", "global.", "us-gov."];

/// The name as given, then without its date or version suffix, its region and its maker.
pub(super) fn candidates(model: &str) -> impl Iterator<Item = &str> {
    let undated = without_suffix(model);
    let local = REGIONS.iter().find_map(|region| undated.strip_prefix(region)).unwrap_or(undated);
    let full = REGIONS.iter().find_map(|region| model.strip_prefix(region)).unwrap_or(model);
    let plain = without_maker(local);
    let all = [model, undated, full, local, without_maker(full), plain];
    // Equal neighbours would only be looked up twice.
    let repeats = move |at: usize| at > 0 && all.iter().take(at).any(|earlier| all.get(at) == Some(earlier));
    all.into_iter().enumerate().filter(move |(at, _)| !repeats(*at)).map(|(_, name)| name)
}

/// Without `-20251101`, `-2025-11-01`, `@…`, `-v1:0`, or `:free`.
fn without_suffix(model: &str) -> &str {
    let model = model.split('@').next().unwrap_or(model);
    let versioned = model.rsplit_once("-v").filter(|(_, version)| {
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    });
    let model = versioned.map_or(model, |(name, _)| name);
    let is_date = |text: &str| text.starts_with("20") && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    for length in [8, 10] {
        let cut = model.len().checked_sub(length + 1).and_then(|at| model.split_at_checked(at));
        if let Some((name, date)) = cut.and_then(|(name, date)| Some((name, date.strip_prefix('-')?)))
            && is_date(date)
            && date.contains('-') == (length == 10)
        {
            return name;
        }
    }
    model
}

/// Without `maker/`, or `maker.` before a letter. A version has digits after its dot.
fn without_maker(model: &str) -> &str {
    if let Some((_, name)) = model.rsplit_once('/') {
        return name;
    }
    match model.split_once('.') {
        Some((maker, name)) if maker.bytes().all(|byte| byte.is_ascii_lowercase()) && !name.is_empty() => name,
        _ => model,
    }
}

/// How far apart two releases of one family are; none if they are of different families. Releases of a family have
/// the same name but for one later number.
pub(super) fn release_distance(known: &str, wanted: &str) -> Option<u64> {
    let (known, wanted) = (known.split(':').next()?, wanted.split(':').next()?);
    if known == wanted {
        return Some(0);
    }
    let (mut known, mut wanted) = (Parts(known), Parts(wanted));
    let (mut numbers, mut distance) = (0, None);
    loop {
        match (known.next(), wanted.next()) {
            (None, None) => return distance,
            (Some(Part::Number(a)), Some(Part::Number(b))) => {
                numbers += 1;
                // The first number is the generation. Only one number may differ.
                if a != b && (numbers == 1 || distance.replace(a.abs_diff(b)).is_some()) {
                    return None;
                }
            }
            (a, b) if a == b => (),
            _ => return None,
        }
    }
}

/// Splits a name into numbers and what is between them.
struct Parts<'a>(&'a str);

#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Number(u64),
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let is_number = self.0.bytes().next()?.is_ascii_digit();
        let end = self.0.bytes().position(|byte| byte.is_ascii_digit() != is_number).unwrap_or(self.0.len());
        let (part, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        // A number that does not fit is compared as text.
        Some(part.parse().ok().filter(|_| is_number).map_or(Part::Text(part), Part::Number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_tried_as_given_then_without_date_region_and_maker() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 8] = [
            ("gpt-5",                                     &["gpt-5"]),
            ("gpt-5-2025-08-07",                          &["gpt-5-2025-08-07", "gpt-5"]),
            ("claude-opus-4-8@default",                   &["claude-opus-4-8@default", "claude-opus-4-8"]),
            ("claude-haiku-4-5-20251001",                 &["claude-haiku-4-5-20251001", "claude-haiku-4-5"]),
            ("anthropic/claude-opus-5",                   &["anthropic/claude-opus-5", "claude-opus-5"]),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", &[
                "us.anthropic.claude-haiku-4-5-20251001-v1:0", "us.anthropic.claude-haiku-4-5",
                "anthropic.claude-haiku-4-5-20251001-v1:0", "anthropic.claude-haiku-4-5",
                "claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5",
            ]),
            ("gpt-4.1",                                   &["gpt-4.1"]),
            ("kimi-k2-0905-preview",                      &["kimi-k2-0905-preview"]),
        ];
        for (model, expected) in cases {
            assert_eq!(candidates(model).collect::<Vec<_>>(), expected, "{model}");
        }
    }

    #[test]
    fn releases_of_a_family_differ_in_one_later_number() {
        #[rustfmt::skip]
        let cases = [
            ("gpt-5.5",         "gpt-5.7",         Some(2)),
            ("claude-opus-4-8", "claude-opus-4-9", Some(1)),
            ("glm-4.6:free",    "glm-4.6",         Some(0)),
            ("gpt-5.5",         "gpt-6.5",         None),
            ("gpt-5.5",         "gpt-5.5-mini",    None),
            ("gpt-5",           "gpt-5.1",         None),
            ("kimi-k2.5",       "kimi-k2.6",       Some(1)),
            ("a-1-2-3",         "a-1-3-4",         None),
        ];
        for (known, wanted, distance) in cases {
            assert_eq!(release_distance(known, wanted), distance, "{known} {wanted}");
        }
    }
}
