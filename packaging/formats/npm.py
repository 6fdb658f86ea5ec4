"""Packages for npm: one that starts the program, and one with the program and the model for each platform.

npm installs the optional dependency whose `os` and `cpu` are those of the machine, so no script runs at the installation.
"""

import json

from . import archives
from .release import HERE, File

# npm finds the files of a package below this folder of its archive.
FOLDER = "package/"


def build(release):
    """Yields the names and bytes of the packages."""
    platforms = release.for_each_processor()
    for platform in platforms:
        files = [manifest(of_platform(release, platform)), release.program(platform), release.weights()]
        yield archived(release, name_of(release, platform), files)
    launcher = File("bin/tiro.js", (HERE / "npm/tiro.js").read_bytes(), 0o755)
    about = File("README.md", (HERE / "about.md").read_bytes())
    yield archived(release, release.name, [manifest(of_launcher(release, platforms)), launcher, about])


def of_launcher(release, platforms):
    """Returns package.json of the package that users install."""
    return common(release, release.name, release.description) | {
        "keywords": release.keywords,
        "bin": {"tiro": "bin/tiro.js", release.name: "bin/tiro.js"},
        "engines": {"node": ">=18"},
        "optionalDependencies": {name_of(release, platform): release.version for platform in platforms},
    }


def of_platform(release, platform):
    """Returns package.json of the package with the program for one platform."""
    about = f"The program of {release.name} for {platform.os}-{platform.cpu}, with its model"
    libc = {"libc": ["glibc"]} if platform.target.endswith("-linux-gnu") else {}
    return common(release, name_of(release, platform), about) | {
        "os": [platform.os],
        "cpu": [platform.cpu],
        **libc,
        # Yarn would leave the package zipped, and nothing in it could be started.
        "preferUnplugged": True,
    }


def common(release, name, description):
    return {
        "name": name,
        "version": release.version,
        "description": description,
        "license": release.licence,
        "homepage": release.homepage,
    }


def name_of(release, platform):
    return f"{release.name}-{platform.os}-{platform.cpu}"


def manifest(content):
    return File("package.json", (json.dumps(content, indent=2) + "\n").encode())


def archived(release, name, files):
    return f"{name}-{release.version}.tgz", archives.tar_gz([*files, *release.licences()], release.time, FOLDER)
