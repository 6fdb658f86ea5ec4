// Makes a home, a repository and a memory for the test of the pages: sessions of several weeks, the commits to which they
// led, notes, a thread with an assistant, a ledger of requests, and hostile texts.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync, appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';

const DAY = 86_400_000;
// A Monday. Fixed, so that the same pages are shown every time.
const BEGAN = Date.parse('2026-08-03T09:00:00Z');

/** Texts that would run a script, or break a page, if one of them became HTML. */
export const HOSTILE = [
    '<img src=x onerror="globalThis.ran=1">',
    '"><script>globalThis.ran=1</script>',
    "'><svg onload=globalThis.ran=1>",
    '[click](javascript:globalThis.ran=1)',
    '</textarea></title></style></script><script>globalThis.ran=1</script>',
    '![x](https://elsewhere.example/x.png)',
    '\u202e reversed \u2066 \u0000 \u001b[31m red',
    '`</code></pre><iframe src=javascript:globalThis.ran=1></iframe>`',
    '{{constructor.constructor("globalThis.ran=1")()}}',
];

export class Ground {
    constructor(program, root) {
        this.program = program;
        this.root = root;
        this.home = join(root, 'home');
        this.repo = join(root, 'harbour');
        for (const folder of [this.home, this.repo, join(root, 'data'), join(root, 'models')]) mkdirSync(folder, { recursive: true });
        this.env = {
            PATH: process.env.PATH, HOME: this.home, TZ: 'UTC', TIRO_DATA_DIR: join(root, 'data'),
            TIRO_MODEL_DIR: process.env.TIRO_MODEL_DIR ?? join(root, 'models'), LANG: 'C.UTF-8',
            GIT_CONFIG_NOSYSTEM: '1',
        };
        this.lines = 0;
    }

    tiro(...args) {
        return new Promise((resolve, reject) => {
            execFile(this.program, args, { cwd: this.repo, env: this.env, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
                error ? reject(new Error(`tiro ${args.join(' ')}: ${stderr}${stdout}`)) : resolve(stdout));
        });
    }

    git(at, ...args) {
        const date = new Date(at).toISOString();
        const env = { ...this.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
        const own = ['-c', 'user.name=Ada Harbour', '-c', 'user.email=ada@example.com', '-c', 'commit.gpgsign=false'];
        return execFileSync('git', [...own, ...args], { cwd: this.repo, env, encoding: 'utf8' });
    }

    write(path, text) {
        mkdirSync(dirname(join(this.repo, path)), { recursive: true });
        writeFileSync(join(this.repo, path), text);
    }

    commit(at, subject, body = '') {
        this.git(at, 'add', '-A');
        this.git(at, 'commit', '-q', '-m', subject, ...(body ? ['-m', body] : []));
    }

    /** Returns a session whose transcript is in the format of Claude Code. */
    session(name, began) {
        const folder = join(this.home, '.claude/projects', this.repo.replace(/[^A-Za-z0-9]/g, '-'));
        mkdirSync(folder, { recursive: true });
        const file = join(folder, `${name}.jsonl`);
        let at = began;
        const put = (role, content) => {
            this.lines += 1;
            appendFileSync(file, `${JSON.stringify({
                type: role, uuid: `00000000-0000-4000-8000-${String(this.lines).padStart(12, '0')}`,
                timestamp: new Date(at).toISOString(), cwd: this.repo, sessionId: name, gitBranch: 'main',
                version: '2.1.329', isSidechain: false, message: { role, content },
            })}\n`);
            at += 40_000;
        };
        const talk = {
            now: () => at,
            says: (role, text) => put(role, text),
            calls: (tool, input, output) => {
                const id = `toolu_${String(this.lines + 1).padStart(24, '0')}`;
                put('assistant', [{ type: 'tool_use', id, name: tool, input }]);
                put('user', [{ type: 'tool_result', tool_use_id: id, content: output }]);
            },
            writes: (path, text) => {
                this.write(path, text);
                talk.calls('Write', { file_path: join(this.repo, path), content: text }, `File created successfully at: ${path}`);
            },
        };
        return talk;
    }

    /** Starts a provider on this machine that answers in OpenAI's form. */
    async provider() {
        const answers = [
            'The tide table is right, but `next_slack` rounds down: a ferry that leaves at 11:59 gets the slack of the hour before. Round to the nearest minute instead.',
            'Yes. Keep the ledger append-only, and derive the balance. A correction is then an entry like any other.',
            'Nothing else reads `berth_of`. It can take `&Harbour`.',
        ];
        let asked = 0;
        this.mock = createServer((request, response) => {
            let body = '';
            request.on('data', (part) => { body += part; });
            request.on('end', () => {
                const isStream = body.includes('"stream":true');
                const text = answers[asked++ % answers.length];
                const usage = { prompt_tokens: Math.ceil(body.length / 4), completion_tokens: Math.ceil(text.length / 4) };
                const choice = { index: 0, finish_reason: 'stop', [isStream ? 'delta' : 'message']: { role: 'assistant', content: text } };
                const reply = JSON.stringify({ id: 'a', object: 'chat.completion', model: 'm', choices: [choice], usage });
                response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
                response.end(isStream ? `data: ${reply}\n\ndata: [DONE]\n\n` : reply);
            });
        });
        await new Promise((resolve) => this.mock.listen(0, '127.0.0.1', resolve));
        const folder = join(this.home, '.config/tiro');
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, 'config.toml'), [
            '[providers.local]', "service = 'openai-compatible'", `endpoint = 'http://127.0.0.1:${this.mock.address().port}/v1'`,
            "model = 'harbour-7b'", 'window = 32000', '',
        ].join('\n'));
    }

