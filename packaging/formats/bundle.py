"""Bundles for MCP clients, one for each platform: the format does not distinguish processors."""

import pathlib
import subprocess
import sys
import tempfile

from .release import HERE


def build(release):
    """Yields the names and bytes of the bundles, which `packaging/mcpb/build` makes."""
    for platform in release.for_each_processor():
        with tempfile.TemporaryDirectory() as folder:
            bundle, model = pathlib.Path(folder, "tiro.mcpb"), pathlib.Path(folder, "weights.tiro")
            model.write_bytes(release.model)
            program = f"{platform.os}={release.programs[platform]}"
            command = [sys.executable, HERE / "mcpb/build", program, "--model", model, "--out", bundle]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            yield f"{release.name}-{release.version}-{platform.os}-{platform.cpu}.mcpb", bundle.read_bytes()
