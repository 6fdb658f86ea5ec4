"""Trials of the wheels, with pip and uv."""

import concurrent.futures

from .user import User, check


def wheels(packages):
    found = sorted(packages.glob("*linux*.whl"))
    check(found, f"there is no wheel in `{packages}`")
    return found


def wheel_for(user, packages, uv):
    """Returns the wheel that fits this machine, and the name of the package."""
    import platform

    wheel = next(each for each in wheels(packages) if platform.machine() in each.name)
    return wheel, wheel.name.split("-")[0].replace("_", "-")


def size(path):
    return f"{path.stat().st_size / 1e6:.1f} MB"


def user_of(folder):
    """Returns a user whose pip and uv ask no registry."""
    offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_OFFLINE": "1", "UV_NO_CONFIG": "1"}
    user = User(folder, UV_PYTHON=str(folder / "tools/python3"), **offline)
    user.with_path(user.home / ".local/bin")
    return user


def with_pip(folder, options):
    user = user_of(folder)
    wheel, name = wheel_for(user, options.packages, options.uv)
    user.run("python3", "-m", "venv", folder / "venv")
    user.run(folder / "venv/bin/pip", "install", "--quiet", wheel)
    user.with_path(folder / "venv/bin")
    check(user.run("tiro", "--version") == user.run(name, "--version"), "the two commands differ")
    module = name.replace("-", "_")
    check(user.run("tiro", "--version") == user.run("python", "-m", module, "--version"), "`python -m` differs")
    seconds = user.first_search("tiro")
    user.run("pip", "uninstall", "--quiet", "--yes", name)
    left = [path for path in (folder / "venv").rglob("*") if path.is_file() and "tiro" in str(path.relative_to(folder))]
    check(not left, f"pip left {left}")
    return f"{seconds:.1f} s to the first answer, {size(wheel)}"


def with_uv_tool(folder, options):
    user = user_of(folder)
    wheel, name = wheel_for(user, options.packages, options.uv)
    user.run(options.uv, "tool", "install", "--quiet", wheel)
    check(user.run("tiro", "--version") == user.run(name, "--version"), "the two commands differ")
    return f"{user.first_search('tiro'):.1f} s to the first answer, {size(wheel)}"


def with_uvx(folder, options):
    user = user_of(folder)
    wheel, name = wheel_for(user, options.packages, options.uv)
    uvx = (options.uv, "tool", "run", "--quiet", "--find-links", options.packages)
    return f"{user.first_search(*uvx, name):.1f} s to the first answer, {size(wheel)}"


def at_once(folder, options):
    """Two terminals start the same package for the first time."""
    user = user_of(folder)
    _, name = wheel_for(user, options.packages, options.uv)
    uvx = (options.uv, "tool", "run", "--quiet", "--find-links", options.packages, name)
    user.begin()
    before = user.files()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        starts = [pool.submit(user.attempt, *uvx, "init", "--yes", cwd=user.project) for _ in range(2)]
        ends = [start.result() for start in starts]
    check(any(end.returncode == 0 for end in ends), f"both failed: {ends[0].stderr[-300:]}")
    user.run(*uvx, "init", "--remove", cwd=user.project)
    user.check_restored(before)
    return f"ended with {' and '.join(str(end.returncode) for end in ends)}"


TRIALS = {
    "pip": with_pip,
    "uv tool": with_uv_tool,
    "uvx": with_uvx,
    "uvx, twice at once": at_once,
}
