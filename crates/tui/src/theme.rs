//! What ink and shade look like. The only place that knows a colour.

use ratatui::style::{Color, Modifier, Style};

use crate::text::{Face, Ink, Shade, Token, Tone};

/// Whether the terminal is dark or light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ground {
    #[default]
    Dark,
    Light,
}

/// How many colours it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    #[default]
    True,
    Indexed,
    Sixteen,
    /// `NO_COLOR`: only bold, italic, dim and the like.
    None,
}

/// Whether things may move by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Motion {
    #[default]
    Spinner,
    /// For screen readers and slow lines: nothing changes unless something happened.
    Still,
}

type Rgb = (u8, u8, u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    pub ground: Ground,
    pub depth: Depth,
    pub motion: Motion,
    /// The background the terminal told, so that shades fit it.
    pub background: Option<Rgb>,
}

impl Theme {
    /// A background as the terminal tells it, and whether that is dark or light.
    pub fn on(background: Rgb, depth: Depth) -> Theme {
        let ground = if brightness(background) < 128.0 { Ground::Dark } else { Ground::Light };
        Theme { ground, depth, background: Some(background), motion: Motion::Spinner }
    }

    pub fn style(&self, ink: Ink, face: Face, shade: Shade) -> Style {
        let ink = self.on_shade(ink, shade);
        let mut style = Style::new();
        if let Some(colour) = self.colour(ink, shade) {
            style = style.fg(colour);
        }
        if let Some(colour) = self.back(shade) {
            style = style.bg(colour);
        }
        let mut modifier = face_modifier(face);
        if shade == Shade::Picked && matches!(self.depth, Depth::None | Depth::Sixteen) {
            modifier |= Modifier::REVERSED;
        }
        // Where no colour can say it, the letters do.
        if self.depth == Depth::None {
            match ink {
                Ink::Muted | Ink::Thought | Ink::Quote => modifier |= Modifier::DIM,
                Ink::Heading | Ink::Bad | Ink::Warn | Ink::Added => modifier |= Modifier::BOLD,
                Ink::Found => modifier |= Modifier::REVERSED,
                Ink::Token(token, tone) => modifier |= token_modifier(token, tone),
                Ink::Plain | Ink::Accent | Ink::Code | Ink::Link | Ink::Good | Ink::Removed => (),
            }
        }
        style.add_modifier(modifier)
    }

    /// Where no shade can say that a line is new or gone, its letters do.
    fn on_shade(&self, ink: Ink, shade: Shade) -> Ink {
        let has_shade = matches!(self.depth, Depth::True | Depth::Indexed);
        match (ink, shade) {
            (Ink::Plain | Ink::Token(..), Shade::Added) if !has_shade => Ink::Added,
            (Ink::Plain | Ink::Token(..), Shade::Removed) if !has_shade => Ink::Removed,
            (ink, _) => ink,
        }
    }

    /// The colour behind a row, alone.
    pub fn back(&self, shade: Shade) -> Option<Color> {
        let steps = match shade {
            Shade::None => return None,
            Shade::Thought => 1.0,
            Shade::Code => 0.7,
            Shade::User => 1.5,
            Shade::Picked => 3.0,
            Shade::Added | Shade::Removed => return self.changed(shade),
        };
        match (self.depth, self.ground) {
            (Depth::None, _) => None,
            (Depth::True, _) => Some(self.shaded(steps)),
            (Depth::Indexed, Ground::Dark) => Some(Color::Indexed(match shade {
                Shade::None | Shade::Code | Shade::Added | Shade::Removed => 234,
                Shade::Thought => 235,
                Shade::User => 236,
                Shade::Picked => 238,
            })),
            (Depth::Indexed, Ground::Light) => Some(Color::Indexed(match shade {
                Shade::None | Shade::Code | Shade::Added | Shade::Removed => 255,
                Shade::Thought => 254,
                Shade::User => 253,
                Shade::Picked => 251,
            })),
            (Depth::Sixteen, Ground::Dark) => (shade == Shade::Thought).then_some(Color::DarkGray),
            (Depth::Sixteen, Ground::Light) => (shade == Shade::Thought).then_some(Color::Gray),
        }
    }

    /// A little green, or a little red.
    fn changed(&self, shade: Shade) -> Option<Color> {
        let is_new = shade == Shade::Added;
        match (self.depth, self.ground) {
            (Depth::None | Depth::Sixteen, _) => None,
            (Depth::True, Ground::Dark) => {
                let (r, g, b) = self.ground_colour();
                let tint = if is_new { (90, 200, 90) } else { (240, 90, 90) };
                Some(rgb(mixed((r, g, b), tint, 0.16)))
            }
            (Depth::True, Ground::Light) => {
                let tint = if is_new { (40, 180, 60) } else { (230, 60, 60) };
                Some(rgb(mixed(self.ground_colour(), tint, 0.14)))
            }
            (Depth::Indexed, Ground::Dark) => Some(Color::Indexed(if is_new { 22 } else { 52 })),
            (Depth::Indexed, Ground::Light) => Some(Color::Indexed(if is_new { 194 } else { 224 })),
        }
    }

