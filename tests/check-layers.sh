#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which file may include which: one row per group, first match wins.  Quoted includes are paths
# from the root.  A tool's main.c and its room main/ are the roof and may include anything; nobody includes it.
set -eu
bad=0
files=0
rules() {
	cat <<-'ROWS'
	*/main.c            .*
	*/main/*            .*
	schemas/*           schemas/
	collector/window*   collector/window schemas/
	collector/cupti/*   collector/(cupti/|nvtx/names|comm|config|names|tick|writer) schemas/
	collector/nvtx/*    collector/(nvtx/|comm|lane|names|ring|session|tick|writer) schemas/
	collector/*         collector/ schemas/
	convert/source_*    convert/(source|input|cut|merge|spool|ahead|json/|kineto/|log/|xplane/|nsys/) schemas/
	convert/sink*       convert/(sink|pump|source|out|temporary|gzip|spool|cut|chrome/|perfetto/|tensorboard/|sqlite_|bundle_) schemas/
	convert/chrome/*    convert/(chrome/|out) schemas/
	convert/perfetto/*  convert/(perfetto/|out) schemas/
	convert/tensorboard/* convert/(tensorboard/|sink|pump|source|out|spool) schemas/
	convert/gzip.*      convert/(gzip|ahead) schemas/
	convert/sqlite_*    convert/(sqlite_|out) schemas/
	convert/bundle_*    convert/(bundle_|out) schemas/
	convert/out.*       convert/(out|gzip|ahead|temporary) schemas/
	convert/*           convert/(input|source|merge|step|link|collective|cut|spool|ahead|pump|name|options|gzip|progress|temporary|json/|kineto/|log/|xplane/|nsys/|align|detail) schemas/
	analyze/rule*       analyze/(rule|report|table) schemas/
	analyze/report_findings* analyze/(rule|report|table) schemas/
	analyze/report_*    analyze/(report|table|sweep|hist|comm/|frontier/) convert/(pump|source|step|link|collective|name|cut) schemas/
	analyze/report/*    analyze/(report|table|sweep|hist) convert/(pump|source|step|link|collective|name|cut) schemas/
	analyze/comm/*      analyze/(report|table|sweep|hist|comm/) convert/(pump|source|step|link|collective|name|cut) schemas/
	analyze/frontier/*  analyze/(report|table|sweep|hist|frontier/) convert/(pump|source|step|link|collective|name|cut) schemas/
	analyze/*           analyze/ convert/(ahead|input|source|merge|step|link|collective|cut|spool|pump|name|options|progress|out|temporary|align|detail) schemas/
	ROWS
}
for f in $(find schemas collector convert analyze -name '*.[ch]' | sort); do
	files=$((files + 1))
	allowed=$(rules | while read -r pattern list; do
		# shellcheck disable=SC2254
		case $f in $pattern) echo "$list"; break ;; esac
	done | tr ' ' '|')
	if grep -HnE '^# *include "' "$f" | grep -vE "\"($allowed)"; then
		echo "$f may include only: $allowed" >&2
		bad=$((bad + 1))
	fi
	case $f in */main.c | */main/*) continue ;; esac # parts of a roof stand under one roof
	if grep -HnE '^# *include "(convert|analyze|collector)/main[./]' "$f"; then
		echo "$f includes a roof" >&2
		bad=$((bad + 1))
	fi
done
# Each floor links against those below it and nothing else.
echo "layers: $((files - bad)) passed, $bad failed"
[ "$bad" = 0 ]
