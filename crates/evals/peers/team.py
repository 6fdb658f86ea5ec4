"""Runs a team with real clients: a server, and two developers on machines of their own.

Usage: team.py --tiro BIN --root DIR --npm DIR --model-dir DIR [--database URL]

Ana has Claude Code and Ben has Codex, each with a home, a repository and a mock of the model (`clients.py --install`
installs them into --npm). The server has a third home, and keeps its memory in --database, or in files. Ana's agent
decides something, and Ben's agent finds it, with its author. Ana's conversation stays with her. Then the server is killed,
and both go on. When it is back, they meet.

Prints the commands and what came of each step on stderr, and one JSON object on stdout; ends with 1 if a step failed.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from clients import judge
from kinds import KINDS, Mock, check

DECIDED = "The marmalade cache is flushed twice because its index lags behind by one batch."
CHAT = "Between us: why is the marmalade cache flushed twice? I suspect the tangerine clause."
ALONE = "Quince jars get amber labels, so that nobody mistakes them for pears."
BENS = "Kumquats are counted in crates of nine, as the carrier packs them."
LOOK = ("I will look.", ("TIRO__search_project_memory", {"query": "marmalade cache flushed"}), None)


def store(text):
    return ("I will note it.", ("TIRO__store_memory", {"text": text, "type": "decision"}), None)


class Server:
    """The server of the team, in a home of its own."""

    def __init__(self, place, tiro, database):
        self.home, self.tiro, self.process = place / "home", tiro, None
        self.home.mkdir(parents=True)
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        if database:
            self.environment["TIRO_DATABASE"] = database
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def run(self, *arguments):
        print(f"server$ tiro {' '.join(arguments)}", file=sys.stderr)
        return subprocess.run(
            [self.tiro, *arguments], cwd=self.home, env=self.environment, check=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        ).stdout

    def start(self):
        print(f"server$ tiro serve --http {self.port}", file=sys.stderr)
        folder = self.home / "served"
        folder.mkdir(exist_ok=True)
        log = (self.home / "server.log").open("ab")
        self.process = subprocess.Popen(
            [self.tiro, "serve", "--http", str(self.port)], cwd=folder, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )
        for _ in range(200):
            try:
                urllib.request.urlopen(f"{self.url}/readyz", timeout=5).read()
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError((self.home / "server.log").read_text())

    def kill(self):
        print("server$ kill -9", file=sys.stderr)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def tiro(client, *arguments):
    print(f"{client.person}$ tiro {' '.join(arguments)}", file=sys.stderr)
    return client.run([str(client.tiro), *arguments])


def steps(server, ana, ben):
    """Returns the steps as name and function, which fails or returns a remark."""

    def server_set_up():
        keys = {person: server.run("user", "add", person).strip() for person in ("ana", "ben")}
        server.run("team", "create", "kitchen")
        for client in (ana, ben):
            server.run("team", "add", "kitchen", client.person)
            client.key = next(word for word in keys[client.person].split() if word.startswith("tiro_"))
        server.run("share", "larder", "--with", "kitchen", "--write")
        server.start()
        return server.url

    def machines_connected():
        for client in (ana, ben):
            client.run([str(client.tiro), "init", "--yes"])
            client.environment["TIRO_KEY"] = client.key
            tiro(client, "connect", server.url, "--name", "larder")
            # From now on the key is in a file.
            del client.environment["TIRO_KEY"]

    def ana_decides():
        ana.ask("decides", CHAT, [store(DECIDED), "It is noted."])
        check(ana.said(DECIDED), "what was stored is not found on her machine")
        return tiro(ana, "sync").strip().splitlines()[0]

    def ben_finds_it_with_its_author():
        tiro(ben, "sync")
        ben.ask("finds", "What is known about the marmalade cache?", [LOOK, "It is known."])
        answer = ben.answer("finds") or ""
        check(DECIDED in answer, f"his model was not given the decision: {answer[:300]}")
        check("ana" in answer, f"the author is not named: {answer[:300]}")
        return next(line.strip() for line in answer.splitlines() if "ana" in line)

    def the_conversation_stays_hers():
        check(ana.said("tangerine clause"), "her own machine doesn't find it")
        check("tangerine" not in tiro(ben, "export"), "it is on the machine of the other")
        for place in server.home.rglob("*"):
            check(not place.is_file() or b"tangerine" not in place.read_bytes(), f"it is on the server: {place}")

    def both_go_on_without_the_server():
        server.kill()
        ana.ask("alone", "Which labels do quince jars get?", [store(ALONE), "Amber."])
        ben.ask("also alone", "How are kumquats counted?", [store(BENS), LOOK, "In crates."])
        check(ana.said(ALONE) and ben.said(BENS), "what was stored without the server is not found")
        check(DECIDED in (ben.answer("also alone") or ""), "what the other decided is not found without the server")
        check(not ben.said(ALONE) and not ana.said(BENS), "there is no server, yet they met")

    def they_meet_when_it_is_back():
        server.start()
        for client in (ana, ben, ana):
            tiro(client, "sync")
        for client, text in ((ana, BENS), (ben, ALONE)):
            check(client.said(text), f"{client.person} doesn't find what the other decided meanwhile")
        check(not ben.said("tangerine clause"), "a conversation went along")

    in_order = (
        server_set_up, machines_connected, ana_decides, ben_finds_it_with_its_author, the_conversation_stays_hers,
        both_go_on_without_the_server, they_meet_when_it_is_back,
    )
    return [(step.__name__.replace("_", " "), step) for step in in_order]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--tiro", "--root", "--model-dir", "--npm"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--database", help="address of a PostgreSQL; files by default")
    options = parser.parse_args()
    options.npm, options.tiro = options.npm.absolute(), options.tiro.absolute()
    place = options.root.absolute()
    shutil.rmtree(place, ignore_errors=True)
    by_name = {kind.name: kind for kind in KINDS}
    server = Server(place / "server", options.tiro, options.database)
    mocks = [Mock(options.npm, options.npm / f"aimock-{person}.log") for person in ("ana", "ben")]
    results = {}
    try:
        ana = by_name["claude-code"](place / "ana", options, mocks[0])
        ben = by_name["codex"](place / "ben", options, mocks[1])
        ana.person, ben.person = "ana", "ben"
        for name, step in steps(server, ana, ben):
            results[name] = judge(step)
            print(f"{name}: {'ok' if results[name]['ok'] else 'FAILED'} {results[name]['remark'] or ''}", file=sys.stderr)
    finally:
        for mock in mocks:
            mock.close()
        if server.process and server.process.poll() is None:
            server.process.terminate()
    failed = [name for name, each in results.items() if not each["ok"]]
    print(json.dumps({"steps": results, "failed": len(failed)}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
