#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Proves the stand-ins: that each does what its headers say (check_standin.c, programs), and that they agree
# with the real libraries where these are (compare_libcupti.sh).
# usage: B=build sh tests/fake/run.sh [GROUP...]     groups: rows guard programs nvml nvtx compare_libcupti
set -u
B=$(cd "${B:-build}" && pwd)
F=$B/fake
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_PRELOAD CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH 2>/dev/null || true
export FAKE_CUDA_DEVICES=2
passed=0 failed=0
sanitized=$(grep -c fsanitize "$F/ldflags" 2>/dev/null || true)

result() { # exit status, name
	if [ "$1" = 0 ]; then
		echo "ok - $2"
		passed=$((passed + 1))
	else
		echo "not ok - $2"
		failed=$((failed + 1))
	fi
}
equal() { # name, got, wanted
	[ "$2" = "$3" ] || echo "#   $2, should be $3"
	[ "$2" = "$3" ]
	result $? "$1"
}
take() { # count the lines of a file of results
	passed=$((passed + $(grep -c '^ok' "$1")))
	failed=$((failed + $(grep -c '^not ok' "$1")))
	cat "$1"
}
skip() { echo "# skipped: $1"; }
json() { # file, expression over j
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

group_rows() {
	for profile in 12 13 13.5 14; do
		LD_LIBRARY_PATH=$F/$profile:$F/driver "$F/check_standin" $profile >"$work/rows"
		take "$work/rows"
	done
}

group_guard() {
	[ "$sanitized" = 0 ] || { skip 'the guard does not go with sanitizers'; return; }
	LD_PRELOAD=$F/libfake_guard.so LD_LIBRARY_PATH=$F/13:$F/driver "$F/check_standin" 13 guarded \
		>"$work/rows" 2>&1
	take "$work/rows"
	equal 'the guard was there' "$(grep -c 'no guard' "$work/rows")" 0
	FAKE_GUARD_REPORT=$work/guard LD_PRELOAD=$F/libfake_guard.so \
		mini 13 --steps 20 --threads 2 --others 1
	equal 'the client allocates in a request' \
		"$(json "$work/guard" "j['request']['malloc'] > 0")" True
	equal 'and leaks what it must free' "$(json "$work/guard" "j['lent']")" 0
	FAKE_GUARD_STEP_NS=-5000000000 FAKE_GUARD_STEP_MS=0 LD_PRELOAD=$F/libfake_guard.so \
		date +%s >"$work/stepped"
	equal 'a stepped clock' $(($(date +%s) - $(cat "$work/stepped") >= 5)) 1
}

# fake_train with the mini collector; the rest are its words
mini() {
	profile=$1 program=fake_train
	[ "$profile" != 12 ] || program=fake_train_12
	shift
	rm -f "$work/train" "$work/mini" "$work/cupti"
	LD_LIBRARY_PATH=$F/$profile:$F/driver:$F/nvml CUDA_INJECTION64_PATH=$F/libfake_mini.so \
		FAKE_MINI_CUPTI=libcupti.so.${profile%%.*} FAKE_MINI_REPORT=$work/mini \
		FAKE_CUPTI_REPORT=$work/cupti "$F/$program" "$@" >"$work/train"
}

group_programs() {
	for profile in 12 13 13.5 14; do
		FAKE_CUPTI_SHUFFLE=1 mini $profile --threads 3 --streams 2 --steps 30 --peers 1 \
			--devices 2 --graphs 1 --wild 1 --name_bytes 4000
		equal "fake_train, $profile: status" $? 0
		for kind in 'kernels 10 - 51' 'copies 1' 'sets 2' 'events 36' 'syncs 38' 'memory 49'; do
			set -- $kind
			want=$(json "$work/train" "j['$1']")
			# with GRAPH_TRACE on, nodes are one record
			case $1 in
			kernels) want=$((want - 3 * $(json "$work/train" "j['graphs']"))) ;;
			copies | sets) want=$((want - $(json "$work/train" "j['graphs']"))) ;;
			esac
			equal "fake_train, $profile: $1" "$(json "$work/mini" "j['$2']")" "$want"
		done
		equal "fake_train, $profile: graphs" "$(json "$work/mini" "j['51']")" \
			"$(json "$work/train" "j['graphs']")"
		equal "fake_train, $profile: calls of the runtime" "$(json "$work/mini" "j['5']")" \
			"$(json "$work/train" "sum(j['runtime'].values()) - 0")"
		equal "fake_train, $profile: no faults" "$(json "$work/cupti" "j['fault_texts']")" '[]'
		equal "fake_train, $profile: books" "$(json "$work/cupti" \
			"j['made'] == j['handed_over'] + j['dropped']")" True
	done
	mini 13 --exit 7
	equal 'exit code' $? 7
	(mini 13 --kill 9) 2>/dev/null
	equal 'killed' $? 137
	mini 13 --fork 1 --steps 10
	equal 'a fork in the middle' "$(json "$work/cupti" "j['faults']")" 0
	mini 13 --fork 3 --churn 1 --threads 3
	equal 'threads that end, and exec' "$(json "$work/mini" "j['10']")" \
		"$(json "$work/train" "j['kernels']")"
	mini 13 --unload 1
	equal 'an attempt to unload' $? 0
	FAKE_CUPTI_STRICT=1 FAKE_CUPTI_FAIL_ENABLE=35 mini 13
	equal 'options by the environment' "$(json "$work/cupti" "j['made']")" 0
	FAKE_CUPTI_PER_THREAD=0 mini 13 --threads 4 --steps 1
	equal 'one buffer for all' "$(json "$work/cupti" "j['requests']")" 1
	FAKE_CUPTI_PER_THREAD=1 mini 12 --threads 4 --steps 1
	equal 'a buffer for each thread' "$(json "$work/cupti" "j['requests']")" 4
	LD_LIBRARY_PATH=$F/driver "$F/fake_train" --no_cuda 1 >"$work/train"
	equal 'no CUDA at all' "$(json "$work/train" "j['calls']")" 0
	FAKE_CUDA_INIT_FAILS=100 mini 13 --steps 1
	equal 'a driver that does not start' "$(json "$work/train" "j['kernels']")" 0
	CC=${CC:-cc} B=$B sh tests/fake/without.sh "$B" 13 cuptiActivityFlushPeriod cuptiSubscribe \
		>"$work/without"
	nm -D --defined-only "$(cat "$work/without")"/libcupti.so.13 >"$work/symbols"
	equal 'symbols taken away' "$(grep -c 'cuptiActivityFlushPeriod\|cuptiSubscribe@' \
		"$work/symbols")" 0
	equal 'and no other' "$(grep -c 'cuptiActivityFlushAll@\|cuptiSubscribe_v2@' \
		"$work/symbols")" 2
	rm -r "$(cat "$work/without")"
	[ "$sanitized" = 0 ] || { skip 'python and sanitizers: two at once'; return; }
	LD_LIBRARY_PATH=$F/12:$F/13 python3 - >"$work/two" <<'PYTHON'
