"""Makes a wheel of a folder, with nothing but Python's own library and no internet.

    make_wheel.py FOLDER VERSION OUT

FOLDER holds the package `memplan`, with the program and libraries in `memplan/native`. The wheel is for any Python 3.9 or
later, on this processor, with a C library that is not older than this machine's. The same folder gives the same bytes."""

import base64
import hashlib
import os
import platform
import sys
import zipfile

METADATA = """\
Metadata-Version: 2.1
Name: memplan
Version: {version}
Summary: Plans the memory of neural networks: an offset for each buffer, proved smallest, verified
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: memplan
Root-Is-Purelib: false
Tag: {tag}
"""


def tag():
    name, version = platform.libc_ver()
    if name != "glibc":
        sys.exit("make_wheel: this machine has no glibc, and the tag manylinux speaks of it")
    return "py3-none-manylinux_{}_{}".format(version.replace(".", "_"), platform.machine())


def files_of(folder):
    """(name in the wheel, content, mode), sorted by name."""
    found = []
    for at, folders, names in os.walk(os.path.join(folder, "memplan")):
        folders[:] = [f for f in folders if f != "__pycache__"]
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                content = f.read()
            found.append((os.path.relpath(path, folder), content, 0o755 if os.access(path, os.X_OK) else 0o644))
    return sorted(found)


def main():
    folder, version, out = sys.argv[1:]
    info = f"memplan-{version}.dist-info"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md"), encoding="utf-8") as f:
        readme = f.read()
    files = files_of(folder)
    for name, text in (("METADATA", METADATA.format(version=version, readme=readme)), ("WHEEL", WHEEL.format(tag=tag())),
                       ("entry_points.txt", "[console_scripts]\nmemplan = memplan._program:main\n")):
        files.append((f"{info}/{name}", text.encode(), 0o644))
    lines = []
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    lines.append(f"{info}/RECORD,,\n")
    files.append((f"{info}/RECORD", "".join(lines).encode(), 0o644))
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"memplan-{version}-{tag()}.whl")
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    print(f"wheel: {path}, {os.path.getsize(path) / 1e6:.1f} MB")


main()
