# SPDX-License-Identifier: Apache-2.0
# What a shell sees.
n=0 m=0
case $1 in
exit) exit 7 ;;
child) sh -c 'exit 4'; echo $? ;;
pipe) seq 100000 | head -n 1; set -- "$(printf x | cat)"; echo "$1" ;;
job) sleep 0.1 & wait $!; echo $?; (exit 3); echo $? ;;
count)
	trap 'n=$((n + 1))' TERM
	trap 'm=$((m + 1))' USR1
	echo ready
	i=0
	while [ $i -lt 400 ] && [ $n$m = 00 ]; do sleep 0.02; i=$((i + 1)); done
	i=0
	while [ $i -lt 12 ]; do sleep 0.02; i=$((i + 1)); done
	echo "$n $m" ;;
work) echo ready; i=0; while [ $i -lt 200 ]; do sleep 0.02; i=$((i + 1)); done; exit 77 ;;
esac
