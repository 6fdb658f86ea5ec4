"""Archives whose bytes depend on their files alone: sorted, without users, with one time."""

import gzip
import io
import tarfile
import time
import zipfile


def tar(files, moment, folder=""):
    """Returns a tar archive of the files, below `folder`, with their folders."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as writer:
        for path in folders([folder + file.path for file in files]):
            writer.addfile(member(path, tarfile.DIRTYPE, 0o755, moment))
        for file in sorted(files, key=lambda file: file.path):
            entry = member(folder + file.path, tarfile.REGTYPE, file.mode, moment)
            entry.size = len(file.content)
            writer.addfile(entry, io.BytesIO(file.content))
    return archive.getvalue()


def tar_gz(files, moment, folder=""):
    """Returns the archive compressed, without a name or a time in the header."""
    return gzip.compress(tar(files, moment, folder), compresslevel=9, mtime=0)


def zipped(files, moment):
    """Returns a zip archive of the files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        for file in files:
            entry = zipfile.ZipInfo(file.path, date_time=time.gmtime(moment)[:6])
            entry.create_system = 3  # Unix: otherwise the mode is ignored.
            entry.external_attr = (0o100000 | file.mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            writer.writestr(entry, file.content, compresslevel=9)
    return archive.getvalue()


def folders(paths):
    """Returns the folders of the paths, each after the one that contains it."""
    found = set()
    for path in paths:
        parts = path.split("/")[:-1]
        found.update("/".join(parts[: length + 1]) for length in range(len(parts)))
    return sorted(found)


def member(path, kind, mode, moment):
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode, entry.mtime = kind, mode, moment
    return entry
