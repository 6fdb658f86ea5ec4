"""Archives to unpack anywhere, such as `/usr/local`, with the names that `cargo binstall` reads in Cargo.toml."""

from . import archives


def build(release):
    """Yields the names and bytes of the archives, one for each program."""
    for platform in release.programs:
        files = [
            release.program(platform),
            release.weights(),
            *release.manual(),
            *release.completed("share/zsh/site-functions"),
            *release.licences("share/doc/tiro/"),
        ]
        stem = f"tiro-{release.version}-{platform.target}"
        yield f"{stem}.tar.gz", archives.tar_gz(files, release.time, f"{stem}/")