    fn ground_colour(&self) -> Rgb {
        self.background.unwrap_or(match self.ground {
            Ground::Dark => (16, 17, 20),
            Ground::Light => (255, 255, 255),
        })
    }

    /// Lighter than a dark ground, darker than a light one.
    fn shaded(&self, steps: f32) -> Color {
        let towards = match self.ground {
            Ground::Dark => (255, 255, 255),
            Ground::Light => (0, 0, 0),
        };
        rgb(mixed(self.ground_colour(), towards, 0.07 * steps))
    }

    fn colour(&self, ink: Ink, shade: Shade) -> Option<Color> {
        let dark = self.ground == Ground::Dark;
        match self.depth {
            Depth::None => None,
            Depth::True => {
                let (r, g, b) = if dark { dark_rgb(ink)? } else { light_rgb(ink)? };
                Some(Color::Rgb(r, g, b))
            }
            Depth::Indexed => Some(Color::Indexed(if dark { dark_indexed(ink)? } else { light_indexed(ink)? })),
            // Grey on grey would be nothing at all.
            Depth::Sixteen if shade == Shade::Thought => Some(if dark { Color::White } else { Color::Black }),
            Depth::Sixteen => sixteen(ink, self.ground),
        }
    }
}

fn brightness((r, g, b): Rgb) -> f32 {
    0.299 * f32::from(r) + 0.587 * f32::from(g) + 0.114 * f32::from(b)
}

fn token_modifier(token: Token, tone: Tone) -> Modifier {
    let of_token = match token {
        Token::Keyword | Token::Added => Modifier::BOLD,
        Token::Comment => Modifier::DIM,
        Token::Type | Token::Function | Token::Quoted | Token::Constant | Token::Removed => Modifier::empty(),
    };
    match tone {
        Tone::Full => of_token,
        Tone::Muted => of_token | Modifier::DIM,
    }
}

fn rgb((r, g, b): Rgb) -> Color {
    Color::Rgb(r, g, b)
}

