#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The collector in real processes: what they do, how they end, what the log holds afterwards.
#	B=build sh tests/collector/run.sh [TEST...]
# Each test is a function test_NAME; it fails when a line of `expect` does.
set -u
given=${B:-build} # by the words that it was built with, else make would build it anew
B=$(cd "$given" && pwd)
traced_program=$B/tests/traced_program
dump=$B/tests/dump
record=$B/tacho-record
analyze=$B/tacho-analyze
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TACHO_ENABLED TACHO_WINDOW TACHO_OUT RANK WORLD_SIZE 2>/dev/null || true
# a preloaded library and sanitizers do not go together: those runs link it, and set variables
sanitized=$(grep -c fsanitize "$B/flags" 2>/dev/null || true)
# the thread sanitizer knows no thread in the child of a fork, the leak sanitizer no parent's
threads_checked=$(grep -c fsanitize=thread "$B/flags" 2>/dev/null || true)
no_leaks() { ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$@"; }

logs() { ls "$work/log" 2>/dev/null | grep -c '\.tacho$'; }
# the recorder closes the log of a program that has died, a moment after that
tell() {
	i=0
	while [ $i -lt 100 ]; do
		"$dump" "$work"/log/*."$1".tacho >"$work/told" 2>&1
		grep -q '^log whole=1' "$work/told" && return
		sleep 0.05
		i=$((i + 1))
	done
}
expect() { # what, then a pattern that a line of the dump must match
	grep -qE "$2" "$work/told" && return
	echo "#   $1: no line matches: $2"
	sed 's/^/#     /' "$work/told" | head -30
	bad=1
}
equal() { # what, got, wanted
	[ "$2" = "$3" ] && return
	echo "#   $1: $2, should be $3"
	bad=1
}
recorded() { # window, then the program's arguments
	window=$1
	shift
	TACHO_WINDOW=$window TACHO_OUT=$work/log timeout 120 "$traced_program" "$@"
}
# in the background, its number in $pid: not through a function, which would be a process more
start() {
	TACHO_WINDOW=all TACHO_OUT=$work/log "$traced_program" "$@" >"$work/out" 2>&1 &
	pid=$!
}
wait_ready() { # until the program prints that it is ready
	i=0
	while [ $i -lt 200 ] && ! grep -q ready "$work/out" 2>/dev/null; do
		sleep 0.05
		i=$((i + 1))
	done
}

test_off() {
	TACHO_OUT=$work/log "$traced_program" steps 5
	equal "without variables" "$(logs)" 0
	equal "state" "$("$traced_program" state 0)" 0
	equal "TACHO_ENABLED=0" "$(TACHO_ENABLED=0 recorded all state 0)" 0
	TACHO_ENABLED=0 recorded all hand 2
	equal "start when forbidden" "$(logs)" 0
	equal "state when armed" "$(recorded signal state 0)" 1
	equal "a wrong setting lets the job run" "$(recorded steps:9-1 state 0 2>"$work/told")" 0
	expect 'and is said' '^tacho: error: .*steps:9-1.*; nothing is recorded$'
	recorded all state 0 >/dev/null
	equal "a program that makes no event" "$(logs)" 0
}

test_everything() {
	recorded all steps 12
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect window '^window spec=all cut=0 closed=1'
	expect steps '^sum kind=10 name=step count=12 early=0 open=0'
	expect phases '^sum kind=7 name=forward count=12'
	expect counter '^sum kind=14 name=loss count=12 .* last=0.08333'
	expect memory '^sum kind=14 name=bytes_in_use .* device=-1 last=[1-9]'
	expect thread '^track tid=[0-9]+ name=traced_program'
	expect 'what the recorder took' '^about recorder_took=[0-9]+\.[0-9]{3} s of a processor, [1-9][0-9.]* MiB of memory$'
	"$B/tacho-analyze" -q "$work/log" --report check >"$work/told"
	expect 'the report says it' "the recorder process used [0-9.]+ s of a processor"
}

test_windows() {
	recorded steps:10-14 steps 30
	tell 0
	expect steps '^sum kind=10 name=step count=4 early=0 open=0'
	expect 'step 10' '^step number=10 early=0 open=0'
	expect 'step 13' '^step number=13 early=0 open=0'
	rm -r "$work/log"
	recorded schedule:wait=1,warmup=1,active=3,repeat=2 steps 30
	tell 0
	equal windows "$(grep -c '^window.*cut=0 closed=1' "$work/told")" 2
	expect steps '^sum kind=10 name=step count=6'
	expect 'step 9' '^step number=9 '
	rm -r "$work/log"
	recorded steps:10-14 sitter 30
	tell 0
	expect 'range around the window' 'name=sitting count=1 early=1 open=1'
	rm -r "$work/log"
	recorded delay=20ms,for=1s spin-for 1500
	tell 0
	expect window '^window spec=delay=20ms,for=1s cut=0 closed=1 ns=[1-9][0-9]{9,} '
	rm -r "$work/log"
	recorded nvtx=layer steps 3
	tell 0
	equal windows "$(grep -c '^window' "$work/told")" 3
	rm -r "$work/log"
	recorded every=10,first=5,steps=2 steps 30
	tell 0
	equal 'every ten steps' "$(sed -n 's/^step number=\([0-9]*\) .*/\1/p' "$work/told" | xargs)" \
		'5 6 15 16 25 26'
	rm -r "$work/log"
	began=$(date +%s%N)
	recorded every=100ms,first=5,steps=2 steps 500
	took=$((($(date +%s%N) - began) / 100000000))
	tell 0
	windows=$(grep -c '^window.*cut=0' "$work/told")
	equal "some every 100 ms, $windows in $took" $((windows >= 2 && windows <= took + 1)) 1
	expect 'the first of them' '^step number=5 '
	rm -r "$work/log"
	recorded every=-1m,first=5,steps=2 steps 100
	tell 0
	equal once "$(grep -c '^window' "$work/told")" 1
	rm -r "$work/log"
	at=$(date -u -d '+3 seconds' +%Y-%m-%dT%H:%M:%SZ)
	for rank in 0 1; do
		RANK=$rank recorded at=$at,for=200ms spin-for 4000 &
	done
	wait
	second=$(date -d "$at" +%s)
	for f in "$work"/log/*; do
		"$dump" "$f" >"$work/told"
		expect 'the second, on each rank' "^window spec=at=$at,for=200ms cut=0 closed=1"
		begin=$(sed -n 's/^window .*begin=\([0-9]*\).*/\1/p' "$work/told")
		late=$((begin / 1000000 - second * 1000))
		equal "at that second, $late ms late" $((late >= 0 && late < 1000)) 1
	done
	equal ranks "$(logs)" 2
	rm -r "$work/log"
	recorded at=2020-01-01T00:00:00Z,for=5s steps 50
	equal 'not at some other second' "$(logs)" 0
	recorded steps:5-100 steps 10
	tell 0
	expect 'cut short by the epoch' '^window spec=steps:5-100 cut=1 closed=1'
	expect 'last step' '^step number=9 early=0 open=0'
}

test_many_windows() {
	recorded schedule:wait=1,active=2 flushed 300
	tell 0
	expect whole '^log whole=1'
	equal windows "$(grep -c '^window.*closed=1' "$work/told")" 100
	expect steps '^sum kind=10 name=step count=200 early=0 open=0'
}

# The windows that begin for a reason from outside.
start_armed() { # window, act, number
	TACHO_WINDOW=$1 TACHO_OUT=$work/log "$traced_program" $2 $3 >"$work/out" 2>&1 &
	pid=$!
	wait_ready
}
wait_for() { # what the status must say
	i=0
	while [ $i -lt 100 ]; do
		"$record" --ctl $pid status >"$work/told" 2>&1
		grep -q "$1" "$work/told" && return
		sleep 0.05
		i=$((i + 1))
	done
	echo "#   the status never says: $1"
	sed 's/^/#     /' "$work/told"
	bad=1
}

test_signal() {
	start_armed signal=USR1 spin 1000
	equal 'nothing yet' "$(logs)" 0
	kill -USR1 $pid
	wait_for 'state recording'
	sleep 0.2
	kill -USR1 $pid
	wait_for 'state waiting'
	kill -USR1 $pid
	wait_for 'windows 2'
	kill -TERM $pid
	wait $pid 2>/dev/null
	equal status $? 143
	tell 0
	expect 'by the signal' '^window spec=SIGUSR1 cut=0 closed=1'
	expect steps '^sum kind=10 name=step count=[1-9][0-9]'
	equal 'a log for each' "$(logs)" 2
	rm -r "$work/log" "$work/out"
	# the program's own handler is left alone
	recorded signal=USR1 own-usr1 7
	equal 'its own handler' $? 7
	recorded signal own-usr1 7
	equal 'nothing of ours' $? 7
	# no handler where nobody asked for one
	start_armed steps:5-8 spin 1000
	kill -USR1 $pid
	wait $pid 2>/dev/null
	equal 'the default action' $? 138
	rm -rf "$work/out"
	start_armed signal spin 1000
	kill -USR1 $pid
	wait $pid 2>/dev/null
	equal 'the default action, where none is named' $? 138
}

# A signal to tacho-record is a request to all processes below, and does not reach the command.
test_record_signal() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$record" -q --window signal --out "$work/log" -- sh -c \
		'sleep 1; echo $$ >"$2"; exec "$1" spin 1000' - "$traced_program" "$work/elsewhere" >"$work/out" 2>&1 &
	record_pid=$!
	sleep 0.5
	kill -USR1 $record_pid # before anything is recorded: it is not forgotten
	wait_ready
	pid=$(cat "$work/elsewhere")
	wait_for 'state recording'
	kill -USR1 $record_pid
	wait_for 'state waiting'
	kill -TERM $pid
	wait $record_pid
	equal status $? 143
	tell 0
	expect 'by the signal' '^window spec=SIGUSR1 cut=0 closed=1'
}

