"""Runs clients with Tiro and a mock model, for `evals clients`.

Usage: clients.py --tiro BIN --root DIR --model-dir DIR [--clients claude-code,codex,gemini] [--npm DIR]
       clients.py --install --npm DIR

Installs the clients and the mock from npm into --npm (ROOT/npm if left out) and gives each client a home and a
repository below ROOT. There it runs `tiro init --yes` and two sessions of the client. Each step is checked by its
effects: the results of `tiro`, the hooks' files in the spool, and the requests to the model. No key needed. Then the
client calls each tool that has a budget, and the tokens that the model received are counted. `qwen`, `copilot` and
`opencode` are set up by hand, and only that is measured.

Prints tables on stderr and one JSON object on stdout; ends with 1 if a step failed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import received
from kinds import KINDS, MOCK, NODE, RECAP, SUBJECT, Failed, Mock, check

FACT = "The marmalade cache is flushed twice because its index lags behind by one batch."
WHY = "Why is the marmalade cache flushed twice? Please look, note the reason and commit."
NOTED = "The marmalade reason is noted, and the jam commit is made."
AGAIN = "Which threshold did we agree on for kumquats?"
AGREED = "The kumquat threshold was agreed to be nine crates."
AFTER = "And who labels the quince jars?"
LABELS = "The quince jars are labelled by Ottoline."
NEXT = "A new day: what is known about the marmalade cache?"
KNOWN = "It is known that the marmalade index lags."
# Gemini CLI compacts only what is long enough.
FILLER = " The pantry ledger has a line for each jar, its shelf and its season." * 40
FULL = {"input_tokens": 900000, "output_tokens": 9, "total_tokens": 900009}
STORE = ("I will note it.", ("TIRO__store_memory", {"text": FACT, "type": "decision"}), None)
LOOK = ("I will look.", ("TIRO__search_project_memory", {"query": "marmalade cache flushed"}), None)
# A tool that deletes, which nobody allowed.
FORGET = ("I will forget it.", ("TIRO__forget_context", {"query": "marmalade cache flushed"}), None)


def steps(client):
    """Returns the steps as name and function, which fails or returns a remark."""
    mock, seen = client.mock, {}
    folder = client.home / client.folder
    before = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}

    def client_installed():
        return re.search(r"\d+(\.\d+)+", client.run([client.program, "--version"])).group()

    def tiro_init():
        client.run([str(client.tiro), "init", "--yes"])
        files = [file for file in client.configured() if str(client.home) in file]
        check(files, "no configuration of the client names tiro")
        return ", ".join(str(pathlib.Path(file).relative_to(client.home)) for file in files)

    def tools_called():
        with (client.repository / "larder.txt").open("a") as larder:
            larder.write("jam\n")
        seen["session"] = client.ask("first", WHY, [STORE, LOOK, ("Now the commit.", client.shell, None), NOTED])
        # Before anything asks `tiro`, which would follow them.
        seen["spool"], seen["sent"] = client.spooled(), mock.bodies
        looked = [body for body in mock.bodies if FACT in body]
        check(looked, "the client did not call both tools")
        check(looked[-1].count(FACT) >= 2, "the model was not given back what it had stored")
        check(any(hit["kind"] == "decision" for hit in client.said(FACT)), "what was stored is not found")

    def others_still_ask():
        client.ask("forget", "Please forget the marmalade.", [FORGET, "I may not."])
        answer = client.answer("forget") or ""
        check("marmalade" not in answer, f"a tool that deletes was run: {answer}")
        check(client.said(FACT), "what was stored is gone")
        return answer[:80]

    def tools_shown():
        """Claude Code hides tools behind a search for tools, except those that say that they should be shown."""
        if client.name != "claude-code":
            return None
        tools = [tool["name"] for body in seen["sent"] for tool in json.loads(body).get("tools") or []]
        shown = {name.rsplit("__", 1)[1] for name in tools if "tiro" in name}
        check(0 < len(shown) <= 3, f"shown without a search: {', '.join(sorted(shown)) or 'none'}")
        check("reasons may lie in earlier sessions" in "".join(seen["sent"]), "the model was not told of the skill")
        return ", ".join(sorted(shown))

    def prompts_offered():
        if not client.command_for:
            return "no slash commands outside a terminal"
        client.ask("recall", client.command_for("recall", "marmalade cache"), ["It lags."])
        asked = [body for body in mock.bodies if "say about this: marmalade" in body]
        check(asked, "the slash command did not become a prompt")

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
        seen["commit"] = [hit["id"] for hit in hits if hit["source_id"] == made]
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
            check(path.exists(), f"{path.name} is gone")
            now = path.read_text()  # Clients add to their files; what was there stays.
            kept = json.loads(text).items() <= json.loads(now).items() if path.suffix == ".json" else text in now
            check(kept, f"{path.name} is not what it was")

    def tokens_received():
        seen["received"] = received.measure(client)
        name, most = max(seen["received"].items(), key=lambda item: item[1]["ratio"])
        check(most["ratio"] <= 1.05, f"{name} gives the model {most['ratio']} of its budget")
        previews = [name for name, each in seen["received"].items() if each["preview"]]
        check(not previews, f"replaced by a preview: {', '.join(previews)}")
        return f"at most {most['ratio']} of the budget, {name}"

    in_order = (
        client_installed, tiro_init, tools_called, hooks_fired, pointer_given, transcript_imported, commit_imported,
        commit_linked, resumed_nothing_twice, compaction_survived, pointer_after_compaction, next_session_pointer,
        past_found_there, others_still_ask, tools_shown, prompts_offered, tokens_received, tiro_init_remove,
    )
    if not client.is_set_up:
        in_order = (client_installed, tokens_received)
    return [(step.__name__.replace("_", " "), step) for step in in_order], seen


def judge(step):
    """Runs a step and says how it went."""
    start = time.monotonic()
    try:
        ok, remark = True, step()
    except Exception as error:  # Whatever breaks is a step that failed; the next one is run.
        ok, remark = False, str(error) if isinstance(error, Failed) else repr(error)
    return {"ok": ok, "seconds": round(time.monotonic() - start, 1), "remark": remark}


def install(npm, packages):
    """Installs the packages beside what is there, with what they run after they are installed."""
    npm.mkdir(parents=True, exist_ok=True)
    manifest = npm / "package.json"
    there = json.loads(manifest.read_text()).get("dependencies", {}) if manifest.exists() else {}
    wanted = dict(each.rsplit("@", 1) for each in packages)
    if all(there.get(name) == version and (npm / "node_modules" / name).exists() for name, version in wanted.items()):
        return
    manifest.write_text(json.dumps({"dependencies": there | wanted}))
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline"]
    subprocess.run(command, cwd=npm, check=True, stdout=sys.stderr, timeout=900)


def table(rows):
    """Prints rows of words, the first of each at the left."""
    for first, *others in rows:
        print(f"{first:26}" + "".join(f"{other:>13}" for other in others), file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--tiro", "--root", "--model-dir", "--npm"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--clients", default="claude-code,codex,gemini")
    parser.add_argument("--install", action="store_true", help="only install the clients and the mock into --npm")
    options = parser.parse_args()
    if not options.npm and not options.root:
        parser.error("give --npm or --root")
    options.npm = (options.npm or options.root / "npm").absolute()
    wanted = options.clients.split(",")
    kinds = [kind for kind in KINDS if kind.name in wanted]
    if unknown := set(wanted) - {kind.name for kind in kinds}:
        parser.error(f"unknown clients: {', '.join(sorted(unknown))}")
    install(options.npm, [MOCK, NODE, *(kind.package for kind in kinds)])
    if options.install:
        return
    if not (options.tiro and options.root and options.model_dir):
        parser.error("give --tiro, --root and --model-dir")

    results, budgets = {}, {}
    for kind in kinds:
        place = options.root.absolute() / kind.name
        shutil.rmtree(place, ignore_errors=True)
        mock = Mock(options.npm, options.npm / "aimock.log")
        try:
            in_order, seen = steps(kind(place, options, mock))
            results[kind.name] = {name: judge(step) for name, step in in_order}
            budgets[kind.name] = seen.get("received", {})
        finally:
            mock.close()

    table([("", *results)])
    for step in dict.fromkeys(step for each in results.values() for step in each):
        marks = ("" if step not in each else "ok" if each[step]["ok"] else "FAILED" for each in results.values())
        table([(step, *marks)])
    print("\nTokens that the model received, per token of max_tokens", file=sys.stderr)
    for tool in dict.fromkeys(tool for each in budgets.values() for tool in each):
        cells = [each.get(tool) for each in budgets.values()]
        shown = ("" if not cell else f"{cell['ratio']:.2f}{' file' * cell['preview']}" for cell in cells)
        table([(tool, *shown)])
    judged = [(name, step, each) for name, all_steps in results.items() for step, each in all_steps.items()]
    failed = [f"{name}, {step}: {each['remark']}" for name, step, each in judged if not each["ok"]]
    print("\n".join(failed), file=sys.stderr)
    packages = [kind.package for kind in kinds]
    print(json.dumps({"packages": packages, "steps": results, "received": budgets, "failed": len(failed)}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
