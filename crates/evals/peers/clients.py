"""Runs Claude Code, Codex and Gemini CLI with Tiro and a mock model, for `evals clients`.

Usage: clients.py --tiro BIN --root DIR --model-dir DIR [--clients claude-code,codex,gemini] [--npm DIR]

Installs the clients and the mock from npm into --npm (ROOT/npm if left out) and gives each client a home and a
repository below ROOT. There it runs `tiro init --yes` and two sessions of the client. Each step is checked by its
effects: the results of `tiro`, the hooks' files in the spool, and the requests to the model. No key needed.

Prints a table on stderr and one JSON object on stdout; ends with 1 if a step failed.
"""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import uuid

MOCK = "@copilotkit/aimock@1.43.0"
PATIENCE = 180

FACT = "The marmalade cache is flushed twice because its index lags behind by one batch."
WHY = "Why is the marmalade cache flushed twice? Please look, note the reason and commit."
NOTED = "The marmalade reason is noted, and the jam commit is made."
SUBJECT = "jam: stir the marmalade before it is flushed"
AGAIN = "Which threshold did we agree on for kumquats?"
AGREED = "The kumquat threshold was agreed to be nine crates."
AFTER = "And who labels the quince jars?"
LABELS = "The quince jars are labelled by Ottoline."
NEXT = "A new day: what is known about the marmalade cache?"
KNOWN = "It is known that the marmalade index lags."
RECAP = "the larder was stirred and jars remain open"
# Gemini CLI compacts only what is long enough.
FILLER = " The pantry ledger has a line for each jar, its shelf and its season." * 40
COMMAND = f'echo jam >> larder.txt && git add -A && git commit -q -m "{SUBJECT}" && git rev-parse HEAD'
# What the three ask for when they compact, and a use of tokens that makes them.
ASKED = ("create a detailed summary", "CONTEXT CHECKPOINT", "reason in your scratchpad", "Critically evaluate")
FULL = {"input_tokens": 900000, "output_tokens": 9, "total_tokens": 900009}
OTHERWISE = {"match": {}, "response": {"content": "OK."}}
STORE = ("I will note it.", ("TIRO__store_memory", {"text": FACT, "type": "decision"}), None)
LOOK = ("I will look.", ("TIRO__search_project_memory", {"query": "marmalade cache flushed"}), None)


class Failed(Exception):
    """A step did not have its effect."""


