#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each fuzz target for some seconds, from its seeds and the corpus of earlier runs.  What is found
# stays in FOLDER/crash-NAME-* (libFuzzer) or FOLDER/out-NAME/default/crashes (AFL++).
# usage: run.sh FOLDER SEEDS SECONDS TARGET...
set -u
folder=$1
seeds=$2
seconds=$3
shift 3
passed=0
failed=0
export ASAN_OPTIONS="${ASAN_OPTIONS:-abort_on_error=1:symbolize=0:detect_leaks=0:allocator_may_return_null=1}"

# libFuzzer; leaks are looked for.
hunt() {
	ASAN_OPTIONS=allocator_may_return_null=1 "$folder/fuzz_$1" -max_total_time="$seconds" \
		-rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=20 -print_final_stats=1 \
		-artifact_prefix="$folder/crash-$1-" "$folder/corpus-$1" "$seeds/$1" \
		>"$folder/$1.log" 2>&1
}
hunt_afl() {
	rm -rf "$folder/out-$1"
	AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 \
		AFL_FORKSRV_INIT_TMOUT=30000 \
		afl-fuzz -V "$seconds" -m none -t 5000+ -i "$seeds/$1" -o "$folder/out-$1" -- \
		"$folder/fuzz_$1" >"$folder/$1.log" 2>&1 || return 1
	[ -z "$(ls "$folder/out-$1/default/crashes" "$folder/out-$1/default/hangs" | grep '^id')" ]
}
# What a target was run for. AFL++ does not wait for its fork server, so nobody knows its CPU.
effort() { # NAME SECONDS-OF-CPU
	case $folder in
	*/afl) awk -F ' *: *' '{ of[$1] = $2 } END { printf "%d executions, %d s", of["execs_done"], of["run_time"] }' \
		"$folder/out-$1/default/fuzzer_stats" ;;
	*)     echo "$(sed -n 's/^stat::number_of_executed_units: //p' "$folder/$1.log") executions, $2 s of CPU" ;;
	esac
}
# User and system time of all children so far; a subshell would have none.
cpu() {
	times >"$folder/times"
	awk 'NR == 2 { gsub("m", "*60+"); gsub("s", ""); split($1 "+" $2, p, /[*+]/)
		printf "%d", p[1] * p[2] + p[3] + p[4] * p[5] + p[6] }' "$folder/times"
}
cpu >"$folder/cpu"
before=$(cat "$folder/cpu")
for name in "$@"; do
	mkdir -p "$folder/corpus-$name"
	verdict=ok
	case $folder in
	*/afl) hunt_afl "$name" || verdict="not ok" ;;
	*)     hunt "$name" || verdict="not ok" ;;
	esac
	cpu >"$folder/cpu"
	now=$(cat "$folder/cpu")
	line="$name: $(effort "$name" $((now - before)))"
	before=$now
	echo "$verdict - $line"
	echo "$line" >>"$folder/tally"
	[ "$verdict" = ok ] && passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ]
