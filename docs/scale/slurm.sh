#!/bin/bash
# A sweep as a Slurm array job, one shard a task. Submit it, and merge when all tasks are done:
#
#   jobid=$(sbatch --parsable --array=1-16 slurm.sh grid.toml /shared/grid)
#   sbatch --dependency=afterok:"$jobid" --wrap="batchsim merge /shared/grid -o /shared/grid/whole"
#
# The array must start at 1: task i computes shard i of as many as the array has. A task that runs
# out of time is sent SIGTERM a minute before, saves what is complete and, requeued or submitted
# again, goes on from there. BATCHSIM names the program where it is not in the PATH.
#SBATCH --job-name=batchsim
#SBATCH --cpus-per-task=8
#SBATCH --mem=2G
#SBATCH --time=01:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
set -eu

scenario=$1
output=$2

# `exec`, so that the signal reaches the program.
exec "${BATCHSIM:-batchsim}" sweep "$scenario" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --output "$output" --jobs "${SLURM_CPUS_PER_TASK:-1}" --progress never