test_control() {
	start_armed steps:1000000-2000000 spin 1000
	"$record" --ctl $pid status >"$work/told"
	equal status $? 0
	expect state '^state waiting$'
	expect window '^window steps:1000000-2000000$'
	expect step '^step [0-9]+$'
	"$record" --ctl $pid start >"$work/told"
	expect started '^recording$'
	"$record" --ctl $pid start >"$work/told"
	expect twice '^recording already$'
	sleep 0.2
	"$record" --ctl $pid stop >"$work/told"
	expect stopped '^stopped$'
	"$record" --ctl $pid stop >"$work/told"
	expect 'nothing to stop' '^no window is open$'
	"$record" --ctl $pid save >"$work/told" 2>&1
	equal 'no ring to save' $? 2
	"$record" --ctl $pid dance >"$work/told" 2>&1
	equal 'an unknown word' $? 2
	"$record" --ctl $$ status >"$work/told" 2>&1
	equal 'a process without the library' $? 7
	kill -9 $pid
	wait $pid 2>/dev/null
	"$record" --ctl $pid status >"$work/told" 2>&1
	equal 'a process that is gone' $? 7
	tell 0
	expect whole '^log whole=1'
	expect 'by whom' '^window spec=tacho-record --ctl start cut=0 closed=1'
	expect steps '^sum kind=10 name=step count=[1-9][0-9]'
}

# Who means harm gets nothing, and the program does not notice.
test_control_hostile() {
	command -v python3 >/dev/null || { skip='no python3'; return; }
	start_armed signal spin 1000
	python3 tests/collector/bad_clients.py $pid >"$work/told" 2>&1
	equal 'what came of it' $? 0
	sed 's/^/#     /' "$work/told"
	"$record" --ctl $pid start >"$work/told"
	expect 'it still listens' '^recording$'
	kill -TERM $pid
	wait $pid 2>/dev/null
	equal status $? 143
	tell 0
	expect whole '^log whole=1'
}

test_by_hand() {
	TACHO_OUT=$work/log "$traced_program" hand 3
	equal "a log for each" "$(logs)" 3
	tell 2
	expect whole '^log whole=1'
	expect steps '^sum kind=10 name=step count=3 early=0 open=0'
	expect first '^step number=[0-9]+ early=0'
	expect 'what was asked' '^window spec=tacho_start\(\) cut=0 closed=1'
	rm -r "$work/log"
	recorded all hand 1
	tell 0
	expect 'a start in an open window is counted' '^about ignored_calls=1$'
	expect clock '^about tacho_clock=(tsc|cntvct|monotonic)$'
}

test_exit() {
	recorded all exit 3
	equal status $? 3
	tell 0
	expect whole '^log whole=1'
	expect 'open ranges' 'name=inner count=1 early=0 open=1'
	expect 'open ranges' 'name=outer count=1 early=0 open=1'
	expect 'open step' 'name=step count=5 early=0 open=1'
}

test_quick_exit() {
	recorded all quick 4
	equal status $? 4
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect 'its steps' '^sum kind=10 name=step count=5 '
}

test_kill() {
	start spin 1000
	wait_ready
	sleep 2.3
	kill -9 $pid
	wait $pid 2>/dev/null
	equal status $? 137
	tell 0
	expect whole '^log whole=1 events=[1-9][0-9]+ .* unread=0'
	expect steps '^sum kind=10 name=step count=[1-9][0-9]'
	expect 'the window is cut short' '^window spec=all cut=1 closed=1'
	expect 'open range' 'name=outer count=1 early=0 open=1'
}

test_term() {
	start spin 1000
	wait_ready
	kill -TERM $pid
	wait $pid 2>/dev/null
	equal status $? 143
	tell 0
	expect whole '^log whole=1 .* unread=0'
	expect window '^window spec=all cut=1 closed=1'
	expect 'open range' 'name=outer count=1 early=0 open=1'
}

test_term_handled() {
	for act in handler late-handler; do
		start $act 6
		wait_ready
		kill -TERM $pid
		wait $pid
		equal "status of $act" $? 6
		tell 0
		expect whole '^log whole=1'
		rm -r "$work/log" "$work/out"
	done
}

test_threads() {
	recorded all threads 1000
	tell 0
	expect whole '^log whole=1'
	expect ranges '^sum kind=7 name=work count=8000 early=0 open=0'
	equal tracks "$(grep -c '^track tid' "$work/told")" 9
}

test_thread_churn() {
	TACHO_MEMORY=16M recorded all churn 300
	tell 0
	expect 'all ranges, on few rings' '^sum kind=7 name=work count=3000 early=0 open=0'
	rm -r "$work/log"
	# threads never wait for the writer: where it is slow, under a sanitizer or beside a busy machine's
	# other work, what finds no ring is counted
	TACHO_MEMORY=16M recorded all churn-fast 300
	tell 0
	ranges=$(sed -n 's/^sum kind=7 name=work count=\([0-9]*\) .*/\1/p' "$work/told")
	lost=$(sed -n 's/^lost \([0-9]*\) ring full.*/\1/p' "$work/told")
	equal 'all ranges, or counted' $((${ranges:-0} + ${lost:-0})) 3000
}

test_dead_thread() {
	recorded all dead-thread 1
	tell 0
	expect 'range of a thread that ended' 'name=never popped count=1 early=0 open=1'
}

