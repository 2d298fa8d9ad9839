# SPDX-License-Identifier: Apache-2.0
$bin/tacho-record -w steps:1-2 --no-nvtx --finalize yes --workers --trace-python --no-enabled --graphs node --cupti-buffer 1M --cupti-lib /x --print-config >ru.json &&
	$bin/tacho-record --config ru.json --print-config | cmp - ru.json &&
	grep -c '"steps:1-2"' ru.json
