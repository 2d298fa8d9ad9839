/* SPDX-License-Identifier: Apache-2.0 */
/* health.h - the columns of the table `health`, for the rules that use it. */
#pragma once

#include "analyze/engine/report.h"

#define HEALTH_COLUMNS(X)                                                                          \
	X(HEALTH_DEVICE = RANK_KEYS, "device", "GPU", U64, KEY, "device number")                   \
	X(HEALTH_SAMPLES, "samples", "samples", U64, SUM, "number of samples")                     \
	X(HEALTH_BUSY, "busy_samples", "busy", U64, SUM,                                           \
	  "samples with a GPU utilization of at least 50 %, or an unknown one")                    \
	X(HEALTH_CLOCK, "sm_clock_mhz", "MHz", F64, DERIVED,                                       \
	  "mean clock of the multiprocessors in busy samples")                                     \
	X(HEALTH_CLOCK_SUM, "sm_clock_sum_mhz", NULL, U64, SUM, "sum of clocks of busy samples")   \
	X(HEALTH_BASE, "sm_clock_base_mhz", "base", U64, MAX, "base clock; 0: unknown")            \
	X(HEALTH_MOST, "sm_clock_max_mhz", "at most", U64, MAX, "maximum clock; 0: unknown")       \
	X(HEALTH_POWER, "power_samples", "by power", U64, SUM,                                     \
	  "busy samples throttled by the power limit")                                             \
	X(HEALTH_HEAT, "heat_samples", "by heat", U64, SUM, "busy samples throttled by heat")      \
	X(HEALTH_HARDWARE, "hardware_samples", "by hardware", U64, SUM,                            \
	  "busy samples throttled by the board")                                                   \
	X(HEALTH_HOTTEST, "temperature_celsius", "C", U64, MAX, "highest temperature when busy")   \
	X(HEALTH_DRAWN, "power_watts", "W", U64, MAX, "highest power when busy")                   \
	X(HEALTH_LIMIT, "power_limit_watts", "limit", U64, MAX, "power limit; 0: unknown")         \
	X(HEALTH_WIDTH, "pcie_width", "lanes", U64, MAX, "most PCIe lanes when busy")              \
	X(HEALTH_WIDTH_MAX, "pcie_width_max", "of", U64, MAX,                                      \
	  "PCIe lanes that GPU and slot support; 0: unknown")                                      \
	X(HEALTH_GENERATION, "pcie_generation", "PCIe", U64, MAX,                                  \
	  "highest PCIe generation of busy samples")                                               \
	X(HEALTH_GENERATION_MAX, "pcie_generation_max", "of", U64, MAX,                            \
	  "PCIe generation that GPU and slot support; 0: unknown")                                 \
	X(HEALTH_XID, "xid_errors", "Xid", U64, MAX, "critical errors (Xid) while recording")      \
	X(HEALTH_ECC, "ecc_uncorrected", "ECC", U64, MAX,                                          \
	  "uncorrectable memory errors since the driver was loaded")
enum { HEALTH_COLUMNS(COLUMN_PLACE) };
