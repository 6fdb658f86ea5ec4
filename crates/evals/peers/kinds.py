"""The clients that `clients.py` runs, each in a home and a repository of its own, and the mock of their models.

No flag that skips permissions is passed. What a user would allow by hand is in the clients' own settings before
`tiro init` runs: the two commands that make a commit, and the tools of Tiro that write. The tools that only read are
allowed by what `tiro init` offers. Codex runs hooks only after a person trusts them, which no script can do: only this
is passed by.
"""

import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
import uuid

MOCK = "@copilotkit/aimock@1.43.0"
NODE = "node@22.23.3"
PATIENCE = 180

SUBJECT = "jam: stir the marmalade before it is flushed"
COMMIT = f'git commit -q -a -m "{SUBJECT}" && git rev-parse HEAD'
RECAP = "the larder was stirred and jars remain open"
# What the three ask for when they compact, and a use of tokens that makes them.
ASKED = ("create a detailed summary", "CONTEXT CHECKPOINT", "reason in your scratchpad", "Critically evaluate")
OTHERWISE = {"match": {}, "response": {"content": "OK."}}
# The tools that write, which the user allows by hand.
WRITES = ("store_memory", "summarize_conversation", "stash_context", "merge_stashed_context")


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
        node = npm / "node_modules/.bin/node"
        command = [node if node.exists() else "node", program, "-p", str(self.aimock), "-f", fixtures]
        self.process = subprocess.Popen(
            [*command, "--log-level", "warn"], stdout=log.open("wb"), stderr=subprocess.STDOUT
        )
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
        self.process.wait()

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
        named = re.search(r"((?:mcp__?(?:\w+_)?)?tiro(?:__?|-))search_project_memory\b", text)
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


def results(body):
    """Returns the results of tools in the body of a request, by the id of the call, as the model reads them."""
    request = json.loads(body)
    found = {}
    for message in request.get("messages") or []:
        if message.get("role") == "tool":
            found[message["tool_call_id"]] = text_of(message["content"])
        for part in message["content"] if isinstance(message.get("content"), list) else []:
            if part.get("type") == "tool_result":
                found[part["tool_use_id"]] = text_of(part.get("content"))
    for item in request.get("input") if isinstance(request.get("input"), list) else []:
        if str(item.get("type")).endswith("_call_output"):
            found[item["call_id"]] = text_of(item["output"])
    for content in request.get("contents") or []:
        for part in content.get("parts") or []:
            if response := part.get("functionResponse"):
                found[response.get("id") or response["name"]] = text_of(response["response"])
    return found


def text_of(content):
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(part["text"]) if "text" in part else json.dumps(part) for part in content)
    if isinstance(content, dict) and len(content) == 1:
        return text_of(next(iter(content.values())))
    return json.dumps(content, ensure_ascii=False)


