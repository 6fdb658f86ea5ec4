"""Packages for Debian and Ubuntu, made by dpkg-deb."""

import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile
import textwrap
import time

from .release import HERE, ROOT, File, glibc_needed

ARCHITECTURES = {"x64": "amd64", "arm64": "arm64"}


def build(release):
    """Yields the names and bytes of the packages."""
    if not shutil.which("dpkg-deb"):
        raise SystemExit("there is no `dpkg-deb` on this machine: leave this format out with --formats")
    for platform in release.for_each_processor():
        if platform.os == "linux":
            files = contents(release, platform)
            name = f"{release.name}_{release.version}_{ARCHITECTURES[platform.cpu]}.deb"
            yield name, package(release, [*files, control(release, platform, files)])


def contents(release, platform):
    """Returns the installed files."""
    about = f"usr/share/doc/{release.name}"
    override = f"{release.name}: statically-linked-binary [usr/bin/tiro]\n"
    installed = [
        release.program(platform),
        release.weights(),
        *(File(f"{page.path}.gz", squeezed(page.content)) for page in release.manual()),
        *release.completed("share/zsh/vendor-completions"),
    ]
    return [
        *(File(f"usr/{file.path}", file.content, file.mode) for file in installed),
        File(f"{about}/copyright", copyright(release).encode()),
        File(f"{about}/changelog.gz", squeezed(changelog(release).encode())),
        *([File(f"usr/share/lintian/overrides/{release.name}", override.encode())] if platform.is_static else []),
    ]


def squeezed(content):
    return gzip.compress(content, compresslevel=9, mtime=0)


def control(release, platform, files):
    """Returns the description of the package."""
    needed = glibc_needed(release.programs[platform].read_bytes())
    depends = f"Depends: libc6 (>= {needed[0]}.{needed[1]}), libgcc-s1\n" if needed else ""
    text = (
        f"Package: {release.name}\n"
        f"Version: {release.version}\n"
        f"Architecture: {ARCHITECTURES[platform.cpu]}\n"
        f"Maintainer: {release.maintainer}\n"
        f"Installed-Size: {sum(len(file.content) for file in files) // 1024 + 1}\n"
        f"{depends}"
        "Suggests: git\n"
        "Section: devel\n"
        "Priority: optional\n"
        f"Homepage: {release.homepage}\n"
        f"Description: {release.summary}\n"
        " Tiro keeps a project's conversations, decisions and commits in a file on this\n"
        " machine. Coding agents search it over MCP, and people on the command line, by\n"
        " words and by meaning. The embedding model is part of this package.\n"
    )
    return File("DEBIAN/control", text.encode())


def copyright(release):
    """Returns the licences in the form that Debian prescribes. The Apache License is a file of every Debian system."""
    mit = textwrap.indent((ROOT / "LICENSE-MIT").read_text(encoding="utf-8").split("\n\n", 2)[2], " ", lambda _: True)
    holder = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8").split("\n\n")[1].removeprefix("Copyright (c) ")
    template = (HERE / "debian/copyright").read_text(encoding="utf-8")
    mit = "\n".join(line.rstrip() or " ." for line in mit.rstrip().splitlines())
    return template.format(name=release.name, homepage=release.homepage, holder=holder.strip(), mit=mit)


def changelog(release):
    when = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(release.time))
    return (
        f"{release.name} ({release.version}) unstable; urgency=medium\n\n"
        f"  * Version {release.version}.\n\n -- {release.maintainer}  {when}\n"
    )


def package(release, files):
    """Returns the bytes of the package. One thread compresses it: several would make other bytes."""
    with tempfile.TemporaryDirectory() as folder:
        tree, archive = pathlib.Path(folder, "tree"), pathlib.Path(folder, "package.deb")
        for file in files:
            path = tree / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(file.mode)
        for path in [*tree.rglob("*"), tree]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (release.time, release.time))
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", tree, archive]
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(release.time)}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        return archive.read_bytes()
