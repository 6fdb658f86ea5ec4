"""Trials of the packages for npm, from a registry on this machine."""

import concurrent.futures
import json
import re
import tarfile

from .registry import Registry
from .user import User, check


def launcher(packages):
    """Returns the file and the name of the package that users install."""
    for path in packages.glob("*.tgz"):
        with tarfile.open(path) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        if "optionalDependencies" in manifest:
            return path, manifest["name"]
    raise SystemExit(f"there is no package for npm in `{packages}`")


def user_of(registry, folder, **variables):
    quiet = {"npm_config_update_notifier": "false", "npm_config_audit": "false", "npm_config_fund": "false"}
    user = User(folder, npm_config_registry=registry.url, npm_config_prefix=str(folder / "prefix"), **quiet, **variables)
    user.with_path(folder / "prefix/bin")
    return user


def size(packages, asked):
    """Returns the size of the packages that were downloaded."""
    names = {path.strip("/") for path in asked if path.endswith(".tgz")}
    return f"{sum((packages / name).stat().st_size for name in names) / 1e6:.1f} MB"


def with_npx(folder, options):
    _, name = launcher(options.packages)
    with Registry(options.packages) as registry:
        user = user_of(registry, folder)
        seconds = user.first_search("npx", "--yes", name)
        return f"{seconds:.1f} s to the first answer, {size(options.packages, registry.asked)}"


def globally(folder, options):
    _, name = launcher(options.packages)
    with Registry(options.packages) as registry:
        user = user_of(registry, folder)
        user.run("npm", "install", "--global", name)
        check(user.run("tiro", "--version") == user.run(name, "--version"), "the two commands differ")
        seconds = user.first_search("tiro")
        user.run("npm", "uninstall", "--global", name)
        left = [path for path in (folder / "prefix").rglob("*") if path.is_file() and "tiro" in path.name]
        check(not left, f"npm left {left}")
        return f"{seconds:.1f} s to the first answer, {size(options.packages, registry.asked)}"


def as_files(folder, options):
    """Installs the files themselves, without a registry that has them."""
    path, _ = launcher(options.packages)
    others = [each for each in options.packages.glob("*.tgz") if each != path and "-linux-" in each.name]
    with Registry(folder) as registry:
        user = user_of(registry, folder)
        user.run("npm", "install", "--prefix", folder / "there", path, *others)
        user.with_path(folder / "there/node_modules/.bin")
        return f"{user.first_search('tiro'):.1f} s to the first answer"


def without_optional(folder, options):
    """npm is set to omit optional dependencies, which it does in projects: the launcher says so, and its hint works."""
    _, name = launcher(options.packages)
    with Registry(options.packages) as registry:
        user = user_of(registry, folder, npm_config_omit="optional")
        user.run("npm", "install", "--prefix", folder / "there", name)
        user.with_path(folder / "there/node_modules/.bin")
        ran = user.attempt("tiro", "--version")
        check(ran.returncode == 1 and not ran.stdout, f"ended with {ran.returncode}: {ran.stdout}")
        hint = re.search(r"hint: (npm install \S+ [^;\s]+)", ran.stderr)
        check("omit optional dependencies" in ran.stderr and hint, ran.stderr)
        user.run(*hint.group(1).split(), cwd=folder / "there")
        user.run("tiro", "--version")
        return "the error names the package, and its hint works"


def at_once(folder, options):
    """Two terminals start the same package for the first time."""
    _, name = launcher(options.packages)
    with Registry(options.packages) as registry, concurrent.futures.ThreadPoolExecutor() as pool:
        user = user_of(registry, folder)
        user.begin()
        before = user.files()
        starts = [pool.submit(user.attempt, "npx", "--yes", name, "init", "--yes", cwd=user.project) for _ in range(2)]
        ends = [start.result() for start in starts]
        check(any(end.returncode == 0 for end in ends), f"both failed: {ends[0].stderr[-300:]}")
        user.run("npx", "--yes", name, "init", "--yes", cwd=user.project)
        user.run("npx", "--yes", name, "init", "--remove", cwd=user.project)
        user.check_restored(before)
        return f"ended with {' and '.join(str(end.returncode) for end in ends)}"


TRIALS = {
    "npx": with_npx,
    "npm, global": globally,
    "npm, from files": as_files,
    "npm, without optional dependencies": without_optional,
    "npx, twice at once": at_once,
}
