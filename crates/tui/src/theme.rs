//! Maps text roles and row backgrounds to terminal styles. No other module names a colour.

use aside_core::settings::ScreenTheme;
use ratatui::style::{Color, Modifier, Style};

use crate::text::{FontStyle, RowBackground, Saturation, SyntaxToken, TextRole};

/// Whether the terminal's background is dark or light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColourScheme {
    #[default]
    Dark,
    Light,
}

/// How many colours the terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColourDepth {
    #[default]
    True,
    Indexed,
    Sixteen,
    /// `NO_COLOR`: only bold, italic, dim and similar.
    None,
}

/// Whether anything may be animated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Motion {
    #[default]
    Spinner,
    /// For screen readers and slow connections: the screen changes only when something happens.
    Still,
}

type Rgb = (u8, u8, u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    pub scheme: ColourScheme,
    pub depth: ColourDepth,
    pub motion: Motion,
    /// The background colour reported by the terminal, from which row backgrounds are derived.
    pub background: Option<Rgb>,
}

impl Theme {
    /// The theme that the user chose, or this one, which the terminal asks for.
    pub fn chosen(self, theme: ScreenTheme) -> Theme {
        let scheme = match theme {
            ScreenTheme::Auto => return self,
            ScreenTheme::Dark => ColourScheme::Dark,
            ScreenTheme::Light => ColourScheme::Light,
        };
        // A background that fits is better than one we assume.
        let background = self.background.filter(|_| scheme == self.scheme);
        Theme { scheme, background, ..self }
    }

    /// A theme for the reported background colour, dark or light.
    pub fn for_background(background: Rgb, depth: ColourDepth) -> Theme {
        let scheme = if brightness(background) < 128.0 { ColourScheme::Dark } else { ColourScheme::Light };
        Theme { scheme, depth, background: Some(background), motion: Motion::Spinner }
    }

    pub fn style(&self, role: TextRole, font: FontStyle, shade: RowBackground) -> Style {
        let role = self.role_on(role, shade);
        let mut style = Style::new();
        if let Some(colour) = self.colour(role, shade) {
            style = style.fg(colour);
        }
        if let Some(colour) = self.background_colour(shade) {
            style = style.bg(colour);
        }
        let mut modifier = font_modifier(font);
        if shade == RowBackground::Selected && matches!(self.depth, ColourDepth::None | ColourDepth::Sixteen) {
            modifier |= Modifier::REVERSED;
        }
        // Sixteen colours have no shade between the background and the text, and every grey of theirs is bright on some
        // terminals. Dimming is right on all of them.
        if self.depth == ColourDepth::Sixteen && is_dimmed_thought(role, shade) {
            modifier |= Modifier::DIM;
        }
        // Without colours, modifiers make the difference.
        if self.depth == ColourDepth::None {
            match role {
                TextRole::Muted | TextRole::Thinking | TextRole::Quote => modifier |= Modifier::DIM,
                TextRole::Heading | TextRole::Error | TextRole::Warning | TextRole::Added => modifier |= Modifier::BOLD,
                TextRole::SearchMatch => modifier |= Modifier::REVERSED,
                TextRole::Token(token, saturation) => modifier |= token_modifier(token, saturation),
                TextRole::Plain
                | TextRole::Accent
                | TextRole::Code
                | TextRole::Link
                | TextRole::Success
                | TextRole::Removed => (),
            }
        }
        style.add_modifier(modifier)
    }

    /// Where rows have no background colour, added and removed lines are coloured by their text.
    fn role_on(&self, role: TextRole, shade: RowBackground) -> TextRole {
        let has_shade = matches!(self.depth, ColourDepth::True | ColourDepth::Indexed);
        match (role, shade) {
            (TextRole::Plain | TextRole::Token(..), RowBackground::Added) if !has_shade => TextRole::Added,
            (TextRole::Plain | TextRole::Token(..), RowBackground::Removed) if !has_shade => TextRole::Removed,
            (role, _) => role,
        }
    }

