//! The payload mode of an endpoint or a key.

crate::named! {
    /// How much personal data an endpoint gets. Fixed at creation.
    PayloadMode {
        /// Ids, figures, dates, automation context.
        Identifiers = "identifiers",
        /// Also name, e-mail address, phone number and external id, and the names of opportunities.
        ContactDetails = "contact_details",
    }
}
