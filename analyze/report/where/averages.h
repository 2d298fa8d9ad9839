/* SPDX-License-Identifier: Apache-2.0 */
/* averages.h - the figures of PyTorch's key_averages(), for --compat pytorch. */
#pragma once

#include "analyze/engine/report.h"

/* The second leaves Python functions out: PyTorch 2.5 knows none there, 2.13 does. */
extern const struct report_type report_compat_pytorch, report_compat_pytorch_ops;
