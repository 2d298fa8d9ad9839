# SPDX-License-Identifier: Apache-2.0
# A small Nsight Systems export: tables that are not read are no lost records, CUDA events of older
# exports have no time, copies stand in the unit of the kernels above them, and workers of which only
# calls of libc are known are no ranks.
python3 - <<'PY'
import sqlite3

db = sqlite3.connect("nsys.sqlite")
process = 5 << 24
work = "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT"
db.executescript(f"""
CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES(1, 'sgemm'), (2, 'cudaLaunchKernel_v7000'), (3, 'cudaMemcpyAsync_v3020'), (4, 'read');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({work}, demangledName INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(2000, 67000, 0, 1, 7, 1, {process}, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY({work}, bytes INT, copyKind INT, srcKind INT, dstKind INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(70000, 131000, 0, 1, 7, 2, {process}, 65536, 1, 0, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(deviceId INT, contextId INT, streamId INT, globalPid INT);
INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(0, 1, 7, {process}), (0, 1, 7, {process});
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT, nameId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(1000, 1500, {process + 6}, 1, 2), (1600, 1900, {process + 6}, 2, 3);
CREATE TABLE OSRT_API(start INT, end INT, globalTid INT, nameId INT);
INSERT INTO OSRT_API VALUES(100, 9000, {(6 << 24) + 7}, 4), (200, 9900, {(8 << 24) + 8}, 4), (1000, 1100, {process + 6}, 4);
CREATE TABLE SCHED_EVENTS(start INT, cpu INT);
INSERT INTO SCHED_EVENTS VALUES(1, 2), (3, 4), (5, 6);
""")
db.commit()
PY
$bin/tacho-analyze nsys.sqlite | grep -e 'no step' -e 'The GPU' -e LOST -e KERNELS -e sgemm -e COPIES -e unread
$bin/tacho-analyze nsys.sqlite -r check | grep -e TRUST -e CARE -e losses -e 'not read'
