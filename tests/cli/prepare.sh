#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Small inputs for the rows of CASES, in $scratch: traces written by hand, whole and damaged.
set -eu
tests=$PWD/tests/cli
cd "$scratch"

# Two steps on one thread and one GPU: two launches, a copy, samples of an allocator, an arrow.
cat >small.json <<'JSON'
{
  "schemaVersion": 1,
  "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
  "host_name": "node7",
  "deviceProperties": [{"id": 0, "name": "GPU of a test", "numSms": 10}],
  "baseTimeNanoseconds": 1700000000000000000,
  "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "process_labels", "pid": 100, "tid": 0, "ts": 0, "args": {"labels": "CPU"}},
    {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "ts": 0, "args": {"name": "thread 100 (main)"}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "pid": 100, "tid": 100, "ts": 1000, "dur": 500},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": 1010.5, "dur": 100.25,
     "args": {"External id": 7, "Input Dims": [[4, 4], [4, 4]], "Call stack": "a.py(1): f;b.py(2): g"}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 1020, "dur": 10,
     "args": {"External id": 7, "cbid": 211, "correlation": 40}},
    {"ph": "s", "id": 40, "pid": 100, "tid": 100, "ts": 1020, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "sgemm<float, 4>", "pid": 0, "tid": 7, "ts": 1040, "dur": 200,
     "args": {"External id": 7, "device": 0, "context": 1, "stream": 7, "correlation": 40,
              "grid": [8, 1, 1], "block": [64, 2, 1], "registers per thread": 32, "shared memory": 1024}},
    {"ph": "f", "id": 40, "pid": 0, "tid": 7, "ts": 1040, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 100, "ts": 1050, "s": "t",
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 2048}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#6", "pid": 100, "tid": 100, "ts": 1500, "dur": 500},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 100, "tid": 100, "ts": 1510, "dur": 10,
     "args": {"External id": 8, "cbid": 41, "correlation": 41}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 1530, "dur": 20,
     "args": {"External id": 8, "device": 0, "context": 1, "stream": 7, "correlation": 41, "bytes": 800}},
    {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 100, "ts": 1600, "s": "t",
     "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": -512, "Total Allocated": 1536}}
  ],
  "traceName": "small.json"
}
JSON

# A replayed graph of two kernels, and the capture of it.
cat >graph.json <<'JSON'
{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "step[DECODE bs=3]", "pid": 5, "tid": 5, "ts": 0, "dur": 90},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 5, "tid": 5, "ts": 10, "dur": 5, "args": {"correlation": 1}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {"correlation": 1, "device": 0, "stream": 7}},
  {"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": 7, "ts": 50, "dur": 4, "args": {"correlation": 1, "device": 0, "stream": 7}}]}
JSON
mkdir captured
cat >captured/four.json <<'JSON'
{"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "capture_4_FULL", "pid": 5, "tid": 5, "ts": 0, "dur": 90},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamBeginCapture", "pid": 5, "tid": 5, "ts": 1, "dur": 1, "args": {"correlation": 1}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 5, "tid": 5, "ts": 10, "dur": 30, "args": {"Input Dims": [[4, 2]]}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 12, "dur": 9, "args": {"Input Dims": [[4, 2]]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 15, "dur": 1, "args": {"correlation": 2}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 25, "dur": 1, "args": {"correlation": 3}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamEndCapture", "pid": 5, "tid": 5, "ts": 80, "dur": 1, "args": {"correlation": 4}}]}
JSON
sed 's/"rank": 1/"rank": 0/; s/"pid": 100/"pid": 99/g; s/node7/node6/' small.json >rank0.json
mkdir two && cp small.json rank0.json two/
# The same rank once more, nine seconds later.
mkdir runs && cp small.json runs/a.json
sed 's/"pid": 100/"pid": 200/g; s/1700000000000000000/1700000009000000000/' small.json >runs/b.json
gzip -nc small.json >small.json.gz
"$bin/tacho-convert" -q small.json -t log -o small.tacho
# What rows compare with.
"$bin/tacho-convert" -q small.json -t chrome -o a.json
"$bin/tacho-convert" -q small.json -t perfetto -o a.pftrace
"$bin/tacho-convert" -q two -t log -o both.tacho
"$bin/tacho-analyze" -q small.json --report steps --format csv -o s1
"$bin/tacho-convert" -q small.json -t csv -o a.csv
"$bin/tacho-convert" -q two -t csv -o two.csv

# What is no trace.
: >empty.json
mkdir no-traces && echo 'hello' >no-traces/notes.txt
echo 'hello, world' >words.txt
echo '{"answer": 42}' >other.json
head -c 300 /dev/zero >zeros

# What was a trace.
head -c 1800 small.json >cut.json
head -c 400 small.json.gz >cut.json.gz
sed 's/aten::mm/aten::\xff\xfe\x01mm "q"/; s/"q"/\\"q\\"/' small.json >utf8.json
sed 's/"ts": 1020, "dur": 10,/"ts": "soon", "dur": 10,/' small.json >no-time.json
size=$(wc -c <small.tacho)
head -c $((size - 20)) small.tacho >cut.tacho
head -c $((size - 200)) small.tacho >cut2.tacho
head -c 10 small.tacho >head.tacho
for what in huge block record; do
	python3 "$tests/damage.py" small.tacho $what.tacho $what
done
{ head -c 8 small.tacho; printf '\377\0\0\0\0\0\0\0'; } >header.tacho

# Browsers for --open: one that fetches, one that does not.
mkdir browser no-browser
cp "$tests/browser.py" browser/xdg-open
echo '#!/bin/sh' >no-browser/xdg-open
chmod 755 browser/xdg-open no-browser/xdg-open
