#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NVTX in real processes: what a handler returns, and what the log holds afterwards.
#	B=build sh tests/collector/nvtx_run.sh [TEST...]
# Each test is a function test_NAME; it fails when a line of `expect` does.
set -u
B=$(cd "${B:-build}" && pwd)
N=$B/nvtx
dump=$B/tests/dump
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TACHO_ENABLED TACHO_WINDOW TACHO_OUT RANK WORLD_SIZE LD_PRELOAD 2>/dev/null || true
unset CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH 2>/dev/null || true
sanitized=$(grep -c fsanitize "$B/flags" 2>/dev/null || true)
threads_checked=$(grep -c fsanitize=thread "$B/flags" 2>/dev/null || true)
# NVTX looks at its own state without care when it begins
echo 'race:nvtxInitOnce' >"$work/suppressions"
export TSAN_OPTIONS="${TSAN_OPTIONS:-} suppressions=$work/suppressions"

if [ ! -s "$N/include" ]; then
	echo "nvtx: no headers of NVTX: $(cat "$N/none" 2>/dev/null)"
	echo "nvtx: 0 passed, 0 failed"
	exit 0
fi

logs() { ls "$work/log" 2>/dev/null | grep -c '\.tacho$'; }
tell() { # the log's sums, then its rows with all arguments
	"$dump" "$work"/log/*."$1".tacho >"$work/told" 2>&1
	"$B/tacho-convert" -q "$work"/log/*."$1".tacho -t text --args full -o - \
		>>"$work/told" 2>&1
}
expect() { # what, then a pattern that a line must match
	grep -qE "$2" "$work/told" && return
	echo "#   $1: no line matches: $2"
	[ "$bad" = 0 ] && cut -c1-160 "$work/told" | sed 's/^/#     /' | head -25
	bad=1
}
equal() { # what, got, wanted
	[ "$2" = "$3" ] && return
	echo "#   $1: $2, should be $3"
	bad=1
}
recorded() { # window, then the program and its words; what it prints is on $work/out
	window=$1
	shift
	TACHO_WINDOW=$window TACHO_OUT=$work/log TACHO_SAMPLE=none \
		NVTX_INJECTION64_PATH=$B/libtacho.so "$@" >"$work/out" 2>&1
	status=$?
	[ "$status" = 0 ] || sed 's/^/#   /' "$work/out" | head -20
	return $status
}
nvtx_program() { # window, words
	window=$1
	shift
	recorded "$window" "$N/nvtx_program" "$@"
}

test_headers() {
	"$N/abi" >"$work/told"
	equal status $? 0
	expect 'all of it' '^ok - nvtx: 2[0-9]{2} things'
}

# The same numbers whether somebody records or not.
test_levels() {
	for window in '' signal all; do
		nvtx_program "$window" levels 0
		equal "status, window '$window'" $? 0
	done
	equal 'no log when nobody records' "$(logs)" 1
	TACHO_ENABLED=0 nvtx_program all epochs 1
	equal 'switched off for good' $? 0
	nvtx_program signal levels-windows 20
	equal 'status around windows' $? 0
	nvtx_program '' levels-windows 3
	equal 'status around windows by hand' $? 0
}

test_names() {
	recorded all "$N/program" 3 2 basics a b threads
	equal status $? 0
	tell 0
	expect whole '^log whole=1'
	equal 'nothing was lost' "$(grep -c '^lost' "$work/told")" 0
	expect ranges '^sum kind=7 name=outer count=3 early=0 open=0 '
	expect nested '^sum kind=7 name=inner count=3 '
	expect overlapping '^sum kind=7 name=started first count=3 '
	expect marks '^sum kind=11 name=mark count=3 '
	expect 'wide text' '^sum kind=7 name=wide über 😀 count=3 '
	expect 'wide mark' '^sum kind=11 name=wide mark count=3 '
	expect 'registered' '^sum kind=7 name=registered count=3 '
	expect 'registered wide' '^sum kind=7 name=registered wide count=3 '
	expect 'stacks of domains' '^sum kind=7 name=of the default domain between count=3 '
	expect 'without a message' '^sum kind=11 name= count=[0-9]+ '
	expect 'a newer attribute struct' '^sum kind=11 name=of a newer NVTX count=1 '
	expect 'a thread that was named' '^track tid=[0-9]+ name=worker 1$'
	equal 'a long text is cut' "$(grep -oE 'name=n{4095} count=1' "$work/told" | wc -l)" 1
}

test_arguments() {
	recorded all "$N/program" 3 1 a b
	tell 0
	expect category 'nvtx .* with everything +payload=-42 category=7 category_name="input" color="#ff00ff80"$'
	expect 'a double' 'mark .* a double +payload=2.5 category=8 category_name="compute" '
	expect 'an unsigned' 'mark .* an unsigned +payload=4000000000 category=9 '
	expect domain 'nvtx .* registered +domain="framework" category=7 category_name="another seven"$'
	expect 'start and end' 'nvtx .* wide start +style="start_end"$'
	equal 'the default domain has no word' "$(grep -c 'aten.*domain=' "$work/told")" 0
	types='i8=-8 u8=200 i16=-16000 u16=60000 i32=-32 u32=4000000000 i64=-64 u64=18446744073709551615'
	expect 'all types' "mark .*$types f32=1.5 f64=-2.25 size=4096 .* domain=\"types\" .*string=\"a string\""
	expect 'bytes without a schema' 'mark .* one payload +domain="strange" payload="0102030405"$'
	expect 'text as payload' 'mark .* one payload +domain="strange" payload="text without a size"$'
	expect 'several at once' 'mark .* several payloads '
}

test_torch() {
	recorded all "$N/program" 3 1 a
	tell 0
	expect 'one name' '^sum kind=7 name=aten::linear count=3 '
	expect operator 'cpu_op .* aten::linear +sequence=41 input_dims=\[\[64,512\],\[512,512\],\[512\]\]$'
	expect 'its id' 'cpu_op .* aten::addmm +record_function_id=1007 input_dims=\[\[512\],\[64,512\],\[512,512\],\[\],\[\]\]$'
	expect backward 'cpu_op .* AddmmBackward0 +sequence=41 record_function_id=1010$'
	expect "the engine's" 'cpu_op .* autograd::engine::evaluate_function: AddmmBackward0 +sequence=41$'
	expect 'no operator' 'nvtx .* Optimizer.step#Adam.step$'
	rm -r "$work/log"
	nvtx_program all threads 200
	tell 0
	expect 'ten names for all' '^sum kind=7 name=aten::op7 count=120 '
	equal names "$(grep -c '^sum kind=7 name=aten' "$work/told")" 10
}

test_nccl() {
	recorded all "$N/program" 3 1 b
	tell 0
	call='nvtx .* ncclAllReduce +bytes=%s domain="NCCL" collective="allreduce" comms_id=12379813738877118345 reduction="%s"$'
	expect first "$(printf "$call" 1024 Sum)"
	expect second "$(printf "$call" 2048 Product)"
	expect third "$(printf "$call" 4096 Max)"
}

test_xla() {
	recorded all "$N/program" 3 1 b
	tell 0
	expect module 'nvtx .* XlaModule:jit_train +domain="TSL" op_name_prefix="jit\(train\)" hlo_module="jit_train" program_id=7 hlo_op="gemm_fusion.4"$'
	expect thunk 'nvtx .* Thunk:gemm_fusion.4 +domain="TSL" op_name="jit\(train\)/dot_general" hlo_op="gemm_fusion.4"$'
	equal 'its runs are steps' "$("$B/tacho-analyze" -q "$work"/log/*.tacho -r steps -f json |
		grep -o '"step_count": [0-9]*')" '"step_count": 3'
	expect "jax's own profiler" '^about nvtx_note=XLA .* --no-nvtx'
	rm -r "$work/log"
	nvtx_program all xla 50
	tell 0
	expect 'a text each time' '^sum kind=7 name=Thunk:fusion.3 count=50 '
	expect 'its arguments' 'Thunk:fusion.3 +domain="TSL" op_name=.* hlo_op="fusion.3" unique_hlo_op_id=12$'
}

test_window_of_a_range() {
	nvtx_program nvtx=epoch_1 epochs 3
	equal status $? 0
	tell 0
	equal windows "$(grep -c '^window spec=nvtx=epoch_1 cut=0 closed=1' "$work/told")" 3
	expect 'the range itself' '^sum kind=7 name=epoch_1 count=3 '
	expect inside '^sum kind=7 name=step count=1 '
	expect 'its name has a tail' '^sum kind=7 name=from emit_nvtx count=1 '
	equal 'nothing else' "$(grep -cE '^sum .*name=(epoch_0|epoch_2|after)' "$work/told")" 0
}

test_edges_of_a_window() {
	nvtx_program nvtx=middle sitter 150
	equal status $? 0
	tell 0
	expect window '^window spec=nvtx=middle cut=0 closed=1 '
	expect 'around it' '^sum kind=7 name=sitting count=2 early=2 open=2 '
	expect 'with its fields' 'cpu_op .* sitting .*sequence=5 .*input_dims=\[\[1,2\]\]'
	expect 'of start and end' '^sum kind=7 name=across count=1 early=1 open=1 '
	expect inside '^sum kind=7 name=step count=150 '
	rm -r "$work/log"
	[ "$sanitized" = 0 ] || return # a preloaded library and sanitizers do not go together
	TACHO_WINDOW=signal TACHO_OUT=$work/log LD_PRELOAD=$B/libtacho.so "$N/program" 1 1 open \
		>/dev/null
	tell 0
	expect 'open before' '^sum kind=7 name=open before count=1 early=1 open=0 '
	expect 'started before' '^sum kind=7 name=started before count=1 early=1 open=0 '
	expect inside '^sum kind=7 name=inside count=1 early=0 open=0 '
	expect 'open after' '^sum kind=7 name=open after count=1 early=0 open=1 '
}

test_exit() {
	recorded all "$N/nvtx_program" exit 3
	equal status $? 3
	tell 0
	expect whole '^log whole=1'
	expect 'open range' '^sum kind=7 name=outer count=1 early=0 open=1 '
	expect 'its text parsed' '^sum kind=7 name=aten::mm count=1 early=0 open=1 '
	expect 'open for good' '^sum kind=7 name=never ended count=1 early=0 open=1 '
}

test_hand_over() {
	nvtx_program all hand-over 0
	equal status $? 0
	tell 0
	expect all '^sum kind=7 name=handed over count=200 early=0 open=0 tracks=1$'
	expect 'on its thread' '^track tid=[0-9]+ name=nvtx_program$'
	pid=$(sed -nE 's/^process pid=([0-9]+).*/\1/p' "$work/told")
	expect 'that of main()' "nvtx +thread $pid +.*handed over +payload=-3 style=\"start_end\"$"
}

