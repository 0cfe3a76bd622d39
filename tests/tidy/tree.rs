//! Rules of the source tree: routes and template agree, dependencies point one way, files stay small, time has one
//! source.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use compare::assert_same;
use domain::mode::Mode;
use edge::routes::{Access, ROUTES, Route};

use crate::sandbox;
use crate::tidy::template::{arrives_unrouted, functions, is_head_of_page, route_keys, template};

const TEMPLATE: &str = include_str!("../../template.yaml");
/// Most lines of a file before its tests.
const MAX_LINES: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below these folders, with paths relative to the root.
pub(super) fn rust_files(folders: &[&str]) -> Vec<(String, String)> {
    let mut waiting: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut files = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            files.push((name, read(&path)));
        }
    }
    assert!(!files.is_empty());
    files
}

/// The file's lines above its unit tests.
pub(super) fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"))
}

/// Each route of the template, as `GET /v1/ping`.
fn routes_of_template() -> Vec<String> {
    let mut routes: Vec<String> = functions(&template()).values().flat_map(route_keys).collect();
    routes.retain(|route| route != "$default");
    routes
}

/// The crates that a manifest's `[dependencies]` name.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = read(manifest);
    let section = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'));
    names.map(str::to_owned).collect()
}

/// Names of the folders in a folder.
fn crates_in(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.join("Cargo.toml").exists())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn the_examples_of_a_read_and_a_write_are_the_code() {
    let page = read(&root().join("ARCHITECTURE.md"));
    let examples: Vec<&str> = page.split("```rust\n").skip(1).map(|rest| rest.split_once("\n```").unwrap().0).collect();
    let files = ["functions/crm-contacts/src/read.rs", "functions/crm-contacts/src/update.rs"];
    assert_eq!(examples.len(), files.len());
    for (example, file) in examples.iter().zip(files) {
        assert!(
            read(&root().join(file)).contains(example),
            "ARCHITECTURE.md, \"How a route works\", and {file} differ"
        );
    }
}

#[test]
fn the_template_and_the_route_table_name_the_same_routes() {
    let table: BTreeSet<String> = ROUTES.iter().map(Route::to_string).collect();
    assert_eq!(table.len(), ROUTES.len(), "a route is twice in ROUTES of lib/edge/src/routes.rs");
    let routed = ROUTES.iter().filter(|route| !arrives_unrouted(route)).map(Route::to_string);
    assert_same(
        "the events of the function in template.yaml, or ROUTES in lib/edge/src/routes.rs",
        routes_of_template().into_iter().filter(|key| !is_head_of_page(key)).collect::<BTreeSet<_>>(),
        routed,
    );
}

#[test]
fn every_route_is_described_with_who_may_call_it_and_the_reverse() {
    let document = docs::document::document(Mode::Test);
    let mut described = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let route = format!("{} {path}", method.to_uppercase());
            if operation["security"].as_array().unwrap().is_empty() {
                open.insert(route.clone());
            }
            described.insert(route);
        }
    }
    // Assistants learn of their route by its own protocol, and people by a page of the reference.
    let in_document = ROUTES.iter().filter(|route| route.access != Access::Assistant);
    assert_same("functions/docs/src/document/operations, in the file of the credential", described, in_document);
    let public = ROUTES.iter().filter(|route| route.access == Access::Public);
    assert_same("the access of the route in ROUTES of lib/edge/src/routes.rs", open, public);
}

#[tokio::test]
async fn every_route_but_the_public_ones_is_refused_without_a_key_or_session() {
    // A sandbox has all routes.
    let world = sandbox::start(Mode::Test).await;
    world.coach("ada").await;
    for route in ROUTES.iter().filter(|route| route.access != Access::Public) {
        let method = route.method;
        let path = route.path.replace(['{', '}'], "");
        for caller in [
            world.anonymous(),
            world.anonymous().with_bearer("nonsense"),
            world.anonymous().with("x-api-key", "nonsense"),
        ] {
            let reply = caller.call(method, &path).await;
            assert_eq!(reply.status, 401, "{method} {path}: {}", reply.text);
        }
    }
}

#[test]
fn every_function_of_the_template_is_a_folder_and_the_reverse() {
    let binaries: BTreeSet<String> = TEMPLATE
        .lines()
        .filter_map(|line| line.split("Binary: ").nth(1))
        .map(|rest| rest.trim_end_matches([' ', '}']).to_owned())
        .collect();
    assert_same(
        "the functions of template.yaml (`Binary`), or the folders of functions",
        binaries,
        crates_in("functions"),
    );
}

#[test]
fn the_guide_to_the_feed_names_every_fact_and_change() {
    let guide = read(&root().join("infra/guides/feed.md"));
    for file in ["lib/domain/src/fact.rs", "lib/domain/src/fact/history.rs", "lib/domain/src/change.rs"] {
        let text = read(&root().join(file));
        let literals = code(&text).flat_map(|line| line.split('"').skip(1).step_by(2));
        let names: BTreeSet<&str> = literals.filter(|literal| is_name_of_fact(literal)).collect();
        assert!(names.len() > 5, "{file}: {names:?}");
        for name in names {
            assert!(guide.contains(&format!("`{name}`")), "infra/guides/feed.md does not describe `{name}` of {file}");
        }
    }
}

/// A name of the form `noun.happened`.
fn is_name_of_fact(text: &str) -> bool {
    let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    text.split_once('.').is_some_and(|(noun, happened)| word(noun) && word(happened))
}

