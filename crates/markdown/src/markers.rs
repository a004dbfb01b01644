//! Recognises the markers that begin Markdown lines.

/// The marker of a list item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListMarker {
    /// `-`, `*`, `+`, or the character after the number.
    pub letter: char,
    pub number: Option<u64>,
    width: usize,
}

impl ListMarker {
    /// Whether such an item may follow a paragraph without a blank line.
    pub fn interrupts(&self, line: &str) -> bool {
        let has_words = line.get(self.width..).is_some_and(|rest| !rest.trim().is_empty());
        has_words && self.number.is_none_or(|number| number == 1)
    }

    /// The columns by which the item's text is indented, and the bytes before it.
    pub fn indent(&self, line: &str) -> (usize, usize) {
        let rest = line.get(self.width..).unwrap_or("");
        let spaces = columns(rest);
        if rest.trim().is_empty() {
            return (self.width + 1, line.len());
        }
        // With more spaces, it is indented code inside the item.
        let spaces = if spaces > 4 { 1 } else { spaces };
        (self.width + spaces, self.width + indent_of(rest, spaces))
    }
}

pub(crate) fn list_marker(line: &str) -> Option<ListMarker> {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let letter = line.chars().nth(digits)?;
    let number = match digits {
        0 if matches!(letter, '-' | '*' | '+') => None,
        1..=9 if matches!(letter, '.' | ')') => Some(line.get(..digits)?.parse().ok()?),
        _ => return None,
    };
    let width = digits + 1;
    let rest = line.get(width..)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(ListMarker { letter, number, width })
}

/// The length in bytes of a quote marker, if there is one.
pub(crate) fn quote_marker(line: &str) -> Option<usize> {
    let bare = line.trim_start_matches(' ');
    let indent = line.len() - bare.len();
    let rest = bare.strip_prefix('>').filter(|_| indent < 4)?;
    Some(indent + 1 + usize::from(rest.starts_with(' ')))
}

/// The character, length and info string of a code fence.
pub fn fence(line: &str) -> Option<(char, usize, &str)> {
    let letter = line.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let length = line.chars().take_while(|one| *one == letter).count();
    let info = line.trim_start_matches(letter).trim();
    // With a backtick in the info string it is inline code.
    (length >= 3 && !(letter == '`' && info.contains('`'))).then_some((letter, length, info))
}

pub(crate) fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Matches `---`, `***`, `_ _ _`.
pub(crate) fn is_rule(line: &str) -> bool {
    let mut letters = line.chars().filter(|letter| !matches!(letter, ' ' | '\t'));
    let Some(first) = letters.next().filter(|letter| matches!(letter, '-' | '*' | '_')) else { return false };
    let mut count = 1;
    for letter in letters {
        if letter != first {
            return false;
        }
        count += 1;
    }
    count >= 3
}

/// Whether the second line makes the first one a table head.
pub(crate) fn is_table_head(head: &str, line: &str) -> bool {
    let is_dashes = |cell: &str| {
        let cell = cell.trim();
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.chars().all(|one| one == '-')
    };
    head.contains('|') && line.contains('|') && cells(line).all(is_dashes) && columns_of(head) == columns_of(line)
}

/// The cells of a delimiter line, which has no escaped pipes.
pub fn cells(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    line.strip_suffix('|').unwrap_or(line).split('|')
}

/// The number of cells in a table line.
fn columns_of(line: &str) -> usize {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut pipes = 0;
    let mut escaped = false;
    let mut ends_in_one = false;
    for letter in line.chars() {
        ends_in_one = letter == '|' && !escaped;
        pipes += usize::from(ends_in_one);
        escaped = letter == '\\' && !escaped;
    }
    pipes + 1 - usize::from(ends_in_one)
}

/// Columns of leading whitespace.
pub fn columns(line: &str) -> usize {
    let mut columns = 0;
    for letter in line.chars() {
        match letter {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// Bytes of leading whitespace, up to this many columns.
pub(crate) fn indent_of(line: &str, most: usize) -> usize {
    let (mut columns, mut bytes) = (0, 0);
    for letter in line.chars().take_while(|letter| matches!(letter, ' ' | '\t')) {
        if columns >= most {
            break;
        }
        columns += if letter == '\t' { 4 - columns % 4 } else { 1 };
        bytes += 1;
    }
    bytes
}
