#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The flight recorder in real processes: what triggers it, what is saved, what a death leaves.
#	B=build sh tests/collector/flight_run.sh [TEST...]
# Each test is a function test_NAME; it fails when a line of `expect` or `equal` does.
set -u
B=$(cd "${B:-build}" && pwd)
flight_program=$B/tests/flight_program
dump=$B/tests/dump
record=$B/tacho-record
work=$(mktemp -d)
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
unset TACHO_ENABLED TACHO_WINDOW TACHO_OUT RANK WORLD_SIZE LD_PRELOAD 2>/dev/null || true
# a preloaded library and sanitizers do not go together: those runs link it, and set variables
sanitized=$(grep -c fsanitize "$B/flags" 2>/dev/null || true)
threads_checked=$(grep -c fsanitize=thread "$B/flags" 2>/dev/null || true)

logs() { ls "$work/log" 2>/dev/null | grep -c '\.tacho$'; }
rings() { ls "$work/log" 2>/dev/null | grep -c '\.ring$'; }
tell() { "$dump" "$work"/log/*."$1".tacho >"$work/told" 2>&1; }
expect() { # what, then a pattern that a line of the dump must match
	grep -qE "$2" "$work/told" && return
	echo "#   $1: no line matches: $2"
	grep -v '^step' "$work/told" | sed 's/^/#     /' | head -30
	bad=1
}
equal() { # what, got, wanted
	[ "$2" = "$3" ] && return
	echo "#   $1: $2, should be $3"
	bad=1
}
flown() { # save-on, then the flight_program's words
	on=$1
	shift
	ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:handle_segv=0:handle_abort=0" \
	TSAN_OPTIONS="${TSAN_OPTIONS:-} handle_segv=0 handle_abort=0" \
	TACHO_SAMPLE=none TACHO_WINDOW=${window:-all} TACHO_RING=${ring:-4M} TACHO_SAVE_ON=$on TACHO_OUT=$work/log \
		timeout 120 "$flight_program" "$@" >"$work/out" 2>&1
	status=$?
}
settle() { # the recorder saves the ring of a program that has died, a moment after that
	i=0
	while [ $i -lt 100 ] && [ "$(rings)" != 0 ]; do
		sleep 0.05
		i=$((i + 1))
	done
}
find_rings() { # what tacho-record does when it ends
	"$record" -q --ring 1M --out "$work/log" -- true
}

test_slow_step() {
	"$B/samples/train_mlp" --steps 1 --quiet >/dev/null
	TACHO_WINDOW=all TACHO_RING=16M TACHO_SAVE_ON=slow=3,min=2s TACHO_OUT=$work/log \
		"$B/samples/train_mlp" --steps 10000 --batch 16 --slow 6000:3000 --quiet >"$work/out"
	equal status $? 0
	equal 'one log' "$(logs)" 1
	equal 'no ring is left' "$(rings)" 0
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect why '^about saved_on=slow$'
	expect step '^about saved_step=6000$'
	expect value '^about saved_value=3[0-9]{9}$'
	expect threshold '^about saved_threshold=2000000000$'
	expect sentence '^about saved_why=slow in step 6000: 3[0-9]{3}\.[0-9]{3} ms, the limit was 2000'
	expect 'the slow one' '^step number=6000 early=0 open=0 ns=3[0-9]{9}'
	expect 'the one before' '^step number=5999 early=0 open=0'
	expect 'many before' '^step number=4000 early=0 open=0'
	expect window '^window spec=all cut=0 closed=1'
	"$B/tacho-analyze" -q "$work"/log/*.tacho --report check >"$work/told"
	expect 'the page' 'flight recorder: slow in step 6000'
}

test_settling() { # long steps at the start, before there is a pace, trigger nothing
	flown slow=2,min=200ms slow=500 slow=500 steps=60 wait=1500
	equal logs "$(logs)" 0
}

test_quiet() { # nothing happened: nothing is left, neither log nor ring
	flown slow=3,min=5s,hang=100s,signal,death steps=50 exit=3
	equal status $status 3
	equal files "$(ls -A "$work/log" | wc -l)" 0
}

test_cool_down() {
	flown slow=3,min=300ms,cool=1h steps=80 wait=200 slow=600 steps=40 slow=600 steps=40 wait=1500
	equal 'two slow steps, one log' "$(logs)" 1
	rm -r "$work/log"
	flown slow=3,min=300ms,cool=1s steps=80 wait=200 slow=600 steps=2500 slow=600 steps=10
	equal 'after a while' "$(logs)" 2
	tell 0
	expect first '^sum kind=10 name=step count=[1-9][0-9]{2,3} '
	tell 1
	expect 'what came since' '^sum kind=10 name=step count=[1-9][0-9]{2,3} '
}

test_worse_and_kept() { # a hiccup does not hide the stall after it, and the longest are kept
	flown slow=3,min=45ms,cool=1h,keep=2 steps=400 slow=100 steps=1400 slow=120 steps=100 slow=300 steps=1400 slow=900 \
		steps=1400
	equal 'two of the three' "$(logs)" 2
	tell 1
	expect 'the second' '^about saved_value=3[0-9]{8}$'
	expect 'one that was passed over is counted' '^about slow_not_saved=[1-9]$'
	expect 'its length' '^about slow_not_saved_longest=step [0-9]+, 1[0-9]{2}\.[0-9]{3} ms$'
	tell 2
	expect 'the longest' '^about saved_value=9[0-9]{8}$'
	[ "$sanitized" = 0 ] || return
	rm -r "$work/log"
	"$record" --ring 4M --save-on slow=3,min=45ms --out "$work/log" -- "$flight_program" steps=400 slow=120 \
		steps=1400 slow=100 steps=200 2>"$work/told"
	expect 'tacho-record says so' '; [1-9] slow steps were not saved, the longest is step [0-9]+ with 1[0-9]{2}\.[0-9]+ ms'
}

test_slow_then_killed() { # a slow step is saved although the program is killed at once, and not for that
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$record" -q --ring 4M --save-on slow=3,min=45ms --out "$work/log" -- "$flight_program" steps=400 slow=200 \
		steps=5 kill=9
	equal status $? 137
	equal 'logs and rings' "$(logs) $(rings)" '1 0'
	tell 0
	expect why '^about saved_on=slow$'
}

test_hiccup_then_stall() { # 10 ms are saved and start a long cool-down; 2 s later must not be missed
	flown slow=3,min=5ms,cool=1h,keep=3 steps=400 slow=10 steps=1400 slow=2000 steps=1400
	equal status $status 0
	tell $(($(logs) - 1))
	expect 'the stall is saved' '^about saved_value=2[0-9]{9}$'
	expect 'the stall in it' '^step number=[0-9]+ early=0 open=0 ns=2[0-9]{9}'
	equal 'the hiccup before it is saved or counted' \
		$(($(logs) > 1 || $(grep -c '^about slow_not_saved=' "$work/told"))) 1
}

test_hang() {
	flown hang=700ms,cool=1s steps=30 slow=1600 steps=5
	equal status $status 0
	equal 'one log' "$(logs)" 1
	tell 0
	expect why '^about saved_why=hang in step 30: [0-9.]+ ms, the limit was 700.000 ms'
	expect 'steps before it' '^step number=29 '
}

test_signal() {
	flown signal=USR2 steps=40 usr2 wait=400 steps=20
	equal status $status 0
	equal 'one log' "$(logs)" 1
	tell 0
	expect why '^about saved_on=signal$'
	expect 'steps before it' '^step number=38 '
	rm -r "$work/log"
	flown death steps=40 usr2
	equal 'not wanted: the default' $status 140
	rm -rf "$work/log"
	flown signal steps=40 usr2
	equal 'none is named: the default' $status 140
	rm -rf "$work/log"
	flown signal=USR2 handle steps=40 usr2 wait=400
	equal status $status 0
	equal "the program's handler that was there first runs as well" "$(cat "$work/out")" \
		"the program's own handler"
	equal logs "$(logs)" 1
	rm -rf "$work/log"
	flown signal=USR2 steps=40 handle usr2 wait=400
	equal "its handler that comes later replaces ours" "$(cat "$work/out") $(logs)" \
		"the program's own handler 0"
	[ "$sanitized" = 0 ] || return
	"$record" --ring 4M --save-on signal --out "$work/log" -- "$flight_program" steps=30 flush wait=1500 steps=30 \
		2>"$work/err" &
	pid=$!
	sleep 0.7
	kill -USR2 $pid
	wait $pid
	equal 'a signal to tacho-record' $? 0
	tell 0
	expect 'by command' '^about saved_on=command$'
	expect 'steps before it' '^step number=28 '
}

test_command() {
	flown none steps=30 save steps=30 save save
	equal 'two logs, for the third there is nothing' "$(logs)" 2
	tell 0
	expect why '^about saved_on=command$'
	expect first '^step number=28 early=0 open=0'
	tell 1
	expect 'no step twice' '^sum kind=10 name=step count=3[01] '
	expect 'it begins behind the first' '^about saved_from=[0-9]+$'
	rm -r "$work/log"
	TACHO_WINDOW=all TACHO_OUT=$work/log "$flight_program" steps=5 save
	equal 'without a ring save does nothing' "$(logs)" 1
}

test_term() {
	flown death steps=40 kill=15
	equal status $status 143
	settle
	equal logs "$(logs)" 1
	tell 0
	expect why '^about saved_on=death$'
	expect 'all steps' '^step number=38 '
	equal rings "$(rings)" 0
}

# How it dies, and what tacho-record is to say of that.
deaths='segv abort kill=9 _exit=5'

# the recorder saves the ring, and after its own death too the ring is there for the next tacho-record
test_death() {
	for death in $deaths; do
		flown death steps=30 flush steps=10 flush "$death"
		case $death in segv) want=139 ;; abort) want=134 ;; kill=9) want=137 ;; *) want=5 ;; esac
		equal "status of $death" $status $want
		settle
		equal "saved by the recorder" "$(logs)" 1
		tell 0
		expect whole '^log whole=1 .* unread=0'
		expect "last steps of $death" '^step number=38 early=0 open=0'
		expect 'the open one' '^sum kind=10 name=step count=40 early=0 open=1'
		expect why '^about saved_on=death$'
		rm -r "$work/log"
	done
	TACHO_SAMPLE=none TACHO_WINDOW=all TACHO_RING=4M TACHO_SAVE_ON=death TACHO_OUT=$work/log \
		"$flight_program" steps=30 flush steps=10 flush wait=5000 &
	pid=$!
	sleep 0.7
	kill -9 $(pgrep -f -- "--record-for $pid\$") $pid
	wait $pid 2>/dev/null
	sleep 0.2
	equal "the ring is left" "$(rings)" 1
	equal "no log yet" "$(logs)" 0
	"$B/tacho-convert" -q "$work"/log/*.ring -t text -o "$work/told" 2>"$work/err"
	equal "tacho-convert reads the ring" $? 0
	equal 'steps in it' "$(grep -c 'step ' "$work/told")" 39
	"$B/tacho-analyze" -q "$work"/log/*.ring --report check >"$work/told" 2>&1
	expect 'the page' 'flight recorder: not saved'
	equal 'reading takes nothing away' "$(rings)" 1
	[ "$sanitized" = 0 ] || return
	find_rings
	equal "saved by tacho-record" "$(logs)" 1
	equal "the ring is gone" "$(rings)" 0
	tell 0
	expect readable '^log whole=0 events=[0-9]+ .* unread=0'
	expect "last steps" '^step number=38 early=0 open=0'
	expect why '^about saved_on=death'
	expect 'the end is unknown' '^about saved_tail=events may be missing at the end: the process lived at least 0\.'
}

# Program and recorder are killed together: what nobody had read is in the file of the threads' rings.
test_ring_files() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	shared=$(mktemp -d /dev/shm/flight.XXXXXX 2>/dev/null) || { skip='no /dev/shm'; return; }
	for ring in 0 4M; do
		TACHO_RING_DIR=$shared TACHO_SAMPLE=none TACHO_WINDOW=all TACHO_RING=$ring TACHO_SAVE_ON=death \
			TACHO_OUT=$work/log "$flight_program" steps=30 flush steps=30 wait=5000 &
		pid=$!
		sleep 0.7
		equal 'for this user alone' "$(stat -c %a "$shared"/*.rings)" 600
		"$record" -q --ring-dir "$shared" --out "$work/log" -- true 2>"$work/told"
		equal 'in use' "$(ls "$shared" | grep -c 'rings$') $(cat "$work/told")" '1 '
		kill -9 $(pgrep -f -- "--record-for $pid\$") $pid
		wait $pid 2>/dev/null
		"$record" -q --ring $ring --ring-dir "$shared" --out "$work/log" -- true
		equal 'all is taken' "$(ls -A "$shared" | wc -l)" 0
		equal "logs with a ring of $ring" "$(logs)" 2
		cat "$work"/log/*.tacho >"$work/out"
		steps=0
		for f in "$work"/log/*.tacho; do
			"$dump" "$f" >"$work/told"
			steps=$((steps + $(sed -n 's/^sum kind=10 name=step count=\([0-9]*\) .*/\1/p' "$work/told")))
		done
		equal "steps with a ring of $ring" $steps 60
		# early where the writer had stored those before it
		expect 'the last one is open' '^step number=59 early=[01] open=1'
		expect 'ends when it was last heard of' '^window spec=all cut=1 closed=1 ns=[0-9]{1,9} '
		rm -r "$work/log"
	done
	planted=$(uname -n).p1.1.rings
	mkfifo "$shared/$planted"
	timeout 20 "$record" -q --ring-dir "$shared" --out "$work/log" -- true 2>"$work/told"
	equal status $? 0
	expect 'a FIFO' '1\.rings is unchanged: it is no file'
	rm "$shared/$planted"
	head -c 20000 /dev/zero >"$shared/$planted"
	"$record" -q --ring-dir "$shared" --out "$work/log" -- true 2>"$work/told"
	expect 'no rings' '1\.rings is unchanged: no log can be made of it'
	if chown 65534 "$shared/$planted" 2>/dev/null; then
		"$record" -q --ring-dir "$shared" --out "$work/log" -- true 2>"$work/told"
		equal "somebody else's is left" "$(cat "$work/told") $(ls "$shared")" " $planted"
	fi
	rm -r "$shared"
}

