//! The marks that lines of Markdown begin with.

/// What an item of a list begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    /// `-`, `*`, `+`, or what stands behind the number.
    pub(super) letter: char,
    pub(super) number: Option<u64>,
    width: usize,
}

impl Marker {
    /// Whether such an item may follow a paragraph without a blank line.
    pub(super) fn interrupts(&self, line: &str) -> bool {
        let has_words = line.get(self.width..).is_some_and(|rest| !rest.trim().is_empty());
        has_words && self.number.is_none_or(|number| number == 1)
    }

    /// The columns its text is indented by, and the bytes before that text.
    pub(super) fn needs(&self, line: &str) -> (usize, usize) {
        let rest = line.get(self.width..).unwrap_or("");
        let spaces = columns(rest);
        if rest.trim().is_empty() {
            return (self.width + 1, line.len());
        }
        // So far in, it is code inside the item.
        let spaces = if spaces > 4 { 1 } else { spaces };
        (self.width + spaces, self.width + indent_of(rest, spaces))
    }
}

pub(super) fn marker(line: &str) -> Option<Marker> {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let letter = line.chars().nth(digits)?;
    let number = match digits {
        0 if matches!(letter, '-' | '*' | '+') => None,
        1..=9 if matches!(letter, '.' | ')') => Some(line.get(..digits)?.parse().ok()?),
        _ => return None,
    };
    let width = digits + 1;
    let rest = line.get(width..)?;
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then_some(Marker { letter, number, width })
}

/// The bytes of a quote's mark, if the line has one.
pub(super) fn quote(line: &str) -> Option<usize> {
    let bare = line.trim_start_matches(' ');
    let indent = line.len() - bare.len();
    let rest = bare.strip_prefix('>').filter(|_| indent < 4)?;
    Some(indent + 1 + usize::from(rest.starts_with(' ')))
}

/// The letter, the length and the rest of a line that may open or close code.
pub(super) fn fence(line: &str) -> Option<(char, usize, &str)> {
    let letter = line.chars().next().filter(|letter| matches!(letter, '`' | '~'))?;
    let length = line.chars().take_while(|one| *one == letter).count();
    let info = line.trim_start_matches(letter).trim();
    // With a backtick behind it, it is code inside a line.
    (length >= 3 && !(letter == '`' && info.contains('`'))).then_some((letter, length, info))
}

pub(super) fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// `---`, `***`, `_ _ _`.
pub(super) fn is_rule(line: &str) -> bool {
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

/// Whether the second line makes the first one the head of a table.
pub(super) fn is_head_of_table(head: &str, line: &str) -> bool {
    let is_dashes = |cell: &str| {
        let cell = cell.trim();
        let dashes = cell.strip_prefix(':').unwrap_or(cell);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        !dashes.is_empty() && dashes.chars().all(|one| one == '-')
    };
    head.contains('|') && line.contains('|') && cells(line).all(is_dashes) && columns_of(head) == columns_of(line)
}

/// The cells of a line of a table, as far as lines of dashes have any.
pub(super) fn cells(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    line.strip_suffix('|').unwrap_or(line).split('|')
}

/// How many cells a line of a table has.
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

/// Columns of white space before the text.
pub(super) fn columns(line: &str) -> usize {
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

/// The bytes of white space before the text, up to so many columns of it.
pub(super) fn indent_of(line: &str, most: usize) -> usize {
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
