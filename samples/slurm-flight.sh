#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The flight recorder in a job under Slurm: sbatch slurm-flight.sh train.py [ARGUMENT...]
#
# The last seconds of each rank are kept in a ring and saved when a step takes over twice the
# median, when no step comes for ten minutes, when a rank dies, or on SIGUSR2.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=24:00:00
set -euo pipefail

logs=${LOGS:-$SLURM_SUBMIT_DIR/tacho-logs/$SLURM_JOB_ID}
mkdir -p "$logs"

# The ring is a mapped file: put it in memory or on a disk of the node, not on a network file system.
exec srun tacho-record --out "$logs" --ring "${RING:-64M}" --ring-dir "${TMPDIR:-/dev/shm}" \
	--save-on slow=2,hang=10m,signal,death -- python3 "$@"
