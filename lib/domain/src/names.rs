//! Enums with a name for each value, in requests, answers and stored records.

/// Defines enums whose values serde reads and writes by name.
#[macro_export]
macro_rules! named {
    ($($(#[$meta:meta])* $enum:ident { $($(#[$doc:meta])* $value:ident = $name:tt,)+ })+) => {$(
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize,
            ::utoipa::ToSchema,
        )]
        pub enum $enum {
            $($(#[$doc])* #[serde(rename = $name)] $value,)+
        }

        impl $enum {
            /// All values, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns the value's name.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }

            /// Parses a name, or returns the rule that the text breaks.
            pub fn parse(text: &str) -> Result<Self, String> {
                let rule = || $crate::names::one_of(&Self::ALL.map(Self::as_str));
                Self::ALL.into_iter().find(|value| value.as_str() == text).ok_or_else(rule)
            }
        }
    )+};
}

/// Returns the rule `must be a, b or c`, which completes a sentence that begins with a field's name.
pub fn one_of(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("must be {} or {last}", others.join(", ")),
        _ => format!("must be {}", names.concat()),
    }
}

#[cfg(test)]
mod tests {
    use crate::api_key::{Permission, Scope};
    use crate::pipeline::StageKind;

    #[test]
    fn a_value_is_read_and_written_by_its_name() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.as_str()), Ok(permission));
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.as_str());
            assert_eq!(serde_json::from_value::<Permission>(permission.as_str().into()).unwrap(), permission);
        }
        assert_eq!(Permission::ContactsRead.as_str(), "contacts.read");
        assert_eq!(Scope::parse("CRM").unwrap_err(), "must be partner or crm");
        assert_eq!(StageKind::parse("").unwrap_err(), "must be open, won or lost");
    }
}
