# SPDX-License-Identifier: Apache-2.0
$bin/tacho-record -q --out rc --window schedule:wait=1,warmup=1,active=2 -- $bin/samples/train_mlp --steps 6 >/dev/null &&
	$bin/tacho-convert rc -t text -q | grep -o 'number=.*'
