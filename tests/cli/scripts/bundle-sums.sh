# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t bundle -q -o s.tar &&
	tar xf s.tar &&
	cd s &&
	python3 -c 'import json; [print(f["sha256"] + "  " + f["name"]) for f in json.load(open("manifest.json"))["files"]]' | sha256sum -c
