# SPDX-License-Identifier: Apache-2.0
rm -f fetched
PATH=$scratch/browser:$PATH $bin/tacho-convert small.json -t perfetto --open --viewer http://localhost:10000 -o 'my trace.pftrace' 2>open.err
rc=$?
sed 's|/[0-9a-f]\{32\}/|/TOKEN/|' open.err
cmp 'my trace.pftrace' a.pftrace &&
	exit $rc
