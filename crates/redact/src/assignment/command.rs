//! Finds passwords in commands, in SQL statements and in password files: `redis-cli -a`, `chpasswd`, `IDENTIFIED
//! BY`, `.pgpass`.
//!
//! The command or statement shows that a value is a password. So even a value of letters alone counts as a password,
//! unless it is a placeholder.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::extent::opened;
use super::joint::Joint;
use crate::edges::is_word;
use crate::form::{Makeup, is_generated, is_stand_in, is_template};
use crate::scanners::credentials::WORDS;
use crate::shape::is_shaped;

/// The kind of value that follows a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// The password.
    Password,
    /// The password, which follows the flag without a space.
    Attached,
    /// A user and a password that are separated by this byte.
    Pair(u8),
}

/// The flags that take a password. Each row also has the names, or parts of the names, of the commands with this flag.
#[rustfmt::skip] // A table is easier to read with one flag per line.
const FLAGS: &[(&str, Takes, &[&str])] = &[
    ("-u", Takes::Pair(b':'), &["curl", "wget", "http", "aria2c", "influx", "swaks"]),
    ("-a", Takes::Pair(b':'), &["http"]),
    ("--auth", Takes::Pair(b':'), &["http", "wscat"]),
    ("-u", Takes::Pair(b','), &["lftp"]),
    ("--user", Takes::Pair(b':'), &["curl", "wget", "http", "aria2c"]),
    ("--proxy-user", Takes::Pair(b':'), &["curl", "wget", "http", "aria2c"]),
    ("-U", Takes::Pair(b'%'), &["smbclient", "rpcclient", "smbget", "net ", "wmic"]),
    ("-U", Takes::Pair(b':'), &["curl"]),
    ("-p", Takes::Attached, &["mysql", "mariadb", "sshpass", "7z", "unrar", "rar "]),
    ("-p", Takes::Password, &["login", "sshpass", "mongo", "cqlsh", "hydra", "crackmapexec", "netexec", "nxc ", "rdesktop", "twine", "evil-winrm", "smbmap", "ftp", "impala", "vault", "neo4j", "cypher-shell", "az ", "clickhouse"]),
    ("-P", Takes::Password, &["sqlcmd", "bcp", "ipmitool", "mosquitto", "zip", "osql", "tsql", "isql", "kafkacat"]),
    ("-P", Takes::Attached, &["sqlcmd", "bcp", "zip", "osql"]),
    ("-a", Takes::Password, &["redis-cli", "redis-benchmark", "valkey-cli", "keydb-cli"]),
    ("-w", Takes::Password, &["ldap"]),
    ("/p:", Takes::Attached, &["freerdp", "cmdkey", "runas"]),
];

/// Returns the password that follows the flag at `hit`, if a command with this flag is named earlier on the line.
pub(crate) fn user_flag(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let flag = text[hit.clone()].trim_ascii_start();
    let mut at = hit.end;
    at += text[at..].iter().take(8).take_while(|b| matches!(b, b' ' | b'=')).count();
    // In a shell, a backslash continues the line.
    let lines = [&b"\\\n"[..], b"\\\r\n"];
    if let Some(line) = lines.iter().find(|line| text[at..].starts_with(line)) {
        at += line.len();
        at += text[at..].iter().take(40).take_while(|b| matches!(b, b' ' | b'\t')).count();
    }
    let space = at - hit.end;
    let quote = text.get(at).copied().filter(|b| matches!(b, b'"' | b'\''));
    at += usize::from(quote.is_some());
    let ends = |b: u8| {
        b == b'\n' || b == b'\\' || Some(b) == quote || quote.is_none() && b" \t\r\"'`;|&)".contains(&b)
    };
    let run = text[at..].iter().take(200).position(|b| ends(*b)).unwrap_or(text.len().min(at + 200) - at);
    let value = &text[at..at + run];
    let rows = FLAGS.iter().filter(|(name, _, _)| name.as_bytes() == flag);
    if space > 0
        && let Some(range) = apart(text, at..at + run, quote)
        && rows
            .clone()
            .any(|(_, takes, names)| *takes == Takes::Pair(b':') && is_command(text, hit.start, names))
    {
        return Some(range);
    }
    if run < 4 || quote.is_none() && value[0] == b'-' {
        return None;
    }
    let (start, _) = rows
        .filter_map(|(_, takes, names)| {
            let before = match takes {
                Takes::Password if space > 0 => 0,
                Takes::Attached if space == 0 => 0,
                Takes::Pair(sign) if space > 0 => value.iter().position(|b| b == sign)? + 1,
                _ => return None,
            };
            // An attached lower-case word is not taken as a password. It may be one, as in `mysql -proot`, or several
            // flags, as in `mysql -pipe`.
            let plain = *takes == Takes::Attached && value.iter().all(u8::is_ascii_lowercase);
            (!plain).then_some((at + before, *names))
        })
        .find(|(start, names)| {
            accepted(text, *start..at + run).is_some() && is_command(text, hit.start, names)
        })?;
    let port = text[start..at + run].iter().all(|b| b.is_ascii_digit() || *b == b':');
    accepted(text, start..at + run).filter(|_| !port || flag == b"-a" || flag == b"-w")
}