test_fork() {
	[ "$threads_checked" = 0 ] || { skip='thread sanitizer'; return; }
	no_leaks recorded all fork 11
	equal status $? 11
	equal 'a worker leaves no log' "$(logs)" 1
	tell 0
	expect 'and does not disturb' '^sum kind=10 name=step count=6 early=0 '
	rm -r "$work/log"
	TACHO_WORKERS=yes RANK=2 WORLD_SIZE=4 no_leaks recorded all fork 11
	equal status $? 11
	equal 'logs of parent and of the child that worked' "$(logs)" 2
	for f in "$work"/log/*; do
		"$dump" "$f" >"$work/told"
		expect whole '^log whole=1'
		expect rank '^process pid=[0-9]+ rank=2 world=4'
		if grep -q 'in the child' "$work/told"; then
			expect child '^sum kind=7 name=in the child count=1 early=0 open=0'
			equal 'steps in the child' "$(grep -c '^step' "$work/told")" 0
		else
			expect parent '^sum kind=7 name=around the forks count=1 early=0 open=0'
			expect parent '^sum kind=10 name=step count=6'
		fi
	done
}

test_fork_storm() {
	# the allocator of the sanitizers does not outlive a fork beside threads that allocate
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	no_leaks recorded all fork-storm 25
	equal 'children that failed' $? 0
	equal logs "$(logs)" 26
	no_leaks recorded all fork-term 12
	equal 'a child dies of SIGTERM' $? 12
}

test_raw_children() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	for act in vfork-exit vfork-term; do
		TACHO_WINDOW=all TACHO_OUT=$work/log timeout 20 "$traced_program" $act 1000 >/dev/null
		equal "status after $act" $? 232
		equal "logs after $act" "$(logs)" 1
		tell 0
		expect "steps after $act" '^sum kind=10 name=step count=[56] '
		rm -r "$work/log"
	done
	"$record" -q --out "$work/log" -- "$traced_program" raw-fork 1000
	equal 'status after raw-fork' $? 0
	equal 'its logs, of two processes' "$(logs) $(ls "$work/log" | sed 's/.*\.p//' | sort -u | wc -l)" '2 2'
	equal 'its steps' "$(count_of step) $(grep '^sum .* name=step' "$work/told" | sort | cut -d ' ' -f 4 | xargs)" \
		'8 count=2 count=6'
	rm -r "$work/log"
	TACHO_WINDOW=all TACHO_OUT=$work/log "$traced_program" usr2 9
	equal 'SIGUSR2 without a ring ends the program' $? 140
	tell 0
	expect 'its log' '^log whole=1'
}

# What cancels a thread, forks or jumps away must not leave a lock behind.
test_interrupted() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	TACHO_WINDOW=all TACHO_OUT=$work/log timeout 60 "$traced_program" cancel 40
	equal 'status of the cancelled' $? 0
	tell 0
	expect steps '^sum kind=10 name=step count=3 '
	rm -r "$work/log"
	for sample in steps=1 none; do
		TACHO_SAMPLE=$sample TACHO_WINDOW=all TACHO_OUT=$work/log \
			timeout 60 "$traced_program" interrupted 300
		equal "status of the interrupted, sample $sample" $? 0
		rm -rf "$work/log"
	done
}

test_exit_in_handler() {
	for ms in 5 10 15 20 25 30 35 40 45 50; do # wherever it is met, most of all in a wait
		recorded signal=USR1 exit-in-handler $ms
		equal "status after $ms ms" $? 5
	done
}

test_soup() {
	for window in all signal steps:3-9 schedule:wait=1,active=1 nvtx=a; do
		recorded $window soup 10000 || equal "status with $window" $? 0
		recorded $window soup-threads 1000 || equal "threads with $window" $? 0
	done
	TACHO_OUT=$work/log "$traced_program" soup 20000
	equal status $? 0
	for f in "$work"/log/*; do
		"$dump" "$f" >"$work/told"
		expect whole '^log whole=1 .* unread=0'
	done
}

test_flood() {
	TACHO_BUFFER=64K recorded all flood 300000
	tell 0
	expect whole '^log whole=1'
	kept=$(sed -n 's/.*name=flood count=\([0-9]*\).*/\1/p' "$work/told")
	lost=$(sed -n 's/^lost \([0-9]*\) ring full/\1/p' "$work/told")
	equal 'kept and lost' $((${kept:-0} + ${lost:-0})) 300000
	"$B/tacho-analyze" -q "$work/log" >"$work/told"
	expect 'the count on the page' "^! LOST +$(echo "${lost:-0}" | sed -E ':a; s/^([0-9]+)([0-9]{3})/\1,\2/; ta') records"
	"$B/tacho-analyze" -q "$work/log" --format json >"$work/told"
	expect 'and in the JSON' "\"losses\": *\{\"ring\": *${lost:-0}\}"
}

# events kept + events lost to the disk + ring = all
count_all() {
	all=$(awk '/^log /{ sub(/.* events=/, ""); n += $1 } /^lost [0-9]+ (not written|ring full)/{ n += $2 } END { print n }' \
		"$work/told")
	expect whole '^log whole=1 .* unread=0'
	expect 'lost to the disk' '^lost [1-9][0-9]* not written'
	equal "$1" $((all >= 200000)) 1
}
tell_all() {
	for log in "$work"/log/*.tacho; do
		"$dump" "$log"
	done >"$work/told" 2>&1
}

test_max_disk() {
	TACHO_MAX_DISK=100K TACHO_BUFFER=16M recorded all flood 200000
	tell_all
	count_all 'all are counted'
	equal 'within the limit' $(($(cat "$work"/log/*.tacho | wc -c) <= 102400)) 1
	rm -r "$work/log"
	# one limit for all logs of a process
	TACHO_MAX_DISK=64K TACHO_OUT=$work/log "$traced_program" hand 150
	equal 'many logs, one limit' $(($(cat "$work"/log/*.tacho | wc -c) <= 65536)) 1
	equal 'and they use it' $(($(cat "$work"/log/*.tacho | wc -c) > 40000)) 1
	rm -r "$work/log"
	# the newest steps are there, and the removed ones are counted
	TACHO_MAX_DISK=64K TACHO_SAMPLE=none TACHO_WINDOW=all TACHO_OUT=$work/log "$traced_program" steps 20000
	equal 'the newest, one limit' $(($(cat "$work"/log/*.tacho | wc -c) <= 65536)) 1
	equal_all 100000
	expect 'the last step' '^step number=19999 '
	equal 'not the first' "$(grep -c '^step number=0 ' "$work/told")" 0
}

test_rotate() {
	TACHO_ROTATE=64K TACHO_SAMPLE=none TACHO_WINDOW=all TACHO_OUT=$work/log "$traced_program" steps 20000
	equal 'more than one log' $(($(logs) > 3)) 1
	"$B/tacho-analyze" -q "$work/log" >"$work/told"
	expect 'they are one recording' ' 20,000 steps, 0 to 19999 '
	equal 'nothing is lost' "$(grep -c LOST "$work/told")" 0
}

# events in the logs + those counted as lost = all
equal_all() {
	tell_all
	equal 'each is closed' "$(grep -c '^log whole=1 ' "$work/told")" "$(logs)"
	equal 'all are counted' "$(awk '/^sum kind=(7|10|14) /{ sub(/.*count=/, ""); n += $1 } /^lost /{ n += $2 } END { print n }' \
		"$work/told")" "$1"
}

# no log can be made or removed any more: the open one goes on up to the limit
test_rotate_closed_folder() {
	as=
	mkdir -p "$work/log"
	if [ "$(id -u)" = 0 ]; then
		as='setpriv --reuid=65534 --clear-groups --'
		chmod 755 "$work"
		chown 65534 "$work/log"
	fi
	TACHO_MAX_DISK=64K TACHO_SAMPLE=none TACHO_WINDOW=all TACHO_OUT=$work/log $as "$traced_program" steps 8000 &
	pid=$!
	i=0
	while [ $i -lt 200 ] && [ "$(logs)" -lt 3 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	chmod 555 "$work/log"
	wait $pid
	equal status $? 0
	equal_all 40000
	equal 'within the limit' $(($(cat "$work"/log/*.tacho | wc -c) <= 65536)) 1
	chmod 755 "$work/log"
}

test_rotate_full_disk() {
	mkdir -p "$work/log"
	if ! mount -t tmpfs -o size=320k tmpfs "$work/log" 2>/dev/null; then
		skip='no right to mount a small disk'
		return
	fi
	TACHO_ROTATE=32K TACHO_MIN_FREE=0 TACHO_SAMPLE=none TACHO_WINDOW=all TACHO_OUT=$work/log "$traced_program" steps 12000
	equal status $? 0
	equal_all 60000
	expect 'some did not fit' '^lost [1-9][0-9]* not written'
	equal 'more than one log' $(($(logs) > 3)) 1
	umount "$work/log"
}

test_file_size_limit() {
	(ulimit -f 200 && recorded all flood 200000)
	equal status $? 0
	equal 'the rings are a file, too' "$(logs)" 0
	[ "$sanitized" = 0 ] || return
	"$record" --out "$work/log" -- sh -c 'ulimit -f 200; exec "$@"' - "$traced_program" flood 200000 2>"$work/told"
	equal status $? 0
	expect 'why' 'could not be recorded: its files are limited to (100K|200K), see ulimit -f'
}

test_disk_full() {
	mkdir -p "$work/small"
	if ! mount -t tmpfs -o size=256k tmpfs "$work/small" 2>/dev/null; then
		skip='no right to mount a small disk'
		return
	fi
	TACHO_MIN_FREE=0 TACHO_BUFFER=16M TACHO_WINDOW=all TACHO_OUT=$work/small "$traced_program" \
		flood 200000
	equal status $? 0
	"$dump" "$work"/small/*.tacho >"$work/told" 2>&1
	count_all 'all are counted'
	rm -f "$work"/small/*
	TACHO_WINDOW=all TACHO_OUT=$work/small "$traced_program" steps 5
	equal 'status below the floor of free space' $? 0
	rm -f "$work"/small/*
	head -c 300000 /dev/zero >"$work/small/other" 2>/dev/null
	[ "$sanitized" = 0 ] || { umount "$work/small"; return; }
	"$record" --min-free 0 --out "$work/small" -- "$traced_program" steps 5 2>"$work/told"
	equal 'status with a full disk' $? 0
	expect 'its reason' '; 1 not closed \(the disk is full\)$'
	umount "$work/small"
}

test_no_permission() {
	TACHO_WINDOW=all TACHO_OUT=/proc/nowhere "$traced_program" steps 5
	equal status $? 0
	: >"$work/file"
	TACHO_WINDOW=all TACHO_OUT=$work/file "$traced_program" steps 5
	equal status $? 0
}

# Deaths that no handler sees: everything is in the log.
test_deaths() {
	for death in abort:134 segv:139; do
		(ulimit -c 0 && recorded all ${death%:*} 0) 2>/dev/null
		status=$?
		# a sanitizer makes an exit of its own of what is its business
		[ "$sanitized" != 0 ] || equal "status of ${death%:*}" $status ${death#*:}
		equal "${death%:*} is a death" $((status != 0)) 1
		tell 0
		expect whole '^log whole=1 events=[1-9][0-9]* .* unread=0'
		expect phases '^sum kind=7 name=forward count=5'
		expect 'the window is cut short' '^window spec=all cut=1 closed=1'
		rm -r "$work/log"
	done
}

test_no_descriptors() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	(ulimit -n 40 && recorded all no-fds 9) >"$work/out" 2>&1
	equal status $? 9
	equal 'not a word' "$(wc -c <"$work/out")" 0
	(ulimit -n 40 && recorded signal=USR1 no-fds 9) >"$work/out" 2>&1
	equal 'status, by hand' $? 9
}

test_read_only_folder() {
	mkdir -p "$work/ro"
	if mount -t tmpfs -o ro tmpfs "$work/ro" 2>/dev/null; then
		TACHO_WINDOW=all TACHO_OUT=$work/ro/log "$traced_program" steps 5 >"$work/out" 2>&1
		equal status $? 0
		umount "$work/ro"
	else
		chmod 555 "$work/ro"
		TACHO_WINDOW=all TACHO_OUT=$work/ro/log "$traced_program" steps 5 >"$work/out" 2>&1
		equal status $? 0
	fi
	equal 'not a word' "$(wc -c <"$work/out")" 0
}

test_sixty_four_threads() {
	recorded all threads-64 500
	equal status $? 0
	tell 0
	expect whole '^log whole=1'
	kept=$(sed -n 's/.*name=work count=\([0-9]*\).*/\1/p' "$work/told")
	lost=$(awk '/^lost / { sum += $2 } END { print sum + 0 }' "$work/told")
	equal 'kept and lost' $((${kept:-0} + ${lost:-0})) 32000
}

