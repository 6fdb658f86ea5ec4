#!/usr/bin/env python3
"""Tests Tiro's MCP server with the official Python SDK, in both generations of the protocol, and then with raw lines.

Usage: python_sdk.py BINARY [ARGUMENT ...]    (without arguments the server is started as `BINARY serve --structured`)

Needs `pip install "mcp>=2.3"`. Works in an empty temporary home and project, and removes both. Prints a summary and
exits with 0 if every check passes; otherwise fails with the check that did not.
"""

import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

from mcp import Client, MCPError, StdioServerParameters

TOOLS = [
    "search_project_memory", "store_memory", "save_messages", "mark_important", "forget_context", "expand_detail",
    "list_sessions",
]
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
META = {VERSION_KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ERAS = [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    command = [os.path.abspath(sys.argv[1]), *(sys.argv[2:] or ["serve", "--structured"])]
    home = tempfile.mkdtemp(prefix="tiro-clients-")
    project = os.path.join(home, "project")
    os.mkdir(project)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": home,
        **{f"XDG_{name}_HOME": os.path.join(home, name.lower()) for name in ("DATA", "STATE", "CACHE", "CONFIG")},
    }
    server = Server(command, project, environment)
    try:
        for mode, version in ERAS:
            asyncio.run(use_sdk(server, mode, version))
        use_lines(server)
        end(server)
        measure(server)
    finally:
        shutil.rmtree(home)


class Server:
    """How the server is started."""

    def __init__(self, command: list[str], directory: str, environment: dict[str, str]) -> None:
        self.command, self.directory, self.environment = command, directory, environment

    def parameters(self) -> StdioServerParameters:
        return StdioServerParameters(
            command=self.command[0], args=self.command[1:], env=self.environment, cwd=self.directory
        )

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command, cwd=self.directory, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )


async def use_sdk(server: Server, mode: str, version: str) -> None:
    """Lists everything and calls every tool, as a client of one era."""
    marker = f"quokka{mode.replace('-', '')}"
    session = f"talk of {mode}/é"
    async with Client(server.parameters(), mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        # A client that pins a version asks nothing before its first request, so it learns no name.
        if mode != version:
            assert client.server_info.name == "tiro" and client.server_info.title, client.server_info
            assert "search_project_memory" in client.instructions

        listed = await client.list_tools()
        tools = {tool.name: tool for tool in listed.tools}
        assert set(TOOLS) <= set(tools), f"missing {set(TOOLS) - set(tools)}"
        if version == "2026-07-28":
            assert listed.cache_scope == "private" and listed.ttl_ms > 0, listed
        for tool in tools.values():
            hints = tool.annotations.model_dump()
            assert all(hints[name] is not None for name in hints if name.endswith("_hint")), (tool.name, hints)
            schemas = json.dumps([tool.input_schema, tool.output_schema])
            assert not any(word in schemas for word in ('"null"', '"uint', "$ref", "$schema")), schemas

        async def call(tool: str, fails: bool = False, **arguments: object) -> dict:
            result = await client.call_tool(tool, arguments)
            text = result.content[0].text
            assert result.is_error == fails, f"{tool}: {text}"
            assert text.strip(), f"{tool} answers no text"
            return result.structured_content

        stored = await call("store_memory", text=f"We chose the {marker} cache because it survives restarts.", type="decision")
        saved = await call(
            "save_messages",
            sessionId=session,
            messages=[
                {"id": f"{marker}-1", "role": "user", "text": f"Why does the {marker} cache survive restarts?"},
                {"id": f"{marker}-2", "role": "assistant", "text": "Because it is written to disk.", "time": "2026-01-02T03:04:05Z"},
            ],
        )
        assert len(saved["ids"]) == 2, saved
        found = await call("search_project_memory", query=f"{marker} cache", maxTokens=1500)
        hits = {hit["id"] for hit in found["hits"]}
        assert stored["id"] in hits and saved["ids"][0] in hits, found
        assert found["tokens_used"] <= 1500, found
        await call("mark_important", ids=[stored["id"]])
        expanded = await call("expand_detail", id=stored["id"])
        assert marker in expanded["text"], expanded
        sessions = await call("list_sessions")
        assert session in json.dumps(sessions, ensure_ascii=False), sessions

        await use_resources(client, session, stored["id"], marker)
        await use_wrongly(client, call)

        forgotten = await call("forget_context", ids=[stored["id"]])
        assert stored["id"] in json.dumps(forgotten), forgotten
        found = await call("search_project_memory", query=f"{marker} cache")
        assert stored["id"] not in {hit["id"] for hit in found["hits"]}, found
        many = [call("search_project_memory", query=f"{marker} {i}") for i in range(50)]
        await asyncio.gather(*many)
    print(f"ok    SDK, mode {mode}: {len(tools)} tools, {version}")


async def use_resources(client: Client, session: str, memory: str, marker: str) -> None:
    templates = (await client.list_resource_templates()).resource_templates
    assert {template.uri_template for template in templates} == {"tiro://session/{id}", "tiro://memory/{id}"}
    resources = (await client.list_resources()).resources
    ours = [resource for resource in resources if resource.name == session]
    assert len(ours) == 1, resources
    for uri in (ours[0].uri, f"tiro://memory/{memory}"):
        contents = (await client.read_resource(str(uri))).contents
        assert marker in contents[0].text, contents
    try:
        await client.read_resource("tiro://memory/nobody")
        raise AssertionError("an unknown resource was read")
    except MCPError as error:
        legacy = client.protocol_version < "2026-07-28"
        assert error.error.code == (-32002 if legacy else -32602), error.error


async def use_wrongly(client: Client, call) -> None:
    for arguments, message in [
        ({}, "query"),
        ({"query": {"not": 7}}, "query"),
        ({"query": "x", "max_token": 1}, "max_token"),
        ({"query": "x", "k": "many"}, "k"),
    ]:
        error = (await call("search_project_memory", fails=True, **arguments))["error"]
        assert error["kind"] == "bad_input" and message in error["message"] + error["hint"], error
    error = (await call("expand_detail", fails=True, id="nobody"))["error"]
    assert error["kind"] in ("not_found", "bad_input") and "nobody" in error["message"], error
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool was called")
    except MCPError as error:
        assert error.error.code == -32602, error.error


class Lines:
    """A client that writes and reads bare lines."""

    def __init__(self, server: Server) -> None:
        self.process = server.start()

    def send(self, message: dict | bytes) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, message: dict | bytes) -> dict:
        self.send(message)
        return json.loads(self.process.stdout.readline())

    def request(self, method: str, **params: object) -> dict:
        return self.ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}})

    def leave(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(2) == 0


def use_lines(server: Server) -> None:
    """Sends what no SDK would."""
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        lines = Lines(server)
        client = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
        agreed = lines.ask({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": client})
        assert agreed["result"]["protocolVersion"] == version, agreed
        lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = lines.ask({"jsonrpc": "2.0", "id": "b", "method": "tools/list"})
        assert len(listed["result"]["tools"]) >= len(TOOLS) and "resultType" not in listed["result"]
        lines.leave()

    lines = Lines(server)
    for line, code, identifier in [
        (b"garbage", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', -32601, 1),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 3, "method": "tools/list"}', -32602, 3),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "no/such"}', -32601, 4),
        (b'{"params": {"text": "' + b"x" * (65 << 20) + b'"}, "method": "tools/call", "jsonrpc": "2.0", "id": 5}', -32600, 5),
    ]:
        answer = lines.ask(line)
        assert (answer["error"]["code"], answer.get("id")) == (code, identifier), answer
    found = lines.request("server/discover")["result"]
    assert found["supportedVersions"][-1] == "2026-07-28" and found["cacheScope"] == "private", found
    lines.leave()
    print("ok    bare lines: both eras, bad lines answered and survived")


def end(server: Server) -> None:
    """Ends the server in each way, in the middle of many calls, and finds what it acknowledged."""
    for way in ("input closed", "SIGTERM", "SIGINT"):
        lines = Lines(server)
        acknowledged = lines.request(
            "tools/call", name="store_memory", arguments={"text": f"Kept before {way}: wombat{way.replace(' ', '')}", "type": "fact"}
        )["result"]["structuredContent"]["id"]
        for number in range(200):
            arguments = {"query": f"anything {number}"}
            params = {"name": "search_project_memory", "arguments": arguments, "_meta": META}
            lines.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        started = time.monotonic()
        if way == "input closed":
            lines.process.stdin.close()
        else:
            lines.process.send_signal(getattr(signal, way))
        try:
            status = lines.process.wait(2)
        except subprocess.TimeoutExpired:
            lines.process.kill()
            raise AssertionError(f"{way}: still there after 2 s") from None
        seconds = time.monotonic() - started
        assert status == 0, f"{way}: status {status}"
        lines = Lines(server)
        again = lines.request("tools/call", name="expand_detail", arguments={"id": acknowledged})
        assert not again["result"]["isError"], f"{way}: an acknowledged memory is lost: {again}"
        lines.leave()
        print(f"ok    {way}: gone in {seconds * 1000:.0f} ms, nothing acknowledged is lost")


def measure(server: Server) -> None:
    """Prints medians from the start of the process to the first list of tools, and the memory held then."""
    first, resident = [], []
    for _ in range(15):
        started = time.monotonic()
        lines = Lines(server)
        lines.request("tools/list")
        first.append((time.monotonic() - started) * 1000)
        try:
            with open(f"/proc/{lines.process.pid}/status") as status:
                resident += [int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")]
        except FileNotFoundError:
            pass
        lines.leave()
    memory = f", {statistics.median(resident):.1f} MB resident" if resident else ""
    print(f"ok    first tools/list after {statistics.median(first):.1f} ms (median of 15, smallest {min(first):.1f}){memory}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