    /** Fills the memory. `texts` are the hostile texts; there are none in pictures. */
    async fill(texts = HOSTILE) {
        this.git(BEGAN, 'init', '-q', '-b', 'main');
        this.write('README.md', '# Harbour\n\nBerths, tides and tickets of a small ferry line.\n');
        this.commit(BEGAN, 'Begin the harbour');
        this.tides();
        this.ledger();
        this.berths();
        this.tickets();
        if (texts.length > 0) this.hostile(texts);
        await this.tiro('import', 'git');
        await this.tiro('import', 'claude-code');
        await this.notes(texts);
        await this.stash(texts);
        await this.tiro('context', '--session', 'ledger-append-only', 'why is the ledger append-only?');
        await this.provider();
        for (const question of ['Is next_slack right about rounding?', 'Should the ledger stay append-only?', 'Who else reads berth_of?']) {
            await this.tiro('chat', '--session', 'review', '--context', 'src', question);
        }
    }

    tides() {
        const talk = this.session('tides-of-august', BEGAN + DAY);
        talk.says('user', 'Ferries leave at slack water. Compute the next slack from the tide table, and cache it: the table is read on every request now.');
        talk.says('assistant', 'I will add `src/tides.rs` with a table per day and a function `next_slack`.\n\n- the table is **sorted** by time\n- the cache is keyed by the day\n\n```rust\nfn next_slack(table: &[Tide], now: Minute) -> Option<Minute>\n```');
        talk.writes('src/tides.rs', TIDES);
        talk.calls('Bash', { command: 'cargo test tides' }, 'running 4 tests\ntest tides::slack_is_between_ebb_and_flood ... ok\ntest result: ok. 4 passed; 0 failed');
        talk.says('user', 'Decision: we invalidate the cache at midnight and not after an hour, because the table changes once a day.');
        talk.says('assistant', 'Done: the cache is dropped when the day of the harbour changes. Reading the table fell from 40 ms to 0.2 ms per request.');
        this.commit(talk.now(), 'Cache the tide table for a day', 'Reading the table on every request took 40 ms. The cache is dropped at midnight, because the\ntable changes once a day.');
    }

