"""Starts the program `tiro`, which pip installs beside this command."""

import os
import subprocess
import sys
import sysconfig


def main():
    program = "tiro.exe" if os.name == "nt" else "tiro"
    beside = os.path.dirname(os.path.realpath(sys.argv[0]))
    places = [os.path.join(folder, program) for folder in (beside, sysconfig.get_path("scripts"))]
    found = next((place for place in places if os.path.isfile(place)), None)
    if found is None:
        sys.exit("error: the program `{}` is not in `{}`: install the package again".format(program, beside))
    try:
        if os.name == "nt":
            sys.exit(subprocess.call([found, *sys.argv[1:]]))
        os.execv(found, [found, *sys.argv[1:]])
    except OSError as error:
        sys.exit("error: cannot start `{}`: {}".format(found, error.strerror))
