# SPDX-License-Identifier: Apache-2.0
rm -f fetched
PATH=$scratch/browser:$PATH $bin/tacho-convert small.json -t perfetto --open -q
rc=$?
i=0
until test -e fetched || test $i = 50
do sleep 0.1
i=$((i + 1))
done
cmp fetched a.pftrace &&
	cat tries &&
	exit $rc