# Every clock goes back by an hour in the middle of it.
test_clock_steps_back() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	${CC:-cc} -shared -fPIC -O1 -o "$work/clock.so" tests/collector/clock.c -ldl
	equal 'the clock is made' $? 0
	for clocks in wall all; do
		for window in all delay=20ms,for=100ms every=10,first=5,steps=3; do
			LD_PRELOAD=$work/clock.so CLOCKS=$clocks recorded $window spin-for 600
			equal "status with $window" $? 0
			tell 0
			expect "$window, $clocks: whole" '^log whole=1 .* unread=0'
			expect "$window, $clocks: closed" '^window .* closed=1'
			rm -rf "$work/log"
		done
	done
	LD_PRELOAD=$work/clock.so CLOCKS=wall recorded delay=20ms,for=100ms spin-for 600
	tell 0
	expect 'as long as asked' '^window .* cut=0 closed=1 ns=1[0-9]{8} '
}

# Workers of a data loader by each way to start them, with ranges of their own.
test_workers() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	command -v python3 >/dev/null || { skip='no python3'; return; }
	for method in fork spawn forkserver; do
		"$record" -q --out "$work/log" -- python3 tests/collector/workers.py $method
		equal "status with $method" $? 0
		equal "logs with $method" "$(logs)" 1
		tell 0
		expect "$method: whole" '^log whole=1 .* unread=0'
		expect "$method: steps" '^sum kind=10 name=step count=20 early=0'
		expect "$method: its ranges" '^sum kind=7 name=train count=20 early=0 open=0'
		equal "$method: no ranges of workers" "$(grep -c 'name=load' "$work/told")" 0
		rm -r "$work/log"
		"$record" -q --workers --out "$work/log" -- python3 tests/collector/workers.py $method
		equal "status with $method, all recorded" $? 0
		equal "logs with $method, all recorded" $(($(logs) > 1)) 1
		rm -r "$work/log"
	done
}

test_ranks() {
	RANK=1 TACHO_RANKS=main recorded all steps 3
	RANK=1 TACHO_RANKS=0,2-7 recorded all steps 3
	equal 'other ranks' "$(logs)" 0
	RANK=3 TACHO_RANKS=0,2-7 recorded all steps 3
	equal 'a wanted rank' "$(logs)" 1
	ls "$work/log" >"$work/told"
	expect 'its name' '\.r3\.p[0-9]+\.0\.tacho$'
	rm -r "$work/log"
	# one number for two: a PID comes again, on another day or in another container
	mkdir -p "$work/log"
	sh -c 'for n in 0 1 2; do echo mine >"$1/$(uname -n).r3.p$$.$n.tacho"; done
		export RANK=3 TACHO_WINDOW=all TACHO_OUT="$1"; exec "$2" steps 3' - "$work/log" "$traced_program"
	equal 'a name that is free' "$(ls "$work/log" | grep -c '\.3\.tacho$')" 1
	equal 'others are left alone' "$(cat "$work"/log/*.[012].tacho | xargs)" 'mine mine mine'
}

test_options() {
	TACHO_KINDS=step,mark recorded all steps 5
	tell 0
	expect steps '^log whole=1 events=[56] '
	rm -r "$work/log"
	TACHO_SAMPLE=steps=10 recorded all steps 95
	tell 0
	expect 'a sample every ten steps' 'name=bytes_in_use count=10 '
	rm -r "$work/log"
	TACHO_SAMPLE=none recorded all steps 5
	tell 0
	equal 'no samples' "$(grep -c bytes_in_use "$work/told")" 0
	rm -r "$work/log"
	TACHO_CLOCK=monotonic recorded all steps 5
	tell 0
	expect 'the other clock' '^sum kind=10 name=step count=5'
	recorded signal summary 7 >"$work/told"
	equal 'after a reset' $? 0
	expect totals '^forward: avg=0\.[0-9]{4}s, total=0\.[0-9]{2}s, count=7$'
}

test_secrets() {
	recorded all steps 3 --api-key hunter2 --token=hunter2
	tell 0
	expect masked 'command=.*traced_program steps 3 --api-key \*\*\* --token=\*\*\*$'
	equal 'in the file' "$(cat "$work"/log/* | grep -c hunter2)" 0
}

