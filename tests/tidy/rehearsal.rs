//! The rehearsal of a deployment has passed for the templates as they are.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Record of the last rehearsal that passed: the digest of its templates. `infra/deploy/rehearse` writes it.
const RECORD: &str = "infra/deploy/rehearsed";

/// The templates of a deployment: template.yaml and those in `infra`, in the order of their names.
fn templates(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("infra")).unwrap().map(|entry| entry.unwrap().path());
    let mut nested: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    nested.sort();
    [vec![root.join("template.yaml")], nested].concat()
}

/// The digest of the templates' lines. Comments, descriptions and empty lines deploy nothing, so they do not count. Nor
/// do routes: they are all deployed in one way.
fn digest(root: &Path) -> String {
    let mut digest = Sha256::new();
    for path in templates(root) {
        let text = fs::read_to_string(&path).unwrap();
        let counts = |line: &&str| {
            let begin = line.trim_start();
            let is_silent = begin.is_empty() || begin.starts_with('#') || begin.starts_with("Description: ");
            !is_silent && !line.contains("{ Type: HttpApi, ")
        };
        for line in text.lines().filter(counts) {
            digest.update(line.trim_end());
            digest.update("\n");
        }
    }
    hex::encode(digest.finalize())
}

#[test]
fn the_templates_are_those_of_the_last_rehearsal_that_passed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let rehearsed = fs::read_to_string(root.join(RECORD)).unwrap_or_default();
    assert_eq!(
        rehearsed.trim(),
        digest(root),
        "a template has changed since the last rehearsal that passed: run `infra/deploy/rehearse --debug` (some minutes), \
         and commit {RECORD}"
    );
}
