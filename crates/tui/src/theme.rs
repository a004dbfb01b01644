//! What ink and shade look like. The only place that knows a colour.

use ratatui::style::{Color, Modifier, Style};

use crate::text::{Face, Ink, Shade};

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
                Ink::Plain | Ink::Accent | Ink::Code | Ink::Link | Ink::Good | Ink::Removed => (),
            }
        }
        style.add_modifier(modifier)
    }

    /// The colour behind a row, alone.
    pub fn back(&self, shade: Shade) -> Option<Color> {
        let steps = match shade {
            Shade::None => return None,
            Shade::Thought => 1.0,
            Shade::Code => 0.7,
            Shade::User => 1.5,
            Shade::Picked => 3.0,
        };
        match (self.depth, self.ground) {
            (Depth::None, _) => None,
            (Depth::True, _) => Some(self.shaded(steps)),
            (Depth::Indexed, Ground::Dark) => Some(Color::Indexed(match shade {
                Shade::None | Shade::Code => 234,
                Shade::Thought => 235,
                Shade::User => 236,
                Shade::Picked => 238,
            })),
            (Depth::Indexed, Ground::Light) => Some(Color::Indexed(match shade {
                Shade::None | Shade::Code => 255,
                Shade::Thought => 254,
                Shade::User => 253,
                Shade::Picked => 251,
            })),
            (Depth::Sixteen, Ground::Dark) => (shade == Shade::Thought).then_some(Color::DarkGray),
            (Depth::Sixteen, Ground::Light) => (shade == Shade::Thought).then_some(Color::Gray),
        }
    }

    /// Lighter than a dark ground, darker than a light one.
    fn shaded(&self, steps: f32) -> Color {
        let (r, g, b) = self.background.unwrap_or(match self.ground {
            Ground::Dark => (16, 17, 20),
            Ground::Light => (255, 255, 255),
        });
        let towards: f32 = match self.ground {
            Ground::Dark => 255.0,
            Ground::Light => 0.0,
        };
        let share = 0.07 * steps;
        let mix = |from: u8| (f32::from(from) + (towards - f32::from(from)) * share).round() as u8;
        Color::Rgb(mix(r), mix(g), mix(b))
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
    })
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