#[test]
fn documents_of_the_tree_link_to_files_that_exist() {
    let mut links = 0;
    for document in ["README.md", "ARCHITECTURE.md"] {
        let text = read(&root().join(document));
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let path = link.split('#').next().unwrap();
            assert!(!path.starts_with("/docs/"), "{document}: {link} depends on a stack that serves it");
            if !path.is_empty() && !path.starts_with("https://") {
                assert!(root().join(path).exists(), "{document}: {link}");
                links += 1;
            }
        }
    }
    assert!(links > 5, "{links}");
}

#[test]
fn production_never_sends_webhooks_to_itself() {
    assert!(!TEMPLATE.contains("ALLOW_LOOPBACK_RECEIVERS"));
}

#[test]
fn dependencies_point_one_way() {
    let functions = crates_in("functions");
    let ours: BTreeSet<String> = crates_in("lib").into_iter().chain(functions.clone()).collect();
    let may_use = |name: &str| -> &[&str] {
        match name {
            "domain" | "runtime" => &[],
            "store" => &["domain", "runtime"],
            "outbound" => &["domain", "runtime", "store"],
            "facts" => &["domain", "runtime", "store", "outbound"],
            "evaluation" => &["domain", "runtime", "store"],
            "edge" => &["domain", "runtime", "store"],
            "webhook" => &["domain", "runtime"],
            "operate" => &["domain", "runtime", "store", "outbound"],
            function if functions.contains(function) => {
                &["domain", "runtime", "store", "outbound", "facts", "evaluation", "webhook", "edge"]
            }
            other => panic!("lib/{other} has no place among the layers: add what it may use here"),
        }
    };
    let operators = BTreeSet::from(["operate".to_owned()]);
    for (folder, names) in [("lib", crates_in("lib")), ("functions", functions.clone()), ("infra", operators)] {
        for name in names {
            let used = dependencies(&root().join(folder).join(&name).join("Cargo.toml"));
            assert!(!used.is_empty(), "{name}");
            for other in used.iter().filter(|other| ours.contains(*other)) {
                assert!(
                    may_use(&name).contains(&other.as_str()),
                    "{folder}/{name} depends on {other}: it may depend on {:?}, see \"Code map\" in ARCHITECTURE.md",
                    may_use(&name)
                );
            }
            assert!(used.iter().all(|other| !other.starts_with("local")), "{name} knows of the local stack");
            assert!(used.iter().all(|other| other != "operate"), "{name} knows of the operators' command");
        }
    }
}

#[test]
fn crates_with_unit_tests_run_them() {
    for folder in ["lib", "functions", "infra", "infra/local"] {
        for name in crates_in(folder) {
            let path = format!("{folder}/{name}");
            let manifest = read(&root().join(&path).join("Cargo.toml"));
            let library = manifest.split("\n[lib]\n").nth(1).unwrap_or_default().split("\n[").next().unwrap();
            let has_tests =
                rust_files(&[&format!("{path}/src")]).iter().any(|(_, text)| text.contains("\n#[cfg(test)]\n"));
            let runs_them = !library.lines().any(|line| line == "test = false");
            assert_eq!(
                runs_them, has_tests,
                "`test = false` below [lib] in {path}/Cargo.toml: only without unit tests"
            );
        }
    }
}

#[test]
fn the_domain_is_pure() {
    let used = dependencies(&root().join("lib/domain/Cargo.toml"));
    for outside in ["aws", "tokio", "http", "hyper", "axum", "lambda", "tower", "getrandom", "rand"] {
        assert!(used.iter().all(|name| !name.starts_with(outside)), "{outside} in {used:?}");
    }
}

#[test]
fn files_are_small_and_say_what_they_are() {
    for (name, text) in rust_files(&["lib", "functions", "infra", "tests"]) {
        let lines = code(&text).count();
        assert!(
            lines <= MAX_LINES,
            "{name} has {lines} lines before its tests, {MAX_LINES} are allowed: move one of its ideas to a module of its \
             own, {}/<idea>.rs",
            name.trim_end_matches(".rs")
        );
        assert!(
            text.starts_with("//! "),
            "{name} has no header: begin with `//! ` and a sentence on what the module is"
        );
    }
}

#[test]
fn time_and_environment_are_read_in_one_place_each() {
    let places = ["lib/runtime/src/clock.rs", "lib/runtime/src/config.rs"];
    for (name, text) in rust_files(&["lib", "functions"]) {
        for read in ["Utc::now(", "SystemTime::now(", "env::var(", "env::vars(", "env::var_os("] {
            let found = code(&text).any(|line| line.contains(read) && !line.trim_start().starts_with("//"));
            assert!(
                !found || places.contains(&name.as_str()),
                "{name} calls {read}): take the time or value as an argument; only {places:?} read it"
            );
        }
    }
}

#[test]
fn no_code_is_unfinished_and_no_test_sleeps() {
    let unfinished = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("#[", "ignore"),
    ];
    for (name, text) in rust_files(&["lib", "functions", "infra", "tests"]) {
        for mark in unfinished {
            assert!(!text.contains(mark), "{name} holds {mark}");
        }
        let sleep = concat!("sle", "ep(");
        let in_tests =
            text.lines().skip_while(|line| !line.starts_with("#[cfg(test)]")).any(|line| line.contains(sleep));
        // A test with a paused clock takes no time.
        let sleeps =
            in_tests && !text.contains("(start_paused = true)") || name.starts_with("tests/") && text.contains(sleep);
        assert!(!sleeps, "a test in {name} sleeps: use `until` of tests/world.rs, or move the clock");
    }
}
