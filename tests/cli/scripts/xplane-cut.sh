# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t tensorboard -o xc -q &&
	head -c 900 xc/plugins/profile/*/*.pb >cut.xplane.pb &&
	$bin/tacho-convert cut.xplane.pb -t text -o xc.txt; rc=$?; test -s xc.txt &&
	exit $rc