test_small_ring_files() { # a full file system costs the program nothing but counted events
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	mkdir -p "$work/small"
	for size in 3 11; do
		act=threads events=8000
		[ $size = 3 ] || act=threads-64 events=64000
		if ! mount -t tmpfs -o size=${size}m tmpfs "$work/small" 2>/dev/null; then
			skip='no right to mount a small disk'
			return
		fi
		"$record" --ring-dir "$work/small" --out "$work/log" -- "$B/tests/traced_program" $act 1000 2>"$work/told"
		equal "status with $size MiB" $? 0
		[ $size = 11 ] ||
			expect 'its reason' 'small has no 10M free: the rings of threads are in memory alone'
		equal 'nothing is left' "$(ls -A "$work/small" | wc -l)" 0
		umount "$work/small"
		tell 0
		ranges=$(sed -n 's/^sum kind=7 name=work count=\([0-9]*\) .*/\1/p' "$work/told")
		lost=$(sed -n 's/^lost \([0-9]*\) ring full.*/\1/p' "$work/told")
		[ $size = 11 ] || equal 'all' "${lost:-0}" 0
		[ $size = 3 ] || equal 'some have no ring' $((${lost:-0} > 0)) 1
		equal "all or counted with $size MiB" $((${ranges:-0} + ${lost:-0})) $events
		rm -r "$work/log"
	done
}