def check(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


class Mock:
    """aimock, behind a proxy that keeps what was sent, whole, and says which answer of the script is next.

    How far a script has come shows in the ids of the tool calls that a request repeats; there are requests on the
    side. `TIRO__name` in a script becomes what the client calls that tool.
    """

    def __init__(self, npm, log):
        self.step, self.calls, self.bodies = "", 0, []
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.aimock = listener.getsockname()[1]
        fixtures = log.with_suffix(".json")
        fixtures.write_text(json.dumps({"fixtures": [OTHERWISE]}))
        program = npm / "node_modules/@copilotkit/aimock/dist/cli.js"
        command = ["node", program, "-p", str(self.aimock), "-f", fixtures, "--log-level", "warn"]
        self.process = subprocess.Popen(command, stdout=log.open("wb"), stderr=subprocess.STDOUT)
        mock = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            log_message = lambda *_arguments: None
            do_GET = do_HEAD = do_POST = lambda self: mock.forward(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        for _ in range(100):
            try:
                return socket.create_connection(("127.0.0.1", self.aimock), 1).close()
            except OSError:
                time.sleep(0.1)
        raise Failed(f"aimock did not start: {log.read_text()}")

    def close(self):
        self.server.shutdown()
        self.process.terminate()

    def script(self, step, answers):
        """Loads a step's answers: the last is a text, others are a text, a call of a tool, and tokens to claim."""
        self.step, self.calls, self.bodies = step, len(answers) - 1, []
        summary = {"content": f"<summary>Recap: {RECAP}.</summary>"}
        fixtures = [{"match": {"userMessage": asked}, "response": summary} for asked in ASKED]
        for index, answer in enumerate(answers):
            text, call, usage = answer if isinstance(answer, tuple) else (answer, None, None)
            response = {"content": text, **({"usage": usage} if usage else {})}
            if call:
                name, arguments = call
                response["toolCalls"] = [{"id": f"call-{step}-{index}", "name": name, "arguments": arguments}]
            fixtures.append({"match": {"context": f"{step}-{index}"}, "response": response})
        for path, body in ("reset", {}), ("fixtures", {"fixtures": [*fixtures, OTHERWISE]}):
            url, kind = f"http://127.0.0.1:{self.aimock}/__aimock/{path}", {"content-type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), kind)).read()

    def forward(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        text = body.decode("utf-8", "replace")
        self.bodies += [text] if text else []
        done = sum(f"call-{self.step}-{index}" in text for index in range(self.calls))
        named = re.search(r"(mcp__?(?:\w+_)?tiro__?)search_project_memory\b", text)
        ours = {"host", "content-length", "accept-encoding", "connection", "transfer-encoding"}
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in ours}
        headers["X-AIMock-Context"] = f"{self.step}-{done}"
        upstream = http.client.HTTPConnection("127.0.0.1", self.aimock, timeout=PATIENCE)
        upstream.request(handler.command, handler.path, body, headers)
        answer = upstream.getresponse()
        handler.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ours:
                handler.send_header(name, value)
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.close_connection = True
        while line := answer.readline():
            if "/responses" in handler.path:
                # Codex wants the server's name beside the tool's, which aimock cannot say.
                line = re.sub(rb'"name":"TIRO__(\w+)"', rb'"name":"\1","namespace":"mcp__tiro"', line)
            handler.wfile.write(line.replace(b"TIRO__", (named.group(1) if named else "mcp__tiro__").encode()))
            handler.wfile.flush()


class Client:
    """A client in its home: its configuration for the mock, its runs, and the answers of Tiro there."""

    compacting = ()

    def __init__(self, place, options, mock):
        self.home, self.repository, self.tiro = place / "home", place / "repository", place / "bin/tiro"
        self.program = str(options.npm / "node_modules/.bin" / self.name.split("-")[0])
        self.mock = mock
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TERM": "xterm", "LANG": "C.UTF-8"}
        for folder in (self.home / self.folder, self.repository, self.tiro.parent):
            folder.mkdir(parents=True)
        shutil.copy2(options.tiro, self.tiro)
        # Not by a variable: Codex hides those of the user from servers.
        shutil.copytree(options.model_dir, self.home / ".local/share/tiro/models")
        (self.repository / "larder.txt").write_text("quince\n")
        git = ["init -q -b main .", "config user.name Dev", "config user.email dev@example.com", "add -A"]
        for arguments in [*map(str.split, git), ["commit", "-qm", "larder: a first jar"]]:
            self.run(["git", *arguments])
        self.configure(mock.url)

    def run(self, command, stderr=subprocess.PIPE):
        """Runs a command in the repository, under this home, and returns what it printed."""
        process = subprocess.Popen(
            command, cwd=self.repository, env=self.environment, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
        )
        name = os.path.basename(command[0])
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"`{name}` did not end within {PATIENCE} s") from None
        check(not process.returncode, f"`{name}` ended with {process.returncode}: {(errors or output)[-300:]}")
        return output

    def ask(self, step, prompt, answers, session=None, flags=()):
        """Has the client work through a step, in a new session or in `session`, and returns the session's id."""
        self.mock.script(step, answers)
        return self.say(prompt, session, flags)

    def query(self, *arguments):
        return json.loads(self.run([str(self.tiro), *arguments, "--json"]))

    def said(self, text):
        """Returns the hits that hold a text."""
        hits = self.query("search", text, "--k", "50", "--max-tokens", "20000")["hits"]
        return [hit for hit in hits if text in hit["text"]]

    def once(self, text):
        """Checks that a message is found, and stored only once."""
        check(any(hit["kind"] == "message" for hit in self.said(text)), f"`{text[:40]}…` is not found")
        memories = [json.loads(line) for line in self.run([str(self.tiro), "export"]).splitlines()]
        count = sum(each["kind"] == "message" and text in each["text"] for each in memories)
        check(count == 1, f"`{text[:40]}…` is stored {count} times")


    def pointer(self, session, bodies):
        """Returns the line sent to the model that names the session and how to search."""
        # Bodies are JSON: a line ends with `\\n` or with the string that it is in.
        lines = (line for body in bodies for line in re.split(r'\\n|(?<!\\)"', body))
        line = next((line for line in lines if session in line and "search_project_memory" in line), None)
        check(line, "the model was sent no pointer")
        return line

    def configured(self):
        """Returns the files that say how the client is configured, and the git hook, where they name `tiro`."""
        paths = [*(self.home / name for name in self.configuration), self.repository / ".git/hooks"]
        files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())
        return [str(file) for file in files if str(self.tiro) in file.read_text(errors="replace")]

    def spooled(self):
        """Returns the references that the client's hooks left."""
        files = [file for file in (self.home / ".local/share/tiro/spool").rglob("*") if file.is_file()]
        left = [json.loads(text) for file in files if (text := file.read_text()).startswith("{")]
        return [reference for reference in left if reference.get("client") == self.name]


class ClaudeCode(Client):
    name, folder, package = "claude-code", ".claude", "@anthropic-ai/claude-code@2.1.329"
    configuration = (".claude/settings.json", ".claude/skills/tiro", ".claude/plugins", ".claude.json")
    shell = ("Bash", {"command": COMMAND, "description": "Commit"})

    def configure(self, mock):
        switches = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "IS_SANDBOX")
        self.environment |= {"ANTHROPIC_BASE_URL": mock, "ANTHROPIC_API_KEY": "mock", **dict.fromkeys(switches, "1")}

    def say(self, prompt, session, flags):
        which = ["--resume", session] if session else ["--session-id", session := str(uuid.uuid4())]
        self.run([self.program, "-p", prompt, "--dangerously-skip-permissions", *which, *flags])
        return session


