//! The text of documents is extracted by another process of the program, and a hostile document ends in a refusal.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tiro::testing::{
    Budget, DocumentKind, Extractor, Fault, Form, Limits, Note, Read, Reading, Refusal, Roots, gather,
};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::harness::Home;

/// Reads a document by naming it.
fn read(name: &str, bytes: impl AsRef<[u8]>) -> Result<Read, Refusal> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), bytes).unwrap();
    let roots = Roots::new(folder.path(), &[], &[]).unwrap();
    let gathered = gather(&roots, &[name.to_owned()], &Limits::default(), &Budget::default());
    assert!(matches!(gathered.files[0].form, Form::Document(_)), "{gathered:?}");
    let extractor = Extractor::new(env!("CARGO_BIN_EXE_tiro").into());
    let budget = Budget::default();
    let reading = Reading { limits: &Limits::default(), now_ns: 0, extractor: &extractor, budget: &budget };
    roots.read(&gathered.files[0], &reading)
}

/// Returns the text and the notes of a document.
fn text(name: &str, bytes: impl AsRef<[u8]>) -> (String, String) {
    let read = read(name, bytes).unwrap();
    (read.text, read.notes.iter().map(Note::to_string).collect::<Vec<_>>().join(", "))
}

/// Returns why a document is refused, which may not take long.
fn fault(name: &str, bytes: impl AsRef<[u8]>) -> Fault {
    let start = Instant::now();
    let refused = read(name, bytes);
    assert!(start.elapsed() < Duration::from_secs(30), "{name}: {:?}", start.elapsed());
    match refused {
        Err(Refusal::Document(_, fault)) => fault,
        refused => panic!("{name}: {refused:?}"),
    }
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Returns a PDF document of `objects`, the first of which is the catalogue.
pub fn pdf_of(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for object in objects {
        places.push(bytes.len());
        bytes.extend(format!("{} 0 obj\n", places.len()).as_bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    let start = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).as_bytes());
    for place in &places {
        bytes.extend(format!("{place:010} 00000 n \n").as_bytes());
    }
    let size = places.len() + 1;
    bytes.extend(format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").as_bytes());
    bytes
}

/// Returns an object of a PDF document: the entries of the stream's dictionary, and the stream.
pub fn stream(entries: &str, stream: &[u8]) -> Vec<u8> {
    let mut object = format!("<< /Length {} {entries} >>\nstream\n", stream.len()).into_bytes();
    object.extend(stream);
    object.extend(b"\nendstream");
    object
}

/// The font of the pages.
pub const FONT: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

/// Returns a PDF document with a page for each of `contents`: the entries of the stream's dictionary, and the stream.
pub fn pdf(contents: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let pages = format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), contents.len());
    let mut objects = vec![b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(), pages.into_bytes(), FONT.into()];
    for (page, (entries, content)) in contents.iter().enumerate() {
        let object = format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * page
        );
        objects.extend([object.into_bytes(), stream(entries, content)]);
    }
    pdf_of(&objects)
}