test_record() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$record" --out "$work/log" --window steps:5-8 -- "$traced_program" steps 20 2>"$work/told"
	equal status $? 0
	expect 'what was recorded' 'tacho-record: .*/log/.*\.tacho: [0-9]+ events, 3 steps, [0-9.]+ KiB; nothing was lost'
	expect 'what to do next' "tacho-record: see it with: .*/tacho-analyze .*/log/.*\.tacho\$"
	tell 0
	expect steps '^sum kind=10 name=step count=3'
	"$record" -q -- sh -c 'exit 7'
	equal 'exit code' $? 7
	"$record" -q -- sh -c 'kill -9 $$' 2>/dev/null
	equal signal $? 137
	"$record" -- "$work/none" 2>/dev/null
	equal 'not found' $? 127
	"$record" --window steps:9-1 -- true 2>"$work/told"
	equal 'wrong option' $? 2
	expect sentence '^tacho-record: --window: steps:9-1: the last step must be after the first$'
	"$record" 2>/dev/null
	equal 'no command' $? 2
	"$record" --out /proc/nowhere -- "$traced_program" steps 3 2>"$work/told"
	equal 'no folder: the command runs' $? 0
	expect sentence 'the command runs without a log'
	"$record" --out "$work/more" --sample none -- "$traced_program" flood 100 2>"$work/told"
	expect events ': 100 events'
	"$record" --out "$work/none" -- true 2>"$work/told"
	expect 'no log' 'no log was written'
	equal 'no folder for no log' "$(ls -d "$work/none" 2>/dev/null)" ''
}

# Why nothing was recorded, and which options have no effect.
test_record_reasons() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	reason() { # pattern, then the options and the command
		pattern=$1
		shift
		"$record" --out "$work/log" "$@" 2>"$work/told"
		equal "status with $*" $? 0
		expect "$*" "$pattern"
	}
	reason 'no log was written: the program made no event: no step was marked' -- true
	reason 'steps:90-99 waits for a step, and no step was marked' -w steps:90-99 -- true
	reason ': 50 steps were seen, and the window steps:90-99 did not come' -w steps:90-99 -- \
		"$traced_program" steps 50
	reason 'nothing happened that --save-on signal,death waits for' --ring 1M -- "$traced_program" steps 50
	RANK=1 reason 'rank 1 is not in --ranks main' --ranks main -- "$traced_program" steps 5
	reason 'log: it was removed meanwhile' -- sh -c 'rm -r "$1"; "$2" steps 5; rm -rf "$1"' - "$work/log" \
		"$traced_program"
	(ulimit -v 40000 && "$record" --out "$work/log" -- "$traced_program" steps 5) 2>"$work/told"
	expect 'no address space' 'could not be recorded: its address space is limited to 40000K, see ulimit -v'
	reason 'could not be recorded: its address space is limited to 4000K, see ulimit -v' -- \
		sh -c 'ulimit -v 4000; exec "$@"' - "$traced_program" steps 5
	reason '5 steps.*nothing was lost' -- sh -c 'ulimit -v 40000; exec "$@"' - "$traced_program" steps 5
	rm -r "$work/log"
	reason '5 steps, [^;]*; 1 process could not be recorded: its address space is limited to 4000K, see ulimit -v$' -- \
		sh -c '"$@"; ulimit -v 4000; exec "$@"' - "$traced_program" steps 5
	for loader in /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.1; do
		[ ! -e "$loader" ] || reason 'the command ran without libtacho.so: it is linked statically' -- "$loader" --version >/dev/null
	done
	reason 'has [0-9.]+ MiB left, --min-free leaves 9999999G; the command runs without a log' \
		--min-free 9999999G -- true
	: >"$work/elsewhere"
	"$record" --out "$work/elsewhere" -- "$traced_program" steps 5 2>"$work/told"
	equal 'a file in the place of the folder' $? 0
	expect 'at the start' 'elsewhere: Not a directory; the command runs without a log'
	expect 'at the end' 'no log was written: .*/elsewhere is no folder'
	reason 'at=2020-01-01T00:00:00Z,for=5s: that time is past' -w at=2020-01-01T00:00:00Z,for=5s -- true
	reason 'save-on slow=2 has no effect without --ring' --save-on slow=2 -- true
	reason 'window steps:1-2 is used, and not that of the preset' --preset steps -w steps:1-2 -- true
	TACHO_PRESET=steps "$record" --out "$work/log" -w steps:1-2 -- true 2>"$work/told"
	equal 'a later source is no contradiction' "$(grep -c preset "$work/told")" 0
	"$record" --ctl $$ foo 2>"$work/told"
	expect 'an unknown word' 'ctl [0-9]+: foo: must be start, stop, save or status'
}

# What somebody has put where rings and logs are does not hold up the command.
test_record_foreign_files() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	mkdir -p "$work/log/$(uname -n).r0.p2.ring"
	mkfifo "$work/log/$(uname -n).r0.p1.ring" "$work/log/$(uname -n).r0.p1.0.tacho"
	timeout 20 "$record" --ring 4M --out "$work/log" -- echo hi >"$work/out" 2>"$work/told"
	equal status $? 0
	equal output "$(cat "$work/out")" hi
	expect 'the reason' 'p1\.ring is unchanged: it is no file'
	equal 'it is left' "$(ls "$work/log" | wc -l)" 3
}

# ld.so divides LD_PRELOAD at blanks and colons.
test_record_odd_path() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	mkdir -p "$work/a b:c"
	cp -r "$record" "$B/libtacho.so" "$B/tacho" "$work/a b:c"
	TMPDIR=$work "$work/a b:c/tacho-record" --out "$work/log" -- sh -c '"$@"; exit 4' - \
		"$traced_program" steps 5 2>"$work/told"
	equal status $? 4
	equal 'not a word of ld.so' "$(grep -c 'ld.so' "$work/told")" 0
	tell 0
	expect steps '^sum kind=10 name=step count=5'
	rm -r "$work/a b:c"
}

# A process with much memory takes a while to die, and its log is written only then.
test_killed_large() {
	command -v python3 >/dev/null || { skip='no python3'; return; }
	cat >"$work/out" <<'END'
import os, sys, time, tacho
large = bytearray(300 << 20)
for i in range(10):
    tacho.step()
open(sys.argv[0] + ".ready", "w").close()
time.sleep(60)
END
	"$record" --out "$work/log" -- sh -c \
		'python3 "$0" & while [ ! -e "$0.ready" ]; do sleep 0.01; done; kill -9 $!' "$work/out" 2>"$work/told"
	expect 'the log is whole before the last lines' ' 10 steps, .*; nothing was lost$'
}

# env would have become the command: what ends the one ends the other.
test_record_killed() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$record" -q --out "$work/log" -- "$traced_program" spin 1000 >"$work/out" 2>&1 &
	pid=$!
	wait_ready
	command=$(cat /proc/$pid/task/$pid/children)
	kill -9 $pid
	wait $pid 2>/dev/null
	sleep 0.2
	for one in $command; do
		equal 'nothing of it is left' "$(cut -d ' ' -f 3 "/proc/$one/stat" 2>/dev/null | tr -d Z)" ''
	done
	# a signal that comes before there is a command is not lost
	i=0
	while [ $i -lt 30 ]; do
		"$record" -q --out "$work/log" -- sleep 5 &
		pid=$!
		sleep 0.00$((i % 10))
		kill -TERM $pid
		wait $pid 2>/dev/null
		equal 'while it begins' $? 143
		i=$((i + 1))
	done
}

# As process 1 of a container it reaps what others have left.
test_record_init() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	unshare -p -f --mount-proc true 2>/dev/null || { skip='no right to make a PID namespace'; return; }
	unshare -p -f --mount-proc "$record" -q --out "$work/log" -- sh -c \
		'(sleep 0.1 &) ; sleep 0.5; grep -l "^State:.Z" /proc/[0-9]*/status; "$1" exit 6' - \
		"$traced_program" >"$work/told" 2>/dev/null
	equal status $? 6
	equal 'nobody is left' "$(wc -l <"$work/told")" 0
	unshare -p -f --mount-proc "$record" -q --out "$work/log" -- sh -c 'kill -TERM $$'
	equal 'a signal' $? 143
}

test_modes() { # command lines and paths of a job are nobody else's business
	(umask 0 && recorded all steps 3)
	equal mode "$(stat -c %a "$work"/log/*.tacho)" 600
}

