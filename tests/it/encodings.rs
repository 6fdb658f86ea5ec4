//! Commits and files in other encodings than UTF-8 are read, and people have their current names.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Home, Repo};
use crate::mock::{Manner, Mock};
use crate::spends::write;

/// Messages: the encoding as commits name it, the bytes, and what they say.
const MESSAGES: &[(&str, &[u8], &str)] = &[
    ("ISO-8859-1", b"Die F\xe4hre f\xe4hrt t\xe4glich \xfcber die F\xf6rde", "Die Fähre fährt täglich über die Förde"),
    ("GBK", b"\xbb\xba\xb4\xe6\xb6\xc9\xc2\xd6\xb5\xc4\xca\xb1\xbf\xcc\xb1\xed", "缓存渡轮的时刻表"),
    (
        "SJIS",
        b"\x83t\x83F\x83\x8a\x81[\x82\xcc\x8e\x9e\x8d\x8f\x95\x5c\x82\xf0\x95\xdb\x91\xb6\x82\xb7\x82\xe9",
        "フェリーの時刻表を保存する",
    ),
    (
        "EUC-KR",
        b"\xbf\xac\xb6\xf4\xbc\xb1 \xbd\xc3\xb0\xa3\xc7\xa5\xb8\xa6 \xc0\xfa\xc0\xe5\xc7\xd1\xb4\xd9",
        "연락선 시간표를 저장한다",
    ),
    (
        "cp1251",
        b"\xca\xfd\xf8\xe8\xf0\xee\xe2\xe0\xf2\xfc \xf0\xe0\xf1\xef\xe8\xf1\xe0\xed\xe8\xe5 \xef\xe0\xf0\xee\xec\xe0",
        "Кэшировать расписание парома",
    ),
    ("BIG5", b"\xa7\xd6\xa8\xfa\xb4\xe7\xbd\xfc\xaa\xba\xae\xc9\xa8\xe8\xaa\xed", "快取渡輪的時刻表"),
    ("ISO-2022-JP", b"\x1b$B9A$ND,0L$rFI$`\x1b(B", "港の潮位を読む"),
    ("koi8-r", b"\xfe\xc9\xd4\xc1\xd4\xd8 \xd5\xd2\xcf\xd7\xc5\xce\xd8 \xd0\xd2\xc9\xcc\xc9\xd7\xc1", "Читать уровень прилива"),
];

/// Commits a change with a message of these bytes. `encoding` is what git records as their encoding.
fn commit(repo: &Repo, number: usize, encoding: &str, message: &[u8]) {
    let file = repo.path.parent().unwrap().join("message");
    std::fs::write(&file, message).unwrap();
    repo.write("pier.txt", &format!("{number}\n"));
    repo.git(&["add", "-A"]);
    let encoding = format!("i18n.commitEncoding={encoding}");
    repo.git(&["-c", &encoding, "commit", "-q", "-F", file.to_str().unwrap()]);
}

fn texts(home: &Home, project: &Path) -> String {
    let exported = home.run(project, &["export"]);
    assert!(exported.is_ok, "{exported:?}");
    let read =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap_or("").to_owned();
    exported.stdout.lines().map(read).collect::<Vec<_>>().join("\n")
}

/// The encoding is named, or not named, or named wrongly.
#[test]
fn commit_messages_are_readable_whatever_their_encoding() {
    let home = Home::new();
    let named = home.repo("named");
    let unnamed = home.repo("unnamed");
    let wrong = home.repo("wrong");
    for (number, (encoding, bytes, text)) in MESSAGES.iter().enumerate() {
        commit(&named, number, encoding, bytes);
        commit(&unnamed, number, "x-unknown", bytes);
        commit(&wrong, number, encoding, text.as_bytes());
    }
    for repo in [&named, &unnamed, &wrong] {
        let imported = home.run(&repo.path, &["import", "git"]);
        assert!(imported.is_ok && !imported.stdout.contains("not valid text"), "{imported:?}");
        let guessed = imported.stdout.contains("7 have messages whose encoding was guessed");
        assert_eq!(guessed, repo.path == unnamed.path, "{imported:?}");
        let texts = texts(&home, &repo.path);
        for (encoding, _, text) in MESSAGES {
            assert!(texts.contains(text), "{encoding} in {:?}: {texts}", repo.path);
        }
        let again = home.json(&repo.path, &["import", "git"]);
        assert_eq!(again["imported"], 0, "{again}");
    }
    let hits = home.json(&named.path, &["search", "渡轮的时刻表"]);
    assert!(hits["hits"][0]["text"].as_str().unwrap().contains("缓存渡轮的时刻表"), "{hits}");
}

fn author_of(home: &Home, project: &Path, question: &str) -> String {
    let ran = home.run(project, &["search", "-k", "1", question]);
    assert!(ran.is_ok, "{ran:?}");
    ran.stdout
}

