# SPDX-License-Identifier: Apache-2.0
$bin/tacho-analyze -q --partial p2 two/rank0.json &&
	$bin/tacho-analyze -q --partial p3 two/small.json &&
	$bin/tacho-analyze --merge p3 p2 -f json >p.json &&
	$bin/tacho-analyze two -f json -q | cmp - p.json
