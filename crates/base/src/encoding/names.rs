//! Names of encodings, as git, editors and people write them.

use encoding_rs::Encoding;

/// Returns the encoding that `name` names. The name may be a label of the WHATWG Encoding Standard, the name of a code
/// page, or a common misspelling: `GBK`, `sjis`, `cp1251`, `ISO8859_15`, `Windows 932`.
pub(super) fn encoding(name: &[u8]) -> Option<&'static Encoding> {
    // The WHATWG Encoding Standard has encodings that mean "not text" or "no encoding at all".
    let is_text =
        |encoding: &&Encoding| ![encoding_rs::REPLACEMENT, encoding_rs::X_USER_DEFINED].contains(encoding);
    let name = name.trim_ascii();
    let known = Encoding::for_label(name);
    known.or_else(|| Encoding::for_label(standard(name)?.as_bytes())).filter(is_text)
}

/// Returns the label of an encoding in the WHATWG Encoding Standard, if `name` is another spelling of the label or
/// names the code page of the encoding.
fn standard(name: &[u8]) -> Option<String> {
    let plain: String = name
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect();
    let plain = plain.strip_prefix('x').unwrap_or(&plain);
    let number = |prefixes: &[&str]| {
        let digits = prefixes.iter().find_map(|prefix| plain.strip_prefix(prefix))?;
        digits.parse::<u32>().ok()
    };
    if let Some(part) = number(&["iso8859", "8859", "is8859"]) {
        return Some(format!("iso-8859-{part}"));
    }
    // The number of a Latin alphabet can differ from the number of its part of ISO 8859: Latin 5 is ISO 8859-9.
    if let Some(alphabet) = number(&["latin", "l"]) {
        let part = match alphabet {
            1..=4 => alphabet,
            5 => 9,
            6 => 10,
            7..=10 => alphabet + 6,
            _ => return None,
        };
        return Some(format!("iso-8859-{part}"));
    }
    if let Some(page) = number(&["windows", "win", "codepage", "cp", "ms", "ibm", ""]) {
        let name = match page {
            874 | 1250..=1258 => return Some(format!("windows-{page}")),
            866 => "ibm866",
            932 | 943 => "shift_jis",
            936 | 1386 => "gbk",
            949 | 51949 => "euc-kr",
            950 => "big5",
            20866 => "koi8-r",
            21866 => "koi8-u",
            20932 | 51932 => "euc-jp",
            50220..=50222 => "iso-2022-jp",
            54936 => "gb18030",
            65001 => "utf-8",
            _ => return None,
        };
        return Some(name.to_owned());
    }
    let name = match plain {
        "sjis" | "shiftjis" | "shiftjis2004" | "sjiswin" => "shift_jis",
        "eucjp" | "ujis" | "eucjpms" | "eucjpwin" => "euc-jp",
        "euckr" | "uhc" | "ksc5601" | "ksc56011987" | "ksc56011992" => "euc-kr",
        "euccn" | "gbk" | "gb2312" | "gb231280" => "gbk",
        "gb18030" => "gb18030",
        "big5" | "big5hkscs" | "big5eten" => "big5",
        "koi8" | "koi8r" => "koi8-r",
        "koi8u" => "koi8-u",
        "tis620" => "windows-874",
        "macroman" | "mac" => "macintosh",
        "iso2022jp" | "iso2022jp1" | "iso2022jpms" | "jis" => "iso-2022-jp",
        "utf8" | "utf8mb4" | "utf8bom" => "utf-8",
        "utf16le" => "utf-16le",
        "utf16be" => "utf-16be",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_known_by_the_names_that_people_give_them() {
        for (names, expected) in [
            (
                "ISO-8859-1 iso8859-1 ISO8859_1 latin1 Latin-1 l1 cp1252 Windows-1252 win1252 us-ascii",
                "windows-1252",
            ),
            ("iso8859-15 ISO-8859-15 latin9 Latin-9", "ISO-8859-15"),
            ("latin2 iso8859_2 ISO-8859-2", "ISO-8859-2"),
            ("windows-1251 cp1251 CP-1251 win1251 WINDOWS_1251 1251", "windows-1251"),
            ("KOI8-R koi8_r koi8r cp20866", "KOI8-R"),
            ("GBK gbk GB2312 gb_2312-80 euc-cn EUCCN cp936 CP_936 x-gbk", "GBK"),
            ("GB18030 gb-18030", "gb18030"),
            ("SHIFT_JIS sjis shift-jis x-sjis cp932 MS932 windows-31j Windows_932", "Shift_JIS"),
            ("EUC-JP eucjp EUC_JP ujis eucJP-ms", "EUC-JP"),
            ("ISO-2022-JP iso2022jp JIS", "ISO-2022-JP"),
            ("EUC-KR euckr EUC_KR cp949 uhc ks_c_5601-1987", "EUC-KR"),
            ("BIG5 big5 Big5-HKSCS cp950", "Big5"),
            ("utf8 UTF-8 cp65001", "UTF-8"),
        ] {
            for name in names.split(' ') {
                let found = encoding(name.as_bytes()).map(Encoding::name);
                assert_eq!(found, Some(expected), "{name}");
            }
        }
        for name in ["", "x", "none", "replacement", "x-user-defined", "iso-2022-cn", "cp99", "\u{fffd}"] {
            assert_eq!(encoding(name.as_bytes()), None, "{name}");
        }
    }
}
