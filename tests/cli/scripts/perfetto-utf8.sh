# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert utf8.json -t perfetto -o u8.pftrace &&
	python3 -c 'd = open("u8.pftrace", "rb").read()
print(d.count(b"aten::\xef\xbf\xbd\xef\xbf\xbd\x01mm"), b"\xff\xfe" in d)'
