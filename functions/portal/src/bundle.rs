//! Joins the page's modules into one script: one request instead of forty, which a burst limit would refuse.
//!
//! Each module becomes a function that returns its exports, in the order of the imports. A module may use
//! `import { a, b as c }` and `import * as a` from `"./x.js"`, and `export` before `const`, `function` and `class`.
//! Everything else, and a circle of imports, is an error.
//!
//! Comments on lines of their own and indentation stay behind: a browser needs neither, and they are a quarter of the
//! bytes. So no text of a module may span lines.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A module cannot be joined.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BundleError {
    #[error("{0}: there is no such module, or modules import each other in a circle")]
    Module(String),
    #[error("{0}: the bundle does not know this form of import or export: {1}")]
    Form(String, String),
}

/// Joins the module `entry` and all that it imports. Modules by file name.
pub(crate) fn bundle(mut modules: BTreeMap<&str, String>, entry: &str) -> Result<String, BundleError> {
    let mut script = String::new();
    add(&mut modules, &mut Vec::new(), entry, &mut script)?;
    Ok(script)
}

/// Adds a module behind those that it imports. A module is taken out of `modules` when its turn begins.
fn add(
    modules: &mut BTreeMap<&str, String>,
    added: &mut Vec<String>,
    name: &str,
    script: &mut String,
) -> Result<(), BundleError> {
    if added.iter().any(|other| other == name) {
        return Ok(());
    }
    let text = modules.remove(name).ok_or_else(|| BundleError::Module(name.to_owned()))?;
    let module = Module::parse(name, &text)?;
    for import in &module.imports {
        add(modules, added, &import.from, script)?;
    }
    added.push(name.to_owned());
    let unwritable = "a String takes all that is written";
    writeln!(script, "const {} = (() => {{", variable(name)).expect(unwritable);
    for Import { names, from } in &module.imports {
        writeln!(script, "const {names} = {};", variable(from)).expect(unwritable);
    }
    writeln!(script, "{}return {{ {} }};\n}})();", module.body, module.exports.join(", ")).expect(unwritable);
    Ok(())
}

struct Module {
    imports: Vec<Import>,
    exports: Vec<String>,
    /// The module without its imports and without the word `export`.
    body: String,
}

/// `const <names> = <from>`
struct Import {
    names: String,
    from: String,
}

impl Module {
    fn parse(name: &str, text: &str) -> Result<Self, BundleError> {
        let unknown = |statement: &str| BundleError::Form(name.to_owned(), statement.to_owned());
        let mut module = Self { imports: Vec::new(), exports: Vec::new(), body: String::new() };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.trim_start();
            if line.starts_with("/*") && !line.ends_with("*/") {
                lines.find(|line| line.ends_with("*/"));
                continue;
            }
            if ["//", "/*"].iter().any(|comment| line.starts_with(comment)) || line.is_empty() {
                continue;
            }
            if line.starts_with("import ") {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    statement.push_str(lines.next().ok_or_else(|| unknown(line))?);
                }
                module.imports.push(Import::parse(&statement).ok_or_else(|| unknown(&statement))?);
                continue;
            }
            let line = match line.strip_prefix("export ") {
                Some(declaration) => {
                    module.exports.push(declared(declaration).ok_or_else(|| unknown(line))?.to_owned());
                    declaration
                }
                None => line,
            };
            module.body.push_str(line);
            module.body.push('\n');
        }
        Ok(module)
    }
}

impl Import {
    fn parse(statement: &str) -> Option<Self> {
        let (names, from) = statement.strip_prefix("import ")?.strip_suffix("\";")?.split_once(" from \"./")?;
        let names = match names.strip_prefix("* as ") {
            Some(name) => name.to_owned(),
            None => {
                names.strip_prefix('{').filter(|names| names.ends_with('}')).map(|_| names.replace(" as ", ": "))?
            }
        };
        Some(Self { names, from: from.to_owned() })
    }
}

/// Returns the name that a declaration declares.
fn declared(declaration: &str) -> Option<&str> {
    let rest =
        ["const ", "function ", "async function ", "class "].iter().find_map(|word| declaration.strip_prefix(word))?;
    let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    (!name.is_empty()).then_some(name)
}

fn variable(file: &str) -> String {
    format!("${}", file.trim_end_matches(".js").replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(modules: &[(&'static str, &str)]) -> Result<String, BundleError> {
        bundle(modules.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(), "main.js")
    }

    #[test]
    fn a_module_comes_after_those_that_it_imports() {
        let script = joined(&[
            ("main.js", "import { a, b as c } from \"./a-b.js\";\nimport * as d from \"./d.js\";\na(c, d.e);\n"),
            (
                "a-b.js",
                "import {\n  e,\n} from \"./d.js\";\nexport function a() {}\nexport const b = e;\nconst own = 1;\n",
            ),
            ("d.js", "export class e {}\nexport async function f() {}\n"),
        ]);
        let expected = "const $d = (() => {\nclass e {}\nasync function f() {}\nreturn { e, f };\n})();\n\
                        const $a_b = (() => {\nconst {  e,} = $d;\nfunction a() {}\nconst b = e;\nconst own = 1;\n\
                        return { a, b };\n})();\n\
                        const $main = (() => {\nconst { a, b: c } = $a_b;\nconst d = $d;\na(c, d.e);\nreturn {  };\n})();\n";
        assert_eq!(script.unwrap(), expected);
    }

    #[test]
    fn comments_on_their_own_lines_and_indentation_stay_behind() {
        let module = "// One.\n/** Two. */\n/**\n * Three.\n */\nfunction a() {\n  b(\"//\"); // Four.\n\n}\n";
        let expected = "const $main = (() => {\nfunction a() {\nb(\"//\"); // Four.\n}\nreturn {  };\n})();\n";
        assert_eq!(joined(&[("main.js", module)]).unwrap(), expected);
    }

    #[rstest::rstest]
    #[case("export default 1;")]
    #[case("export let a = 1;")]
    #[case("export { a };")]
    #[case("export const { a } = b;")]
    #[case("import a from \"./d.js\";")]
    #[case("import \"./d.js\";")]
    #[case("import { a } from \"https://example.com/d.js\";")]
    #[case("import { a }")]
    fn another_form_is_refused(#[case] statement: &str) {
        assert!(matches!(joined(&[("main.js", statement), ("d.js", "")]), Err(BundleError::Form(..))));
    }

    #[test]
    fn a_circle_and_a_missing_module_are_refused() {
        let circle =
            joined(&[("main.js", "import { a } from \"./a.js\";"), ("a.js", "import { b } from \"./main.js\";")]);
        assert_eq!(circle, Err(BundleError::Module("main.js".to_owned())));
        let missing = joined(&[("main.js", "import { a } from \"./a.js\";")]);
        assert_eq!(missing, Err(BundleError::Module("a.js".to_owned())));
    }
}
