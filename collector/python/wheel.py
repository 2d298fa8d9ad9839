#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs the package tacho, libtacho.so, the three tools and the libraries that these need as a
wheel; needs nothing but this interpreter and ldd.

    wheel.py --version 0.1.0 --bin build FOLDER

The tools lie in tacho.libs/ beside the package, which looks there for the library, and theirs in
tacho.libs/libs/, where their RPATH points. The wheel is for any Python 3.8 or later, because nothing
in it is compiled against Python, and for machines whose C library is that of this one, or of --glibc,
or newer: the version is in the wheel's name.
"""
import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIME = (1980, 1, 1, 0, 0, 0)  # the same bytes from the same inputs
TOOLS = ("tacho-record", "tacho-convert", "tacho-analyze")
OF_LIBC = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|ld-linux.*)\.so")
LAUNCHER = b"""#!python
# SPDX-License-Identifier: Apache-2.0
import os
import sys

import tacho

tool = os.path.join(os.path.dirname(os.path.dirname(tacho.__file__)), "tacho.libs", "TOOL")
os.execv(tool, [tool] + sys.argv[1:])
"""


def read(*path):
    with open(os.path.join(*path), "rb") as file:
        return file.read()


def package(version):
    """Its files, with the version of the wheel."""
    for name in ("", "hook"):
        for file in sorted(os.listdir(os.path.join(HERE, "tacho", name))):
            path = os.path.join("tacho", name, file)
            if file.endswith((".py", ".typed")):
                content = read(HERE, path)
                if file == "_version.py":
                    content = re.sub(rb'"[0-9][^"]*"', b'"%s"' % version.encode(), content)
                yield path, content, 0o644


def libraries(tools):
    """name -> path of each shared library of the tools but those of the C library."""
    found = {}
    for tool in tools:
        for line in subprocess.check_output(["ldd", tool]).decode().splitlines():
            words = line.split()
            if len(words) > 2 and words[1] == "=>" and not OF_LIBC.match(words[0]):
                found[words[0]] = words[2]
    return found


def members(options, tag, info):
    """(name in the wheel, bytes, mode), all but RECORD."""
    meta = ("Metadata-Version: 2.1\nName: tacho\nVersion: %s\n"
            "Summary: Marks steps, phases and ranges of a training loop; libtacho records them\n"
            "License: Apache-2.0\nRequires-Python: >=3.8\n"
            "Classifier: Operating System :: POSIX :: Linux\n\n" % options.version)
    wheel = ("Wheel-Version: 1.0\nGenerator: tacho %s\nRoot-Is-Purelib: false\nTag: %s\n"
             % (options.version, tag))
    data = info.replace(".dist-info", ".data")
    return [
        *package(options.version),
        ("tacho.libs/libtacho.so", read(options.bin, "libtacho.so"), 0o755),
        *(("tacho.libs/" + name, read(options.bin, name), 0o755) for name in TOOLS),
        *(("tacho.libs/libs/" + name, read(path), 0o755) for name, path in sorted(libraries(
            os.path.join(options.bin, name) for name in TOOLS).items())),
        *((data + "/scripts/" + name, LAUNCHER.replace(b"TOOL", name.encode()), 0o755)
          for name in TOOLS),
        (info + "/METADATA", meta.encode(), 0o644),
        (info + "/WHEEL", wheel.encode(), 0o644),
        (info + "/LICENSE", read(HERE, "..", "..", "LICENSE"), 0o644),
    ]


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return "%s,sha256=%s,%d\n" % (name, digest, len(content))


def put(archive, name, content, mode):
    entry = zipfile.ZipInfo(name, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o100000 | mode) << 16
    entry.create_system = 3  # Unix: the mode counts
    archive.writestr(entry, content)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--bin", required=True, help="folder of libtacho.so and tacho-record")
    parser.add_argument("--glibc", default=os.confstr("CS_GNU_LIBC_VERSION").split()[1],
                        help="the C library they were built for, if not that of this machine")
    parser.add_argument("folder")
    options = parser.parse_args()
    tag = "py3-none-manylinux_%s_%s" % (options.glibc.replace(".", "_"), os.uname().machine)
    info = "tacho-%s.dist-info" % options.version
    path = os.path.join(options.folder, "tacho-%s-%s.whl" % (options.version, tag))
    rows = members(options, tag, info)
    record = "".join(record_line(name, content) for name, content, _ in rows)
    record += info + "/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content, mode in rows:
            put(archive, name, content, mode)
        put(archive, info + "/RECORD", record.encode(), 0o644)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
