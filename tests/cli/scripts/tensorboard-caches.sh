# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t tensorboard -o tc -q &&
	cd tc/plugins/profile/* &&
	touch .cached_tools.json cache_version.txt node7-r1.SSTABLE x.hlo_proto.pb mine.txt &&
	cd - >/dev/null &&
	$bin/tacho-convert small.json -t tensorboard -o tc -q &&
	ls -A tc/plugins/profile/*