test_threads() {
	nvtx_program all threads 500
	equal status $? 0
	tell 0
	expect whole '^log whole=1'
	equal 'nothing was lost' "$(grep -c '^lost' "$work/told")" 0
	expect 'interned texts' '^sum kind=7 name=same count=3000 early=0 open=0 '
	expect 'registered texts' '^sum kind=7 name=registered count=3000 early=0 open=0 '
	expect 'start and end' '^sum kind=7 name=started count=3000 early=0 open=0 '
	equal 'copied texts' "$(sed -nE 's/^sum kind=7 name=aten::op[0-9] count=([0-9]+) .*/\1/p' \
		"$work/told" | awk '{s += $1} END {print s}')" 3000
}

test_storm() {
	nvtx_program signal storm 25
	equal status $? 0
	nvtx_program signal churn 60
	equal 'threads that come and go' $? 0
	nvtx_program all churn 60
	tell 0
	expect 'on few rings' '^log whole=1'
}

# The address sanitizer's allocator may be locked for good in a child: then once more.
forking() {
	for turn in 1 2 3; do
		ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" recorded all timeout -k 1 30 "$N/nvtx_program" fork 0
		status=$?
		[ $status = 124 ] && [ "$sanitized" != 0 ] || return $status
		rm -f "$work"/log/*.tacho
	done
	return $status
}
test_fork() {
	[ "$threads_checked" = 0 ] || { skip='no threads in a child under the thread sanitizer'; return; }
	forking
	equal status $? 0
	equal 'a child that makes no step is a worker, and leaves none' "$(logs)" 1
	rm -f "$work"/log/*.tacho
	TACHO_WORKERS=1 forking
	equal status $? 0
	equal 'a log for each' "$(logs)" 2
	for log in "$work"/log/*.tacho; do
		"$dump" "$log"
	done >"$work/told"
	expect "the parent's" '^sum kind=7 name=around the fork count=1 early=0 open=0 '
	expect "the parent's start" '^sum kind=7 name=started by the parent count=1 early=0 open=0 '
	expect "the child's" '^sum kind=7 name=of the child count=1 early=0 open=0 '
}

test_too_much() {
	nvtx_program all too-much 0
	equal status $? 0
	tell 0
	expect counted '^lost [0-9]+ over a memory limit'
	expect 'as many as there is room for' '^sum kind=7 name=too deep count=1024 '
	expect 'started ones' '^sum kind=7 name=many at once count=4096 '
	expect marks '^sum kind=11 name=coloured count=300 '
}

test_record() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$B/tacho-record" --out "$work/log" --sample none -- "$N/program" 2 1 basics \
		>/dev/null 2>"$work/told"
	equal status $? 0
	expect 'last line' ' 1[0-9] events, .*nothing was lost$'
	NVTX_INJECTION64_PATH=/none "$B/tacho-record" --out "$work/not" -- "$N/program" 2 1 \
		basics >/dev/null 2>"$work/told"
	expect 'another tool is there' 'without ranges of NVTX, because NVTX_INJECTION64_PATH is /none$'
	"$B/tacho-record" --no-nvtx --out "$work/not" -- "$N/program" 2 1 basics \
		>/dev/null 2>"$work/told"
	expect 'switched off' 'no log was written'
	rm -r "$work/log"
	TACHO_WINDOW=all TACHO_OUT=$work/log LD_PRELOAD=$B/libtacho.so "$N/program" 2 1 basics \
		>/dev/null
	tell 0
	expect 'preloaded alone' '^sum kind=7 name=outer count=2 '
	"$B/tacho-record" --doctor >"$work/told"
	expect doctor '^nvtx      ranges are taken'
}

# What a killed process said through NVTX is in its log, with all that it had registered before.
test_killed() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$B/tacho-record" -q --out "$work/log" -- "$N/nvtx_program" killed 42 >/dev/null 2>&1
	equal status $? 137
	# the process may have begun a log by itself
	for f in "$work"/log/*.tacho; do
		"$dump" "$f"
		"$B/tacho-convert" -q "$f" -t text --args full -o -
	done >"$work/told" 2>&1
	expect whole '^log whole=1'
	equal 'nothing was lost' "$(grep -c '^lost' "$work/told")" 0
	expect 'a range of a domain' \
		'of a category +domain="loop" category=7 category_name="input" color="#ff102030"$'
	expect 'a payload' 'mark .*rank=42'
	expect 'a range that is open' '^sum kind=7 name=pushed and open count=1 early=0 open=1 '
	expect 'a started range that is open' '^sum kind=7 name=started and open count=1 early=0 open=1 '
	expect 'the name of a thread' '^track tid=[0-9]+ name=the only one$'
}

# A program's callbacks neither allocate nor lock, but for what is registered.
test_guard() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	for window in signal all; do
		export LD_PRELOAD="$N/libguard.so"
		nvtx_program $window guarded 2000
		equal "status, window $window" $? 0
		unset LD_PRELOAD
	done
	tell 0
	expect 'there were ranges' '^sum kind=7 name=same count=2000 '
	expect 'and texts' '^sum kind=7 name=aten::mm count=4000 '
}

names=${*:-$(sed -n 's/^test_\([a-z_]*\)() {$/\1/p' "$0")}
. "$(dirname "$0")/rows.sh"
rows_run nvtx $names
