# SPDX-License-Identifier: Apache-2.0
"""The operators' files: make install, the wheel, man pages, the config file, examples of jobs."""
import base64
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import zipfile

import common
from common import Case, ROOT

TOOLS = ("tacho-record", "tacho-convert", "tacho-analyze")


def make(*words):
    # the folder as it was named when it was built: under another name all would be built again
    folder = "B=" + os.path.relpath(common.BIN, ROOT)
    done = subprocess.run(["make", "-s", "--no-print-directory", "-C", ROOT, folder, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise AssertionError("make %s: %s" % (words, done.stdout.decode()))


def files_under(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, _, names in os.walk(folder) for name in names)


class Install(Case):
    PROGRAM = '''
#include <tacho.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	for (int i = 0; i < 5; i++) {
		tacho_step();
		tacho_phase_push("forward");
		tacho_phase_pop();
	}
	tacho_step_cancel();
	tacho_epoch_end();
	printf("%s\\n", tacho_version());
	return strlen(tacho_version()) < 3;
}
'''

    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        make("install", "DESTDIR=" + self.root, "PREFIX=/opt/tacho")
        self.prefix = self.root + "/opt/tacho"

    def test_files_and_uninstall(self):
        found = files_under(self.root)
        for name in ("bin/tacho-record", "bin/tacho-convert", "bin/tacho-analyze",
                     "lib/libtacho.so", "lib/libtacho.so.1", "lib/pkgconfig/tacho.pc",
                     "include/tacho.h", "share/tacho/tacho/__init__.py", "share/man/man1/tacho-record.1",
                     "share/man/man1/tacho-convert.1", "share/man/man1/tacho-analyze.1",
                     "share/doc/tacho/LICENSE", "share/doc/tacho/samples/slurm.sh",
                     "share/doc/tacho/samples/kubernetes.yaml",
                     "share/doc/tacho/samples/tacho.json"):
            self.assertIn("opt/tacho/" + name, found)
        self.assertEqual(os.readlink(self.prefix + "/lib/libtacho.so"), "libtacho.so.1")
        self.assertTrue(os.access(self.prefix + "/bin/tacho-record", os.X_OK))
        make("uninstall", "DESTDIR=" + self.root, "PREFIX=/opt/tacho")
        self.assertEqual(files_under(self.root), [])
        self.assertFalse(os.path.exists(self.prefix + "/share/doc/tacho"))

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
    def test_program_by_pkg_config(self):
        words = subprocess.check_output(
            ["pkg-config", "--define-variable=prefix=" + self.prefix,
             "--define-variable=libdir=%s/lib" % self.prefix, "--cflags", "--libs", "tacho"],
            env=dict(os.environ, PKG_CONFIG_PATH=self.prefix + "/lib/pkgconfig")).decode().split()
        self.write("p.c", self.PROGRAM)
        self.run_command("gcc", "-Wall", "-Werror", "-o", "p", "p.c", *words)
        done = self.run_command("./p", LD_LIBRARY_PATH=self.prefix + "/lib",
                                TACHO_WINDOW="steps:1-4", TACHO_OUT="logs")
        with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
            version = file.read().strip()
        self.assertEqual(done.out, version + "\n")
        self.assertEqual(self.log().steps, [1, 2, 3])
        self.assertIn("NEEDED               libtacho.so.1",
                      self.run_command("objdump", "-p", "p").out)
        self.assertEqual(subprocess.check_output(
            ["pkg-config", "--modversion", "tacho"], env=dict(
                os.environ, PKG_CONFIG_PATH=self.prefix + "/lib/pkgconfig")).decode().strip(),
            version)

    def test_installed_tools_find_their_library_and_module(self):
        program = self.write("p.py", "import tacho\nfor i in range(9): tacho.step()\n"
                                     "print(tacho.__file__)\n")
        done = self.run_command(self.prefix + "/bin/tacho-record", "-w", "steps:2-5", "-o", "logs",
                                "--", sys.executable, program)
        self.assertEqual(done.out.strip(), self.prefix + "/share/tacho/tacho/__init__.py")
        self.assertEqual(self.log().steps, [2, 3, 4])

    def test_headers_compile_as_cxx(self):
        if not shutil.which("g++"):
            self.skipTest("no g++")
        self.write("p.cc", "#include <tacho.h>\nint main() { tacho_step(); }\n")
        self.run_command("g++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                         "-I" + self.prefix + "/include", "p.cc")


class Manuals(Case):
    def test_each_option_of_help_and_no_other(self):
        for name in TOOLS:
            with self.subTest(tool=name):
                told = self.run_command(os.path.join(common.BIN, name), "--help").out
                with open(os.path.join(common.BIN, "man", name + ".1"), encoding="utf-8") as file:
                    page = file.read()
                inside = page.split(".SH OPTIONS\n")[1].split(".SH")[0].split(".SS")[0]
                # the name column of the help, and the tagged paragraphs of the page
                helped = re.findall(r"(?m)^ +(-\S+(?: \S+)*)(?:  .*)?$", told)
                paged = re.findall(r"(?m)^\.TP\n\.B (.*)$", inside)
                self.assertGreater(len(helped), 8)
                self.assertEqual(helped, [tag.replace("\\-", "-").replace("\\e", "\\")
                                          for tag in paged])
                self.assertNotIn("@", re.sub(r"\S+@\S+", "", page))

    def test_they_are_set_without_a_warning(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for name in TOOLS:
            done = self.run_command("groff", "-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u",
                                    os.path.join(common.BIN, "man", name + ".1"))
            self.assertEqual(done.err, "", name)
            text = re.sub(r"\s+", " ", done.out.replace("\u2010\n", "").replace("‐", "-"))
            self.assertIn("NAME %s - " % name, text)
            self.assertIn("EXIT STATUS", text)


class Config(Case):
    def test_the_sample_is_what_the_tool_prints(self):
        with open(os.path.join(ROOT, "samples", "tacho.json"), encoding="utf-8") as file:
            text = file.read()
        done = self.run_command(os.path.join(common.BIN, "tacho-record"), "--print-config")
        self.assertEqual(done.out, text, "tacho-record --print-config >samples/tacho.json")

    def test_every_key_is_explained(self):
        with open(os.path.join(ROOT, "samples", "tacho.json"), encoding="utf-8") as file:
            settings = json.load(file)
        keys = [key for key in settings if not key.startswith("//")]
        self.assertGreater(len(keys), 15)
        for key in keys:
            self.assertTrue(settings["//" + key], key)

    def test_it_is_read_by_both(self):
        path = os.path.join(ROOT, "samples", "tacho.json")
        steps = "for i in range(5): tacho.step()\n"
        self.record("import tacho\n" + steps, "--config", path)
        self.assertEqual(self.log().steps, [0, 1, 2, 3, 4])
        self.run_python('import tacho\nassert tacho.configure(%r, out="mine")\n' % path + steps)
        self.assertEqual(self.log("mine").steps, [0, 1, 2, 3, 4])


class Jobs(Case):
    """Examples for Slurm, under a stand-in for srun that starts two ranks."""

    SRUN = '''#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
for rank in 0 1; do SLURM_PROCID=$rank SLURM_NTASKS=2 "$@" & pids="$pids $!"; done
status=0
for pid in $pids; do wait $pid || status=$?; done
exit $status
'''

    def submit(self, script, program, **variables):
        os.makedirs(self.path("bin"), exist_ok=True)
        os.chmod(self.write("bin/srun", self.SRUN), 0o755)
        return self.run_command(
            "bash", os.path.join(ROOT, "samples", script), self.write("train.py", program),
            check=False, SLURM_SUBMIT_DIR=self.folder, SLURM_JOB_ID=77, TMPDIR=self.folder,
            PATH="%s:%s:%s" % (self.path("bin"), common.BIN, os.environ["PATH"]), **variables)

    def test_slurm(self):
        done = self.submit("slurm.sh", "import tacho\nfor i in range(120): tacho.step()\n")
        self.assertEqual(done.status, 0, done.err)
        paths = self.log_paths("tacho-logs/77")
        self.assertEqual(len(paths), 2)
        for rank, path in enumerate(paths):
            self.assertIn(".r%d." % rank, path)
            self.assertEqual(common.Log(path).steps, list(range(100, 110)))
        self.assertIn("STEPS", done.out)

    def test_slurm_passes_a_failure_on(self):
        done = self.submit("slurm.sh", "import tacho\ntacho.step()\nraise SystemExit(3)\n")
        self.assertEqual(done.status, 3)

    def test_slurm_flight_recorder(self):
        done = self.submit("slurm-flight.sh", '''
import os, signal, sys, tacho, time
for i in range(300):
    tacho.step(); time.sleep(.01)  # what is younger than a second may be lost
if os.environ["SLURM_PROCID"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
''')
        self.assertNotEqual(done.status, 0)
        # on a busy machine a slow step may have saved one before the death of rank 1
        steps = [len(common.Log(path).steps) for path in self.log_paths("tacho-logs/77")
                 if ".r1." in path]
        self.assertTrue([count for count in steps if count > 100], done.err)

    def test_examples_are_told(self):
        with open(os.path.join(ROOT, "samples", "README.md"), encoding="utf-8") as file:
            text = file.read()
        for name in os.listdir(os.path.join(ROOT, "samples")):
            if name != "README.md" and not name.endswith(".h") and not name.startswith("generate"):
                self.assertIn("`%s`" % name, text)


class Wheel(Case):
    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, os.path.join(ROOT, "collector", "python", "wheel.py"), "--version",
                        "1.2.3", "--bin", common.BIN, self.folder], check=True,
                       stdout=subprocess.DEVNULL)
        self.wheel = [self.path(name) for name in os.listdir(self.folder)
                      if name.endswith(".whl")][0]

    def test_name_record_and_tags(self):
        machine = "manylinux_%s_%s" % (os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_"),
                                       os.uname().machine)
        self.assertEqual(os.path.basename(self.wheel),
                         "tacho-1.2.3-py3-none-%s.whl" % machine)
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            self.assertIsNone(archive.testzip())
            rows = list(csv.reader(archive.read("tacho-1.2.3.dist-info/RECORD").decode()
                                   .splitlines()))
            self.assertEqual([row[0] for row in rows], names)
            for name, digest, size in rows[:-1]:
                content = archive.read(name)
                algorithm, value = digest.split("=", 1)
                self.assertEqual(algorithm, "sha256")
                self.assertEqual(base64.urlsafe_b64decode(value + "="),
                                 hashlib.sha256(content).digest(), name)
                self.assertEqual(int(size), len(content))
            self.assertEqual(rows[-1], ["tacho-1.2.3.dist-info/RECORD", "", ""])
            wheel = archive.read("tacho-1.2.3.dist-info/WHEEL").decode()
            self.assertIn("Tag: py3-none-%s\n" % machine, wheel)
            self.assertIn("Root-Is-Purelib: false\n", wheel)
            self.assertIn("tacho/py.typed", names)  # for type checkers
            self.assertIn("tacho/hook/sitecustomize.py", names)
            self.assertIn(b'__version__ = "1.2.3"', archive.read("tacho/_version.py"))
            meta = archive.read("tacho-1.2.3.dist-info/METADATA").decode()
            self.assertIn("Name: tacho\nVersion: 1.2.3\n", meta)

    def test_same_bytes_twice(self):
        first = open(self.wheel, "rb").read()
        self.setUp()
        self.assertEqual(open(self.wheel, "rb").read(), first)

    def test_installs_and_finds_its_library(self):
        if subprocess.run([sys.executable, "-c", "import ensurepip, venv"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no ensurepip: apt-get install python3-venv")
        self.run_command(sys.executable, "-m", "venv", "venv")
        self.run_command("venv/bin/pip", "install", "--no-index", "-q",
                         "--disable-pip-version-check", self.wheel)
        program = self.write("p.py", "import tacho\ntacho.configure(out='logs', window='all')\n"
                                     "for i in range(3): tacho.step()\ntacho.epoch_end()\n"
                                     "print(tacho.available(), tacho.__file__)\n"
                                     "print([l for l in open('/proc/self/maps') if 'tacho' in l"
                                     " and 'venv' not in l and '/memfd:' not in l])\n")
        done = self.run_command("venv/bin/python", program)
        self.assertRegex(done.out, r"^True .*/venv/lib/.*/site-packages/tacho/__init__\.py\n\[\]\n$")
        self.assertEqual(self.log().steps, [0, 1, 2])
        self.run_command("venv/bin/tacho-record", "-w", "steps:1-2", "-o", "more", "--",
                         "venv/bin/python", "-c", "import tacho\nfor i in (1, 2, 3): tacho.step()")
        self.assertEqual(self.log("more").steps, [1])
        # the other tools, by libraries of the wheel
        log, = self.log_paths("more")
        self.assertIn('"ProfilerStep#1"', self.run_command("venv/bin/tacho-convert", "-q", "-t",
                                                           "chrome", log).out)
        self.assertIn("1", self.run_command("venv/bin/tacho-analyze", "-q", log).out)
        folder = os.path.join(os.path.dirname(os.path.dirname(done.out.split()[1])), "tacho.libs")
        used = self.run_command("ldd", os.path.join(folder, "tacho-analyze")).out
        for name in os.listdir(os.path.join(folder, "libs")):
            if name in used:
                self.assertIn("%s => %s" % (name, os.path.join(folder, "libs", name)), used)
        self.assertIn("libarchive", used)
        self.run_command("venv/bin/pip", "uninstall", "-y", "-q", "tacho")
        self.assertEqual([name for name in files_under(self.path("venv")) if "tacho" in name], [])
