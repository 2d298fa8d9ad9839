# SPDX-License-Identifier: Apache-2.0
# An output that would replace an input is refused (exit 2), under whatever name; the input stays.
rm -rf oi && mkdir -p oi/in oi/out && cp small.json oi/in/a.json && tar cf oi/a.tar small.json
ln oi/in/a.json oi/hard.json && ln -s in/a.json oi/soft.json && ln -s in oi/folder
refused() { # the outputs of a command are compared as one text
	"$@" >oi/said 2>&1
	[ $? = 2 ] && grep -q 'is an input' oi/said || echo "not refused: $* ($(cat oi/said))"
}
for o in in/a.json hard.json soft.json folder/a.json; do
	refused $bin/tacho-convert oi/in/a.json -t csv -o oi/$o
	refused $bin/tacho-analyze oi/in/a.json -o oi/$o
done
refused $bin/tacho-convert oi/in -t chrome -o oi/in/a.json
refused $bin/tacho-convert oi/a.tar:small.json -t log -o oi/a.tar
refused $bin/tacho-analyze oi/in --partial oi/in/a.json
$bin/tacho-convert - -t chrome -o oi/in/a.json <oi/in/a.json 2>/dev/null
[ $? = 2 ] || echo "not refused: standard input"
$bin/tacho-convert oi/in/a.json -t chrome >>oi/in/a.json 2>/dev/null
[ $? = 2 ] || echo "not refused: standard output"
$bin/tacho-convert oi/in/a.json -t chrome -q -o oi/out/ && cp oi/out/* oi/in/
refused $bin/tacho-convert oi/in/a.json oi/in/node* -t chrome -o oi/in
$bin/tacho-analyze oi/in/a.json --partial oi/a.partial -q
refused $bin/tacho-analyze --merge oi/a.partial -o oi/a.partial
cmp oi/in/a.json small.json && tar tf oi/a.tar && ls oi oi/in oi/out
