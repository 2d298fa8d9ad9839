# SPDX-License-Identifier: Apache-2.0
$bin/tacho-record -q --kinds step --out rh -- $bin/samples/train_mlp --steps 3 >/dev/null &&
	$bin/tacho-convert rh -t text -q | grep -v '^#' | tr -s ' ' | cut -d ' ' -f 4 | sort -u
