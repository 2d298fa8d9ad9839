# SPDX-License-Identifier: Apache-2.0
rm -f fetched
$bin/tacho-convert cut.json -t perfetto -q -o pc.pftrace 2>/dev/null
PATH=$scratch/browser:$PATH $bin/tacho-convert cut.json -t perfetto --open -q
rc=$?
i=0
until test -e fetched || test $i = 50
do sleep 0.1
i=$((i + 1))
done
cmp fetched pc.pftrace &&
	exit $rc
