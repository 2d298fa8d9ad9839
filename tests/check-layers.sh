#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which folder may include from which: one row per folder, the longest that a file lies in counts.
# Quoted includes are paths from the root.  A folder may always include from itself.
set -eu
bad=0
files=0
rules() {
	cat <<-'ROWS'
	schemas/base
	schemas/model              schemas/base
	schemas/log                schemas/(base|model)
	schemas/proto              schemas/base
	collector                  schemas
	collector/schedule         schemas
	collector/config           collector/schedule schemas
	collector/arena            schemas
	collector/session          collector/(arena|config|schedule) schemas
	collector/store            collector/(arena|config|schedule|session|probe) schemas
	collector/helper           collector/(arena|config|schedule|session|store|probe) schemas
	collector/control          collector/(config|schedule|session) schemas
	collector/probe            collector/(arena|config|schedule|session|store) schemas
	collector/probe/cupti      collector/(arena|config|schedule|session|store|probe) schemas
	collector/probe/nvtx       collector/(arena|config|schedule|session|store|probe) schemas
	collector/api              collector schemas
	collector/record           collector schemas
	collector/recorder         collector/(arena|config|control|helper|probe|session|store) schemas
	convert/base               schemas
	convert/input              convert/base schemas
	convert/spool              convert/(base|source) schemas
	convert/name               convert/base schemas
	convert/source             convert/(base|input|spool|name|stage) schemas
	convert/source/chrome      convert/(base|input|spool|name|stage|source) schemas
	convert/source/perfetto    convert/(base|input|spool|name|stage|source) schemas
	convert/stage              convert/(base|input|spool|name|source) schemas
	convert/output             convert/base schemas
	convert/sink               convert/(base|output|spool|stage|source|name) schemas
	convert/cli                convert analyze schemas
	analyze/timeline           convert/(stage|name|source) schemas
	analyze/cause              analyze/timeline convert/(stage|name|source) schemas
	analyze/engine             analyze/(timeline|cause|model) convert/(base|input|stage|name|source) schemas
	analyze/replay             convert/name schemas
	analyze/model              schemas
	analyze/report             analyze/(timeline|cause|engine|model|replay|findings) convert/(base|stage|name|source) schemas
	analyze/findings           analyze/(timeline|cause|engine|model|replay|report) convert/(base|stage|name|source) schemas
	analyze/format             analyze/(timeline|cause|engine|report|findings) convert/(base|stage|source|output) schemas
	analyze/explain            analyze/(timeline|cause|engine|report|findings|format) convert/(base|stage|source) schemas
	analyze/cli                analyze convert schemas
	ROWS
}
for f in $(find schemas collector convert analyze -name '*.[ch]' | sort); do
	files=$((files + 1))
	row=$(rules | awk -v f="$f" 'index(f, $1 "/") == 1 && length($1) > n { n = length($1); row = $0 } END { print row }')
	allowed=$(echo "$row" | tr -s '\t ' '|')
	if [ -z "$allowed" ]; then
		echo "$f lies in a folder without a row" >&2
		bad=$((bad + 1))
	elif grep -HnE '^# *include "' "$f" | grep -vE "\"($allowed)/"; then
		echo "$f may include only from: $allowed" >&2
		bad=$((bad + 1))
	elif grep -HnE '^# *include "[^"]*/(record/|internal\.h)' "$f" |
			grep -vE "\"${f%/*}/[^/]*\"|tests"; then
		echo "$f includes what is private to another folder" >&2
		bad=$((bad + 1))
	fi
done
echo "layers: $((files - bad)) passed, $bad failed"
[ "$bad" = 0 ]