import ctypes
libraries = ctypes.CDLL("libcupti.so.12"), ctypes.CDLL("libcupti.so.13")
version = ctypes.c_uint32()
for library in libraries:
    library.cuptiGetVersion(ctypes.byref(version))
    print(version.value)
PYTHON
	equal 'two versions in one process' "$(tr '\n' ' ' <"$work/two")" '22 130001 '
}

group_nvml() {
	[ "$sanitized" = 0 ] || { skip 'python and sanitizers: NVML'; return; }
	FAKE_NVML_DEVICES=3 FAKE_NVML_USED_MB=100 FAKE_NVML_GROW_MB=10 FAKE_NVML_LOST=2 \
		FAKE_NVML_LATENCY_US=2000 FAKE_NVML_REPORT=$work/nvml LD_LIBRARY_PATH=$F/nvml \
		python3 - >"$work/told" <<'PYTHON'
import ctypes, time
n = ctypes.CDLL("libnvidia-ml.so.1")
count, d = ctypes.c_uint(), ctypes.c_void_p()
print("before init", n.nvmlDeviceGetCount_v2(ctypes.byref(count)))
print("init", n.nvmlInit_v2(), n.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)
m = (ctypes.c_ulonglong * 3)()
for i in range(4):
    print("handle", i, n.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(d)))
