"""Images with the static program alone, in OCI's format, made by buildah from `container/Containerfile`."""

import os
import pathlib
import subprocess
import tempfile

from . import archives
from .release import HERE, File

ARCHITECTURES = {"x64": "amd64", "arm64": "arm64"}
# Debian's own list. The one in /etc/ssl may have additions of this machine, which don't belong into an image.
AUTHORITIES = pathlib.Path("/usr/share/ca-certificates/mozilla")


def build(release):
    """Yields the names and bytes of the images."""
    for platform in release.programs:
        if platform.os == "linux" and platform.is_static:
            with tempfile.TemporaryDirectory() as folder:
                files = image(release, platform, pathlib.Path(folder))
                content = archives.tar(files, release.time)
                yield f"{release.name}-{release.version}-{platform.os}-{platform.cpu}.oci.tar", content


def image(release, platform, folder):
    """Builds the image in `folder`, and returns its files. No program runs in it, so any processor can build it."""
    context = folder / "context"
    write(context, [release.program(platform, "root/usr/bin"), release.weights("root/usr/share")])
    write(context, release.licences("root/usr/share/doc/tiro/"))
    authorities = context / "root/etc/ssl/certs/ca-certificates.crt"
    authorities.parent.mkdir(parents=True)
    authorities.write_bytes(certificates())
    for path in [context / "data/team", context / "tmp"]:
        path.mkdir(parents=True)
    for path in [context, *context.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.name == platform.program else 0o644)
    (context / "tmp").chmod(0o1777)
    storage = ["--storage-driver", "vfs", "--root", folder / "storage", "--runroot", folder / "run"]
    name = f"{release.name}:{release.version}"
    made = [
        "build", "--isolation", "chroot", "--arch", ARCHITECTURES[platform.cpu], "--timestamp", str(release.time),
        "--label", f"org.opencontainers.image.version={release.version}",
        "--label", f"org.opencontainers.image.licenses={release.licence}",
        "--identity-label=false", "--file", HERE / "container/Containerfile", "--tag", name, context,
    ]
    buildah(storage, *made)
    layout = folder / "layout"
    buildah(storage, "push", "--compression-format", "gzip", "--compression-level", "9", name, f"oci:{layout}:{name}")
    return [File(path.relative_to(layout).as_posix(), path.read_bytes()) for path in layout.rglob("*") if path.is_file()]


def write(folder, files):
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)


def certificates():
    """Returns the certificates of authorities, which connections to models and teams need."""
    files = sorted(AUTHORITIES.glob("*.crt"))
    if not files:
        raise SystemExit(f"there are no certificates in `{AUTHORITIES}`: install Debian's ca-certificates")
    return b"".join(path.read_bytes() for path in files)


def buildah(storage, *arguments):
    try:
        ran = subprocess.run(["buildah", *storage, *arguments], capture_output=True, text=True, env=os.environ)
    except FileNotFoundError:
        raise SystemExit("there is no `buildah` on this machine")
    if ran.returncode != 0:
        raise SystemExit(f"`buildah {arguments[0]}` failed: {ran.stderr}")
