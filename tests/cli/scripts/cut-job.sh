# SPDX-License-Identifier: Apache-2.0
mkdir job &&
	cp small.json job/ &&
	sed s/1700000000000000000/1700000000000400000/ rank0.json >job/rank0.json &&
	$bin/tacho-convert job -t csv -q --from 500us --to 900us | cut -d, -f1-3,9 >job.csv &&
	$bin/tacho-convert job -t chrome -o job2 -q --from 500us --to 900us &&
	$bin/tacho-convert job2 -t csv -q | cut -d, -f1-3,9 | cmp - job.csv &&
	cat job.csv &&
	$bin/tacho-analyze job --report steps --format csv -q --from 500us --to 900us | cut -d, -f1-6
