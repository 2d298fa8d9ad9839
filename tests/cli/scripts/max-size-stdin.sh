# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t chrome -o ms3.json --max-size 2800 -q &&
	$bin/tacho-convert - -t chrome -o ms4.json --max-size 2800 -q <small.json.gz &&
	cmp ms3.json ms4.json