    ledger() {
        const talk = this.session('ledger-append-only', BEGAN + 9 * DAY);
        talk.says('user', 'Refunds overwrite the sale in the ledger. An auditor could not see what happened. Make the ledger append-only.');
        talk.says('assistant', 'Then a refund becomes an entry of its own that names the sale. The balance is a fold over the entries.');
        talk.writes('src/ledger.rs', LEDGER);
        talk.calls('Bash', { command: 'git diff src/ledger.rs' }, 'diff --git a/src/ledger.rs b/src/ledger.rs\n--- a/src/ledger.rs\n+++ b/src/ledger.rs\n@@ -10,4 +10,6 @@ impl Ledger {\n-    pub fn refund(&mut self, sale: Id) {\n-        self.entries.remove(&sale);\n+    pub fn refund(&mut self, sale: Id, at: Minute) {\n+        // An auditor must see both.\n+        self.entries.push(Entry::Refund { sale, at });\n     }');
        talk.says('user', 'Good. The API must answer within 250 ms, also with a year of entries.');
        talk.says('assistant', 'With a year of entries the balance takes 11 ms.');
        this.commit(talk.now(), 'Make the ledger append-only', 'A refund was written over its sale, so an auditor could not see what had happened.');
    }

    berths() {
        const talk = this.session('berths-and-locks', BEGAN + 17 * DAY);
        talk.says('user', 'Two ferries got the same berth on Saturday. Find out why.');
        talk.calls('Grep', { pattern: 'fn berth_of', path: join(this.repo, 'src') }, 'src/berths.rs:9:pub fn berth_of(harbour: &mut Harbour, ferry: Ferry) -> Berth {');
        talk.says('assistant', 'The check and the booking are two steps. Between them another ferry can book the same berth. I make them one step under the lock of the harbour.');
        talk.writes('src/berths.rs', BERTHS);
        talk.says('user', 'The API must answer within 400 ms instead of 250 ms; the lock costs us that.');
        talk.says('assistant', 'Noted: 400 ms. The lock is held for 2 ms at most.');
        this.commit(talk.now(), 'Book a berth in one step', 'The check and the booking were two steps, and two ferries got the same berth.');
        this.write('docs/tides.md', '# Tides\n\nThe table is published once a day.\n');
        this.commit(BEGAN + 18 * DAY, 'Describe the tide table');
    }

    tickets() {
        for (const [place, subject] of ['Print tickets in landscape', 'Say when a ferry is full', 'Round fares to five cents', 'Show the crew the weather'].entries()) {
            const at = BEGAN + (24 + 5 * place) * DAY;
            const talk = this.session(`tickets-${place + 1}`, at);
            talk.says('user', `${subject}, please. Keep it small.`);
            talk.writes(`src/tickets_${place + 1}.rs`, `//! ${subject}.\n\npub fn step_${place + 1}() -> &'static str {\n    "${subject.toLowerCase()}"\n}\n`);
            talk.says('assistant', `Done: ${subject.toLowerCase()}. The tests pass.`);
            this.commit(talk.now(), subject);
        }
    }

    hostile(texts) {
        const talk = this.session('hostile-texts', BEGAN + 46 * DAY);
        for (const text of texts) {
            talk.says('user', `What does this do? ${text}`);
            talk.says('assistant', `It does nothing here:\n\n${text}\n\n> ${text}\n\n\`\`\`html\n${text}\n\`\`\``);
            talk.calls('Bash', { command: `echo '${text}'` }, text);
        }
        this.write('src/hostile.txt', `${texts.join('\n').replaceAll('\u0000', '')}\n`);
        this.commit(talk.now(), `Keep ${texts[1]}`, texts.join('\n').replaceAll('\u0000', ''));
    }

    async notes(texts) {
        const add = (type, text, ...more) => this.tiro('add', '--type', type, ...more, text);
        await add('decision', 'Ferries leave at slack water, since the pier has no pilot.', '--topic', 'tides');
        await add('decision', 'The ledger is append-only: a refund is an entry of its own.', '--topic', 'ledger');
        await add('fact', 'The tide table is published at 00:10 and changes once a day.', '--topic', 'tides');
        await add('finding', 'Two ferries got one berth, because check and booking were two steps.');
        await add('preference', 'Ada prefers small commits with a reason in the body.');
        for (const text of texts) await add('fact', `Seen in a form: ${text.replaceAll('\u0000', '')}`, '--topic', text.slice(0, 40).replaceAll('\u0000', ''));
    }

