"""Wheels with the program and the model, for pip and uv.

The program becomes a script of the environment, and the model lies in the environment's `share`. `uvx` needs a command
that is named like the package: it is written in Python, and starts the program.
"""

import base64
import hashlib

from . import archives
from .release import HERE, File, glibc_needed

PROCESSORS = {
    "linux": {"x64": "x86_64", "arm64": "aarch64"},
    "darwin": {"x64": "x86_64", "arm64": "arm64"},
    "win32": {"x64": "amd64"},
}
# The oldest macOS for each processor, which the compiler supports too.
MACOS = {"x64": "10_12", "arm64": "11_0"}


def build(release):
    """Yields the names and bytes of the wheels."""
    for platform in release.for_each_processor():
        stem = f"{module(release)}-{release.version}"
        tag = f"py3-none-{platform_tag(platform, release)}"
        files = contents(release, platform, stem, tag)
        files.append(record(files, f"{stem}.dist-info/RECORD"))
        yield f"{stem}-{tag}.whl", archives.zipped(files, release.time)


def module(release):
    return release.name.replace("-", "_")


def platform_tag(platform, release):
    """Returns what the program runs on, in pip's words."""
    processor = PROCESSORS[platform.os][platform.cpu]
    if platform.os == "win32":
        return f"win_{processor}"
    if platform.os == "darwin":
        return f"macosx_{MACOS[platform.cpu]}_{processor}"
    if platform.is_static:
        return f"manylinux_2_17_{processor}.musllinux_1_1_{processor}"
    major, minor = max(glibc_needed(release.programs[platform].read_bytes()) or (2, 17), (2, 17))
    return f"manylinux_{major}_{minor}_{processor}"


def contents(release, platform, stem, tag):
    """Returns the files of a wheel, except the list of them. Those of `.dist-info` come last, as pip advises."""
    start = (HERE / "pypi/start.py").read_bytes()
    entry = f"[console_scripts]\n{release.name} = {module(release)}:main\n"
    about = f"{stem}.dist-info"
    return [
        File(f"{module(release)}/__init__.py", start),
        File(f"{module(release)}/__main__.py", f"from {module(release)} import main\n\nmain()\n".encode()),
        release.program(platform, f"{stem}.data/scripts"),
        release.weights(f"{stem}.data/data/share"),
        *release.manual(f"{stem}.data/data/share/man/man1"),
        *release.licences(f"{about}/licenses/"),
        File(f"{about}/METADATA", metadata(release).encode()),
        File(f"{about}/WHEEL", wheel(release, tag).encode()),
        File(f"{about}/entry_points.txt", entry.encode()),
    ]


def metadata(release):
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", release.name),
        ("Version", release.version),
        ("Summary", release.description),
        ("Author-email", release.maintainer),
        ("License-Expression", release.licence),
        *(("License-File", file.path) for file in release.licences()),
        ("Keywords", ",".join(release.keywords)),
        ("Project-URL", f"Homepage, {release.homepage}"),
        ("Requires-Python", ">=3.8"),
        ("Description-Content-Type", "text/markdown"),
    ]
    text = (HERE / "about.md").read_text(encoding="utf-8")
    return "".join(f"{name}: {value}\n" for name, value in fields) + "\n" + text


def wheel(release, tag):
    """Returns the description of the archive. A tag with several platforms is written as several tags."""
    *interpreter, platforms = tag.split("-")
    tags = [f"Tag: {'-'.join([*interpreter, platform])}\n" for platform in platforms.split(".")]
    start = f"Wheel-Version: 1.0\nGenerator: {release.name} {release.version}\nRoot-Is-Purelib: false\n"
    return start + "".join(tags)


def record(files, path):
    """Returns the list of files, each with its checksum and size."""
    rows = [f"{file.path},sha256={checksum(file.content)},{len(file.content)}\n" for file in files]
    return File(path, ("".join(rows) + f"{path},,\n").encode())


def checksum(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
