"""Trials of the archive, the Debian package and the bundle for MCP clients, and of a home that can't be written."""

import json
import os
import pathlib
import platform
import subprocess
import tarfile
import zipfile

from .user import User, check

PROCESSOR = {"x86_64": ("x64", "amd64"), "aarch64": ("arm64", "arm64")}.get(platform.machine(), ("", ""))

NOBODY = 65534
PLUGIN = pathlib.Path(__file__).resolve().parent.parent / "claude-plugin"


def one(packages, *patterns):
    """Returns the file that fits one of the patterns."""
    found = [path for pattern in patterns for path in sorted(packages.glob(pattern))]
    check(found, f"there is no `{patterns[0]}`")
    return found[0]


def size(path):
    return f"{path.stat().st_size / 1e6:.1f} MB"


def unpacked(folder, options):
    """Unpacks the archive, and returns its folder."""
    machine = platform.machine()
    archive = one(options.packages, f"*-{machine}-*-linux-musl.tar.gz", f"*-{machine}-*-linux-gnu.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(folder / "opt", filter="fully_trusted")
    return archive, folder / "opt" / archive.name.removesuffix(".tar.gz")


def as_archive(folder, options):
    user = User(folder)
    archive, place = unpacked(folder, options)
    user.with_path(place / "bin")
    return f"{user.first_search('tiro'):.1f} s to the first answer, {size(archive)}"


def behind_a_link(folder, options):
    """Homebrew and others put a link to the program on PATH; the model is beside the program itself."""
    user = User(folder)
    _, place = unpacked(folder, options)
    (folder / "linked").mkdir()
    (folder / "linked/tiro").symlink_to(place / "bin/tiro")
    user.with_path(folder / "linked")
    return f"{user.first_search('tiro'):.1f} s to the first answer"


def with_dpkg(folder, options):
    user = User(folder)
    package = one(options.packages, f"*_{PROCESSOR[1]}.deb")
    name = package.name.split("_")[0]
    root = pathlib.Path("/") if options.system else folder / "root"
    if options.system:
        dpkg = ["/usr/bin/dpkg"]
        check(user.attempt(*dpkg, "--status", name).returncode, f"`{name}` is installed already")
    else:
        (root / "var/lib/dpkg/info").mkdir(parents=True)
        (root / "var/lib/dpkg/updates").mkdir()
        (root / "var/lib/dpkg/status").touch()
        # The folder has no other packages, so the C library is missing in its list.
        dpkg = ["/usr/bin/dpkg", f"--root={root}", "--force-depends,not-root", f"--log={folder / 'dpkg.log'}"]
    user.run(*dpkg, "--install", package, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    try:
        files = user.run(*dpkg, "--listfiles", name).split()
        user.with_path(root / "usr/bin")
        seconds = user.first_search("tiro")
    finally:
        user.run(*dpkg, "--purge", name, PATH="/usr/sbin:/usr/bin:/sbin:/bin")
    left = [file for file in files if (root / file[1:]).is_file()]
    check(not left, f"dpkg left {left}")
    return f"{seconds:.1f} s to the first answer, {size(package)}"


def as_bundle(folder, options):
    """Starts the server of a bundle as the manifest says, and searches with the same program."""
    user = User(folder)
    bundle = one(options.packages, f"*-linux-{PROCESSOR[0]}.mcpb")
    user.run("python3", "-m", "zipfile", "--extract", bundle, folder / "bundle")
    manifest = json.loads((folder / "bundle/manifest.json").read_text(encoding="utf-8"))
    config = manifest["server"]["mcp_config"]
    program = pathlib.Path(config["command"].replace("${__dirname}", str(folder / "bundle")))
    with zipfile.ZipFile(bundle) as archive:
        entry = archive.getinfo(program.relative_to(folder / "bundle").as_posix())
        check(entry.external_attr >> 16 & 0o111, "the program is not executable")
    program.chmod(0o755)  # Python ignores modes.
    seconds = user.first_search(str(program))
    arguments = [each.replace("${user_config.project}", str(user.project)) for each in config["args"]]
    listed = tools(user, [str(program), *arguments])
    check(listed == [tool["name"] for tool in manifest["tools"]], f"the server has other tools: {listed}")
    return f"{seconds:.1f} s to the first answer, {size(bundle)}"


def tools(user, command):
    """Returns the names of a server's tools."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "trial", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    server = subprocess.Popen(
        command, cwd="/", env=user.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    server.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
    server.stdin.flush()
    answers = [json.loads(server.stdout.readline()) for _ in range(2)]
    server.stdin.close()
    server.wait(timeout=30)
    return [tool["name"] for tool in answers[1]["result"]["tools"]]


def in_a_read_only_home(folder, options):
    """Sets Tiro up where nothing may be written: one plain error, and nothing is changed."""
    user = User(folder)
    _, place = unpacked(folder, options)
    user.begin()
    before = user.files()
    for path in [user.home, *user.home.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    # The superuser may write everywhere, so the trial becomes another user.
    is_superuser = os.geteuid() == 0
    for path in [user.home, user.project, *user.home.rglob("*"), *user.project.rglob("*")] if is_superuser else []:
        os.chown(path, NOBODY, NOBODY)
    other = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups") if is_superuser else ()
    ran = user.attempt(*other, place / "bin/tiro", "init", "--yes", cwd=user.project)
    check(ran.returncode not in (0, 101) and "panicked" not in ran.stderr, f"ended with {ran.returncode}: {ran.stderr}")
    errors = [line for line in ran.stderr.splitlines() if line.startswith("error:")]
    check(len(errors) == 1, ran.stderr)
    user.check_restored(before)
    return errors[0].replace(str(folder), "…")


def as_plugin(folder, options):
    """Compares the plugin of the marketplace with the one that `tiro init` writes: only the program differs."""
    user = User(folder)
    _, place = unpacked(folder, options)
    user.begin()
    user.run(place / "bin/tiro", "init", "--yes", cwd=user.project)
    written = user.home / ".claude/skills/tiro"
    program = json.loads((written / ".mcp.json").read_text())["mcpServers"]["tiro"]["command"]
    for name in (".mcp.json", "hooks/hooks.json"):
        expected = json.loads((written / name).read_text().replace(program, "${CLAUDE_PLUGIN_ROOT}/start"))
        check(json.loads((PLUGIN / name).read_text()) == expected, f"`{name}` of the plugin is not that of `tiro init`")
    return "the servers and hooks are those of `tiro init`"


TRIALS = {
    "tarball": as_archive,
    "tarball, behind a link": behind_a_link,
    "deb": with_dpkg,
    "mcpb": as_bundle,
    "plugin": as_plugin,
    "read-only home": in_a_read_only_home,
}
