"""What the model of a client receives of Tiro's answers, for `clients.py`: one call of each tool that has a budget."""

import re

from kinds import check

# What a context has without a session.
BUDGET = 4000
# Copilot CLI puts an answer of more than about 20 KB into a file, so there the greatest budget must not lead to a file.
MOST = 20_000
# Enough for every tool to fill its budget, and long as JSON: quotes, lines and words of other languages.
LINE = 'if (jar["quince"].weight > 9) {{ log("crate {0}: über 9, \\"label\\" = \'{1}\'"); }} // marmalade, line {0}\n'
LONG = "".join(LINE.format(number, f"shelf-{number * 7 % 31}") for number in range(400))
NOTE = (
    "On day {0} Ottoline decided that shelf {0} is for marmalade and not for quince, because the crate was too warm. "
    "First we tried the label of {0} millimetres, but the printer of Zoë refused it. "
    "The crate of {0} jars must be weighed before nine, so the ledger has a line for it. "
)
CODE = "\n```js\n" + LINE + "```\n"
NOTES = [NOTE.format(number) * 2 + CODE.format(number, "Ottoline") for number in range(1, 81)]
QUESTION = "what did Ottoline decide about shelves for marmalade, and about weighing the crates"
SESSION = "larder-notes"
STASHED = [f"{SESSION}#1-40"]
# A file of which each line has a commit of its own, and each commit a long reason.
SHELVES = "shelves.txt"


def fill(client):
    """Stores a long message and many short ones, as an agent would."""
    roles = ["user", "assistant"] * len(NOTES)
    messages = [{"role": role, "text": text} for role, text in zip(roles, (LONG, *NOTES))]
    pages = [messages[at : at + 20] for at in range(0, len(messages), 20)]
    # In servers of their own, since a server answers its requests at the same time.
    for page in pages:
        serve(client, [("save_messages", {"session_id": SESSION, "messages": page})])
    serve(client, [("stash_context", {"segment_ids": STASHED})])
    shelves = client.repository / SHELVES
    for number in range(1, 41):
        with shelves.open("a") as file:
            file.write(f"shelf {number} holds {number * 7} jars of marmalade\n")
        client.run(["git", "add", SHELVES])
        client.run(["git", "commit", "-qm", f"shelves: give number {number} to marmalade\n\n{NOTE.format(number)}"])
    client.run([str(client.tiro), "import", "git"])


def serve(client, calls):
    """Has a server answer calls, and returns its list of tools."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "evals", "version": "1"}}
    lines = [("initialize", hello), ("tools/list", {})]
    lines += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls]
    messages = [{"id": number, "method": method, "params": params} for number, (method, params) in enumerate(lines)]
    messages.insert(1, {"method": "notifications/initialized"})
    answers = client.talk([str(client.tiro), "serve"], [{"jsonrpc": "2.0", **message} for message in messages])
    for number in range(2, len(lines)):
        result = answers[number].get("result") or {"isError": True, "content": [{"text": str(answers[number])}]}
        check(not result.get("isError"), f"a call failed: {result['content'][0]['text']}")
    return answers[1]["result"]["tools"]


def calls(client):
    """Returns a call of each tool that has a budget, as name and arguments."""
    tools = serve(client, [])
    arguments = {
        "search_project_memory": {"query": QUESTION, "k": 50},
        "expand_detail": {"id": f"{SESSION}#0"},
        "retrieve_context": {"query": QUESTION, "session_id": SESSION},
        "get_relevant_snippets": {"query": QUESTION},
        "get_context_summary": {"query": QUESTION},
        "summarize_conversation": {"session_id": SESSION},
        "merge_stashed_context": {"segment_ids": STASHED},
        "explain_lines": {"path": SHELVES},
    }
    named = [tool["name"] for tool in tools if "max_tokens" in tool["inputSchema"]["properties"]]
    check(not (new := set(named) - set(arguments)), f"no call is known of {', '.join(new)}")
    budget = MOST if client.name == "copilot" else BUDGET
    return [(name, {**arguments[name], "max_tokens": budget}) for name in named]


def measure(client):
    """Returns for each tool the tokens that the model received, and how the answer began."""
    received = {}
    fill(client)
    for number, (name, arguments) in enumerate(calls(client)):
        step = f"budget{number}"
        answers = [("I call it.", (f"TIRO__{name}", arguments), None), "Done."]
        client.ask(step, f"Please call {name}.", answers, flags=client.allowing)
        answer = client.answer(step)
        check(answer and "marmalade" in answer, f"the model received no memory from {name}: {str(answer)[:300]}")
        inner = re.match(client.wrapper, answer, re.DOTALL)
        received[name] = inner.group(1) if inner else answer
    place = client.home / "received"
    place.mkdir()
    files = []
    for name, text in received.items():
        files.append(place / name)
        files[-1].write_text(text)
    (place / "list").write_text("".join(f"{file}\n" for file in files))
    counts = client.query("bench", "tokens", "--files", str(place / "list"), "--rounds", "1")["counts"]
    return {
        name: {"tokens": count, "ratio": round(count / BUDGET, 3), "preview": is_preview(text)}
        for (name, text), count in zip(received.items(), counts)
    }


def is_preview(text):
    """Returns whether the client gave the model only a part of the answer, or the name of a file with it."""
    named = re.search(r"(?i)saved to|too large|output (was )?truncated|full output", text[:400])
    return bool(named) or "truncated…" in text