test_record_death() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	for death in $deaths; do
		"$record" --out "$work/log" --ring 2M -- "$flight_program" steps=30 flush "$death" 2>"$work/err"
		status=$?
		case $death in
		segv) want=139 why='death, signal 11' ;;
		abort) want=134 why='death, signal 6' ;;
		kill=9) want=137 why='death, signal 9' ;;
		*) want=5 why='death, exit 5' ;;
		esac
		equal "status of $death" $status $want
		equal "one log of $death" "$(logs)" 1
		equal rings "$(rings)" 0
		tell 0
		expect "why of $death" "^about saved_on=$why\$"
		expect steps '^step number=28 early=0 open=0'
		cp "$work/err" "$work/told"
		expect 'last line' '\.tacho: [0-9]+ events, .*not closed'
		rm -r "$work/log"
	done
	"$record" -q --out "$work/log" --ring 2M --save-on signal -- "$flight_program" steps=30 flush kill=9
	equal 'death is not wanted' "$(ls -A "$work/log" 2>/dev/null | wc -l)" 0
	mkdir -p "$work/log"
	"$record" -q --out "$work/log" --ring 2M --ring-dir "$work/elsewhere" -- "$flight_program" steps=30 flush kill=9
	equal 'a ring elsewhere' "$(logs)" 1
	equal 'its folder' "$(ls -A "$work/elsewhere" | wc -l)" 0
}