/// Returns the password of a pair whose halves are quoted separately and joined by the shell, as in `user:'password'`
/// and `"user":"password"`. Also returns a key that a service takes in place of the user, as in `"key:"`. The first
/// half, or the whole pair, is at `value`.
fn apart(text: &[u8], value: Range<usize>, quote: Option<u8>) -> Option<Range<usize>> {
    let ended = text[value.clone()].ends_with(b":");
    let mut at = value.end;
    if quote.is_some() && !ended {
        at += 1;
        at += usize::from(text.get(at) == Some(&b':'));
    }
    let joined = if quote.is_some() { at == value.end + 2 } else { ended };
    let next = text.get(at).copied().filter(|b| joined && matches!(b, b'"' | b'\''));
    if let Some(next) = next {
        let run = text[at + 1..].iter().take(200).position(|b| *b == next || b"\n ".contains(b))?;
        return accepted(text, at + 1..at + 1 + run).filter(|range| text[range.end] == next);
    }
    let key = value.start..value.end - usize::from(ended);
    let ends =
        text.get(value.end).is_none_or(|b| Some(*b) == quote || quote.is_none() && b" \r\n".contains(b));
    (ended && ends && is_shaped(&text[key.clone()])).then_some(key)
}

/// Returns whether one of `names` is on the same line within the 240 bytes before `at`.
fn is_command(text: &[u8], at: usize, names: &[&str]) -> bool {
    static COMMANDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
        let names = FLAGS.iter().flat_map(|(_, _, names)| *names);
        AhoCorasick::new(names).expect("some dozens of short names fit an automaton")
    });
    let line = &text[at.saturating_sub(240)..at];
    let ends = |place: &usize| line[*place] == b'\n' && !line[..*place].trim_ascii_end().ends_with(b"\\");
    let line = &line[(0..line.len()).rev().find(ends).map_or(0, |place| place + 1)..];
    COMMANDS
        .find_overlapping_iter(line)
        .any(|found| names.iter().any(|name| line[found.range()] == *name.as_bytes()))
}

/// Returns `range` if its text may be a password and is not a placeholder.
fn accepted(text: &[u8], range: Range<usize>) -> Option<Range<usize>> {
    let password = &text[range.clone()];
    let open = password.len() < 4
        || is_template(password)
        || is_stand_in(password)
        || password[0] == b'$' && password[1..].iter().all(|b| is_word(*b))
        || WORDS.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    (!open && std::str::from_utf8(password).is_ok()).then_some(range)
}

/// Returns the password that follows the words `IDENTIFIED BY` at `hit` in an SQL statement.
pub(super) fn identified(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let at = hit.end + text[hit.end..].iter().take(8).take_while(|b| b.is_ascii_whitespace()).count();
    if at == hit.end {
        return None;
    }
    let values = text.get(at..at + 7).is_some_and(|it| it.eq_ignore_ascii_case(b"values "));
    let (range, quoted) = opened(text, if values { at + 7 } else { at }, Joint::Flag)?;
    let makeup = Makeup::of(&text[range.clone()]);
    let strong = range.len() >= 6 && makeup.letters() > 0 && makeup.digits + makeup.symbols > 0;
    accepted(text, range).filter(|_| quoted || strong)
}

