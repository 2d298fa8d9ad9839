/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/spool/scratch.h"

#include "convert/base/temporary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scratch {
	int fd;
	uint64_t size;
	const char *folder;
};

enum status scratch_open(struct scratch **out, const char *folder, struct error *err)
{
	struct scratch *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return fail_memory(err);
	s->folder = folder ? folder : "/tmp";
	s->fd = temporary_open(s->folder);
	if (s->fd < 0) {
		fail(err, ST_IO, NOWHERE, "temporary folder %s: %s", s->folder, strerror(errno));
		free(s);
		return ST_IO;
	}
	*out = s;
	return ST_OK;
}

void scratch_close(struct scratch *s)
{
	if (!s)
		return;
	close(s->fd);
	free(s);
}

enum status scratch_write(struct scratch *s, const void *bytes, size_t len, struct error *err)
{
	const char *at = bytes;
	ssize_t n;

	while (len) {
		n = pwrite(s->fd, at, len, (off_t)s->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(err, ST_IO, NOWHERE, "temporary folder %s: %s", s->folder,
				    n ? strerror(errno) : "nothing was written");
		at += n;
		len -= (size_t)n;
		s->size += (uint64_t)n;
	}
	return ST_OK;
}

uint64_t scratch_size(const struct scratch *s)
{
	return s ? s->size : 0;
}

enum status scratch_read(const struct scratch *s, uint64_t at, void *bytes, size_t len,
			 struct error *err)
{
	char *to = bytes;
	ssize_t n;

	while (len) {
		n = pread(s->fd, to, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(err, ST_IO, NOWHERE, "temporary folder %s: %s", s->folder,
				    n ? strerror(errno) : "the temporary file became shorter");
		to += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return ST_OK;
}
