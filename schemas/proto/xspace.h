/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xspace.h - field numbers of an XSpace, for code that reads or writes single events by
 * schemas/base/pb.h, and the names that its readers look for.
 *
 * schemas/proto/xspace.proto has the same numbers for protobuf-c; a test compares the two.
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
/* Our line for events on streams that are not GPU work; " of GPU N" follows. */
#define XPLANE_WAITS       XPLANE_CUSTOM "Waits and annotations"
#define XPLANE_ENVIRONMENT "Task Environment"
#define XPLANE_METADATA    "/host:metadata"

/* The metadata plane has an XLA program in this stat of an event's name.  In our tables the program
 * is an attribute of the process; its key is the prefix, the number of the program, a dot and its
 * name. */
#define XSTAT_PROGRAM      "Hlo Proto"
#define XSPACE_PROGRAM_KEY ".hlo."
/* Stats of the environment plane: tracers write the first one, and we also write the second one. */
#define XSTAT_PROFILE_START "profile_start_time"
#define XSTAT_CONVERTED_BY  "converted_by"

/* Lines that viewers derive have ids from here on, as XProf stores them: 0xdeadbeef as an int. */
#define XLINE_DERIVED_FIRST (-559038737)
#define XLINE_DERIVED_COUNT 4096
#define XLINE_COUNTERS      "_counters_"
/* Our line for a GPU's waits for the next batch, which are copied to it. */
#define XLINE_INPUT "Waiting for input"
/* The lines of a TPU that have its work. */
#define XLINE_OPS       "XLA Ops"
#define XLINE_ASYNC_OPS "Async XLA Ops"
/* Suffix of a stat whose name would look like a member of one of our events. */
#define XSPACE_KEY_SUFFIX "_stat"

/* Our stats of a name: the class of a range, and the kind if XProf has no word for it. */
#define XSTAT_CLASS_NAME "range_class"
#define XSTAT_KIND_NAME  "event_kind"

/* Each row is a key of a device in our tables and the stat of a plane with the same meaning. */
/* clang-format off */
#define XSPACE_DEVICE_LIST(X)                  \
	X("totalGlobalMem", "memory_size")     \
	X("numSms", "core_count")              \
	X("computeMajor", "compute_cap_major") \
	X("computeMinor", "compute_cap_minor") \
	X("clockRateKHz", "clock_rate")
/* clang-format on */
