//! JSON in the canonical form of RFC 8785: members sorted, numbers in their
//! shortest form, no whitespace. Two programs that write the same value
//! differently get the same text.

use super::string::JsonText;
use super::walker::{JsonKind, Raw, each_element, each_member};
use super::write::quote_into;

/// Deeper values are kept as they are written.
const MAX_DEPTH: usize = 128;

/// The canonical form of a JSON text. None if it is not JSON.
pub fn sorted_json(text: &str) -> Option<String> {
    let value = Raw::of(text).ok()?;
    let mut out = String::with_capacity(text.len());
    write_value(value, 0, &mut out);
    Some(out)
}

fn write_value(value: Raw<'_>, depth: usize, out: &mut String) {
    match value.kind() {
        JsonKind::Object if depth < MAX_DEPTH => {
            let mut members: Vec<(String, Raw<'_>)> = Vec::new();
            each_member(value, |name, value| members.push((name.to_owned(), value)));
            // The sort is stable, so the last of equal names stays last; parsers keep that one.
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            let mut rest = members.iter().peekable();
            while let Some((name, value)) = rest.next() {
                if rest.peek().is_some_and(|(next, _)| next == name) {
                    continue;
                }
                if !out.ends_with('{') {
                    out.push(',');
                }
                quote_into(out, name);
                out.push(':');
                write_value(*value, depth + 1, out);
            }
            out.push('}');
        }
        JsonKind::Array if depth < MAX_DEPTH => {
            out.push('[');
            let mut first = true;
            each_element(value, |element| {
                if !std::mem::replace(&mut first, false) {
                    out.push(',');
                }
                write_value(element, depth + 1, out);
            });
            out.push(']');
        }
        JsonKind::Text => match JsonText::of(value) {
            Some(text) => quote_into(out, &text.to_owned_text()),
            None => out.push_str(value.get()),
        },
        JsonKind::Other => write_number(value.get(), out),
        JsonKind::Null | JsonKind::Object | JsonKind::Array => out.push_str(value.get()),
    }
}

/// A number as ECMAScript writes it. Other words (`true`) are kept.
fn write_number(text: &str, out: &mut String) {
    let starts_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let Some(number) = text.parse::<f64>().ok().filter(|number| starts_number && number.is_finite()) else {
        out.push_str(text);
        return;
    };
    if number == 0.0 {
        out.push('0');
        return;
    }
    // The shortest digits that read back as the same number: `1.25e-7`.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    // The position of the decimal point within the digits.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let n_digits = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if number < 0.0 {
        out.push('-');
    }
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or(0));
    let at = usize::try_from(point).unwrap_or(0);
    match point {
        1..=21 if point >= n_digits => out.push_str(&format!("{digits}{}", zeros(point - n_digits))),
        1..=21 => {
            let (whole, fraction) = digits.split_at_checked(at).unwrap_or((&digits, ""));
            out.push_str(&format!("{whole}.{fraction}"));
        }
        -5..=0 => out.push_str(&format!("0.{}{digits}", zeros(-point))),
        _ => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
            let dot = if rest.is_empty() { "" } else { "." };
            let sign = if point > 0 { "+" } else { "-" };
            out.push_str(&format!("{first}{dot}{rest}e{sign}{}", (point - 1).abs()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sorted_json;

    #[test]
    fn g2_equal_values_have_one_text() {
        #[rustfmt::skip]
        let cases = [
            ("order and space",   r#" { "b" : [1, 2] , "a" : {"d":1,"c":2} } "#, r#"{"a":{"c":2,"d":1},"b":[1,2]}"#),
            ("escapes",           r#"{"\u0061":"\u00e9\/\n"}"#,               "{\"a\":\"é/\\n\"}"),
            ("whole numbers",     "[1.0, 1e2, -0, 10, 1E+2]",                 "[1,100,0,10,100]"),
            ("fractions",         "[0.10, 1e-7, 0.000001, 123.4560]",         "[0.1,1e-7,0.000001,123.456]"),
            ("large",             "[1e21, 1e20, 123456789012345678901, 1.5e300]", "[1e+21,100000000000000000000,123456789012345680000,1.5e+300]"),
            ("negative",          "[-1.50, -1e30]",                           "[-1.5,-1e+30]"),
            ("repeated names",    r#"{"a":1,"b":2,"a":3}"#,                   r#"{"a":3,"b":2}"#),
            ("words",             "[true, false, null, \"\"]",                "[true,false,null,\"\"]"),
            ("UTF-16 order",      "{\"\u{fb33}\":1,\"\u{1f600}\":2}",         "{\"\u{1f600}\":2,\"\u{fb33}\":1}"),
            ("empty",             "{ }",                                      "{}"),
        ];
        for (name, text, expected) in cases {
            let sorted = sorted_json(text).expect(name);
            assert_eq!(sorted, expected, "{name}");
            assert_eq!(sorted_json(&sorted).as_deref(), Some(expected), "{name}, again");
        }
        assert_eq!(sorted_json("{\"a\":"), None);
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        assert!(sorted_json(&deep).is_none_or(|sorted| sorted == deep));
    }
}