class Codex(Client):
    name, folder, package = "codex", ".codex", "@openai/codex@0.169.0"
    configuration = (".codex/config.toml", ".codex/hooks.json", ".codex/plugins")
    shell = ("exec_command", {"cmd": COMMAND})
    compacting = ("-c", "model_auto_compact_token_limit=20000")

    def configure(self, mock):
        provider = f'[model_providers.mock]\nname = "mock"\nbase_url = "{mock}/v1"\nwire_api = "responses"\n'
        (self.home / ".codex/config.toml").write_text(f'model = "gpt-5"\nmodel_provider = "mock"\n\n{provider}')

    def say(self, prompt, session, flags):
        # Hooks run only after the user trusts them, which this script cannot do.
        free = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", *flags]
        which = ["resume", *free, session] if session else free
        output = self.run([self.program, "exec", *which, prompt], stderr=subprocess.STDOUT)
        found = re.search(r"session id: ([0-9a-f-]{36})", output)
        check(found, f"no session id in the output: {output[-200:]}")
        return found.group(1)


class Gemini(Client):
    name, folder, package = "gemini", ".gemini", "@google/gemini-cli@0.61.0"
    configuration = (".gemini/settings.json", ".gemini/extensions")
    shell = ("run_shell_command", {"command": COMMAND})

    def configure(self, mock):
        self.environment |= {"GEMINI_API_KEY": "mock", "GOOGLE_GEMINI_BASE_URL": mock}
        (self.home / ".gemini/settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')

    def say(self, prompt, session, flags):
        which = ["--resume", session] if session else ["--session-id", session := str(uuid.uuid4())]
        # A model by name: to choose one it would ask the mock for JSON, and ask again, for minutes.
        free = ["--skip-trust", "--yolo", "--model", "gemini-2.5-pro"]
        self.run([self.program, *free, *which, *flags, "--prompt", prompt])
        return session


def steps(client):
    """Returns the steps as name and function, which fails or returns a remark."""
    mock, seen = client.mock, {}
    before = {path: path.read_text() for path in (client.home / client.folder).iterdir()}

    def client_installed():
        return re.search(r"\d+(\.\d+)+", client.run([client.program, "--version"])).group()

    def tiro_init():
        client.run([str(client.tiro), "init", "--yes"])
        files = [file for file in client.configured() if str(client.home) in file]
        check(files, "no configuration of the client names tiro")
        return ", ".join(str(pathlib.Path(file).relative_to(client.home)) for file in files)

    def tools_called():
        seen["session"] = client.ask("first", WHY, [STORE, LOOK, ("Now the commit.", client.shell, None), NOTED])
        # Before anything asks `tiro`, which would follow them.
        seen["spool"], seen["sent"] = client.spooled(), mock.bodies
        looked = [body for body in mock.bodies if "call-first-1" in body]
        check(looked, "the client did not call both tools")
        check(looked[-1].count(FACT) >= 2, "the model was not given back what it had stored")
        check(any(hit["kind"] == "decision" for hit in client.said(FACT)), "what was stored is not found")

    def hooks_fired():
        if not seen["spool"] and seen["session"] in json.dumps(client.query("sessions")):
            return "followed already"
        check(seen["spool"], "the client's hooks left no reference in the spool")
        check(all(os.path.exists(each["transcript"]) for each in seen["spool"]), "a transcript is not where it says")
        return ", ".join(sorted({each["event"] for each in seen["spool"]}))

    def pointer_given():
        line = client.pointer(seen["session"], seen["sent"])
        check(len(line) <= 150 * 5, f"the pointer has {len(line)} characters")
        return f"{len(line)} characters"

    def transcript_imported():
        client.once(WHY)
        client.once(NOTED)
        listed = [each for each in client.query("sessions")["sessions"] if seen["session"] in json.dumps(each)]
        check(len(listed) == 1, f"the session is listed {len(listed)} times")

    def commit_imported():
        made = client.run(["git", "log", "-1", "--format=%H", f"--grep={SUBJECT}"]).strip()
        check(made, "the client made no commit")
        hits = [hit for hit in client.said(SUBJECT) if hit["kind"] == "commit"]
        seen["commit"] = [hit["id"] for hit in hits if hit["commit"] == made]
        check(seen["commit"], "the commit is not found")

    def commit_linked():
        hits = [hit for hit in client.said(SUBJECT) if hit["kind"] == "commit"]
        check(hits, "the commit is not found")
        behind = hits[0].get("conversations") or []
        check(behind[:1] == [seen["session"]], f"the session is not the first behind the commit: {behind}")
        return f"first of {len(behind)}"

    def resumed_nothing_twice():
        # Codex compacts before the next turn if this one says that the window is full.
        answer = (AGREED, None, FULL if client.name == "codex" else None)
        client.ask("again", AGAIN + FILLER, [answer], seen["session"])
        check(any(WHY in body for body in mock.bodies), "the model was not sent the session's first prompt again")
        client.once(AGREED)
        transcript_imported()

    def compaction_survived():
        if client.name == "claude-code":
            client.ask("compact", "/compact keep decisions", ["OK."], seen["session"])
        # Gemini CLI compacts between two requests of a turn if the first one says so.
        first = [("I look.", ("list_directory", {"dir_path": "."}), FULL)] if client.name == "gemini" else []
        client.ask("after", AFTER, [*first, LABELS], seen["session"], client.compacting)
        check(RECAP in mock.bodies[-1], "the client did not compact")
        seen["sent after"] = mock.bodies
        for text in (AGREED, AFTER, LABELS):
            client.once(text)
        transcript_imported()
        speakers = [hit.get("speaker") for hit in client.said(RECAP)]
        check("user" not in speakers, "the client's summary counts as said by the user")

    def pointer_after_compaction():
        client.pointer(seen["session"], seen["sent after"])

    def next_session_pointer():
        session = client.ask("next", NEXT, [LOOK, KNOWN])
        line = client.pointer(session, mock.bodies)
        check(session != seen["session"] and seen["session"] not in line, "the pointer names the old session")
        check(re.search(r"[1-9]\d* (commit|message)", line), f"the pointer does not say what is remembered: {line}")

    def past_found_there():
        check(any(FACT in body for body in mock.bodies), "the new session was not given what the old one stored")
        client.once(KNOWN)

    def tiro_init_remove():
        client.run([str(client.tiro), "init", "--remove"])
        check(not (left := client.configured()), f"still named in {', '.join(left)}")
        for path, text in before.items():
            now = path.read_text()  # Clients add to their files; what was there stays.
            kept = json.loads(text).items() <= json.loads(now).items() if path.suffix == ".json" else text in now
            check(kept, f"{path.name} is not what it was")

    in_order = (
        client_installed, tiro_init, tools_called, hooks_fired, pointer_given, transcript_imported, commit_imported,
        commit_linked, resumed_nothing_twice, compaction_survived, pointer_after_compaction, next_session_pointer,
        past_found_there, tiro_init_remove,
    )
    return [(step.__name__.replace("_", " "), step) for step in in_order]


def judge(step):
    """Runs a step and says how it went."""
    start = time.monotonic()
    try:
        ok, remark = True, step()
    except Exception as error:  # Whatever breaks is a step that failed; the next one is run.
        ok, remark = False, str(error) if isinstance(error, Failed) else repr(error)
    return {"ok": ok, "seconds": round(time.monotonic() - start, 1), "remark": remark}


def install(npm, packages):
    """Installs the packages beside what is there."""
    npm.mkdir(parents=True, exist_ok=True)
    manifest = npm / "package.json"
    there = json.loads(manifest.read_text()).get("dependencies", {}) if manifest.exists() else {}
    manifest.write_text(json.dumps({"dependencies": there | dict(each.rsplit("@", 1) for each in packages)}))
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline"]
    subprocess.run(command, cwd=npm, check=True, stdout=sys.stderr, timeout=900)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--tiro", "--root", "--model-dir"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--clients", default="claude-code,codex,gemini")
    parser.add_argument("--npm", type=pathlib.Path)
    options = parser.parse_args()
    options.npm = (options.npm or options.root / "npm").absolute()
    kinds = [kind for kind in (ClaudeCode, Codex, Gemini) if kind.name in options.clients.split(",")]
    install(options.npm, [MOCK, *(kind.package for kind in kinds)])

    results = {}
    for kind in kinds:
        place = options.root.absolute() / kind.name
        shutil.rmtree(place, ignore_errors=True)
        mock = Mock(options.npm, options.npm / "aimock.log")
        try:
            results[kind.name] = {name: judge(step) for name, step in steps(kind(place, options, mock))}
        finally:
            mock.close()

    print(" " * 26 + "".join(f"{name:>13}" for name in results), file=sys.stderr)
    for step in next(iter(results.values())):
        marks = ("ok" if each[step]["ok"] else "FAILED" for each in results.values())
        print(f"{step:26}" + "".join(f"{mark:>13}" for mark in marks), file=sys.stderr)
    judged = [(name, step, each) for name, all_steps in results.items() for step, each in all_steps.items()]
    failed = [f"{name}, {step}: {each['remark']}" for name, step, each in judged if not each["ok"]]
    print("\n".join(failed), file=sys.stderr)
    print(json.dumps({"packages": [kind.package for kind in kinds], "steps": results, "failed": len(failed)}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
