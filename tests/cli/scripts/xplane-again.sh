# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t tensorboard -o xa -q &&
	$bin/tacho-convert xa/plugins -t tensorboard -o xb -q &&
	$bin/tacho-convert xb/plugins -t text -q | grep -c -e sgemm -e cudaLaunchKernel