    /// The colour behind a whole row.
    pub fn background_colour(&self, shade: RowBackground) -> Option<Color> {
        let steps = match shade {
            RowBackground::None => return None,
            RowBackground::Thinking => 1.0,
            RowBackground::Code => 0.7,
            RowBackground::User => 1.5,
            RowBackground::Selected => 3.0,
            RowBackground::Added | RowBackground::Removed => return self.diff_background(shade),
        };
        match (self.depth, self.scheme) {
            (ColourDepth::None | ColourDepth::Sixteen, _) => None,
            (ColourDepth::True, _) => Some(self.shaded(steps)),
            (ColourDepth::Indexed, ColourScheme::Dark) => Some(Color::Indexed(match shade {
                RowBackground::None | RowBackground::Code | RowBackground::Added | RowBackground::Removed => 234,
                RowBackground::Thinking => 235,
                RowBackground::User => 236,
                RowBackground::Selected => 238,
            })),
            (ColourDepth::Indexed, ColourScheme::Light) => Some(Color::Indexed(match shade {
                RowBackground::None | RowBackground::Code | RowBackground::Added | RowBackground::Removed => 255,
                RowBackground::Thinking => 254,
                RowBackground::User => 253,
                RowBackground::Selected => 251,
            })),
        }
    }

    /// A hint of green or red.
    fn diff_background(&self, shade: RowBackground) -> Option<Color> {
        let is_new = shade == RowBackground::Added;
        match (self.depth, self.scheme) {
            (ColourDepth::None | ColourDepth::Sixteen, _) => None,
            (ColourDepth::True, ColourScheme::Dark) => {
                let (r, g, b) = self.terminal_background();
                let tint = if is_new { (90, 200, 90) } else { (240, 90, 90) };
                Some(rgb(mixed((r, g, b), tint, 0.16)))
            }
            (ColourDepth::True, ColourScheme::Light) => {
                let tint = if is_new { (40, 180, 60) } else { (230, 60, 60) };
                Some(rgb(mixed(self.terminal_background(), tint, 0.14)))
            }
            (ColourDepth::Indexed, ColourScheme::Dark) => Some(Color::Indexed(if is_new { 22 } else { 52 })),
            (ColourDepth::Indexed, ColourScheme::Light) => Some(Color::Indexed(if is_new { 194 } else { 224 })),
        }
    }

    fn terminal_background(&self) -> Rgb {
        self.background.unwrap_or(match self.scheme {
            ColourScheme::Dark => (16, 17, 20),
            ColourScheme::Light => (255, 255, 255),
        })
    }

    /// Lighter than a dark background, darker than a light one.
    fn shaded(&self, steps: f32) -> Color {
        let towards = match self.scheme {
            ColourScheme::Dark => (255, 255, 255),
            ColourScheme::Light => (0, 0, 0),
        };
        rgb(mixed(self.terminal_background(), towards, 0.07 * steps))
    }

    fn colour(&self, role: TextRole, shade: RowBackground) -> Option<Color> {
        let dark = self.scheme == ColourScheme::Dark;
        match self.depth {
            ColourDepth::None => None,
            ColourDepth::True => {
                let (r, g, b) = if dark { dark_rgb(role)? } else { light_rgb(role)? };
                Some(Color::Rgb(r, g, b))
            }
            ColourDepth::Indexed => Some(Color::Indexed(if dark { dark_indexed(role)? } else { light_indexed(role)? })),
            ColourDepth::Sixteen if is_dimmed_thought(role, shade) => None,
            ColourDepth::Sixteen => sixteen(role, self.scheme),
        }
    }
}

