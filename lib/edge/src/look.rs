//! The look that the documentation and the portal share: a style sheet of tokens and parts, and a file of icons.

/// Style sheet: the tokens, then the parts. The page's own style sheet follows it.
pub const STYLE: &str = concat!(include_str!("look/tokens.css"), include_str!("look/parts.css"));

/// Icons as symbols of one SVG file. `<use href="…#key">` shows the one with that name.
pub const ICONS: &str = include_str!("look/icons.svg");

/// Media type of [`ICONS`].
pub const SVG: &str = "image/svg+xml";
