# SPDX-License-Identifier: Apache-2.0
echo '{"window": "steps:1-3", "out": "rk", "quiet": true}' >rk.json &&
	$bin/tacho-record --config rk.json -- $bin/samples/train_mlp --steps 6 >/dev/null &&
	$bin/tacho-convert rk -t text -q | grep -o 'number=.*'
