"""What is packaged: the programs, the model, the texts beside them, and the names of all this."""

import dataclasses
import os
import pathlib
import platform as machine
import re
import subprocess
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent.parent
ROOT = HERE.parent
MODEL = "all-MiniLM-L6-v2"
SHELLS = ("bash", "fish", "zsh")
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
# Zip archives have no times before this one.
EARLIEST = 315532800


@dataclasses.dataclass(frozen=True)
class Platform:
    """What a program runs on, in npm's words, and in the compiler's."""

    name: str
    os: str
    cpu: str
    target: str

    @property
    def program(self):
        return "tiro.exe" if self.os == "win32" else "tiro"

    @property
    def is_static(self):
        return self.target.endswith("-musl")


PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("linux-x64-musl", "linux", "x64", "x86_64-unknown-linux-musl"),
        Platform("linux-arm64-musl", "linux", "arm64", "aarch64-unknown-linux-musl"),
        Platform("linux-x64-gnu", "linux", "x64", "x86_64-unknown-linux-gnu"),
        Platform("linux-arm64-gnu", "linux", "arm64", "aarch64-unknown-linux-gnu"),
        Platform("darwin-arm64", "darwin", "arm64", "aarch64-apple-darwin"),
        Platform("darwin-x64", "darwin", "x64", "x86_64-apple-darwin"),
        Platform("win32-x64", "win32", "x64", "x86_64-pc-windows-gnu"),
    )
}


@dataclasses.dataclass(frozen=True)
class File:
    """A file of a package."""

    path: str
    content: bytes
    mode: int = 0o644


@dataclasses.dataclass(frozen=True)
class Release:
    """All that the formats are made of."""

    name: str
    version: str
    description: str
    homepage: str
    maintainer: str
    keywords: list
    licence: str
    programs: dict
    model: bytes
    pages: dict
    completions: dict
    time: int

    @property
    def summary(self):
        """Returns the description in short, without the article: Debian and Homebrew don't want one."""
        return self.description.split(":")[0].removeprefix("A ")

    def for_each_processor(self):
        """Returns one platform for each system and processor: a static program serves every Linux, so it is preferred."""
        chosen = {}
        for platform in sorted(self.programs, key=lambda each: (each.is_static, each.name)):
            chosen[platform.os, platform.cpu] = platform
        return sorted(chosen.values(), key=lambda each: each.name)

    def program(self, platform, folder="bin"):
        return File(f"{folder}/{platform.program}", self.programs[platform].read_bytes(), 0o755)

    def weights(self, folder="share"):
        """Returns the model where the program looks for it: `../share` from the program's folder."""
        return File(f"{folder}/tiro/models/{MODEL}/weights.tiro", self.model)

    def manual(self, folder="share/man/man1"):
        return [File(f"{folder}/{name}", text) for name, text in self.pages.items()]

    def licences(self, folder=""):
        files = [(name, ROOT / name) for name in LICENCES] + [("NOTICE", HERE / "NOTICE")]
        return [File(folder + name, path.read_bytes()) for name, path in files]

    def completed(self, zsh):
        """Returns the completions where shells look for them; the folder for zsh differs between systems."""
        places = {
            "bash": "share/bash-completion/completions/tiro",
            "fish": "share/fish/vendor_completions.d/tiro.fish",
            "zsh": f"{zsh}/_tiro",
        }
        return [File(places[shell], self.completions[shell]) for shell in SHELLS]


def read(programs, model, speaker):
    """Returns the release of these programs. `speaker` runs on this machine and writes the manual and completions."""
    package = tomllib.loads((HERE / "package.toml").read_text(encoding="utf-8"))
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = cargo["workspace"]["package"]["version"]
    speaker = speaker or of_this_machine(programs)
    check_version(speaker, version)
    time = max(int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)), EARLIEST)
    return Release(
        **package, version=version, programs=programs, model=model.read_bytes(), pages=manual(speaker),
        completions={shell: said(speaker, "completions", shell) for shell in SHELLS}, time=time,
    )


def of_this_machine(programs):
    """Returns the given program that runs here."""
    cpu = {"x86_64": "x64", "aarch64": "arm64", "AMD64": "x64"}.get(machine.machine(), machine.machine())
    system = {"Windows": "win32"}.get(machine.system(), machine.system().lower())
    for platform, path in programs.items():
        if (platform.os, platform.cpu) == (system, cpu):
            return path
    raise SystemExit(f"no program for this machine, {system}-{cpu}, writes the manual: name one with --speaker")


def check_version(speaker, version):
    """Fails if the program is not of this source."""
    answer = said(speaker, "--version").decode().split()
    if answer[1:2] != [version]:
        raise SystemExit(f"`{speaker}` has the version {' '.join(answer[1:])}, Cargo.toml has {version}")


def manual(speaker):
    """Returns the pages of the manual by name."""
    with tempfile.TemporaryDirectory() as folder:
        said(speaker, "man", "--to", folder)
        return {path.name: path.read_bytes() for path in sorted(pathlib.Path(folder).iterdir())}


def said(speaker, *arguments):
    """Returns what the program prints. It gets an empty home, so that no one's options are read."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ.get("PATH", ""), "NO_COLOR": "1"}
        try:
            ran = subprocess.run([speaker.absolute(), *arguments], env=environment, cwd=home, capture_output=True)
        except OSError as error:
            raise SystemExit(f"cannot run `{speaker}`: {error.strerror}")
    if ran.returncode != 0:
        raise SystemExit(f"`{speaker} {' '.join(arguments)}` failed: {ran.stderr.decode(errors='replace')}")
    return ran.stdout


def glibc_needed(program):
    """Returns the oldest version of glibc with which the program starts, such as (2, 34); None if it needs none."""
    versions = {tuple(map(int, found)) for found in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", program)}
    return max(versions, default=None)