fn mixed(from: Rgb, to: Rgb, share: f32) -> Rgb {
    let mix = |from: u8, to: u8| (f32::from(from) + (f32::from(to) - f32::from(from)) * share).round() as u8;
    (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// The nearest of the 216 colours and 24 greys that such terminals share.
fn nearest((r, g, b): Rgb) -> u8 {
    let level = |value: u8| if value < 48 { 0 } else { (value.saturating_sub(35) / 40).clamp(1, 5) };
    let spread = r.max(g).max(b) - r.min(g).min(b);
    if spread < 12 {
        let grey = u16::from(r) + u16::from(g) + u16::from(b);
        return 232 + u8::try_from((grey / 3).saturating_sub(8) / 10).unwrap_or(23).min(23);
    }
    16 + 36 * level(r) + 6 * level(g) + level(b)
}

fn face_modifier(face: Face) -> Modifier {
    let table = [
        (Face::BOLD, Modifier::BOLD),
        (Face::ITALIC, Modifier::ITALIC),
        (Face::UNDERLINED, Modifier::UNDERLINED),
        (Face::STRUCK, Modifier::CROSSED_OUT),
    ];
    table.into_iter().filter(|(one, _)| face.has(*one)).fold(Modifier::empty(), |all, (_, one)| all | one)
}

fn dark_rgb(ink: Ink) -> Option<Rgb> {
    Some(match ink {
        Ink::Plain => return None,
        Ink::Muted => (128, 134, 146),
        Ink::Thought => (156, 162, 175),
        Ink::Accent => (125, 174, 247),
        Ink::Heading => (160, 200, 255),
        Ink::Code => (206, 176, 130),
        Ink::Link => (110, 190, 200),
        Ink::Quote => (150, 160, 140),
        Ink::Good | Ink::Added => (126, 192, 120),
        Ink::Bad | Ink::Removed => (236, 116, 112),
        Ink::Warn => (226, 182, 92),
        Ink::Found => (255, 214, 90),
        Ink::Token(token, Tone::Full) => dark_token(token),
        Ink::Token(token, Tone::Muted) => mixed(dark_token(token), (156, 162, 175), 0.55),
    })
}

fn dark_token(token: Token) -> Rgb {
    match token {
        Token::Keyword => (198, 146, 233),
        Token::Type => (115, 200, 190),
        Token::Function => (130, 175, 255),
        Token::Quoted => (158, 200, 122),
        Token::Constant => (228, 172, 112),
        Token::Comment => (126, 132, 144),
        Token::Added => (126, 192, 120),
        Token::Removed => (236, 116, 112),
    }
}

fn light_token(token: Token) -> Rgb {
    match token {
        Token::Keyword => (138, 40, 162),
        Token::Type => (0, 108, 112),
        Token::Function => (24, 84, 186),
        Token::Quoted => (44, 108, 28),
        Token::Constant => (152, 78, 0),
        Token::Comment => (112, 116, 124),
        Token::Added => (22, 118, 32),
        Token::Removed => (186, 28, 28),
    }
}

fn light_rgb(ink: Ink) -> Option<Rgb> {
    Some(match ink {
        Ink::Plain => return None,
        Ink::Muted => (112, 116, 124),
        Ink::Thought => (92, 97, 107),
        Ink::Accent => (28, 96, 190),
        Ink::Heading => (18, 70, 150),
        Ink::Code => (130, 76, 0),
        Ink::Link => (0, 110, 120),
        Ink::Quote => (84, 100, 72),
        Ink::Good | Ink::Added => (22, 118, 32),
        Ink::Bad | Ink::Removed => (186, 28, 28),
        Ink::Warn => (146, 96, 0),
        Ink::Found => (160, 80, 0),
        Ink::Token(token, Tone::Full) => light_token(token),
        Ink::Token(token, Tone::Muted) => mixed(light_token(token), (92, 97, 107), 0.55),
    })
}

fn dark_indexed(ink: Ink) -> Option<u8> {
    Some(match ink {
        Ink::Plain => return None,
        Ink::Muted => 244,
        Ink::Thought => 248,
        Ink::Accent => 111,
        Ink::Heading => 117,
        Ink::Code => 180,
        Ink::Link => 73,
        Ink::Quote => 108,
        Ink::Good | Ink::Added => 114,
        Ink::Bad | Ink::Removed => 203,
        Ink::Warn => 179,
        Ink::Found => 221,
        Ink::Token(..) => nearest(dark_rgb(ink)?),
    })
}

fn light_indexed(ink: Ink) -> Option<u8> {
    Some(match ink {
        Ink::Plain => return None,
        Ink::Muted => 243,
        Ink::Thought => 241,
        Ink::Accent => 25,
        Ink::Heading => 24,
        Ink::Code => 94,
        Ink::Link => 30,
        Ink::Quote => 65,
        Ink::Good | Ink::Added => 28,
        Ink::Bad | Ink::Removed => 124,
        Ink::Warn => 130,
        Ink::Found => 166,
        Ink::Token(..) => nearest(light_rgb(ink)?),
    })
}

/// Blue is hard to read on black, and yellow on white.
fn sixteen(ink: Ink, ground: Ground) -> Option<Color> {
    let on = |dark: Color, light: Color| match ground {
        Ground::Dark => dark,
        Ground::Light => light,
    };
    Some(match ink {
        Ink::Plain => return None,
        Ink::Muted | Ink::Thought | Ink::Quote => Color::DarkGray,
        Ink::Accent | Ink::Heading => on(Color::LightBlue, Color::Blue),
        Ink::Code | Ink::Warn | Ink::Found => on(Color::Yellow, Color::Magenta),
        Ink::Link => Color::Cyan,
        Ink::Good | Ink::Added => Color::Green,
        Ink::Bad | Ink::Removed => on(Color::LightRed, Color::Red),
        Ink::Token(_, Tone::Muted) => Color::DarkGray,
        Ink::Token(token, Tone::Full) => match token {
            Token::Keyword => on(Color::LightMagenta, Color::Magenta),
            Token::Type => Color::Cyan,
            Token::Function => on(Color::LightBlue, Color::Blue),
            Token::Quoted | Token::Added => Color::Green,
            Token::Constant => on(Color::Yellow, Color::Red),
            Token::Comment => Color::DarkGray,
            Token::Removed => on(Color::LightRed, Color::Red),
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
            let theme = Theme::on(background, Depth::True);
            assert_eq!(theme.ground, Ground::Dark);
            let shade = theme.back(Shade::Thought).map(value).unwrap();
            assert!(shade > brightness(background), "{background:?}");
        }
        for background in [(255, 255, 255), (253, 246, 227), (200, 200, 200)] {
            let theme = Theme::on(background, Depth::True);
            assert_eq!(theme.ground, Ground::Light);
            let shade = theme.back(Shade::Thought).map(value).unwrap();
            assert!(shade < brightness(background), "{background:?}");
        }
        let indexed = |ground| Theme { ground, depth: Depth::Indexed, ..Theme::default() };
        assert_eq!(indexed(Ground::Dark).back(Shade::Thought), Some(Color::Indexed(235)));
        assert_eq!(indexed(Ground::Light).back(Shade::Thought), Some(Color::Indexed(254)));
    }

    #[test]
    fn t13_without_colour_there_is_none_and_a_thought_is_still_told_apart() {
        let theme = Theme { depth: Depth::None, ..Theme::default() };
        let every = [Ink::Plain, Ink::Muted, Ink::Thought, Ink::Bad, Ink::Added, Ink::Found, Ink::Heading];
        for ink in every {
            for shade in [Shade::None, Shade::Thought, Shade::User, Shade::Code, Shade::Picked] {
                let style = theme.style(ink, Face::PLAIN, shade);
                assert_eq!((style.fg, style.bg), (None, None), "{ink:?} {shade:?}");
            }
        }
        let thought = theme.style(Ink::Thought, Face::ITALIC, Shade::Thought);
        assert_eq!(thought.add_modifier, Modifier::DIM | Modifier::ITALIC);
    }
}
