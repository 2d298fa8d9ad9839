#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schemas/model/records.def beside NVIDIA's own CUPTI 12.0 to 13.5, whose wheels are fetched.

    python3 tests/fake/libcupti_versions.py --bin build [VERSION...]

Of each: the functions that the collector looks up, offsets of all members in the headers' newest
structs; and by the library itself, where it answers without a driver, that the size of a record is
that of the struct, and that its clock is CLOCK_REALTIME.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

VERSIONS = ("12.0.146 12.1.105 12.2.142 12.3.101 12.4.127 12.5.82 12.6.80 12.8.90 12.9.79 13.0.85 13.1.115 "
            "13.2.86 13.3.75 13.4.92 13.5.25").split()
SILENT = (13, 2)    # from here on a library wants a driver before it says anything
STEMS = {1: "Memcpy", 2: "Memset", 4: "API", 5: "API", 10: "Kernel", 17: "Overhead", 22: "MemcpyPtoP", 36: "CudaEvent",
         38: "Synchronization", 49: "Memory", 50: "MemoryPool", 51: "GraphTrace", 52: "Jit", 54: "MemDecompress"}
SINCE = {           # what is not in every version
    "cuptiActivityEnableRuntimeApi": (12, 5), "cuptiActivityEnableDriverApi": (12, 5), "cuptiSubscribe_v2": (13, 0),
    "cuptiActivityEnableAllSyncRecords": (12, 8), "cuptiActivityGetStructSize": (13, 2)}
ROWS = r'''
#include <stdio.h>
int main(void) {
#define R(record, number, kind, cupti, word, help) printf("R %s %d\n", #record, cupti);
#define F(record, field, type, unit, place, offset, member, since, arg) \
	printf("F %s %s %d %s %d\n", #record, #field, offset, #member, since);
#include "schemas/model/records.def"
}
'''


def shell(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **more)


def rows_of_records(work):
    """[(record, CUPTI's kind, field, offset, member, since)]"""
    source, program = os.path.join(work, "rows.c"), os.path.join(work, "rows")
    with open(source, "w") as f:
        f.write(ROWS)
    subprocess.run(["cc", "-I.", "-o", program, source], check=True)
    kinds, rows = {}, []
    for line in shell(program).stdout.splitlines():
        word = line.split(" ")
        if word[0] == "R":
            kinds[word[1]] = int(word[2])
        else:
            rows.append((word[1], word[2], int(word[3]), word[4], int(word[5])))
    return [(record, kinds[record]) + tuple(rest) for record, *rest in rows if kinds[record] in STEMS]


def fetch(version, folder):
    """A folder with what the wheels of CUPTI and of the runtime's headers hold, or None."""
    suffix = "-cu12" if version.startswith("12.") else ""
    minor = ".".join(version.split(".")[:2])
    if not os.path.isdir(folder):
        os.makedirs(folder)
        for wheel in ("nvidia-cuda-cupti%s==%s" % (suffix, version), "nvidia-cuda-runtime%s==%s.*" % (suffix, minor),
                      "nvidia-cuda-crt==%s.*" % minor):
            if "crt" in wheel and suffix:
                continue
            shell(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, wheel)
        for wheel in glob.glob(os.path.join(folder, "*.whl")):
            zipfile.ZipFile(wheel).extractall(folder)
            os.remove(wheel)
    library = glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcupti.so.1?"))
    return library[0] if library else None


def structs_of(header):
    """Name: body of the newest struct of each stem."""
    text = open(header, errors="replace").read()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    bodies = {}
    for body, name in re.findall(r"typedef (?:struct|union)(?:\s+PACKED_ALIGNMENT)?\s*\w*\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}\s*(CUpti_Activity\w+)\s*;",
                                 text):
        bodies[name] = body
    newest = {}
    for kind, stem in STEMS.items():
        numbered = [(int(n or 1), name) for name in bodies for n in re.findall(r"^CUpti_Activity%s(\d*)$" % stem, name)]
        if numbered:
            newest[kind] = max(numbered)[1]
    return newest, bodies