/// Whether sixteen colours show this part of a thought in the terminal's own colour, dimmed.
fn is_dimmed_thought(role: TextRole, shade: RowBackground) -> bool {
    match role {
        TextRole::Thinking => true,
        TextRole::Plain
        | TextRole::Muted
        | TextRole::Accent
        | TextRole::Heading
        | TextRole::Code
        | TextRole::Link
        | TextRole::Quote
        | TextRole::Success
        | TextRole::Token(..) => shade == RowBackground::Thinking,
        // Their colours mean something.
        TextRole::Error | TextRole::Warning | TextRole::Added | TextRole::Removed | TextRole::SearchMatch => false,
    }
}

fn brightness((r, g, b): Rgb) -> f32 {
    0.299 * f32::from(r) + 0.587 * f32::from(g) + 0.114 * f32::from(b)
}

fn token_modifier(token: SyntaxToken, saturation: Saturation) -> Modifier {
    let of_token = match token {
        SyntaxToken::Keyword | SyntaxToken::Added => Modifier::BOLD,
        SyntaxToken::Comment => Modifier::DIM,
        SyntaxToken::Type
        | SyntaxToken::Function
        | SyntaxToken::Quoted
        | SyntaxToken::Constant
        | SyntaxToken::Removed => Modifier::empty(),
    };
    match saturation {
        Saturation::Full => of_token,
        Saturation::Muted => of_token | Modifier::DIM,
    }
}

fn rgb((r, g, b): Rgb) -> Color {
    Color::Rgb(r, g, b)
}

