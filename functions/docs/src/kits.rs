//! The kits: files in `kits` that integrators download. `tests/verification` and `tests/kits` run the same files.

use edge::Resource;

use crate::site::KITS;
use crate::viewer::FILE_POLICY;

/// Creates the kits, by path.
pub(crate) fn resources() -> impl Iterator<Item = (String, Resource)> {
    KITS.iter().map(|kit| (kit.path(), Resource::new(|| kit.text, kit.media_type, FILE_POLICY)))
}
