# SPDX-License-Identifier: Apache-2.0
for t in perfetto tensorboard sqlite csv bundle; do script -qec "sh -c '{ cat small.json; sleep 1.5; } | $bin/tacho-convert - -t $t -o pr-$t.zip'" /dev/null </dev/null | tr '\r' '\n' | grep -c -m 1 'MB'; done