fn mixed(from: Rgb, to: Rgb, share: f32) -> Rgb {
    let mix = |from: u8, to: u8| (f32::from(from) + (f32::from(to) - f32::from(from)) * share).round() as u8;
    (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// The nearest of the 216 colours and 24 greys of a 256-colour terminal.
fn nearest((r, g, b): Rgb) -> u8 {
    let level = |value: u8| if value < 48 { 0 } else { (value.saturating_sub(35) / 40).clamp(1, 5) };
    let spread = r.max(g).max(b) - r.min(g).min(b);
    if spread < 12 {
        let grey = u16::from(r) + u16::from(g) + u16::from(b);
        return 232 + u8::try_from((grey / 3).saturating_sub(8) / 10).unwrap_or(23).min(23);
    }
    16 + 36 * level(r) + 6 * level(g) + level(b)
}

fn font_modifier(font: FontStyle) -> Modifier {
    let table = [
        (FontStyle::BOLD, Modifier::BOLD),
        (FontStyle::ITALIC, Modifier::ITALIC),
        (FontStyle::UNDERLINED, Modifier::UNDERLINED),
        (FontStyle::STRUCK, Modifier::CROSSED_OUT),
    ];
    table.into_iter().filter(|(one, _)| font.has(*one)).fold(Modifier::empty(), |all, (_, one)| all | one)
}

fn dark_rgb(role: TextRole) -> Option<Rgb> {
    Some(match role {
        TextRole::Plain => return None,
        TextRole::Muted => (128, 134, 146),
        TextRole::Thinking => (156, 162, 175),
        TextRole::Accent => (125, 174, 247),
        TextRole::Heading => (160, 200, 255),
        TextRole::Code => (206, 176, 130),
        TextRole::Link => (110, 190, 200),
        TextRole::Quote => (150, 160, 140),
        TextRole::Success | TextRole::Added => (126, 192, 120),
        TextRole::Error | TextRole::Removed => (236, 116, 112),
        TextRole::Warning => (226, 182, 92),
        TextRole::SearchMatch => (255, 214, 90),
        TextRole::Token(token, Saturation::Full) => dark_token(token),
        TextRole::Token(token, Saturation::Muted) => mixed(dark_token(token), (156, 162, 175), 0.55),
    })
}

fn dark_token(token: SyntaxToken) -> Rgb {
    match token {
        SyntaxToken::Keyword => (198, 146, 233),
        SyntaxToken::Type => (115, 200, 190),
        SyntaxToken::Function => (130, 175, 255),
        SyntaxToken::Quoted => (158, 200, 122),
        SyntaxToken::Constant => (228, 172, 112),
        SyntaxToken::Comment => (126, 132, 144),
        SyntaxToken::Added => (126, 192, 120),
        SyntaxToken::Removed => (236, 116, 112),
    }
}

fn light_token(token: SyntaxToken) -> Rgb {
    match token {
        SyntaxToken::Keyword => (138, 40, 162),
        SyntaxToken::Type => (0, 108, 112),
        SyntaxToken::Function => (24, 84, 186),
        SyntaxToken::Quoted => (44, 108, 28),
        SyntaxToken::Constant => (152, 78, 0),
        SyntaxToken::Comment => (112, 116, 124),
        SyntaxToken::Added => (22, 118, 32),
        SyntaxToken::Removed => (186, 28, 28),
    }
}

fn light_rgb(role: TextRole) -> Option<Rgb> {
    Some(match role {
        TextRole::Plain => return None,
        TextRole::Muted => (112, 116, 124),
        TextRole::Thinking => (92, 97, 107),
        TextRole::Accent => (28, 96, 190),
        TextRole::Heading => (18, 70, 150),
        TextRole::Code => (130, 76, 0),
        TextRole::Link => (0, 110, 120),
        TextRole::Quote => (84, 100, 72),
        TextRole::Success | TextRole::Added => (22, 118, 32),
        TextRole::Error | TextRole::Removed => (186, 28, 28),
        TextRole::Warning => (146, 96, 0),
        TextRole::SearchMatch => (160, 80, 0),
        TextRole::Token(token, Saturation::Full) => light_token(token),
        TextRole::Token(token, Saturation::Muted) => mixed(light_token(token), (92, 97, 107), 0.55),
    })
}

fn dark_indexed(role: TextRole) -> Option<u8> {
    Some(match role {
        TextRole::Plain => return None,
        TextRole::Muted => 244,
        TextRole::Thinking => 248,
        TextRole::Accent => 111,
        TextRole::Heading => 117,
        TextRole::Code => 180,
        TextRole::Link => 73,
        TextRole::Quote => 108,
        TextRole::Success | TextRole::Added => 114,
        TextRole::Error | TextRole::Removed => 203,
        TextRole::Warning => 179,
        TextRole::SearchMatch => 221,
        TextRole::Token(..) => nearest(dark_rgb(role)?),
    })
}

fn light_indexed(role: TextRole) -> Option<u8> {
    Some(match role {
        TextRole::Plain => return None,
        TextRole::Muted => 243,
        TextRole::Thinking => 241,
        TextRole::Accent => 25,
        TextRole::Heading => 24,
        TextRole::Code => 94,
        TextRole::Link => 30,
        TextRole::Quote => 65,
        TextRole::Success | TextRole::Added => 28,
        TextRole::Error | TextRole::Removed => 124,
        TextRole::Warning => 130,
        TextRole::SearchMatch => 166,
        TextRole::Token(..) => nearest(light_rgb(role)?),
    })
}

/// Avoids blue on black and yellow on white.
fn sixteen(role: TextRole, scheme: ColourScheme) -> Option<Color> {
    let on = |dark: Color, light: Color| match scheme {
        ColourScheme::Dark => dark,
        ColourScheme::Light => light,
    };
    Some(match role {
        // A thought is dimmed.
        TextRole::Plain | TextRole::Thinking => return None,
        TextRole::Muted | TextRole::Quote => Color::DarkGray,
        TextRole::Accent | TextRole::Heading => on(Color::LightBlue, Color::Blue),
        TextRole::Code | TextRole::Warning | TextRole::SearchMatch => on(Color::Yellow, Color::Magenta),
        TextRole::Link => Color::Cyan,
        TextRole::Success | TextRole::Added => Color::Green,
        TextRole::Error | TextRole::Removed => on(Color::LightRed, Color::Red),
        TextRole::Token(_, Saturation::Muted) => Color::DarkGray,
        TextRole::Token(token, Saturation::Full) => match token {
            SyntaxToken::Keyword => on(Color::LightMagenta, Color::Magenta),
            SyntaxToken::Type => Color::Cyan,
            SyntaxToken::Function => on(Color::LightBlue, Color::Blue),
            SyntaxToken::Quoted | SyntaxToken::Added => Color::Green,
            SyntaxToken::Constant => on(Color::Yellow, Color::Red),
            SyntaxToken::Comment => Color::DarkGray,
            SyntaxToken::Removed => on(Color::LightRed, Color::Red),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(colour: Color) -> f32 {
        let Color::Rgb(r, g, b) = colour else { panic!("{colour:?} has no brightness here") };
        brightness((r, g, b))
    }

    #[test]
    fn req_think_007_3_shading_is_lighter_on_dark_and_darker_on_light() {
        for background in [(0, 0, 0), (30, 30, 46), (40, 44, 52)] {
            let theme = Theme::for_background(background, ColourDepth::True);
            assert_eq!(theme.scheme, ColourScheme::Dark);
            let shade = theme.background_colour(RowBackground::Thinking).map(value).unwrap();
            assert!(shade > brightness(background), "{background:?}");
        }
        for background in [(255, 255, 255), (253, 246, 227), (200, 200, 200)] {
            let theme = Theme::for_background(background, ColourDepth::True);
            assert_eq!(theme.scheme, ColourScheme::Light);
            let shade = theme.background_colour(RowBackground::Thinking).map(value).unwrap();
            assert!(shade < brightness(background), "{background:?}");
        }
        let indexed = |scheme| Theme { scheme, depth: ColourDepth::Indexed, ..Theme::default() };
        assert_eq!(indexed(ColourScheme::Dark).background_colour(RowBackground::Thinking), Some(Color::Indexed(235)));
        assert_eq!(indexed(ColourScheme::Light).background_colour(RowBackground::Thinking), Some(Color::Indexed(254)));
    }

    #[test]
    fn t13_with_sixteen_colours_thinking_is_dimmed_and_has_no_background() {
        for scheme in [ColourScheme::Dark, ColourScheme::Light] {
            let theme = Theme { scheme, depth: ColourDepth::Sixteen, ..Theme::default() };
            let answer = theme.style(TextRole::Plain, FontStyle::PLAIN, RowBackground::None);
            assert_eq!(answer, Style::new(), "the answer has the terminal's own colour");
            for role in [TextRole::Thinking, TextRole::Plain, TextRole::Heading, TextRole::Code, TextRole::Link] {
                let thinking = theme.style(role, FontStyle::PLAIN, RowBackground::Thinking);
                assert_eq!(thinking, Style::new().add_modifier(Modifier::DIM), "{role:?} {scheme:?}");
            }
            assert_eq!(theme.background_colour(RowBackground::Thinking), None, "{scheme:?}");
            let found = theme.style(TextRole::SearchMatch, FontStyle::PLAIN, RowBackground::Thinking);
            assert!(found.fg.is_some(), "{scheme:?}");
        }
    }

    #[test]
    fn t13_without_colour_thinking_is_still_distinguishable() {
        let theme = Theme { depth: ColourDepth::None, ..Theme::default() };
        let every = [
            TextRole::Plain,
            TextRole::Muted,
            TextRole::Thinking,
            TextRole::Error,
            TextRole::Added,
            TextRole::SearchMatch,
            TextRole::Heading,
        ];
        for role in every {
            for shade in [
                RowBackground::None,
                RowBackground::Thinking,
                RowBackground::User,
                RowBackground::Code,
                RowBackground::Selected,
            ] {
                let style = theme.style(role, FontStyle::PLAIN, shade);
                assert_eq!((style.fg, style.bg), (None, None), "{role:?} {shade:?}");
            }
        }
        let thinking = theme.style(TextRole::Thinking, FontStyle::ITALIC, RowBackground::Thinking);
        assert_eq!(thinking.add_modifier, Modifier::DIM | Modifier::ITALIC);
    }
}
