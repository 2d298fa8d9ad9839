/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - tacho-record --doctor: what works on this machine.  Part of the tool. */
#ifndef COLLECTOR_RECORD_DOCTOR_H
#define COLLECTOR_RECORD_DOCTOR_H

struct buf;
struct config;

/* Loads `library` into this process for good. */
void record_doctor(const struct config *c, const char *library, struct buf *out);

#endif
