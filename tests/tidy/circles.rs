//! No circle of files or folders: in a crate, none uses one that uses it, directly or through others.
//!
//! A file uses another if its code above the unit tests names an item that the other defines: by an import, or by a
//! path that begins at `crate`, `super`, `self`, a child module or an imported name. A name that a `use` passes on
//! belongs to the file that defines it. A parent is the face of its children: to declare a child, or to pass its items
//! on with `pub use`, is no use. A parent whose own code uses a child must define nothing that the child uses. Calls of
//! methods are not seen, and a macro counts as an item of the crate's root.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use regex_lite::Regex;

use super::tree::rust_files;

/// Comments and literals, which are left out, and words: names and marks.
const WORDS: &str = r##"//.*|r#"[\s\S]*?"#|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[^']*|[^'\\])'|(\w+|::|\S)"##;

/// The names that lead to a module or an item.
type Path<'a> = Vec<&'a str>;
type Modules<'a> = BTreeMap<Path<'a>, Module<'a>>;

struct Module<'a> {
    file: &'a str,
    /// The paths that the imported names stand for.
    imports: BTreeMap<&'a str, Path<'a>>,
    /// The paths in the code, and the imported names.
    named: BTreeSet<Path<'a>>,
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Reads a path, or a tree of paths, each with the name that an import gives it. Returns the place of the next word.
fn read_paths<'a>(words: &[&'a str], at: usize, before: &[&'a str], paths: &mut Vec<(&'a str, Path<'a>)>) -> usize {
    if words[at] == "{" {
        let mut at = at + 1;
        while words[at] != "}" {
            at = if words[at] == "," { at + 1 } else { read_paths(words, at, before, paths) };
        }
        return at + 1;
    }
    let path = [before, &words[at..=at]].concat();
    let (name, next) = match words[at + 1..] {
        ["::", next, ..] if next == "{" || is_name(next) => return read_paths(words, at + 2, &path, paths),
        ["as", name, ..] => (name, at + 3),
        _ if words[at] == "self" => (*before.last().unwrap_or(&"self"), at + 1),
        _ => (words[at], at + 1),
    };
    paths.push((name, path));
    next
}

/// Reads a module and its children.
fn read_module<'a>(texts: &'a BTreeMap<String, String>, root: &str, path: Path<'a>, modules: &mut Modules<'a>) {
    let file = if path.is_empty() { "lib".to_owned() } else { path.join("/") };
    let (file, text) = texts.get_key_value(&format!("{root}/src/{file}.rs")).unwrap();
    let code = text.split("\n#[cfg(test)]").next().unwrap();
    let word = Regex::new(WORDS).unwrap();
    let words: Vec<&str> = word.captures_iter(code).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    let mut module = Module { file: &file[root.len() + 5..], imports: BTreeMap::new(), named: BTreeSet::new() };
    let mut at = 0;
    while at < words.len() {
        let (before, mut paths) = (&words[..at], Vec::new());
        at = if is_name(words[at]) { read_paths(&words, at, &[], &mut paths) } else { at + 1 };
        match before {
            [.., "mod"] if words[at] == ";" => {
                read_module(texts, root, [&path[..], &words[at - 1..at]].concat(), modules);
            }
            [.., "pub" | ")", "use"] => module.imports.extend(paths),
            [.., "use"] => {
                module.named.extend(paths.iter().map(|(_, path)| path.clone()));
                module.imports.extend(paths);
            }
            [.., "." | "mod"] => {}
            _ => module.named.extend(paths.into_iter().map(|(_, path)| path)),
        }
    }
    module.named.retain(|path| path.len() > 1 || module.imports.contains_key(path[0]));
    modules.insert(path, module);
}

/// Finds the file that defines the item of a path. `None`: another crate does, or the path leads to a module.
fn definer<'a>(modules: &Modules<'a>, from: &[&'a str], path: &[&'a str]) -> Option<&'a str> {
    let mut module = from.to_vec();
    for (at, name) in path.iter().enumerate() {
        let (child, is_last) = ([&module[..], &[*name]].concat(), at + 1 == path.len());
        let import = modules[&module].imports.get(name).filter(|import| at > 0 || !path.starts_with(import));
        match (*name, import) {
            ("crate", _) => module.clear(),
            ("self", _) => {}
            ("super", _) => drop(module.pop()),
            (_, import) if modules.contains_key(&child) && !(is_last && import.is_some()) => module = child,
            (_, Some(import)) => return definer(modules, &module, &[import, &path[at + 1..]].concat()),
            (_, None) => return (at > 0).then(|| modules[&module].file),
        }
    }
    None
}

/// The files, or folders, that each one uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Reads the uses of a crate's files.
fn uses_of<'a>(modules: &Modules<'a>) -> Uses<'a> {
    let uses = modules.iter().map(|(path, module)| {
        let used = module.named.iter().filter_map(|named| definer(modules, path, named));
        (module.file, used.filter(|file| *file != module.file).collect())
    });
    uses.collect()
}

/// Returns the uses of the folders: a module of the crate's root, with its children.
fn by_folder<'a>(files: &Uses<'a>) -> Uses<'a> {
    let folder = |file: &'a str| file.split_once('/').map_or(file.trim_end_matches(".rs"), |(folder, _)| folder);
    let mut folders = Uses::new();
    for (file, used) in files {
        let used = used.iter().map(|used| folder(used)).filter(|used| *used != folder(file));
        folders.entry(folder(file)).or_default().extend(used);
    }
    folders
}

/// Finds the shortest circle through each file, or folder, that is the first of its circle.
fn circles(root: &str, uses: &Uses<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for first in uses.keys() {
        let (mut ways, mut seen) = (VecDeque::from([vec![*first]]), BTreeSet::new());
        while let Some(way) = ways.pop_front() {
            let used = &uses[way[way.len() - 1]];
            if used.contains(first) {
                found.push(format!("{} -> {first} ({root})", way.join(" -> ")));
                break;
            }
            let next = used.iter().filter(|file| *file > first && seen.insert(**file));
            ways.extend(next.map(|file| [&way[..], &[*file]].concat()));
        }
    }
    found
}

#[test]
fn no_file_or_folder_uses_one_that_uses_it() {
    let texts: BTreeMap<String, String> = rust_files(&["lib", "functions", "infra"]).into_iter().collect();
    let mut found = Vec::new();
    for root in texts.keys().filter_map(|file| file.strip_suffix("/src/lib.rs")) {
        let mut modules = Modules::new();
        read_module(&texts, root, Vec::new(), &mut modules);
        let files = uses_of(&modules);
        found.extend(circles(root, &files));
        found.extend(circles(root, &by_folder(&files)));
    }
    found.sort();
    found.dedup();
    assert!(
        found.is_empty(),
        "{}: move what the lower one takes from the higher one to the lower one, or below both",
        found.join(", ")
    );
}