    /** Calls a tool of the server, as an agent does. */
    tool(name, args) {
        const child = spawn(this.program, ['serve'], { cwd: this.repo, env: this.env, stdio: ['pipe', 'pipe', 'ignore'] });
        const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'ground', version: '1' } };
        const say = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
        say({ id: 1, method: 'initialize', params: client });
        say({ method: 'notifications/initialized' });
        say({ id: 2, method: 'tools/call', params: { name, arguments: args } });
        return new Promise((resolve, reject) => {
            let out = '';
            child.stdout.on('data', (part) => {
                out += part;
                const answer = out.split('\n').filter((line) => line.endsWith('}')).map((line) => JSON.parse(line)).find(({ id }) => id === 2);
                if (!answer) return;
                child.stdin.end();
                answer.result && !answer.result.isError ? resolve(answer.result) : reject(new Error(JSON.stringify(answer)));
            });
        });
    }

    /** Puts texts and a message into the stash. */
    async stash(texts) {
        const segments = ['The old plan for berths: one list for each pier.', ...texts].map((text) => ({ text: text.replaceAll('\u0000', '') }));
        await this.tool('stash_context', { segments, topic: texts[1] ?? 'berths' });
        await this.tool('stash_context', { segment_ids: ['berths-and-locks#1'], topic: 'berths' });
    }

    /** Starts `tiro open` and returns its address and the process. */
    open(...args) {
        const child = spawn(this.program, ['open', '--no-browser', ...args], { cwd: this.repo, env: this.env });
        let out = '';
        let err = '';
        child.stderr.on('data', (part) => { err += part; });
        return new Promise((resolve, reject) => {
            child.stdout.on('data', (part) => {
                out += part;
                if (out.includes('\n')) resolve({ address: out.trim(), child, said: () => err });
            });
            child.on('exit', (code) => reject(new Error(`tiro open ended with ${code}: ${err}`)));
        });
    }

    close() {
        this.mock?.close();
    }

    read(path) {
        return readFileSync(join(this.repo, path), 'utf8');
    }
}

const TIDES = `//! The tides of the harbour, and when the water stands still.

use std::collections::BTreeMap;

/// A minute of the day.
pub type Minute = u16;

/// High or low water.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tide {
    pub at: Minute,
    pub height_cm: i16,
}

/// The table of a day. Reading it takes 40 ms, so it is read once a day.
#[derive(Default)]
pub struct Tides {
    days: BTreeMap<u32, Vec<Tide>>,
}

impl Tides {
    /// Returns the table of \`day\`, and forgets the tables of other days.
    pub fn of(&mut self, day: u32, read: impl FnOnce(u32) -> Vec<Tide>) -> &[Tide] {
        self.days.retain(|known, _| *known == day);
        self.days.entry(day).or_insert_with(|| read(day))
    }
}

/// Returns when the water stands still next: at each high and low water.
pub fn next_slack(table: &[Tide], now: Minute) -> Option<Minute> {
    table.iter().map(|tide| tide.at).find(|at| *at >= now)
}
`;

const LEDGER = `//! The ledger of tickets. Entries are added, never changed.

/// An entry.
pub enum Entry {
    Sale { id: u64, cents: i64 },
    Refund { sale: u64, cents: i64 },
}

#[derive(Default)]
pub struct Ledger {
    entries: Vec<Entry>,
}

impl Ledger {
    pub fn sell(&mut self, id: u64, cents: i64) {
        self.entries.push(Entry::Sale { id, cents });
    }

    /// Adds a refund. The sale stays, since an auditor must see both.
    pub fn refund(&mut self, sale: u64, cents: i64) {
        self.entries.push(Entry::Refund { sale, cents });
    }

    pub fn balance(&self) -> i64 {
        self.entries.iter().map(|entry| match entry {
            Entry::Sale { cents, .. } => *cents,
            Entry::Refund { cents, .. } => -cents,
        }).sum()
    }
}
`;

const BERTHS = `//! Berths, and the ferries that lie in them.

use std::sync::Mutex;

pub struct Harbour {
    berths: Mutex<Vec<Option<u32>>>,
}

/// Books the first free berth. Check and booking are one step under the lock, because two ferries once got one berth.
pub fn berth_of(harbour: &Harbour, ferry: u32) -> Option<usize> {
    let mut berths = harbour.berths.lock().unwrap();
    let free = berths.iter().position(Option::is_none)?;
    berths[free] = Some(ferry);
    Some(free)
}
`;