class Client:
    """A client in its home: its settings for the mock, its runs, and the answers of Tiro there."""

    compacting = ()
    # What a user allows to a tool that may ask a model outside.
    allowing = ()
    # Whether `tiro init` sets the client up.
    is_set_up = True
    # Returns what a person types for one of our prompts; `None` if the client has no slash commands outside a terminal.
    command_for = None
    # What the client puts around the answer of a tool.
    wrapper = r"\A(.*)\Z"

    def __init__(self, place, options, mock):
        self.home, self.repository, self.tiro = place / "home", place / "repository", place / "bin/tiro"
        programs = options.npm / "node_modules/.bin"
        self.program, self.mock = str(programs / self.command), mock
        # With the Node of the clients first, since some need a newer one than the system has.
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        self.environment = {"HOME": str(self.home), "PATH": path, "TERM": "xterm", "LANG": "C.UTF-8"}
        for folder in (self.home / self.folder, self.repository, self.tiro.parent):
            folder.mkdir(parents=True)
        shutil.copy2(options.tiro, self.tiro)
        # Not by a variable: Codex hides those of the user from servers.
        if options.model_dir.is_dir():
            shutil.copytree(options.model_dir, self.home / ".local/share/tiro/models")
        (self.repository / "larder.txt").write_text("quince\n")
        git = ["init -q -b main .", "config user.name Dev", "config user.email dev@example.com", "add -A"]
        for arguments in [*map(str.split, git), ["commit", "-qm", "larder: a first jar"]]:
            self.run(["git", *arguments])
        self.configure(mock.url)

    def put(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")

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

    def talk(self, command, messages):
        """Sends messages to a server, and returns its answers by their ids. Its input stays open until all are there."""
        process = subprocess.Popen(
            command, cwd=self.repository, env=self.environment, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        answers, waiting = {}, {message["id"] for message in messages if "id" in message}
        try:
            for message in messages:
                process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            while waiting - set(answers) and (line := process.stdout.readline()):
                answer = json.loads(line)
                answers[answer.get("id")] = answer
        finally:
            timer.cancel()
            process.stdin.close()
            process.wait()
        check(not (waiting - set(answers)), f"a server left {len(waiting - set(answers))} requests unanswered")
        return answers

    def ask(self, step, prompt, answers, session=None, flags=()):
        """Has the client work through a step, in a new session or in `session`, and returns the session's id."""
        self.mock.script(step, answers)
        return self.say(prompt, session, flags)

    def answer(self, step):
        """Returns the answer of the last tool that was called in a step, as the model received it; `None` if none."""
        calls = [f"call-{step}-{index}" for index in range(self.mock.calls)]
        found = (results(body).get(calls[-1]) for body in reversed(self.mock.bodies))
        return next((answer for answer in found if answer is not None), None)

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
        return [each for each in left if each.get("client") == self.name and "transcript" in each]


class ClaudeCode(Client):
    name, command, folder, package = "claude-code", "claude", ".claude", "@anthropic-ai/claude-code@2.1.329"
    configuration = (".claude/settings.json", ".claude/skills/tiro", ".claude/plugins", ".claude.json")
    shell = ("Bash", {"command": COMMIT, "description": "Commit"})

    def configure(self, mock):
        switches = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "ENABLE_TOOL_SEARCH")
        self.environment |= {"ANTHROPIC_BASE_URL": mock, "ANTHROPIC_API_KEY": "mock", **dict.fromkeys(switches, "1")}
        # It gives a plugin's server about two seconds, then asks the model without its tools. On a busy machine that is
        # too short for any server, so it waits here.
        self.environment |= {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": f"{PATIENCE * 1000}"}
        rules = [f"mcp__plugin_tiro_tiro__{name}" for name in WRITES]
        allowed = ["Bash(git commit:*)", "Bash(git rev-parse:*)", *rules]
        self.put(".claude/settings.json", {"permissions": {"allow": allowed}})

    def command_for(self, prompt, words):
        return f"/mcp__plugin_tiro_tiro__{prompt} {words}"

    def say(self, prompt, session, flags):
        which = ["--resume", session] if session else ["--session-id", session := str(uuid.uuid4())]
        self.run([self.program, "-p", prompt, *which, *flags])
        return session


class Codex(Client):
    name, command, folder, package = "codex", "codex", ".codex", "@openai/codex@0.169.0"
    configuration = (".codex/config.toml", ".codex/hooks.json", ".codex/plugins")
    shell = ("exec_command", {"cmd": COMMIT})
    compacting = ("-c", "model_auto_compact_token_limit=20000")
    allowing = ("-c", 'mcp_servers.tiro.tools.summarize_conversation.approval_mode="approve"')
    wrapper = r"\AWall time: [\d.]+ seconds\nOutput:\n(.*)\Z"

    def configure(self, mock):
        provider = f'[model_providers.mock]\nname = "mock"\nbase_url = "{mock}/v1"\nwire_api = "responses"\n'
        self.put(".codex/config.toml", f'model = "gpt-5.5"\nmodel_provider = "mock"\n\n{provider}')
        rules = [f'prefix_rule(pattern = ["git", "{verb}"], decision = "allow")\n' for verb in ("commit", "rev-parse")]
        self.put(".codex/rules/default.rules", "".join(rules))

    def say(self, prompt, session, flags):
        # Hooks run only after the user trusts them, which this script cannot do.
        free = ["--dangerously-bypass-hook-trust", *flags]
        which = ["resume", *free, session] if session else free
        output = self.run([self.program, "exec", *which, prompt], stderr=subprocess.STDOUT)
        found = re.search(r"session id: ([0-9a-f-]{36})", output)
        check(found, f"no session id in the output: {output[-200:]}")
        return found.group(1)


class Gemini(Client):
    name, command, folder, package = "gemini", "gemini", ".gemini", "@google/gemini-cli@0.61.0"
    configuration = (".gemini/settings.json", ".gemini/extensions", ".gemini/policies")
    shell = ("run_shell_command", {"command": COMMIT})
    wrapper = r"\A<untrusted_context>\n(.*?)\n?</untrusted_context>\Z"

    def configure(self, mock):
        self.environment |= {"GEMINI_API_KEY": "mock", "GOOGLE_GEMINI_BASE_URL": mock}
        self.put(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
        # What a user allows when Gemini CLI asks before a call.
        allow = 'decision = "allow"\npriority = 100\n'
        commit = f'[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = ["git commit", "git rev-parse"]\n{allow}'
        writes = f'[[rule]]\nmcpName = "tiro"\ntoolName = {json.dumps(WRITES)}\n{allow}'
        self.put(".gemini/policies/mine.toml", f"{commit}\n{writes}")

    def say(self, prompt, session, flags):
        which = ["--resume", session] if session else ["--session-id", session := str(uuid.uuid4())]
        # A model by name: to choose one it would ask the mock for JSON, and ask again, for minutes.
        self.run([self.program, "--model", "gemini-2.5-pro", *which, *flags, "--prompt", prompt])
        return session


class ByHand(Client):
    """A client that `tiro init` does not know: its settings name the server, and it allows every tool."""

    is_set_up, configuration = False, ()

    def say(self, prompt, session, flags):
        self.run([self.program, *self.arguments(prompt), *flags])


class Qwen(ByHand):
    name, command, folder, package = "qwen", "qwen", ".qwen", "@qwen-code/qwen-code@0.15.10"

    def configure(self, mock):
        self.environment |= {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{mock}/v1", "OPENAI_MODEL": "mock-1"}
        server = {"command": str(self.tiro), "args": ["serve"], "trust": True}
        settings = {"mcpServers": {"tiro": server}, "model": {"name": "mock-1"}}
        self.put(".qwen/settings.json", settings | {"security": {"auth": {"selectedType": "openai"}}})

    def arguments(self, prompt):
        return ["--prompt", prompt]


class Copilot(ByHand):
    name, command, folder, package = "copilot", "copilot", ".copilot", "@github/copilot@1.0.102"

    def configure(self, mock):
        provider = {"BASE_URL": f"{mock}/v1", "TYPE": "openai", "API_KEY": "x"}
        self.environment |= {f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}
        self.environment |= {"COPILOT_MODEL": "mock-1", "COPILOT_OFFLINE": "true"}
        server = {"type": "local", "command": str(self.tiro), "args": ["serve"], "tools": ["*"]}
        self.put(".copilot/mcp-config.json", {"mcpServers": {"tiro": server}})

    def arguments(self, prompt):
        return ["-p", prompt, "--allow-tool", "tiro"]


class Opencode(ByHand):
    name, command, folder, package = "opencode", "opencode", ".config/opencode", "opencode-ai@1.18.33"

    def configure(self, mock):
        options = {"baseURL": f"{mock}/v1", "apiKey": "x"}
        models = {"mock-1": {"name": "mock-1"}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models}
        server = {"type": "local", "command": [str(self.tiro), "serve"], "enabled": True}
        settings = {"model": "mock/mock-1", "provider": {"mock": provider}, "mcp": {"tiro": server}}
        self.put(".config/opencode/opencode.json", settings)

    def arguments(self, prompt):
        return ["run", prompt]


KINDS = (ClaudeCode, Codex, Gemini, Qwen, Copilot, Opencode)