/// Returns the plain password that `ConvertTo-SecureString` at `hit` gets as its argument or through a pipe.
pub(super) fn secure_string(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let mut at = hit.end;
    for _ in 0..4 {
        at += text[at..].iter().take(4).take_while(|b| matches!(b, b' ' | b':' | b'(')).count();
        let flag = text[at..].iter().take(16).take_while(|b| **b == b'-' || b.is_ascii_alphabetic()).count();
        if text.get(at) != Some(&b'-') {
            break;
        }
        at += flag;
    }
    let argument = opened(text, at, Joint::Flag).filter(|(range, quoted)| *quoted || range.len() > 5);
    if let Some((range, _)) = argument
        && text[hit.end..at].contains(&b' ')
    {
        return accepted(text, range);
    }
    let before = text[..hit.start].trim_ascii_end().strip_suffix(b"|")?.trim_ascii_end();
    let quote = *before.last().filter(|b| matches!(b, b'"' | b'\''))?;
    let end = before.len() - 1;
    let length = before[..end].iter().rev().take(128).position(|b| *b == quote || *b == b'\n')?;
    accepted(text, end - length..end).filter(|range| text[range.start - 1] == quote)
}

/// Returns the password that a command gets through a pipe or as an argument. `hit` is the range of the word for a
/// password in the name of the command or flag, such as `pass` in `chpasswd`.
pub(super) fn from_command(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let rest = &text[hit.end..];
    let name = &text[hit.start.saturating_sub(2)..hit.start];
    if rest.starts_with(b"wd") && name == b"ch" {
        let range = echoed(text, hit.start - 2).or_else(|| here(text, hit.end + 2))?;
        let colon = text[range.clone()].iter().position(|b| *b == b':')?;
        return accepted(text, range.start + colon + 1..range.end);
    }
    if rest.starts_with(b"wd") && name == b"ht" {
        return htpasswd(text, hit.end + 2);
    }
    if rest.starts_with(b"wd --stdin") || rest.starts_with(b"word-stdin") {
        return accepted(text, echoed(text, hit.start)?);
    }
    None
}

/// Returns the text that `echo`, earlier on the same line, pipes into the command at `at`.
pub(super) fn echoed(text: &[u8], at: usize) -> Option<Range<usize>> {
    let line = &text[at.saturating_sub(240)..at];
    let line_start = at - line.len();
    let pipe = line.iter().rposition(|b| *b == b'|')?;
    let command = &line[..pipe];
    let (word, begin) = ["echo ", "printf ", "<<< "]
        .iter()
        .find_map(|word| Some((word, command.windows(word.len()).rposition(|it| it == word.as_bytes())?)))?;
    let mut start = begin + word.len();
    if command[begin..].contains(&b'\n') {
        return None;
    }
    while command[start..].starts_with(b"-") {
        start += command[start..].iter().position(|b| *b == b' ')? + 1;
    }
    let mut end = command.trim_ascii_end().len().max(start);
    if let Some(quote) = command[start..].first().filter(|b| matches!(b, b'"' | b'\'')) {
        start += 1;
        end = start + command[start..].iter().position(|b| b == quote)?;
    }
    while command[start..end].ends_with(b"\\n") {
        end -= 2;
    }
    (start < end && !command[start..end].contains(&b' ')).then_some(line_start + start..line_start + end)
}

/// Returns the string after the `<<<` at `at`. If `<<END` is there instead, returns the next line.
pub(super) fn here(text: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = text[at..].trim_ascii_start();
    let at = text.len() - rest.len();
    if rest.starts_with(b"<<<") {
        let start = at + 3 + usize::from(text.get(at + 3) == Some(&b' '));
        return opened(text, start, Joint::Flag)
            .map(|(range, quoted)| if quoted { range } else { words(text, start) });
    }
    rest.starts_with(b"<<").then_some(())?;
    let line = at + rest.iter().take(40).position(|b| *b == b'\n')? + 1;
    Some(words(text, line))
}

/// Returns the run of printable characters at `start`.
fn words(text: &[u8], start: usize) -> Range<usize> {
    start..start + text[start..].iter().take(200).take_while(|b| b.is_ascii_graphic()).count()
}

