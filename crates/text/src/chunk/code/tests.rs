//! Tests of the borders of chunks of code: where they are, and that nothing is lost or slow.

use proptest::prelude::*;

use super::*;

const ALL: [Option<Language>; 9] = [
    Some(Language::C),
    Some(Language::Cpp),
    Some(Language::Go),
    Some(Language::Java),
    Some(Language::JavaScript),
    Some(Language::Python),
    Some(Language::Rust),
    Some(Language::TypeScript),
    None,
];

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns the chunks of `text` with at most `max` words, each after a line with the items around it.
fn shown(text: &str, path: &str, max: usize, overlap: usize) -> String {
    let chunks = code(text, Language::of_path(path), &words, max, overlap);
    chunks
        .iter()
        .map(|chunk| {
            format!("--- {}\n{}\n", chunk.within.join(" > "), &text[chunk.range.start..chunk.range.end])
        })
        .collect()
}

#[test]
fn a_chunk_begins_with_an_item_and_its_comments() {
    let text = r##"//! A store.

use std::fmt;

/// A store of rows.
#[derive(Clone, Debug)]
pub struct Store {
    rows: Vec<String>,
}

impl Store {
    /// Saves a row.
    ///
    /// It is kept.
    #[must_use]
    pub fn save(&mut self, row: &str) -> usize {
        let text = "a } { brace";
        self.rows.push(row.to_owned());
        self.rows.len()
    }

    // How many there are.
    pub fn len(&self) -> usize {
        match self.rows.len() {
            0 => r#"} " "#.len(),
            n if n == '{' as usize => 2,
            n => n,
        }
    }
}
"##;
    insta::assert_snapshot!(shown(text, "a.rs", 30, 4), @r##"
    --- 
    //! A store.

    use std::fmt;

    /// A store of rows.
    #[derive(Clone, Debug)]
    pub struct Store {
        rows: Vec<String>,
    }
    --- 
    impl Store {
    --- impl Store
        /// Saves a row.
        ///
        /// It is kept.
        #[must_use]
        pub fn save(&mut self, row: &str) -> usize {
            let text = "a } { brace";
            self.rows.push(row.to_owned());
            self.rows.len()
        }
    --- impl Store
        // How many there are.
        pub fn len(&self) -> usize {
            match self.rows.len() {
                0 => r#"} " "#.len(),
                n if n == '{' as usize => 2,
    --- impl Store > fn len
                n => n,
            }
        }
    }
    "##);
}

#[test]
fn an_item_that_is_too_large_is_cut_between_statements_and_its_parts_overlap() {
    let body: String =
        (0..6).map(|n| format!("        if (a{n}) {{\n            b{n}();\n        }}\n")).collect();
    let text = format!("class A {{\n    void f() {{\n{body}    }}\n\n    void g() {{}}\n}}\n");
    insta::assert_snapshot!(shown(&text, "A.java", 14, 2), @r#"
    --- 
    class A {
    --- class A
        void f() {
            if (a0) {
                b0();
            }
            if (a1) {
                b1();
            }
    --- class A > f()
                b1();
            }
            if (a2) {
                b2();
            }
            if (a3) {
                b3();
            }
    --- class A > f()
                b3();
            }
            if (a4) {
                b4();
            }
            if (a5) {
                b5();
            }
        }
    --- class A
        void g() {}
    }
    "#);
}