def offsets(version, folder, rows, work):
    """What is wrong, and sizes of structs by kind."""
    includes = ["-I" + d for d in glob.glob(os.path.join(folder, "nvidia", "*", "include"))]
    newest, bodies = structs_of(glob.glob(os.path.join(folder, "nvidia", "*", "include", "cupti_activity.h"))[0])
    source, program = os.path.join(work, "offsets.c"), os.path.join(work, "offsets")
    lines, asked = ["#include <stddef.h>", "#include <stdio.h>", "#include <cupti_activity.h>", "int main(void) {"], []
    for kind, name in newest.items():
        lines.append('printf("size %d %%zu\\n", sizeof(%s));' % (kind, name))
    for number, (record, kind, field, offset, member, since) in enumerate(rows):
        if kind not in newest:
            continue
        first = member.split(".")[0]
        inside = bodies[newest[kind]] + (bodies["CUpti_ActivityObjectKindId"] if first == "objectId" else "")
        if all(re.search(r"\b%s\b" % part, inside) for part in member.split(".")):
            lines.append('printf("at %d %%zu\\n", offsetof(%s, %s));' % (number, newest[kind], member))
        else:
            asked.append(number)
    with open(source, "w") as f:
        f.write("\n".join(lines + ["}"]))
    made = shell("cc", "-w", *includes, "-o", program, source)
    if made.returncode:
        return ["the headers do not compile: " + made.stderr[:300]], {}, 0
    sizes, bad, count = {}, [], 0
    for line in shell(program).stdout.splitlines():
        what, number, value = line.split(" ")
        if what == "size":
            sizes[int(number)] = int(value)
            continue
        record, kind, field, offset, member, since = rows[int(number)]
        count += 1
        if offset != int(value):
            bad.append("%s.%s: %d, in %s it is %s" % (record, field, offset, newest[kind], value))
    api = int(re.search(r"define CUPTI_API_VERSION (\d+)", open(
        glob.glob(os.path.join(folder, "nvidia", "*", "include", "cupti_version.h"))[0]).read())[1])
    for number in asked:    # beyond the record, or not read in this version
        record, kind, field, offset, member, since = rows[number]
        if offset < sizes[kind] and api >= since:
            bad.append("%s.%s: %s has no %s, and %d lies in it" % (record, field, newest[kind], member, offset))
    return bad, sizes, count


def functions():
    text = open("collector/probe/cupti/lib.h").read()
    return re.findall(r'X\(\w+,\s*"(cupti\w+)"', text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    args = parser.parse_args()
    passed = failed = missing = 0

    def result(bad, what):
        nonlocal passed, failed
        print("%s - %s" % ("not ok" if bad else "ok", what), flush=True)
        for text in bad[:20]:
            print("#   " + text)
        passed, failed = passed + (not bad), failed + bool(bad)

    with tempfile.TemporaryDirectory() as work:
        rows = rows_of_records(work)
        for version in args.versions:
            folder = os.path.abspath(os.path.join(args.bin, "fake", "versions", version))
            number = tuple(int(n) for n in version.split(".")[:2])
            library = fetch(version, folder)
            if not library:
                print("# %s could not be had" % version)
                missing += 1
                continue
            have = set(shell("nm", "-D", "--defined-only", library).stdout.split())
            have = {name.split("@")[0] for name in have}
            lacks = [f for f in functions() if f not in have and number >= SINCE.get(f, (0, 0))]
            early = [f for f in functions() if f in have and number < SINCE.get(f, (0, 0))]
            result(["it has no " + f for f in lacks] + ["it has %s already" % f for f in early], "%s: functions" % version)
            bad, sizes, count = offsets(version, folder, rows, work)
            result(bad or ["nothing was compared"] * (count < 100), "%s: %d offsets" % (version, count))
            if number >= SILENT:
                continue
            tell = os.path.join(args.bin, "fake", "compare_libcupti")
            said = shell(tell, library, "sizes").stdout
            strides = {int(k): int(n) for k, n in re.findall(r"^size (\d+) \d+ \d+ (\d+)", said, re.M)}
            result(["kind %d: %r bytes, the struct has %d" % (k, strides.get(k), n) for k, n in sizes.items()
                    if strides.get(k) != n] or ["no size was told: " + said[:200]] * (not strides), "%s: record sizes" % version)
            clock = shell(tell, library, "version").stdout
            result([] if "realtime=1" in clock else [clock], "%s: its clock" % version)
    print("libcupti_versions: %d passed, %d failed, %d versions missing" % (passed, failed, missing))
    return failed > 0 or missing > 0


if __name__ == "__main__":
    sys.exit(main())
