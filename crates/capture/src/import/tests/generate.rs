//! Generates transcripts in the format of Claude Code. The same seed gives the same bytes.
//!
//! A session is a chain of turns: a prompt, a few answers, calls of Bash, Read, Edit and Grep with outputs of realistic
//! sizes. Between the turns are the client's own notes and whole prompts, which make up most of the bytes. [`Made`]
//! says what a reader should find.

use std::fmt::Write;

use serde_json::{Value, json};

/// A transcript, and how many entries of each kind it contains.
pub struct Made {
    /// The bytes of the lines, each with its line end.
    pub bytes: Vec<u8>,
    /// Prompts of the user.
    pub prompts: usize,
    /// Answers of the assistant.
    pub answers: usize,
    /// Tool calls, all with a result.
    pub calls: usize,
}

/// Returns a transcript of at least `bytes` bytes.
pub fn claude_code(seed: u64, bytes: usize) -> Made {
    let mut writer = Writer {
        random: Random(seed.wrapping_mul(2).wrapping_add(1)),
        made: Made { bytes: Vec::with_capacity(bytes + 65536), prompts: 0, answers: 0, calls: 0 },
        lines: 0,
    };
    while writer.made.bytes.len() < bytes {
        writer.turn();
    }
    writer.made
}

struct Writer {
    random: Random,
    made: Made,
    lines: u64,
}

impl Writer {
    fn turn(&mut self) {
        let prompt = self.prose(12);
        self.made.prompts += 1;
        self.line(
            "user",
            json!({"message": {"role": "user", "content": prompt}, "permissionMode": "default"}),
        );
        let reminder = self.prose(400);
        self.line("attachment", json!({"attachment": {"type": "skill_listing", "content": reminder}}));
        for _ in 0..1 + self.random.below(6) {
            if self.random.below(3) == 0 {
                self.answer();
            }
            self.call();
            if self.random.below(8) == 0 {
                let prompt = self.prose(2500);
                self.line("api-request", json!({"request": {"system": prompt}}));
            }
        }
        self.answer();
        self.line("system", json!({"subtype": "stop_hook_summary", "hookCount": 1}));
    }

    fn answer(&mut self) {
        let words = 20 + self.random.below(120);
        let text = self.prose(words);
        self.made.answers += 1;
        self.assistant(json!({"type": "text", "text": text}));
    }

    fn assistant(&mut self, block: Value) {
        let usage = json!({"input_tokens": 12, "output_tokens": 345, "service_tier": "standard"});
        let message = json!({"id": "msg_made", "type": "message", "role": "assistant", "content": [block],
            "model": "claude-opus-5-5", "stop_reason": "tool_use", "usage": usage});
        self.line("assistant", json!({"message": message, "effort": "medium", "madeBy": "model"}));
    }

    fn call(&mut self) {
        self.made.calls += 1;
        let id = format!("toolu_{:016x}", self.random.next());
        let file = format!("/home/dev/project/src/{}.rs", self.word());
        let (tool, input, output, more) = match self.random.below(5) {
            0 | 1 => {
                let count = 1 + self.random.below(60) * self.random.below(8);
                let output = self.log(count);
                let command = format!("cargo test {} -- --nocapture", self.word());
                let more = json!({"stdout": output, "stderr": "", "interrupted": false});
                ("Bash", json!({"command": command, "description": "Run the tests"}), output, more)
            }
            2 => {
                let count = 20 + self.random.below(400);
                let code = self.code(count);
                let more = json!({"type": "text", "file": {"filePath": file, "content": code}});
                ("Read", json!({"file_path": file}), code, more)
            }
            3 => {
                let (old, new, whole) = (self.code(2), self.code(3), self.code(150));
                let output = format!("The file {file} has been updated successfully.");
                let more = json!({"filePath": file, "originalFile": whole, "oldString": old});
                ("Edit", json!({"file_path": file, "old_string": old, "new_string": new}), output, more)
            }
            _ => {
                let mut output = String::new();
                for _ in 0..1 + self.random.below(40) {
                    let _ = writeln!(
                        output,
                        "src/{}.rs:{}: {}",
                        self.word(),
                        self.random.below(900),
                        self.prose(6)
                    );
                }
                let input = json!({"pattern": format!("fn {}", self.word()), "path": "src", "output_mode": "content"});
                ("Grep", input, output.clone(), json!({"mode": "content", "content": output}))
            }
        };
        self.assistant(json!({"type": "tool_use", "id": id, "name": tool, "input": input}));
        let failed = tool == "Bash" && self.random.below(6) == 0;
        let result = json!({"tool_use_id": id, "type": "tool_result", "content": output, "is_error": failed});
        self.line("user", json!({"message": {"role": "user", "content": [result]}, "toolUseResult": more}));
    }

    fn line(&mut self, kind: &str, mut fields: Value) {
        self.lines += 1;
        let seconds = self.lines * 7;
        let (uuid, parent) = (self.random.next(), self.lines);
        for (name, value) in [
            ("parentUuid", json!(format!("{parent:032x}"))),
            ("isSidechain", json!(false)),
            ("type", json!(kind)),
            ("uuid", json!(format!("{uuid:016x}-{parent:08x}"))),
            (
                "timestamp",
                json!(format!(
                    "2026-{:02}-{:02}T{:02}:{:02}:{:02}.123Z",
                    1 + seconds / 2_419_200 % 12,
                    1 + seconds / 86400 % 28,
                    seconds / 3600 % 24,
                    seconds / 60 % 60,
                    seconds % 60
                )),
            ),
            ("cwd", json!("/home/dev/project")),
            ("sessionId", json!("ef4aeb67-26c6-4d6f-b01e-48c35bd7ae94")),
            ("version", json!("2.1.329")),
            ("gitBranch", json!("main")),
        ] {
            fields[name] = value;
        }
        self.made.bytes.extend(fields.to_string().into_bytes());
        self.made.bytes.push(b'\n');
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.random.below(WORDS.len() as u64) as usize]
    }

    fn prose(&mut self, words: u64) -> String {
        let mut text = String::new();
        for at in 0..words {
            text.push_str(self.word());
            text.push_str(if at % 17 == 16 { ".\n" } else { " " });
        }
        text
    }

    fn log(&mut self, lines: u64) -> String {
        let mut text = String::new();
        for _ in 0..lines {
            let (a, b) = (self.word(), self.word());
            let _ = writeln!(text, "test {a}::tests::{b}_{} ... ok", self.random.below(1000));
        }
        text + "\u{1b}[32mtest result: ok\u{1b}[0m. finished in 1.27s"
    }

    fn code(&mut self, lines: u64) -> String {
        let mut text = String::new();
        for at in 0..lines {
            let (a, b, c) = (self.word(), self.word(), self.word());
            let _ = writeln!(text, "{at:6}\tlet {a} = {b}.get(\"{c}\")?; // {}", self.word());
        }
        text
    }
}

/// A xorshift random generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
}

const WORDS: [&str; 48] = [
    "the",
    "cache",
    "index",
    "we",
    "decided",
    "because",
    "writer",
    "is",
    "flushed",
    "before",
    "a",
    "lease",
    "expires",
    "and",
    "parser",
    "reads",
    "lines",
    "twice",
    "when",
    "session",
    "resumes",
    "after",
    "timeout",
    "token",
    "budget",
    "never",
    "exceeds",
    "limit",
    "vector",
    "search",
    "falls",
    "back",
    "to",
    "words",
    "migration",
    "adds",
    "column",
    "test",
    "fails",
    "on",
    "macos",
    "only",
    "with",
    "threads",
    "größe",
    "schema",
    "branch",
    "merge",
];