#[test]
fn a_class_in_python_is_cut_between_methods() {
    let text = r#"import os

# A helper.
@decorated(
    1)
def helper(x):
    """A text:
with a line at the margin
    """
    return x

class Store(Base):
    kind = "x"

    @property
    def size(self):
        if self.rows:
            return 1
        else:
            return 2

    async def save(self, row):
        self.rows.append(row)
"#;
    insta::assert_snapshot!(shown(text, "a.py", 16, 2), @r#"
    --- 
    import os
    --- 
    # A helper.
    @decorated(
        1)
    def helper(x):
        """A text:
    with a line at the margin
        """
    --- def helper
        """
        return x

    class Store(Base):
        kind = "x"
    --- class Store
        @property
        def size(self):
            if self.rows:
                return 1
            else:
                return 2

        async def save(self, row):
            self.rows.append(row)
    "#);
}

#[test]
fn scripts_without_semicolons_and_go_are_cut_at_lines() {
    let script = r#"import x from "x"

export const load = async (url) => {
  const text = `a ${url} }`
  return text.replace(/["}]/g, "")
    .trim()
}

class Store {
  save(row) { this.rows.push(row) }
}

describe("store", () => {
  it("saves", () => {
    expect(1)
  })
})
"#;
    insta::assert_snapshot!(shown(script, "a.ts", 14, 0), @r#"
    --- 
    import x from "x"
    --- 
    export const load = async (url) => {
      const text = `a ${url} }`
    --- load()
      return text.replace(/["}]/g, "")
        .trim()
    }

    class Store {
      save(row) { this.rows.push(row) }
    }
    --- 
    describe("store", () => {
      it("saves", () => {
        expect(1)
      })
    })
    "#);
    let go = "package a\n\n// Save saves.\nfunc (s *Store) Save(x int) error {\n\tif x > 0 {\n\t\treturn nil\n\t}\n\treturn err\n}\n\ntype Store struct {\n\trows []string\n}\n";
    insta::assert_snapshot!(shown(go, "a.go", 14, 0), @r#"
    --- 
    package a
    --- 
    // Save saves.
    func (s *Store) Save(x int) error {
    --- func (s *Store) Save
    	if x > 0 {
    		return nil
    	}
    	return err
    }
    --- 
    type Store struct {
    	rows []string
    }
    "#);
}

/// In C, both branches of a directive may open the same block.
#[test]
fn a_brace_too_many_does_not_affect_the_rest_of_the_file() {
    let text = "#if A\nint f(int a) {\n#else\nint f(void) {\n#endif\n  return 1;\n}\n\nint g(void)\n{\n  return 2;\n}\n\nint h(void) { return 3; }\n";
    insta::assert_snapshot!(shown(text, "a.c", 8, 0), @r#"
    --- 
    #if A
    int f(int a) {
    #else
    --- 
    int f(void) {
    #endif
      return 1;
    }
    --- 
    int g(void)
    {
      return 2;
    }
    --- 
    int h(void) { return 3; }
    "#);
}

/// The end of a line of Windows, tabs and missing ends are no reason to lose an item.
#[test]
fn line_ends_of_windows_and_unfinished_code_are_cut_too() {
    let text = "fn a() {\r\n\tb();\r\n}\r\n\r\nfn c() {\r\n\td();\r\n}\r\n\r\nfn e( {\r\n\tlet s = \"f\r\n";
    let chunks = code(text, Some(Language::Rust), &words, 5, 0);
    let pieces: Vec<&str> = chunks.iter().map(|chunk| &text[chunk.range.start..chunk.range.end]).collect();
    assert_eq!(pieces, ["fn a() {\r\n\tb();\r\n}", "fn c() {\r\n\td();\r\n}", "fn e( {", "\tlet s = \"f"]);
}

#[test]
fn an_unknown_language_is_cut_as_prose() {
    let text = "key = 1\nother = 2\n\n[section]\nmore = 3\n".repeat(20);
    let plain = split::chunks(&text, &words, 20, 3);
    let found = code(&text, Language::of_path("a.toml"), &words, 20, 3);
    assert_eq!(found.iter().map(|chunk| chunk.range).collect::<Vec<_>>(), plain);
    assert_eq!(Language::of_path("Makefile"), None);
    assert_eq!(Language::of_path("src/App.TSX"), Some(Language::TypeScript));
    assert!(code(" \n\t\n", Some(Language::C), &words, 5, 0).is_empty());
}

/// Generated parsers of these languages take minutes and gigabytes for some of these texts.
#[test]
fn work_grows_with_the_length_of_a_hostile_text_and_not_with_its_square() {
    let runs = [
        "a",
        "{",
        "}",
        "(",
        ")(",
        "日",
        "\n",
        "\"",
        "'",
        "`",
        "/",
        "(/[",
        "/*",
        "r#\"",
        "r#",
        "R\"(",
        "R\"a(\n",
        "@a ",
        "@a(\n",
        "#[a\n",
        "a=>",
        "a<",
        "<!--",
        "case a:",
        "template<",
        "if a:\n ",
        "# a\n\n",
        "@a\n\n",
        "a\\\n",
        ";",
        ",",
        "{a;",
        "fn a() {",
        "class A { ",
        "a = (b) => {",
        "\t",
        " ",
        "\r\n",
        "'''",
        "\\",
        "${`",
    ];
    for run in runs {
        for language in ALL {
            let measured = |bytes: usize| {
                let text = run.repeat(bytes / run.len());
                let work = std::cell::Cell::new(0);
                let size = |text: &str| {
                    work.set(work.get() + text.len() + 1);
                    text.len()
                };
                let chunks = code(&text, language, &size, 150, 16);
                assert!(chunks.iter().all(|chunk| size(&text[chunk.range.start..chunk.range.end]) <= 150));
                work.get()
            };
            let (one, four) = (measured(16 << 10), measured(64 << 10));
            assert!(four <= 5 * one + 4096, "{run:?} {language:?}: {one}, {four}");
        }
    }
}

/// Fails by taking hours if the scanner is not linear.
#[test]
fn long_hostile_texts_are_cut_in_seconds() {
    for run in [
        "a", "{", "(", "日", "(/[", "\"", "r#\"", "R\"a(", "if a:\n ", "@a\n\n", "fn a() {", "a=>", "\\",
        "#if a\n",
    ] {
        let text = run.repeat(400_000 / run.len());
        for language in ALL {
            code(&text, language, &str::len, 150, 16);
        }
    }
    let line = "let a = (b) => { c(d[0]); };".repeat((10 << 20) / 28);
    let chunks = code(&line, Language::of_path("bundle.js"), &str::len, 150, 16);
    assert_eq!(chunks.last().unwrap().range.end, line.len());
}

proptest! {
    #[test]
    fn chunks_cover_the_text_in_order_and_fit(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "fn a() {", "}", "{", "(", ")", "\n", "\n\n", "    ", "\t", "\r\n", "class A:", "def f(x):", "@a", "#[b]",
                "// c", "/* d */", "/*", "\"e\"", "\"", "'", "`", "日本", "é", ";", ",", "impl X", "=> ", "#if", "\\", "r#\"",
                "word ", "/x/", "if a", "else ", "R\"(", "'''", "[",
            ]),
            0..120,
        ),
        language in prop::sample::select(ALL.to_vec()),
        max in 1usize..60,
        overlap in 0usize..10,
    ) {
        let text = parts.concat();
        let size = |text: &str| text.chars().count();
        let found = code(&text, language, &size, max, overlap);
        let mut covered = 0;
        for CodeChunk { range, within } in &found {
            prop_assert!(range.start < range.end);
            prop_assert!(size(&text[range.start..range.end]) <= max);
            prop_assert!(within.len() <= 6);
            if range.start > covered {
                prop_assert!(text[covered..range.start].trim().is_empty());
            }
            prop_assert!(range.end > covered);
            covered = range.end;
        }
        prop_assert!(text[covered..].trim().is_empty());
        prop_assert_eq!(found, code(&text, language, &size, max, overlap));
    }

    #[test]
    fn any_text_is_cut(text in "\\PC{0,200}", language in prop::sample::select(ALL.to_vec())) {
        let found = code(&text, language, &|text: &str| text.chars().count(), 20, 2);
        prop_assert_eq!(found.is_empty(), text.trim().is_empty());
    }
}