test_alive_is_left() { # a ring of a process that lives is not taken away from it
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	TACHO_WINDOW=all TACHO_RING=4M TACHO_SAVE_ON=none TACHO_OUT=$work/log \
		"$flight_program" steps=30 flush wait=3000 steps=5 save &
	pid=$!
	sleep 1
	find_rings
	equal 'still there' "$(rings)" 1
	"$B/tacho-convert" -q "$work"/log/*.ring -t text -o "$work/told"
	equal 'and readable' $? 0
	wait $pid
	equal 'its own log' "$(logs)" 1
	tell 0
	expect steps '^step number=33 '
}

test_fork() {
	[ "$threads_checked" = 0 ] || { skip='thread sanitizer'; return; }
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	flown signal=USR2,death steps=20 forks=12 steps=20 save
	equal status $status 0
	equal 'the log of the parent' "$(logs)" 1
	equal rings "$(rings)" 0
	tell 0
	expect steps '^sum kind=10 name=step count=39 '
}

test_threads() {
	ring=1M flown none steps=5 threads=30000 steps=20 save
	equal status $status 0
	equal logs "$(logs)" 1
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect 'the last steps' '^step number=2[34] early=0'
	expect floods '^sum kind=7 name=flood count=[1-9][0-9]{4}'
	equal 'within its size' $(($(cat "$work"/log/*.tacho | wc -c) <= 1048576)) 1
}

test_small_ring() { # less than what a second brings: the slow step is saved before it is pushed out
	ring=1M flown slow=3,min=300ms steps=60 wait=200 slow=600 steps=1 ranges=3000000
	equal 'one log' "$(logs)" 1
	tell 0
	expect 'the slow one' '^step number=60 '
	expect why '^about saved_step=60$'
}

test_many_names() { # tables outgrow their place: the ring begins anew, and goes on
	ring=1M flown none names=9000 steps=30 save
	equal status $status 0
	equal logs "$(logs)" 1
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect steps '^step number=28 '
	equal 'no row without its tables' "$(grep -c '^lost .* damaged' "$work/told")" 0
}

test_windows() { # a window ends: what it brought stays in the ring until something happens
	window=steps:5-15 flown none steps=30 save
	equal logs "$(logs)" 1
	tell 0
	expect window '^window spec=steps:5-15 cut=0 closed=1'
	expect steps '^sum kind=10 name=step count=10 '
}

test_max_disk() {
	TACHO_MAX_DISK=200K ring=4M flown none ranges=200000 save ranges=200000 save
	equal status $status 0
	equal 'within the limit' $(($(cat "$work"/log/*.tacho | wc -c) <= 204800)) 1
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect 'the oldest is counted' '^lost [1-9][0-9]* not written'
	rm -r "$work/log"
	TACHO_MIN_FREE=1000T flown none steps=30 save
	equal 'no ring below the floor' "$(ls -A "$work/log" | wc -l)" 0
	equal status $status 0
}

test_small_disk() {
	mkdir -p "$work/small"
	if ! mount -t tmpfs -o size=3m tmpfs "$work/small" 2>/dev/null; then
		skip='no right to mount a small disk'
		return
	fi
	TACHO_RING_DIR=$work/small TACHO_MIN_FREE=0 ring=8M flown none steps=30 save
	equal 'a ring that does not fit: the program runs' $status 0
	equal 'and nothing is left' "$(ls -A "$work/small" | wc -l)" 0
	TACHO_RING_DIR=$work/small TACHO_MIN_FREE=0 ring=2M flown none steps=30 save
	equal 'one that fits' "$(logs)" 1
	rm -r "$work/log"
	head -c 1500000 /dev/zero >"$work/small/other"
	TACHO_OUT=$work/small TACHO_MIN_FREE=0 TACHO_WINDOW=all TACHO_RING=1M TACHO_SAVE_ON=none \
		"$flight_program" ranges=300000 save
	equal 'a full disk' $? 0
	for f in "$work"/small/*.tacho; do
		[ -e "$f" ] || continue
		"$dump" "$f" >"$work/told"
		expect whole '^log whole=1 .* unread=0'
	done
	rm -f "$work"/small/*
	[ "$sanitized" = 0 ] || { umount "$work/small"; return; }
	"$record" --out "$work/small" --min-free 2M --ring 2M -- "$flight_program" steps=30 2>"$work/told"
	equal 'a ring that does not fit' $? 0
	expect 'its reason' 'small has 3.0 MiB left, the ring needs 2M and --min-free leaves 2M'
	# what cannot be saved is left, and is saved when there is room
	"$record" --out "$work/small" --min-free 0 --ring 2M -- sh -c \
		'"$1" steps=30 flush wait=500 save & sleep 0.3; head -c 9000000 /dev/zero >"$2"; wait' - \
		"$flight_program" "$work/small/other" 2>"$work/told"
	expect 'it could not be saved' '\.ring is unchanged: no room to save the ring'
	expect 'the last line says so' 'no log was written: the ring could not be saved, and is left'
	equal 'it is left' "$(ls "$work/small" | grep -c 'ring$')" 1
	rm -f "$work"/small/*
	"$record" --out "$work/small" --min-free 0 --ring 2M -- "$flight_program" steps=30 flush wait=500 kill=9 \
		2>/dev/null &
	pid=$!
	sleep 0.3
	head -c 9000000 /dev/zero >"$work/small/other" 2>/dev/null
	wait $pid
	equal 'status with a full disk' $? 137
	equal 'the ring is left' "$(ls "$work/small" | grep -c 'ring$')" 1
	rm -f "$work/small/other"
	"$record" -q --out "$work/small" --min-free 0 --ring 1M -- true
	equal 'and saved later' "$(ls "$work/small" | grep -c 'tacho$')" 1
	umount "$work/small"
}

test_no_permission() {
	for folder in /proc/nowhere /dev/null; do
		TACHO_WINDOW=all TACHO_RING=4M TACHO_OUT=$work/log TACHO_RING_DIR=$folder \
			"$flight_program" steps=10 save
		equal "status with $folder" $? 0
	done
	equal logs "$(logs)" 0
	[ "$sanitized" = 0 ] || return
	"$record" --out "$work/log" --ring 4M --ring-dir /proc/nowhere -- "$flight_program" steps=3 2>"$work/told"
	equal status $? 0
	expect sentence '^tacho-record: /proc/nowhere.*; the command runs without a log$'
	"$record" --ring 5 -- true 2>"$work/told"
	equal 'too small' $? 2
	"$record" --ring 4M --save-on slow=x -- true 2>"$work/told"
	equal 'wrong option' $? 2
	expect sentence '^tacho-record: --save-on: slow= needs a number above 1'
}

test_cut_off() { # somebody cuts the ring's file: the program does not die of it
	TACHO_WINDOW=all TACHO_RING=4M TACHO_SAVE_ON=none TACHO_OUT=$work/log \
		"$flight_program" steps=30 flush wait=1500 steps=100 &
	pid=$!
	sleep 0.8
	: >"$(ls "$work"/log/*.ring)"
	wait $pid
	equal status $? 0
}

names=${*:-$(sed -n 's/^test_\([a-z_]*\)() {.*$/\1/p' "$0")}
. "$(dirname "$0")/rows.sh"
rows_run flight $names
