#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training job under Slurm that is recorded: sbatch slurm.sh train.py [ARGUMENT...]
#
# It records ten steps of every rank, after the start of the job. Adapt the resources only.
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@120
# TERM arrives two minutes before the end; logs are complete within two seconds of it.
set -euo pipefail

# The rank is SLURM_PROCID; each rank writes its own <host>.r<rank>.p<pid>.<window>.tacho.
logs=${LOGS:-$SLURM_SUBMIT_DIR/tacho-logs/$SLURM_JOB_ID}
mkdir -p "$logs"

status=0
srun --kill-on-bad-exit=1 tacho-record --out "$logs" --window "${WINDOW:-steps:100-110}" \
	--max-disk 2G -- python3 "$@" || status=$?

# Print the report into the job's output; keep the logs for tacho-convert on a workstation.
tacho-analyze "$logs" --quiet || true
exit $status
