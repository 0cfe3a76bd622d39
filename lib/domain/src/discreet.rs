//! `Debug` for types whose content must not be logged: names, notes, addresses, answers, secrets.

/// Implements `Debug` for these types as their name alone.
#[macro_export]
macro_rules! discreet {
    ($($name:ident)*) => {$(
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    struct Note {
        _text: &'static str,
    }
    discreet! { Note }

    #[test]
    fn a_discreet_type_shows_only_its_name() {
        assert_eq!(format!("{:?}", Some(Note { _text: "gwendolyn" })), "Some(Note(..))");
    }
}