/// The mailmap can come later than the commits, change, and go away; and none of that stores a commit twice.
#[test]
fn authors_have_the_names_that_the_mailmap_gives_them_now() {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("crane.txt", "red\n", "paint the crane");
    repo.commit("pier.txt", "long\n", "measure the pier");
    assert!(home.run(&repo.path, &["import", "git"]).is_ok);
    assert!(author_of(&home, &repo.path, "crane").contains(" Ada"));
    for name in ["Ines Quay", "Ines Quay-Moreau"] {
        repo.write(".mailmap", &format!("{name} <ines@example.org> Ada <ada@example.org>\n"));
        for question in ["crane", "what did Quay paint", "what did Ada paint"] {
            let shown = author_of(&home, &repo.path, question);
            assert!(shown.contains(name) && shown.contains("paint the crane"), "{question}: {shown}");
        }
    }
    repo.commit("mooring.txt", "rope\n", "check the mooring");
    assert!(author_of(&home, &repo.path, "mooring").contains("Ines Quay-Moreau"));
    std::fs::remove_file(repo.path.join(".mailmap")).unwrap();
    let shown = author_of(&home, &repo.path, "crane");
    assert!(shown.contains(" Ada") && !shown.contains("Quay"), "{shown}");
    let stats = home.json(&repo.path, &["import", "git"]);
    assert_eq!(stats["imported"], 0, "{stats}");
    assert_eq!(texts(&home, &repo.path).matches("paint the crane").count(), 1);
}

/// Source files: a name, the bytes, the encoding that the answer names, and what is sent.
const SOURCES: &[(&str, &[u8], &str, &str)] = &[
    ("de.c", b"// Gr\xf6\xdfe der F\xe4hre \xfcber die F\xf6rde\n", "windows-1252", "Größe der Fähre über die Förde"),
    (
        "zh.c",
        b"// \xb6\xc9\xc2\xd6\xb5\xc4\xca\xb1\xbf\xcc\xb1\xed\xc3\xbf\xbe\xc5\xb7\xd6\xd6\xd3\xbb\xba\xb4\xe6\xd2\xbb\xb4\xce\n",
        "GBK",
        "渡轮的时刻表每九分钟缓存一次",
    ),
    (
        "ja.c",
        b"// \x83t\x83F\x83\x8a\x81[\x82\xcc\x8e\x9e\x8d\x8f\x95\x5c\x82\xcd\x8b\xe3\x95\xaa\x8a\xd4\n",
        "Shift_JIS",
        "フェリーの時刻表は九分間",
    ),
    (
        "ru.c",
        b"// \xd0\xe0\xf1\xef\xe8\xf1\xe0\xed\xe8\xe5 \xef\xe0\xf0\xee\xec\xe0 \xf5\xf0\xe0\xed\xe8\xf2\xf1\xff\n",
        "windows-1251",
        "Расписание парома хранится",
    ),
    (
        "ko.c",
        b"// \xbf\xac\xb6\xf4\xbc\xb1 \xbd\xc3\xb0\xa3\xc7\xa5\xb4\xc2 \xb5\xbf\xbe\xc8 \xc0\xfa\xc0\xe5\xb5\xc8\xb4\xd9\n",
        "EUC-KR",
        "연락선 시간표는 동안 저장된다",
    ),
    ("named.py", b"# -*- coding: iso-8859-2 -*-\n# \xb3\xf3d\xbc\n", "ISO-8859-2", "łódź"),
    ("wide.c", b"/\0/\0 \0G\0r\0\xf6\0\xdf\0e\0 \0d\0e\0r\0 \0S\0e\0e\0\n\0", "UTF-16", "Größe der See"),
    ("torn.c", b"// na\xc3\xafve caf\xc3\xa9 d\xc3\xa9j\xc3\xa0 \xff\n", "1 byte that is not UTF-8", "naïve café déjà"),
];

#[test]
fn source_files_in_other_encodings_are_sent_and_said_to_be_converted() {
    let home = Home::new();
    let repo = home.repo("project");
    let mock = Mock::start();
    mock.behaves(&Manner::Says("Fine.".into()));
    let endpoint = mock.endpoint();
    write(
        &home,
        &format!(
            "[providers.m]\nservice = 'openai-compatible'\nendpoint = '{endpoint}'\nmodel = 'm'\nwindow = 32000\n"
        ),
    );
    for (name, bytes, ..) in SOURCES {
        std::fs::write(repo.path.join(name), bytes).unwrap();
    }
    // A picture without a zero byte, and numbers that could be UTF-16.
    std::fs::write(repo.path.join("picture"), b"\x89PIC\x01\x02\x9d\xff\xfe\x03\x81\x8d\x05\xc3\x28")
        .unwrap();
    std::fs::write(repo.path.join("numbers"), [7_u16, 300, 12, 9, 4000, 11].map(u16::to_le_bytes).concat())
        .unwrap();
    let answer = home.json(&repo.path, &["chat", "--with", "m", "--context", ".", "Review this"]);
    let sent = mock.seen.lock().unwrap()[0].1.to_string();
    let receipt = answer["receipt"].to_string();
    for (name, _, encoding, text) in SOURCES {
        assert!(sent.contains(text), "{name}: {sent}");
        assert!(receipt.contains(name) && receipt.contains(encoding), "{name}: {receipt}");
    }
    assert!(receipt.contains(r#"{"path":"numbers, picture","why":"is not text"}"#), "{receipt}");
}