n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d))
for i in range(2):
    print("memory", n.nvmlDeviceGetMemoryInfo(d, m), m[2] >> 20)
n.nvmlDeviceGetHandleByIndex_v2(2, ctypes.byref(d))
print("lost", n.nvmlDeviceGetMemoryInfo(d, m))
t = time.monotonic()
n.nvmlDeviceGetCount_v2(ctypes.byref(count))
print("slow", time.monotonic() - t >= 0.002)
print("uuid", n.nvmlDeviceGetHandleByUUID(b"GPU-11111111", ctypes.byref(d)),
      n.nvmlDeviceGetHandleByUUID(b"GPU-99999999", ctypes.byref(d)))
PYTHON
	equal NVML "$(tr '\n' ';' <"$work/told")" "before init 1;init 0 0 3;handle 0 0;handle 1 0;\
handle 2 0;handle 3 2;memory 0 612;memory 0 622;lost 15;slow True;uuid 0 6;"
	equal 'NVML counts its calls' "$(json "$work/nvml" "j['nvmlDeviceGetMemoryInfo']")" 3
}

# What fake_nvtx tells must be what the handler was told.
group_nvtx() {
	FAKE_NVTX_LOG=$work/log NVTX_INJECTION64_PATH=$F/libfake_nvtx_handler.so \
		"$F/fake_nvtx" 3 2 >"$work/truth"
	equal 'NVTX: status' $? 0
	python3 - "$work/truth" "$work/log" >"$work/told" <<'PYTHON'
import collections, json, sys
want, have = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    j = json.loads(line)
    name = "n" * 100000 if j.get("detail") == "long" else j["name"]
    want[j["kind"], j["domain"] or "-", name] += j["count"]
initialized = 0
for line in open(sys.argv[2], errors="surrogateescape"):
    kind, domain, name, _ = line.rstrip("\n").split("\t")
    initialized += kind == "initialize"
    have[kind, domain, name] += 1
print("initialized", initialized)
wrong = {k: (v, have[k]) for k, v in want.items() if k[0] != "domain" and have[k] != v}
print("kinds", len(want) > 50, "wrong", wrong)
PYTHON
	equal 'NVTX: each object by itself' "$(sed -n 's/initialized //p' "$work/told")" 3
	equal 'NVTX: all is told' "$(grep kinds "$work/told")" 'kinds True wrong {}'
	equal 'NVTX: without a handler' "$("$F/fake_nvtx" 3 2 | wc -l)" "$(wc -l <"$work/truth")"
}

group_compare_libcupti() {
	B=$B sh tests/fake/compare_libcupti.sh >"$work/compare_libcupti"
	take "$work/compare_libcupti"
}

if [ ! -s "$F/include" ]; then
	echo "# skipped: all, for want of CUPTI's headers: $(cat "$F/none" 2>/dev/null)"
	echo "stand-ins: 0 passed, 0 failed"
	exit 0
fi
[ $# -gt 0 ] || set -- rows guard programs nvml nvtx compare_libcupti
for group in "$@"; do
	if ! command -v "group_$group" >/dev/null; then
		echo "not ok - there is no group $group"
		failed=$((failed + 1))
		continue
	fi
	group_"$group"
done
echo "stand-ins: $passed passed, $failed failed"
[ "$failed" = 0 ]
