#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each fuzz target for some seconds, from the corpus of earlier runs beside it.
# usage: run.sh FOLDER SECONDS
set -u
folder=$1
seconds=$2
passed=0
failed=0
for target in "$folder"/fuzz_*; do
	[ -x "$target" ] && [ -f "$target" ] || continue
	name=$(basename "$target")
	mkdir -p "$folder/corpus-$name"
	if "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix="$folder/crash-$name-" "$folder/corpus-$name" \
			>"$folder/$name.log" 2>&1; then
		echo "ok - $name: $(grep number_of_executed_units "$folder/$name.log")"
		passed=$((passed + 1))
	else
		echo "not ok - $name: see $folder/$name.log"
		failed=$((failed + 1))
	fi
done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ]