# What tells runs in one folder apart is the same in all ranks of a launch.
test_run_id() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	ids() { for f in "$work"/log/*.tacho; do "$dump" "$f" | sed -n 's/^about run_id=//p'; done | sort -u; }
	two='for r in 0 1; do RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 "$@" steps 3; done'
	for run in 1 2; do
		"$record" -q --out "$work/log" -- sh -c "$two" - "$traced_program"
	done
	equal 'two ranks, two runs' "$(ids | wc -l)" 2
	rm -r "$work/log"
	for rank in 0 1; do # one tacho-record for each rank
		SLURM_JOB_ID=47 SLURM_STEP_ID=0 SLURM_RESTART_COUNT=2 SLURM_PROCID=$rank \
			"$record" -q --out "$work/log" -- "$traced_program" steps 3
	done
	equal 'of the scheduler' "$(ids)" 'slurm 47.0, restart 2'
	rm -r "$work/log"
	TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 \
		"$record" -q --out "$work/log" -- "$traced_program" steps 3
	equal 'nothing that all would have' "$(ids)" ''
	TACHO_RUN_ID=mine recorded all steps 3
	equal "the user's" "$(ids)" mine
}

test_record_settings() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	echo '{"window": "steps:2-6", "sample": "none", "ranks": [0, 1], "max_disk": "1G", "totals": true}' \
		>"$work/config.json"
	"$record" --config "$work/config.json" --out "$work/log" -- "$traced_program" steps 9 2>/dev/null
	tell 0
	expect 'from the file' '^window spec=steps:2-6 cut=0'
	rm -r "$work/log"
	TACHO_WINDOW=steps:3-5 "$record" --config "$work/config.json" --out "$work/log" -- \
		"$traced_program" steps 9 2>/dev/null
	tell 0
	expect 'the environment wins' '^window spec=steps:3-5 '
	rm -r "$work/log"
	TACHO_WINDOW=steps:3-5 "$record" --config "$work/config.json" -w steps:1-4 --out \
		"$work/log" -- "$traced_program" steps 9 2>/dev/null
	tell 0
	expect 'the command line wins' '^window spec=steps:1-4 '
	for wrong in '[1]' '{"windw": "all"}' '{"window": {}}' '{"window": ' ''; do
		echo "$wrong" >"$work/config.json"
		"$record" --config "$work/config.json" -- true 2>"$work/told"
		case $? in 2 | 4) ;; *) equal "status of $wrong" other '2 or 4' ;; esac
		expect 'one sentence' '^tacho-record: .*config.json: '
	done
	TACHO_ENABLED=0 "$record" --out "$work/not" -- "$traced_program" steps 5 2>/dev/null
	equal 'switched off for good' "$(ls "$work/not" 2>/dev/null | grep -c tacho)" 0
}

test_doctor() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	"$record" --doctor --out "$work/log" >"$work/told"
	equal status $? 0
	expect library '^library   libtacho [0-9.]+'
	expect clock '^clock     (tsc|cntvct|monotonic), [0-9.]+ ns'
	expect host '^host      [0-9.]+ MiB'
	expect GPU '^(GPU |driver )'
	expect logs '^logs .* can be written'
	expect recorder '^recorder  a process of its own writes logs'
	expect filters '^filters   a program that begins under more than [0-9]+ of seccomp is not recorded$'
	"$record" --help >"$work/told"
	equal 'help fits a screen' $(($(wc -l <"$work/told") <= 42)) 1
	"$record" --version >"$work/told"
	expect version '^tacho-record [0-9.]+, cJSON'
}

# Numbers of a training run do not change by being recorded.
# Of all logs of a row: how many records of a name there are.
count_of() {
	for f in "$work"/log/*.tacho; do "$dump" "$f"; done >"$work/told" 2>/dev/null
	sed -n "s/^sum .* name=$1 count=\([0-9]*\) .*/\1/p" "$work/told" | awk '{ n += $1 } END { print n + 0 }'
}

of_this_job() { # name and number of processes below the tacho-record that has this variable
	for f in $(grep -lsz "^IDLE_JOB=$work$" /proc/[0-9]*/environ); do
		echo "$(cat "${f%environ}comm") $(echo "$f" | cut -d / -f 3)"
	done 2>/dev/null
}
record_without_writer() { # window, milliseconds
	IDLE_JOB=$work "$record" -q --window "$1" --out "$work/log" -- "$traced_program" spin-for "$2" >/dev/null 2>&1 &
	i=0
	while [ $i -lt 200 ] && ! writer=$(of_this_job | sed -n 's/^tacho-writer //p' | grep .); do
		i=$((i + 1))
	done
	kill -9 $writer
	wait
}
# A writer is killed, and windows go on: what the rings hold of each is in a log, with its times.
test_windows_left() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	record_without_writer schedule:wait=2,active=2,repeat=10 800
	equal 'steps of all windows' "$(count_of step)" 20
	equal windows $(($(grep -c '^window' "$work/told") >= 10)) 1
	equal 'steps without a time' "$(grep -c '^step .* ns=0$' "$work/told")" 0
	rm -r "$work/log"
	record_without_writer schedule:active=1 1500 # more windows than there is space for
	equal 'one step in each window' $(($(count_of step) <= $(grep -c '^window' "$work/told"))) 1
	equal 'open steps' "$(grep -c '^step .* open=1' "$work/told")" 0
	expect 'steps for which there was no window' '^about ignored_calls=[1-9][0-9]'
}
# A writer dies of its first write, which stores a window that it has closed: what it had put for
# threads that make no event, a step and two ranges, is counted.
test_window_unstored() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	command -v prlimit >/dev/null || { skip='no prlimit'; return; }
	IDLE_JOB=$work "$record" -q --window delay=1ms,for=700ms --sample none --out "$work/log" -- \
		"$traced_program" silent 1200 2>/dev/null &
	i=0
	while [ $i -lt 100 ] && [ "$(logs)" = 0 ]; do
		sleep 0.01
		i=$((i + 1))
	done
	prlimit --fsize=0 --pid "$(of_this_job | sed -n 's/^tacho-writer //p')"
	wait
	equal 'marks' "$(count_of 'in the window')" 1
	equal 'what was open' "$(($(count_of sitting) + $(count_of silent) + $(count_of step)))" 0
	expect 'is counted' '^lost 3 '
}
# Where the program does not see its writer's process, it does not wait for one that has died.
test_writer_unseen() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	unshare -p -f true 2>/dev/null || { skip='no right to make a PID namespace'; return; }
	IDLE_JOB=$work timeout 20 "$record" -q --out "$work/log" -- unshare -p -f "$traced_program" hand 300 &
	pid=$!
	i=0
	while [ $i -lt 200 ] && ! writer=$(of_this_job | sed -n 's/^tacho-writer //p' | grep .); do
		i=$((i + 1))
	done
	kill -9 $writer
	wait $pid
	equal status $? 0
}
# Threads that forbid system calls, more than there are rings for, while the recorder answers none:
# the program is not killed, and what has no ring is counted.
test_recorder_stopped() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	IDLE_JOB=$work "$record" -q --out "$work/log" -- sh -c 'while [ ! -e "$1" ]; do sleep 0.01; done; exec "$0" filtered 6' \
		"$traced_program" "$work/out" >"$work/said" 2>/dev/null &
	pid=$!
	i=0
	while [ $i -lt 200 ] && ! recorder=$(of_this_job | sed -n 's/^tacho-recorder //p' | grep .); do
		i=$((i + 1))
	done
	kill -STOP $recorder
	: >"$work/out"
	i=0
	while [ $i -lt 100 ] && [ -e "/proc/$pid" ] && ! grep -q ready "$work/said"; do
		sleep 0.05
		i=$((i + 1))
	done
	kill -CONT $recorder
	wait $pid
	equal status $? 0
	marks=$(count_of filtered)
	lost=$(sed -n 's/^lost \([0-9]*\) ring full.*/\1/p' "$work/told")
	equal 'all or counted' $((marks + ${lost:-0})) 6
}
# A network namespace hides one of the recorder's sockets, a mount namespace the other.
test_namespaces() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	unshare -n -m true 2>/dev/null || { skip='no right to make a namespace'; return; }
	rm -rf "$work/tmp"
	mkdir "$work/tmp"
	for kind in -n -m; do
		TMPDIR=$work/tmp IDLE_JOB=$work "$record" -q --out "$work/log" -- unshare $kind sh -c \
			'[ $2 = -n ] || mount -t tmpfs none "$1"; exec "$0" spin-for 600' "$traced_program" "$work/tmp" $kind &
		sleep 0.4
		of_this_job >"$work/names"
		wait
		equal "recorders with unshare $kind" "$(grep -c tacho-recorder "$work/names")" 1
		equal 'steps' "$(count_of step)" 60
		rm -r "$work/log"
	done
	# where both are hidden, a recorder in a PID namespace would end with it
	TMPDIR=$work/tmp "$record" --out "$work/log" -- unshare -n -m -p -f sh -c \
		'mount -t tmpfs none "$1"; exec "$0" quick 0' "$traced_program" "$work/tmp" 2>"$work/told"
	expect 'it is told' 'no log was written: .* the recorder could not be reached from where it runs$'
	equal 'nothing is left' "$(ls -A "$work/tmp")" ''
	TMPDIR=$work/tmp IDLE_JOB=$work "$record" -q --out "$work/log" -- "$traced_program" spin-for 900 2>/dev/null &
	pid=$!
	i=0
	while [ $i -lt 200 ] && [ ! -S "$(echo "$work"/tmp/*/socket)" ]; do
		sleep 0.01
		i=$((i + 1))
	done
	recorder=$(of_this_job | sed -n 's/^tacho-recorder //p')
	equal 'for this user alone' "$(stat -c %a "$work"/tmp/tacho-recorder.*)" 700
	TMPDIR=$work/tmp "$record" -q --out "$work/log" -- true
	equal 'in use' "$(ls "$work/tmp" | wc -l)" 1
	kill -9 $recorder $pid
	wait $pid 2>/dev/null
	i=0
	while [ $i -lt 50 ] && [ "$(ls -A "$work/tmp")" ]; do # a writer may still have the socket for a moment
		sleep 0.1
		TMPDIR=$work/tmp "$record" -q --out "$work/log" -- true
		i=$((i + 1))
	done
	equal 'nothing is left by the killed' "$(ls -A "$work/tmp")" ''
}
# Before its first event a process costs the recorder no process.
test_idle() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	IDLE_JOB=$work "$record" --out "$work/log" -- sh -c 'sleep 0.5; /bin/true; /bin/true' 2>"$work/told" &
	sleep 0.2
	of_this_job >"$work/names"
	wait
	expect 'no event' 'the program made no event'
	equal 'the recorder' "$(grep -c tacho-recorder "$work/names")" 1
	equal writers "$(grep -c tacho-writer "$work/names")" 0
	equal logs "$(logs)" 0
	IDLE_JOB=$work "$record" -q --out "$work/log" -- "$traced_program" spin-for 600 >/dev/null 2>&1 &
	sleep 0.3
	of_this_job >"$work/names"
	wait
	equal 'with an event' "$(grep -c tacho-writer "$work/names")" 1
}