/// Returns the last argument of `htpasswd -b file user password`. The arguments begin at `at`.
fn htpasswd(text: &[u8], at: usize) -> Option<Range<usize>> {
    let line = &text[at..];
    let line =
        &line[..line.iter().take(240).position(|b| b"\n|;&>`".contains(b)).unwrap_or(line.len().min(240))];
    let (mut place, mut arguments, mut batch, mut last) = (0, 0, false, 0..0);
    while place < line.len() {
        place += line[place..].iter().take_while(|b| **b == b' ').count();
        let run = line[place..].iter().take_while(|b| **b != b' ').count();
        if line[place..].starts_with(b"-") {
            batch |= line[place..place + run].contains(&b'b');
        } else if run > 0 {
            arguments += 1;
            last = place..place + run;
        }
        place += run;
    }
    let quote = usize::from(line.get(last.start).is_some_and(|b| matches!(b, b'"' | b'\'')));
    let range = at + last.start + quote..at + last.end.saturating_sub(quote);
    (batch && arguments >= 2 && range.start < range.end).then(|| accepted(text, range))?
}

/// Returns the password after `pass:` at `hit`, as in `openssl -passin pass:…`.
pub(super) fn openssl(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let flag = ["-passin ", "-passout ", "-pass ", "-passin=", "-srcstorepass ", "-deststorepass "];
    let given = flag.iter().any(|flag| text[..hit.start].ends_with(flag.as_bytes()));
    if !given || text.get(hit.end) != Some(&b':') {
        return None;
    }
    let run =
        text[hit.end + 1..].iter().take(128).take_while(|b| b.is_ascii_graphic() && !b"\"'`;|&".contains(b));
    accepted(text, hit.end + 1..hit.end + 1 + run.count())
}

/// Returns the login in a setting of Bundler whose name begins at `hit` and ends with a host, as in
/// `BUNDLE_GEMS__EXAMPLE__COM=user:password`.
pub(crate) fn gem_source(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let constant = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    let name = text[hit.end..].iter().take(80).take_while(|b| constant(b)).count();
    let end = hit.end + name;
    if !text[hit.end..end].windows(2).any(|signs| signs == b"__") {
        return None;
    }
    let at = text[end..].iter().take(8).take_while(|b| b"\"': =".contains(b)).count();
    if !text[end..end + at].iter().any(|b| b":=".contains(b)) {
        return None;
    }
    let start = end + at;
    let user = text[start..].iter().take(80).take_while(|b| is_word(**b) || b".@%-".contains(b)).count();
    let first = text.get(start).is_some_and(u8::is_ascii_alphanumeric);
    let password = text[start + user..].strip_prefix(b":")?;
    let run =
        password.iter().take(200).take_while(|b| b.is_ascii_graphic() && !b"\"'/\\`;".contains(b)).count();
    let range = start + user + 1..start + user + 1 + run;
    (first && user >= 4).then(|| accepted(text, range.clone()))?.map(|range| start..range.end)
}

/// Returns the password in a line of a `.pgpass` file, `host:port:database:user:password`. The port is at `hit`.
pub(crate) fn pgpass(text: &[u8], hit: &Range<usize>) -> Option<Range<usize>> {
    let plain = |b: u8| is_word(b) || b".-*".contains(&b);
    let host = text[..hit.start].iter().rev().take(64).take_while(|b| plain(**b)).count();
    let before = hit.start.checked_sub(host + 1).map(|at| text[at]);
    if host == 0 || before.is_some_and(|b| !b"\n\"' \t>+".contains(&b)) {
        return None;
    }
    let mut at = hit.end;
    for _ in 0..2 {
        let field = text[at..].iter().take(64).take_while(|b| plain(**b)).count();
        if field == 0 || text.get(at + field) != Some(&b':') {
            return None;
        }
        at += field + 1;
    }
    let run = text[at..].iter().take(128).take_while(|b| b.is_ascii_graphic() && !b"\"'".contains(b)).count();
    let ends = text.get(at + run).is_none_or(|b| b"\r\n\"'\\ ".contains(b));
    let colons = text[at..at + run].contains(&b':') && !is_generated(&text[at..at + run], 8);
    (ends && !colons).then(|| accepted(text, at..at + run))?
}
