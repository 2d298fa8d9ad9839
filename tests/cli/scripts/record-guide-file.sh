# SPDX-License-Identifier: Apache-2.0
echo '{"profiling": {"enabled": true, "output_dir": "o", "active_steps": 2, "repeat_cycles": 1}}' >rq.json &&
	$bin/tacho-record --config rq.json --print-config | grep -E '"(window|out|enabled)":'
