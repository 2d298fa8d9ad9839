/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_check.h - whether a text is one JSON value, so that it may be written verbatim.
 */
#ifndef SCHEMAS_BASE_JSON_CHECK_H
#define SCHEMAS_BASE_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* RFC 8259, in UTF-8, blanks around it allowed, nested at most 64 deep. */
bool json_is_value(const char *text, size_t len);

#endif
