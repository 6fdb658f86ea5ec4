"""The formula for Homebrew, which downloads the archives of the release."""

import hashlib
import string

from .release import HERE

SYSTEMS = {"darwin": "macos", "linux": "linux"}
PROCESSORS = {"arm64": "arm", "x64": "intel"}


def build(release, archives):
    """Yields the formula for the archives, given by name, if there is one that Homebrew can install."""
    blocks = [block for system in SYSTEMS if (block := for_system(release, archives, system))]
    if blocks:
        template = string.Template((HERE / "homebrew/formula.rb").read_text(encoding="utf-8"))
        formula = template.substitute(
            type="".join(part.capitalize() for part in release.name.split("-")),
            summary=release.summary[0].upper() + release.summary[1:],
            homepage=release.homepage,
            version=release.version,
            platforms="\n".join(blocks),
        )
        yield f"{release.name}.rb", formula.encode()


def for_system(release, archives, system):
    """Returns the part of the formula about one system, empty if there is no program for it."""
    processors = []
    for platform in release.for_each_processor():
        name = f"tiro-{release.version}-{platform.target}.tar.gz"
        if platform.os == system:
            processors.append(
                f"    on_{PROCESSORS[platform.cpu]} do\n"
                f'      url "{release.homepage}/releases/download/v{release.version}/{name}"\n'
                f'      sha256 "{hashlib.sha256(archives[name]).hexdigest()}"\n'
                "    end\n"
            )
    return f"  on_{SYSTEMS[system]} do\n{''.join(processors)}  end\n" if processors else ""