/// Returns the content of a page with one line.
pub fn line(text: &str) -> (&'static str, Vec<u8>) {
    ("", format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET").into_bytes())
}

/// Returns `count` times `byte`, deflated to a 160th.
fn deflated(byte: u8, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count / 150);
    let (mut bits, mut held) = (0_u64, 0);
    // Codes come with their first bit first, numbers with their last; `bits` is reversed where that is needed.
    let mut put = |bytes: &mut Vec<u8>, value: u64, length: u32| {
        bits |= value << held;
        held += length;
        while held >= 8 {
            bytes.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    };
    let code = |value: u64, length: u32| value.reverse_bits() >> (64 - length);
    put(&mut bytes, 0b011, 3);
    put(&mut bytes, code(0x30 + u64::from(byte), 8), 8);
    for _ in 0..(count - 1) / 258 {
        // The last 258 bytes once more, from one byte back.
        put(&mut bytes, code(0b1100_0101, 8), 13);
    }
    put(&mut bytes, 0, 7);
    put(&mut bytes, 0, 8);
    bytes
}

/// Returns an archive in which the file `name` is `deflated`, with the stated size.
fn bomb(files: &[(&str, &str)], name: &str, deflated: &[u8], size: u32) -> Vec<u8> {
    let mut all: Vec<(String, Vec<u8>, u16, u32)> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec(), 0, text.len() as u32))
        .collect();
    all.push((name.to_owned(), deflated.to_vec(), 8, size));
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content, method, size) in &all {
        let crc = if *method == 0 { crc32(content) } else { 0 };
        let mut common = Vec::new();
        common.extend([20, 0, 0, 0]);
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(crc.to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((bytes.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(name.as_bytes());
        bytes.extend(content);
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((all.len() as u16).to_le_bytes());
    bytes.extend((all.len() as u16).to_le_bytes());
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8)
            .fold(crc ^ u32::from(*byte), |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

const WORKBOOK: &[(&str, &str)] = &[
    (
        "_rels/.rels",
        r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
           <Relationship Id="rId1" Target="xl/workbook.xml"
           Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/>
           </Relationships>"#,
    ),
    (
        "[Content_Types].xml",
        r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>"#,
    ),
    (
        "xl/workbook.xml",
        r#"<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
           xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
           <sheets><sheet name="Costs" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
    ),
    (
        "xl/_rels/workbook.xml.rels",
        r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
           <Relationship Id="rId1" Target="worksheets/sheet1.xml"
           Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/>
           <Relationship Id="rId2" Target="sharedStrings.xml"
           Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"/>
           </Relationships>"#,
    ),
    (
        "xl/worksheets/sheet1.xml",
        r#"<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
           <row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1"><v>2.5</v></c></row>
           <row r="900000"><c r="XFD900000" t="b"><v>1</v></c></row></sheetData></worksheet>"#,
    ),
];

const STRINGS: (&str, &str) = (
    "xl/sharedStrings.xml",
    r#"<?xml version="1.0"?><sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">
       <si><t>Rent &amp; power</t></si></sst>"#,
);

#[test]
fn the_text_of_each_kind_of_document_is_extracted() {
    insta::assert_debug_snapshot!(text("a.pdf", pdf(&[line("First page"), ("", Vec::new()), line("Third")])), @r#"
    (
        "--- page 1 ---\nFirst page\n\n--- page 3 ---\nThird\n",
        "3 pages, 1 page without text",
    )
    "#);
    let document = r#"<?xml version="1.0"?><w:document xmlns:w="w"><w:body>
        <w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr><w:r><w:t>Fish &amp; chips&#33;</w:t></w:r></w:p>
        <w:p><w:r><w:t xml:space="preserve">Two </w:t></w:r><w:r><w:tab/><w:t>runs</w:t></w:r>
        <w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
        </w:body></w:document>"#;
    let docx = archive(&[("word/document.xml", document), ("word/media/image1.png", "x")]);
    insta::assert_debug_snapshot!(text("a.docx", docx), @r#"
    (
        "Fish & chips!\nTwo \truns\na\tb\n",
        "1 image is left out",
    )
    "#);
    assert!(text("latin.html", b"<p>caf\xe9</p>").0.contains("café"));
    let slide = |text: &str| {
        format!(r#"<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>"#)
    };
    let pptx = archive(&[
        ("ppt/slides/slide10.xml", &slide("Last")),
        ("ppt/slides/slide2.xml", &slide("First")),
        ("ppt/notesSlides/notesSlide1.xml", &slide("Hidden")),
    ]);
    insta::assert_debug_snapshot!(text("a.pptx", pptx), @r#"
    (
        "--- slide 2 ---\nFirst\n\n--- slide 10 ---\nLast\n",
        "2 slides, the speaker notes are left out",
    )
    "#);
    let content = r#"<office:document-content xmlns:office="o" xmlns:text="t"><office:body><office:text>
        <text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>
        <text:h>Title</text:h><text:p>One<text:s text:c="3"/>two <text:span>three</text:span><text:line-break/>four</text:p>
        </office:text></office:body></office:document-content>"#;
    insta::assert_debug_snapshot!(text("a.odt", archive(&[("content.xml", content)])), @r#"
    (
        "Title\nOne   two three\nfour\n",
        "",
    )
    "#);
    let xlsx = archive(&[WORKBOOK, &[STRINGS]].concat());
    let (sheet, notes) = text("a.xlsx", xlsx);
    // A cell that is far away costs its tabs, not a table of all cells before it.
    assert_eq!(sheet, format!("--- sheet Costs ---\nRent & power\t\t2.5\n{}true\n", "\t".repeat(16_383)));
    assert_eq!(notes, "1 sheet");
    let page = "<html><head><style>p {}</style><script>alert(1)</script></head><body><h1>Title</h1>\
                <p>One <a href='https://example.org'>link</a> &amp; more</p><ul><li>x</li></ul></body></html>";
    insta::assert_debug_snapshot!(text("a.html", page), @r##"
    (
        "# Title\n\nOne [link] & more\n* x\n",
        "",
    )
    "##);
    let notebook = r##"{"cells": [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [
            {"output_type": "stream", "text": ["printed\n"]},
            {"output_type": "execute_result", "data": {"text/plain": ["2"], "image/png": "iVBO"}},
            {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["..."]}]}
        ], "metadata": {}, "nbformat": 4}"##;
    insta::assert_debug_snapshot!(text("a.ipynb", notebook), @r#"
    (
        "--- markdown ---\n# Title\ntext\n\n--- code ---\n1 + 1\n\n--- output ---\nprinted\n\n--- output ---\n2\n\n--- output ---\nValueError: bad\n",
        "1 image is left out",
    )
    "#);
}

#[test]
fn a_document_that_is_not_what_its_name_says_is_refused() {
    for name in ["a.pdf", "a.docx", "a.pptx", "a.odt", "a.xlsx", "a.ipynb"] {
        assert_eq!(fault(name, "no document"), Fault::Malformed, "{name}");
        assert_eq!(fault(name, archive(&[("other", "x")])), Fault::Malformed, "{name}");
    }
    let compound = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on";
    assert_eq!(fault("a.docx", compound), Fault::Encrypted);
    assert_eq!(fault("a.xlsx", compound), Fault::Encrypted);
    assert_eq!(fault("scanned.pdf", pdf(&[("", Vec::new())])), Fault::NoText);
    assert_eq!(fault("a.html", "<p></p>"), Fault::NoText);
    let truncated = pdf(&[line("First page")]);
    assert_eq!(fault("cut.pdf", &truncated[..truncated.len() / 2]), Fault::Malformed);
}

#[test]
fn a_bomb_ends_in_a_refusal() {
    // 1.6 GB of zeros.
    let size = 1_600_000_000;
    let zeros = [&[0x78, 0x01][..], &deflated(0, size), &[0; 4]].concat();
    assert_eq!(fault("bomb.pdf", pdf(&[("/Filter /FlateDecode", zeros)])), Fault::Crashed);
    let letters = deflated(b'a', size);
    let stated = u32::try_from(size).unwrap();
    // No element ends in it, so a parser would keep all of it.
    for (name, files, part, expected) in [
        ("bomb.docx", &[][..], "word/document.xml", Fault::TooLong),
        ("bomb.pptx", &[][..], "ppt/slides/slide1.xml", Fault::TooLong),
        ("bomb.odt", &[][..], "content.xml", Fault::TooLong),
        ("bomb.xlsx", WORKBOOK, "xl/sharedStrings.xml", Fault::Crashed),
    ] {
        assert_eq!(fault(name, bomb(files, part, &letters, stated)), expected, "{name}");
    }
    let paragraph = "<w:p><w:r><w:t>a hundred letters</w:t></w:r></w:p>".repeat(600_000);
    let long = format!(r#"<w:document xmlns:w="w">{paragraph}</w:document>"#);
    assert_eq!(fault("long.docx", archive(&[("word/document.xml", &long)])), Fault::TooLong);
    assert_eq!(fault("long.html", format!("<p>{}</p>", "word ".repeat(2_000_000))), Fault::TooLong);
}

#[test]
fn entities_do_not_multiply() {
    let mut entities = "<!ENTITY a0 'lol'>".to_owned();
    for n in 1..12 {
        entities += &format!("<!ENTITY a{n} '{}'>", format!("&a{};", n - 1).repeat(10));
    }
    let bomb = format!(
        r#"<?xml version="1.0"?><!DOCTYPE x [{entities}]><w:document xmlns:w="w"><w:p><w:t>text &a11;</w:t></w:p></w:document>"#
    );
    assert_eq!(text("a.docx", archive(&[("word/document.xml", &bomb)])).0, "text \n");
    let strings = format!(
        r#"<?xml version="1.0"?><!DOCTYPE x [{entities}]>
           <sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>text &a11;</t></si></sst>"#
    );
    let files = [WORKBOOK, &[("xl/sharedStrings.xml", &strings)]].concat();
    assert_eq!(fault("a.xlsx", archive(&files)), Fault::Malformed);
}

#[test]
fn deep_nesting_ends_soon() {
    let start = Instant::now();
    for (name, text) in [
        ("deep.html", "<div>".repeat(200_000) + "x"),
        ("deep.ipynb", "[".repeat(1_000_000)),
        ("deep.pdf", "%PDF-1.4\n1 0 obj\n".to_owned() + &"[".repeat(1_000_000)),
    ] {
        // Whether it is read is up to the parser.
        let _ = read(name, text);
    }
    let deep = format!("<w:document>{}", "<w:p>".repeat(1_000_000));
    assert_eq!(fault("deep.docx", archive(&[("word/document.xml", &deep)])), Fault::NoText);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// The process that parses documents can open no file, has limits and no capabilities, and has no environment.
#[cfg(target_os = "linux")]
#[test]
fn the_parsing_process_has_given_up_its_rights() {
    use std::process::{Command, Stdio};
    let mut process = Command::new(env!("CARGO_BIN_EXE_tiro"))
        .args(["extract-text", "html"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(b"<p>text</p>").unwrap();
    let limits = Path::new("/proc").join(process.id().to_string()).join("limits");
    let limit = |name: &str| {
        let text = fs::read_to_string(&limits).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    // It gives them up before it reads, so soon after it was started.
    let end = Instant::now() + Duration::from_secs(20);
    while limit("Max address space") == "unlimited" && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(limit("Max address space"), (1_u64 << 30).to_string());
    for (name, most) in [
        ("Max open files", "0"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max processes", "0"),
        ("Max cpu time", "20"),
    ] {
        assert_eq!(limit(name), most, "{name}");
    }
    let status =
        fs::read_to_string(Path::new("/proc").join(process.id().to_string()).join("status")).unwrap();
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim).to_owned();
    assert_eq!(field("CapEff:").trim_start_matches('0'), "", "root too has no rights beyond others");
    drop(input);
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "{\"Ok\":[5,[]]}\ntext\n");
}

/// Whatever a hostile document makes the parser try is refused, by the filter of system calls where the kernel has it.
#[cfg(target_os = "linux")]
#[test]
fn what_the_parsing_process_tries_is_refused() {
    use std::collections::BTreeMap;
    use std::process::Command;
    let output =
        Command::new(env!("CARGO_BIN_EXE_tiro")).args(["extract-text", "--attempt"]).output().unwrap();
    let tried: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let holds = |wall: &str| tried["confinement"][wall].as_bool().unwrap();
    let refused: BTreeMap<String, Option<i32>> = serde_json::from_value(tried["refused"].clone()).unwrap();
    let home = Home::new();
    // Other users may read a new home, which is a finding of its own.
    let doctor = home.run(&home.dir("project"), &["doctor", "--json"]).stdout;
    let doctor: serde_json::Value = serde_json::from_str(&doctor).unwrap();
    let finding =
        doctor["findings"].as_array().unwrap().iter().find(|each| each["what"] == "documents").unwrap();
    for (wall, name) in [("limits", "limits on memory"), ("landlock", "Landlock"), ("seccomp", "seccomp")] {
        let found = finding["found"].as_str().unwrap();
        assert!(found.contains(name), "{found}");
        assert_eq!(
            found.split("lacks").nth(1).is_some_and(|lacks| lacks.contains(name)),
            !holds(wall),
            "{found}"
        );
    }
    assert!(holds("limits") && refused.len() == 5, "{tried}");
    // A kernel that has Landlock lists it here, if this file system is mounted.
    let listed = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    assert!(holds("landlock") || !listed.contains("landlock"), "{tried}");
    for (what, code) in &refused {
        let Some(code) = code else {
            // Without the filter, limits on processes do not hold for root.
            assert!(
                !holds("seccomp") && what == "start a thread or a process",
                "{what} was possible: {tried}"
            );
            continue;
        };
        let by_filter = holds("seccomp") && what != "take more memory";
        assert!(!by_filter || *code == rustix::io::Errno::PERM.raw_os_error(), "{what}: {tried}");
    }
}

#[test]
fn a_folder_gives_the_source_of_pages_and_the_text_of_documents() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page.html"), "<p>source</p>").unwrap();
    fs::write(folder.path().join("paper.pdf"), pdf(&[line("Paper")])).unwrap();
    let roots = Roots::new(folder.path(), &[], &[]).unwrap();
    let extractor = Extractor::new(env!("CARGO_BIN_EXE_tiro").into());
    let budget = Budget::default();
    let reading = Reading { limits: &Limits::default(), now_ns: 0, extractor: &extractor, budget: &budget };
    let gathered = gather(&roots, &[".".to_owned()], &Limits::default(), &budget);
    let forms: Vec<Form> = gathered.files.iter().map(|found| found.form).collect();
    assert_eq!(forms, [Form::Text, Form::Document(DocumentKind::Pdf)]);
    let texts: Vec<String> =
        gathered.files.iter().map(|found| roots.read(found, &reading).unwrap().text).collect();
    assert_eq!(texts, ["<p>source</p>", "--- page 1 ---\nPaper\n"]);
}
