"""A new user: an empty home, a small project, and the first search by meaning."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

PATIENCE = 300
TOOLS = ("node", "npm", "npx", "git", "python3", "sh")
COMMITS = (
    "Send at most ten letters a minute, as the postmaster demanded",
    "Paint the pages in the colours of the harbour",
    "Close sockets after thirty idle seconds",
    "Sort visitors by surname",
)
# Shares no word with the commit that answers it.
QUESTION, ANSWER = "throttling of outgoing email", COMMITS[0]
SETTINGS = {".claude/settings.json": '{"theme": "dark"}\n', ".codex/config.toml": 'model = "mine"\n'}
# Memories stay when Tiro is removed. The others belong to npm and uv.
MAY_STAY = (
    "home/.local/share/tiro/", "project/.git/tiro-project-id", "home/.npm/", "home/.cache/", "home/.local/share/uv/",
)


class Failed(Exception):
    """A trial went wrong."""


def check(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


class User:
    """A home and a project below a folder, without Rust, without Tiro and without its variables."""

    def __init__(self, folder, **variables):
        self.folder, self.home, self.project = folder, folder / "home", folder / "project"
        tools = folder / "tools"
        for each in (self.home, tools):
            each.mkdir(parents=True)
        for tool in TOOLS:
            if found := shutil.which(tool):
                (tools / tool).symlink_to(pathlib.Path(found).resolve() if tool == "python3" else found)
        self.environment = {"HOME": str(self.home), "PATH": f"{tools}:/usr/bin:/bin", "LANG": "C.UTF-8"} | variables
        for program in ("cargo", "tiro"):
            check(not shutil.which(program, path=self.environment["PATH"]), f"`{program}` is on PATH before the trial")
        for name, text in SETTINGS.items():
            path = self.home / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.began = time.monotonic()

    def with_path(self, folder):
        self.environment["PATH"] = f"{folder}:{self.environment['PATH']}"

    def attempt(self, *command, cwd=None, **variables):
        """Runs a command, and returns how it ended."""
        environment = self.environment | variables
        program = shutil.which(command[0], path=environment["PATH"])
        check(program, f"there is no `{command[0]}`")
        return subprocess.run(
            [program, *map(str, command[1:])], cwd=cwd or self.folder, env=environment, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
        )

    def run(self, *command, cwd=None, **variables):
        """Runs a command that must succeed, and returns what it printed."""
        ran = self.attempt(*command, cwd=cwd, **variables)
        said = (ran.stderr + ran.stdout)[-800:]
        check(ran.returncode == 0, f"`{' '.join(map(str, command))}` ended with {ran.returncode}: {said}")
        return ran.stdout

    def begin(self):
        """Makes the project, with a few commits."""
        self.project.mkdir()
        self.run("git", "init", "--quiet", "--initial-branch", "main", ".", cwd=self.project)
        for subject in COMMITS:
            with (self.project / "notes.txt").open("a", encoding="utf-8") as notes:
                notes.write(f"{len(subject)}\n")
            self.run("git", "add", "notes.txt", cwd=self.project)
            author = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org")
            self.run("git", *author, "commit", "--quiet", "--message", subject, cwd=self.project)

    def first_search(self, *tiro):
        """Sets Tiro up, searches by meaning, and removes the set-up again. Returns the seconds until the answer."""
        self.begin()
        before = self.files()
        self.run(*tiro, "init", "--yes", cwd=self.project)
        started = self.started_by_clients()
        self.run(*tiro, "import", "git", cwd=self.project)
        self.run(*tiro, "index", cwd=self.project)
        hits = json.loads(self.run(*tiro, "search", QUESTION, "--json", cwd=self.project))["hits"]
        seconds = time.monotonic() - self.began
        check(hits and ANSWER in hits[0]["text"], f"the answer is not the first of {len(hits)} hits")
        for program in started:
            self.run(program, "--version", cwd=self.project)
        self.run(*tiro, "init", "--remove", cwd=self.project)
        self.check_restored(before)
        return seconds

    def started_by_clients(self):
        """Returns the programs that the clients would start."""
        servers = json.loads((self.home / ".claude/skills/tiro/.mcp.json").read_text(encoding="utf-8"))
        codex = (self.home / ".codex/config.toml").read_text(encoding="utf-8")
        named = re.search(r'^command = "(.+)"$', codex, re.MULTILINE)
        return {servers["mcpServers"]["tiro"]["command"], named.group(1)}

    def files(self):
        """Returns the content of each file of the home and the project."""
        paths = [path for place in (self.home, self.project) for path in place.rglob("*")]
        files = [path for path in paths if path.is_file() and not path.is_symlink()]
        kept = [path for path in files if not self.named(path).startswith(MAY_STAY)]
        return {self.named(path): path.read_bytes() for path in kept}

    def named(self, path):
        return path.relative_to(self.folder).as_posix()

    def check_restored(self, before):
        after = self.files()
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        check(not changed, f"not as before `tiro init`: {', '.join(changed[:5])}")


def words(text):
    return set(re.findall(r"\w+", text.lower()))


assert not words(QUESTION) & words(ANSWER)
