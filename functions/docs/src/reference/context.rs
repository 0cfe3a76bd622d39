//! The source of all pages of the reference.

use crate::document::Document;
use crate::document::schema::Schemas;

/// Everything that a page is rendered from.
#[derive(Clone, Copy)]
pub(super) struct Context<'d> {
    pub(super) document: &'d Document,
    pub(super) schemas: &'d Schemas,
    /// The address of the API.
    pub(super) base: &'d str,
}