# What the rings of a process hold when it dies is in a log, exactly.
test_left() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	for act in quick segv abort; do
		"$record" -q --out "$work/log" -- "$traced_program" $act 3 >/dev/null 2>&1
		equal "steps before $act" "$(count_of step)" 5
		rm -r "$work/log"
	done
	"$record" -q --out "$work/log" -- "$traced_program" exec 7
	equal 'steps before and after exec' "$(count_of step)" 14
	expect 'open at the exec' '^sum kind=7 name=before exec count=1 early=0 open=1'
	rm -r "$work/log"
	"$record" -q --out "$work/log" -- "$traced_program" late-rank 0
	equal 'steps of a late rank' "$(count_of step)" 5
	expect 'a late rank' '^process pid=[0-9]+ rank=3 '
	rm -r "$work/log"
	TACHO_SOCK=@tacho-recorder/nobody recorded all steps 12
	equal 'without a recorder' "$(count_of step)" 12
	rm -r "$work/log"
	for us in 0 0 50 700; do
		for seconds in 0.05 0.4 1.3; do
			rm -f "$work/counted"
			COUNTED=$work/counted "$record" -q --out "$work/log" -- sh -c \
				'"$0" counted $1 & sleep $2; kill -9 $!; wait' \
				"$traced_program" $us $seconds >/dev/null 2>&1
			made=$(od -An -t u8 "$work/counted" | tr -d ' ')
			got=$(count_of counted)
			lost=$(sed -n 's/^lost \([0-9]*\) .*/\1/p' "$work/told" | awk '{ n += $1 } END { print n + 0 }')
			equal "of $made records after $seconds s with $us, $got found and $lost lost" \
				$((got + lost >= made && got + lost <= made + 2)) 1
			rm -r "$work/log"
		done
	done
}

# Who hangs is told while it hangs, with what is open in it, and who has not come to a collective.
test_hang() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	command -v python3 >/dev/null || { skip='no python3'; return; }
	cat >"$work/out" <<'END'
import os, sys, time, tacho
# both begin together, however long each takes to start
open(sys.argv[0] + os.environ["RANK"], "w").close()
while not os.path.exists(sys.argv[0] + "10"[int(os.environ["RANK"])]):
    time.sleep(0.001)
for i in range(3):
    tacho.step()
    time.sleep(0.01)
if os.environ["RANK"] == "1": # it hangs so much later that it is told by itself
    time.sleep(0.4)
    tacho.step()
with tacho.phase("backward"), tacho.range("ncclAllReduce" if os.environ["RANK"] == "0" else "stuck"):
    time.sleep(2)
END
	"$record" -q --out "$work/log" --save-on hang=500ms -- sh -c \
		'RANK=0 WORLD_SIZE=3 python3 "$0" & RANK=1 python3 "$0"; wait; echo over >&2' "$work/out" 2>"$work/told"
	expect 'who hangs' '^tacho: rank 0, process [0-9]+: step 2 hangs: it has not ended for '
	expect 'what is open' '^tacho:   thread [0-9]+ python3.*: phase backward, in it collective ncclAllReduce$'
	expect 'in the other' '^tacho:   thread [0-9]+ python3.*: phase backward, in it range stuck$'
	command -v py-spy >/dev/null ||
		expect 'a stack' "^tacho:       <module> \($work/out:13\)\$"
	expect 'who is waited for' \
		'^tacho: rank 0 waits in allreduce, to which rank 1 has not come; 1 of 3 ranks are not recorded here$'
	equal 'at once' "$(tail -1 "$work/told")" over
	for rank in 0 1; do
		equal "once of rank $rank" "$(grep -c "rank $rank, process.* hangs" "$work/told")" 1
	done
	for rank in 0 1; do
		"$dump" "$work/log/"*.r$rank.*.0.tacho >"$work/told"
		expect "a stack in the log of rank $rank" "^about hang_stacks=.*<module> \\($work/out:13\\)"
	done
	"$analyze" "$work/log" -f md >"$work/told"
	expect 'the page begins with the rank that did not come' \
		'^> \*\*! HANG\*\* Rank 1 hung: step 3 had not ended for [0-9]+ms; thread [0-9]+ python3: phase backward, in it range stuck\. Python was in '
	expect 'and has the one that waits' '^> \*\*! HANG\*\* Rank 0 hung: .* in it collective ncclAllReduce, to which rank 1 had not come\. '
	equal 'nothing was cut off' "$(grep -c ' cut off in ' "$work/told")" 0
}

