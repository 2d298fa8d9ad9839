#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes one report over more recordings than one node should read: each task of an array reads a
# share of them, and a last job merges the results.  The page is byte for byte that of a single
# tacho-analyze over all recordings.
#
#	sh slurm-array.sh /shared/recordings 16
#
set -eu
recordings=${1:?folder of recordings}
tasks=${2:-16}
parts=${3:-$recordings/partial}
mkdir -p "$parts"

array=$(sbatch --parsable --array="0-$((tasks - 1))" --job-name=tacho-partial <<JOB
#!/bin/sh
set -eu
i=0
set --
for f in "$recordings"/*.tacho; do
	[ \$((i % $tasks)) = "\$SLURM_ARRAY_TASK_ID" ] && set -- "\$@" "\$f"
	i=\$((i + 1))
done
[ \$# = 0 ] || tacho-analyze --quiet --partial "$parts/\$SLURM_ARRAY_TASK_ID.part" "\$@"
JOB
)

# afterany: the report also includes damaged inputs, and names them
sbatch --dependency="afterany:$array" --job-name=tacho-merge <<JOB
#!/bin/sh
set -eu
tacho-analyze --merge "$parts"/*.part --format html --output "$recordings/report.html"
JOB
