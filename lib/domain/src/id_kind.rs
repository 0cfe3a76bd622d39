//! The kinds of records that an id in a path names.

use crate::id::{ClientId, DeliveryId, EndpointId, KeyId, parse_uuid};

/// A kind of record that an id in a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdKind {
    Client,
    Contact,
    Opportunity,
    Booking,
    Key,
    Endpoint,
    Delivery,
    /// The token of a login link, which names a link and is its credential.
    LoginToken,
}

impl IdKind {
    pub const ALL: [Self; 8] = [
        Self::Client,
        Self::Contact,
        Self::Opportunity,
        Self::Booking,
        Self::Key,
        Self::Endpoint,
        Self::Delivery,
        Self::LoginToken,
    ];

    /// The name of such a record in refusals.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Contact => "contact",
            Self::Opportunity => "opportunity",
            Self::Booking => "booking",
            Self::Key => "key",
            Self::Endpoint => "webhook endpoint",
            Self::Delivery => "delivery",
            Self::LoginToken => "login link",
        }
    }

    /// An id for examples.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Client => "client_019a9f0c6d5e7b3c8f1a2b3c4d5e6f70",
            Self::Contact => "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f74",
            Self::Opportunity => "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f75",
            Self::Booking => "019a9f0c-6d5e-7b3c-8f1a-2b3c4d5e6f77",
            Self::Key => "key_6f1ed002ab5595859014ebf0951522d9",
            Self::Endpoint => "we_019a9f0c6d5e7b3c8f1a2b3c4d5e6f71",
            Self::Delivery => "dlv_019a9f0c6d5e8b3c8f1a2b3c4d5e6f73",
            Self::LoginToken => "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA",
        }
    }

    /// Returns the id of a path as it is stored; `None` if it has not the form of an id, or is a secret.
    pub fn parse(self, text: &str) -> Option<String> {
        match self {
            Self::Contact | Self::Opportunity | Self::Booking => parse_uuid(text).ok().map(|id| id.to_string()),
            Self::Client => ClientId::parse(text).ok().map(|id| id.to_string()),
            Self::Key => KeyId::parse_whole(text).ok().map(|id| id.to_string()),
            Self::Endpoint => EndpointId::parse_whole(text).ok().map(|id| id.to_string()),
            Self::Delivery => DeliveryId::parse_whole(text).ok().map(|id| id.to_string()),
            Self::LoginToken => None,
        }
    }

    /// Returns true if such ids are UUIDs. A path with another id is 400. Other ids have no form that callers learn: a
    /// path with an impossible one is 404, like an unknown one.
    pub const fn is_uuid(self) -> bool {
        matches!(self, Self::Contact | Self::Opportunity | Self::Booking)
    }
}