# Without hang= too the page names what was open when a job was killed, but not of one that ended.
test_hang_killed() {
	command -v python3 >/dev/null || { skip='no python3'; return; }
	cat >"$work/out" <<'END'
import os, sys, time, tacho
for i in range(4):
    tacho.step()
    time.sleep(0.01)
rank = int(os.environ["RANK"])
with tacho.phase("backward"), tacho.range("stuck" if rank == 1 else "ncclAllReduce"):
    time.sleep(1.3)
    if len(sys.argv) == 1:
        os.kill(os.getpid(), 9)
END
	for arg in '' ends; do
		"$record" -q --out "$work/log$arg" -- sh -c \
			'for RANK in 0 1 2; do export RANK; python3 "$0" $1 & done; wait' "$work/out" $arg 2>/dev/null
		"$analyze" "$work/log$arg" -f md >"$work/told"
		[ -z "$arg" ] || break
		equal 'first' "$(grep -m1 -o 'CUT OFF.*open for' "$work/told")" \
			'CUT OFF** Rank 1 was cut off in step 3, which was open for'
		expect 'what is open' 'CUT OFF\*\* Rank 1 .* times as long as usual: phase backward, in it stuck\.$'
		expect 'who waits' 'CUT OFF\*\* Rank 0 .*: phase backward, in it ncclAllReduce, to which rank 1 had not come\.$'
	done
	equal 'a program that ends did not hang' "$(grep -c 'CUT OFF\|HANG' "$work/told")" 0
}

# Python prints its stacks itself only where a signal for that is named, and who does not handle it
# does not get it.
test_hang_signal() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	command -v python3 >/dev/null || { skip='no python3'; return; }
	echo 'import time, tacho; tacho.step(); time.sleep(3)' >"$work/out"
	"$record" -q --out "$work/log" --save-on hang=500ms,stacks=USR2 -- python3 "$work/out" 2>"$work/told"
	equal status $? 0
	expect 'it was sent' '^tacho:   signal 12 was sent'
	expect 'by faulthandler' "^  File \"$work/out\", line 1 in <module>"
	"$record" -q --out "$work/log" --save-on hang=200ms,stacks=USR2 -- "$traced_program" silent 900 2>"$work/told"
	equal 'status of who does not handle it' $? 0
	expect 'it was not sent' '^tacho:   signal 12 was not sent'
}

# What a sandboxed kernel lacks costs what --doctor says, and no event.
test_without() {
	for need in memfd noexec seals place wipe memfd,wipe,place peer peer,fd_open; do
		TACHO_WITHOUT=$need recorded all steps 12
		tell 0
		expect "whole without $need" '^log whole=1 .* unread=0'
		expect "steps without $need" '^sum kind=10 name=step count=12 early=0 open=0'
		rm -r "$work/log"
	done
	TACHO_WITHOUT=seals,wipe "$record" --doctor >"$work/told" 2>&1
	expect seals '^memory    without file seals'
	expect wipe '^          without MADV_WIPEONFORK'
	TACHO_WITHOUT=peer,fd_open,readv "$record" --doctor >"$work/told" 2>&1
	expect peer '^watching  without SO_PEERPIDFD'
	expect fd_open '^          without pidfd_open'
	expect readv '^          without process_vm_readv'
	"$record" --doctor >"$work/told" 2>&1
	expect watching '^watching  (by pidfd|without )'
	expect all '^memory    (shared by memfd, sealed, wiped in children|without )'
}

test_same_results() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	train=$B/samples/train_mlp
	[ -x "$train" ] || { skip='no train_mlp'; return; }
	"$train" --quiet --steps 60 >"$work/a"
	"$record" -q --out "$work/log" -- "$train" --quiet --steps 60 >"$work/b"
	equal 'loss and accuracy' "$(cat "$work/b")" "$(cat "$work/a")"
	tell 0
	for phase in data forward backward optimizer; do
		expect $phase "^sum kind=7 name=$phase count=60 early=0 open=0"
	done
}

test_python() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	command -v python3 >/dev/null || { skip='no python3'; return; }
	TACHO_WINDOW=all TACHO_OUT=$work/log TACHO_LIBRARY=$B/libtacho.so \
		python3 tests/collector/script.py "$B" >"$work/told" 2>&1
	equal status $? 0
	[ "$(logs)" = 1 ] || { equal logs "$(logs)" 1; cat "$work/told"; return; }
	tell 0
	expect whole '^log whole=1'
	expect steps '^sum kind=10 name=step count=10'
	expect phases '^sum kind=7 name=forward count=10 '
	expect decorator '^sum kind=7 name=decorated count=3 '
	expect counter '^sum kind=14 name=loss count=10 '
	TACHO_LIBRARY=/none python3 tests/collector/script.py "$B" >"$work/told" 2>&1
	equal 'status without the library' $? 0
}

# The sample is what it says: it learns, the same for a seed, and a slow step shows where it was.
test_train() {
	train=$B/samples/train_mlp
	"$train" --steps 150 >"$work/out"
	awk '/ loss / { if (!n++) first = $4; last = $4 }
		END { exit !(n == 3 && first < 1 && last < first / 2) }' "$work/out"
	equal 'the loss falls' $? 0
	"$train" --steps 50 --seed 3 >"$work/a"
	"$train" --steps 50 --seed 3 >"$work/b"
	equal 'the same seed' "$(cat "$work/a")" "$(cat "$work/b")"
	"$train" --steps 50 --seed 4 >"$work/b"
	equal 'another seed' "$(cmp -s "$work/a" "$work/b" || echo differs)" differs
	TACHO_WINDOW=steps:10-30 TACHO_OUT=$work/log "$train" --quiet --steps 40 --slow 20:1000 \
		>/dev/null
	"$B/tacho-analyze" -q "$work/log" -r steps -f csv | sort -t , -k 6 -rn >"$work/told"
	expect 'the slow step' '^([^,]*,){3}20,[0-9]*,1[0-9]{9},,true'
	equal 'is the longest' "$(head -n 1 "$work/told" | cut -d , -f 4)" 20
	"$B/tacho-analyze" -q "$work/log" --steps 20 -r phases -f csv >"$work/told"
	expect 'in its data phase' ',data,1,1[0-9]{9},'
	"$B/tacho-analyze" -q "$work/log" --steps 19 -r phases -f csv >"$work/told"
	expect 'and only there' ',data,1,[0-9]{1,9},'
}

# As a stranger would: what is installed, and a program with `import tacho` and nothing else.
test_installed() {
	[ "$sanitized" = 0 ] || { skip='sanitized'; return; }
	command -v python3 >/dev/null || { skip='no python3'; return; }
	make -s install B="$given" DESTDIR="$work/dest" PREFIX=/usr >"$work/out" 2>&1
	equal 'make install' $? 0
	cat >"$work/train.py" <<-'PY'
	import tacho
	for batch in range(30):
	    tacho.step()
	    with tacho.phase("data"):
	        pass
	    with tacho.phase("forward"):
	        sum(range(20000))
	PY
	for bin in "$B" "$work/dest/usr/bin"; do
		(cd "$work" && "$bin/tacho-record" -q --out log --window steps:10-20 -- \
			python3 train.py)
		equal "status with $bin" $? 0
		tell 0
		expect steps '^sum kind=10 name=step count=10'
		expect phases '^sum kind=7 name=forward count=10'
		"$bin/tacho-analyze" -q "$work/log" -r phases -f csv >"$work/told"
		expect 'a row of the report' ',forward,9,'
		"$bin/tacho-convert" -q "$work/log" -t chrome | python3 -m json.tool >/dev/null
		equal 'chrome JSON' $? 0
		rm -r "$work/log"
	done
	mkdir "$work/mine"
	echo 'mine = 1' >"$work/mine/tacho.py"
	(cd "$work" && PYTHONPATH=$work/mine "$B/tacho-record" -q --out log -- \
		python3 -c 'import sys, tacho; print(tacho.mine, *sys.path)') >"$work/told"
	equal 'what the user has set comes first, and the path is as it was' "$(cat "$work/told")" \
		"1 $(cd "$work" && PYTHONPATH=$work/mine python3 -c 'import sys; print(*sys.path)')"
	${CC:-cc} -x c - -o "$work/program" -I"$work/dest/usr/include" -L"$work/dest/usr/lib" -ltacho \
		<<-'C'
	#include <tacho.h>
	int main(void)
	{
		tacho_step();
		return 0;
	}
	C
	equal 'a program builds with what is installed' $? 0
}

names=${*:-$(sed -n 's/^test_\([a-z_]*\)() {$/\1/p' "$0")}
. "$(dirname "$0")/rows.sh"
rows_run collector $names
