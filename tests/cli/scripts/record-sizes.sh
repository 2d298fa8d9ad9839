# SPDX-License-Identifier: Apache-2.0
$bin/tacho-record -q --memory 32M --buffer 64K --min-free 1M --max-disk 1G --totals --out rj -- $bin/samples/train_mlp --steps 3 >/dev/null &&
	$bin/tacho-convert rj -t text -q | grep -c ' step '
