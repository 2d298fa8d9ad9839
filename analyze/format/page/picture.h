/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h - data of the blocks that are pictures: steps and memory over time, flame graphs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct step_timeline { /* one step over time */
	uint64_t step;
	const char *host, *gpu; /* letters or bins of the table `strips`; gpu NULL: no GPU */
	double wall_ns;
};
struct curve_mark {
	uint64_t number, ns;
};
struct curve { /* a level of memory over time */
	const char *points;
	uint64_t begin_ns, width_ns, peak_ns, peak_bytes, reserved_bytes;
	const char *peak_phase;
	bool is_absolute; /* false: relative to the begin of the window */
	struct curve_mark *steps;
	size_t step_count;
};

struct flame_box {
	const char *name, *class; /* class: its colour */
	uint64_t depth;           /* 1: outermost */
	double at_ns, ns;
};

/* A matrix of figures, drawn as colours from 1 to the greatest; NAN: no value. */
struct heat {
	const char *rows, *columns, **row_names, **names;
	double *values; /* by row, then column */
	size_t row_count, count;
};

/* Positions are percentages of the picture, from its left and upper edges. */
struct roof { /* a peak of arithmetic, from where memory is no longer the limit */
	const char *text;
	double rate, x, y;
};
struct roof_dot { /* an operator */
	const char *name, *title;
	double x, y, radius; /* radius: pixels */
	bool is_memory;      /* limited by memory */
};

struct roofline {
	const struct roof *roofs;
	const struct roof_dot *dots;
	size_t roof_count, count;
	double slope_y, top_x, top_y; /* left and right end of the memory line */
	const char *memory;
	int from, to; /* FLOPs per byte at both edges, as exponents of 2 */
};
