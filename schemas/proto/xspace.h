/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xspace.h - field numbers of an XSpace for who reads or writes it event by event
 * (schemas/base/pb.h), and the names that its readers look for.  Constant data.
 *
 * schemas/proto/xspace.proto has the same for protobuf-c; a test compares the two.
 */
#pragma once

enum { SPACE_PLANES = 1, SPACE_ERRORS = 2, SPACE_WARNINGS = 3, SPACE_HOSTNAMES = 4 };
enum {
	PLANE_ID = 1,
	PLANE_NAME = 2,
	PLANE_LINES = 3,
	PLANE_EVENT_METADATA = 4,
	PLANE_STAT_METADATA = 5,
	PLANE_STATS = 6,
};
enum {
	LINE_ID = 1,
	LINE_NAME = 2,
	LINE_TIMESTAMP_NS = 3,
	LINE_EVENTS = 4,
	LINE_DURATION_PS = 9,
	LINE_DISPLAY_ID = 10,
	LINE_DISPLAY_NAME = 11,
};
enum {
	XEVENT_METADATA_ID = 1,
	XEVENT_OFFSET_PS = 2,
	XEVENT_DURATION_PS = 3,
	XEVENT_STATS = 4,
	XEVENT_OCCURRENCES = 5,
};
enum {
	XSTAT_METADATA_ID = 1,
	XSTAT_DOUBLE = 2,
	XSTAT_UINT64 = 3,
	XSTAT_INT64 = 4,
	XSTAT_TEXT = 5,
	XSTAT_BYTES = 6,
	XSTAT_REF = 7,
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum {
	EVENT_META_ID = 1,
	EVENT_META_NAME = 2,
	EVENT_META_DISPLAY_NAME = 4,
	EVENT_META_STATS = 5,
};
enum { STAT_META_ID = 1, STAT_META_NAME = 2 };

#define XPLANE_HOST   "/host:CPU"
#define XPLANE_GPU    "/device:GPU:"
#define XPLANE_CUSTOM "/device:CUSTOM:"
/* Our own line for events on streams that are no GPU work; " of GPU N" follows. */
#define XPLANE_WAITS       XPLANE_CUSTOM "Waits and annotations"
#define XPLANE_ENVIRONMENT "Task Environment"
#define XPLANE_METADATA    "/host:metadata"

/* A program of XLA in that plane: the bytes of this stat of an event's name.  In our tables it is
 * an attribute of the process, whose key goes on with the number of the program, a dot and its
 * name. */
#define XSTAT_PROGRAM      "Hlo Proto"
#define XSPACE_PROGRAM_KEY ".hlo."
/* Stats of the environment: who traced has the one, and we write the other as well. */
#define XSTAT_PROFILE_START "profile_start_time"
#define XSTAT_CONVERTED_BY  "converted_by"

/* Lines that a viewer derives have ids from here on, as XProf stores them: 0xdeadbeef as an int. */
#define XLINE_DERIVED_FIRST (-559038737)
#define XLINE_DERIVED_COUNT 4096
#define XLINE_COUNTERS      "_counters_"
/* Our own line of a GPU's waits for the next batch, which stand there as copies. */
#define XLINE_INPUT "Waiting for input"
/* Lines of a TPU whose events are its work. */
#define XLINE_OPS       "XLA Ops"
#define XLINE_ASYNC_OPS "Async XLA Ops"
/* Suffix of a stat whose name would be taken for a member of one of our events. */
#define XSPACE_KEY_SUFFIX "_stat"

/* Our own stats of a name: the class of a range, the kind of what XProf has no word for. */
#define XSTAT_CLASS_NAME "range_class"
#define XSTAT_KIND_NAME  "event_kind"

/* A key of a device in our tables, and the plane's stat with the same meaning. */
/* clang-format off */
#define XSPACE_DEVICE_LIST(X)                  \
	X("totalGlobalMem", "memory_size")     \
	X("numSms", "core_count")              \
	X("computeMajor", "compute_cap_major") \
	X("computeMinor", "compute_cap_minor") \
	X("clockRateKHz", "clock_rate")
/* clang-format on */
