/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any packet to the control socket: one answer, "ok" or "error", and only the five words do
 * anything.  The session behind it is a stand-in that counts.
 */
#include "collector/session/session.h"
#include "collector/schedule/trigger.h"

#include "schemas/base/buf.h"

#include <stdint.h>

static bool is_recording;
static unsigned deeds;
static struct config settings;

static inline bool fake_is_recording(void)
{
	return is_recording;
}

static inline void fake_start(enum session_by by)
{
	deeds++;
	is_recording = true;
}

static inline void fake_flush(uint64_t patience_ns)
{
}

static inline void fake_feed(enum window_event event, uint64_t now_ns, uint64_t number,
			     const char *name)
{
	deeds++;
	is_recording = false;
}

static inline void fake_ask(enum trigger_kind kind)
{
	deeds++;
}

static inline void fake_tell(struct buf *out)
{
	deeds++;
}

static inline const struct config *fake_config(void)
{
	return &settings;
}
static inline void fake_toggle(void)
{
	deeds++;
}
#define session_toggle       fake_toggle
#define session_is_recording fake_is_recording
#define session_start        fake_start
#define session_flush        fake_flush
#define session_feed         fake_feed
#define session_close_log    fake_flush
#define session_config       fake_config
#define session_put_status   fake_tell
#define trigger_ask          fake_ask
#include "collector/control/control.c"

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char reply[CONTROL_REPLY + 1];
	int pair[2];
	ssize_t n;

	if (size < 2 || size > 65536 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return 0;
	is_recording = data[0] & 1;
	settings.ring = data[0] & 2;
	deeds = 0;
	if (send(pair[0], data + 1, size - 1, 0) == (ssize_t)size - 1) {
		serve_peer(pair[1]);
		n = recv(pair[0], reply, CONTROL_REPLY, MSG_DONTWAIT);
		if (n < 3 || (memcmp(reply, "ok\n", 3) != 0 && memcmp(reply, "error\n", 6) != 0))
			abort();
		reply[n] = '\0';
		if (strncmp(reply, "error\nunknown", 13) == 0 && deeds)
			abort();
	}
	close(pair[0]);
	close(pair[1]);
	return 0;
}
