/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about buffers: who asks, who gets them back, when, and in which state. */
#include "tests/fake/check_standin.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *launch_some(void *times)
{
	launch((unsigned)(uintptr_t)times);
	return NULL;
}

static void on_another_thread(unsigned times)
{
	pthread_t thread;

	pthread_create(&thread, NULL, launch_some, (void *)(uintptr_t)times);
	pthread_join(thread, NULL);
}

static void set_attribute(unsigned attribute, uint8_t value)
{
	size_t size = sizeof(value);

	CHECK_EQ(cupti.cuptiActivitySetAttribute((CUpti_ActivityAttribute)attribute, &size, &value),
		 0);
}

static void flush(bool forced)
{
	CHECK_EQ(cupti.cuptiActivityFlushAll(forced), 0);
}

/* ---- requests ---- */

void row_lazy_request(void)
{
	OPEN(10);
	wait_ms(20);
	CHECK_EQ(client.requests, 0);
	launch(1);
	CHECK_EQ(client.requests, 1);
	CHECK_EQ(client.requests_here, 1);
}

void row_buffer_each_thread(void)
{
	set_attribute(9, 1);
	OPEN(10);
	launch(1);
	on_another_thread(1);
	CHECK_EQ(client.requests, 2);
	CHECK_EQ(client.requests_here, 1);
}

void row_buffer_for_all(void)
{
	uint8_t value = 7;
	size_t size = 1;

	CHECK_EQ(cupti.cuptiActivityGetAttribute((CUpti_ActivityAttribute)9, &size, &value), 0);
	CHECK_EQ(value, profile >= 1300);
	set_attribute(9, 0);
	OPEN(10);
	launch(1);
	on_another_thread(1);
	CHECK_EQ(client.requests, 1);
	set_attribute(9, 1); /* too late */
	on_another_thread(1);
	CHECK_EQ(client.requests, 1);
}

void row_most_records(void)
{
	client.most = 3;
	fake.set("worker_ms", 0);
	OPEN(10);
	launch(9);
	CHECK_EQ(client.requests, 3);
	wait_ms(5);
	flush(false);
	CHECK_EQ(client.completions, 3);
	CHECK_EQ(count_kind(10), 9);
}

void row_cleared(void)
{
	client.dirty = true; /* and CUPTI clears it */
	OPEN(10);
	launch(1);
	CHECK_EQ(totals().faults, 0);
}

void row_not_cleared(void)
{
	set_attribute(5, 1);
	OPEN(10);
	launch(1);
	CHECK_EQ(totals().faults, 0);
}

void row_dirty_is_seen(void)
{
	set_attribute(5, 1);
	client.dirty = true;
	OPEN(10);
	launch(1);
	CHECK_EQ(totals().faults, 1);
	CHECK(strstr(fake.fault(0), "not zero") != NULL);
}

void row_crooked_is_seen(void)
{
	client.crooked = true;
	OPEN(10);
	launch(1);
	CHECK_EQ(totals().faults, 1);
	CHECK(strstr(fake.fault(0), "aligned") != NULL);
}

void row_no_buffer_early(void)
{
	fake.set("api_version", 26);
	client.none = true;
	OPEN(10);
	launch(1); /* dies */
}

void row_no_buffer_late(void)
{
	size_t dropped = 0;

	fake.set("api_version", 28);
	client.none = true;
	OPEN(10);
	launch(5);
	CHECK_EQ(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), 0);
	CHECK_EQ(dropped, 5);
	client.none = false;
	launch(1);
	wait_ms(5);
	flush(false);
	CHECK_EQ(count_kind(10), 1);
}

void row_same_buffer_twice(void)
{
	client.same = true;
	set_attribute(9, 1);
	OPEN(10);
	launch(1);
	on_another_thread(1);
	CHECK_EQ(totals().shared, 1);
	flush(true);
	CHECK_EQ(client.completions, 2);
}

/* Somebody had it, and could write, until the request had begun: it need not be clear. */
void row_same_buffer_until_now(void)
{
	pthread_t thread;

	client.most = 1;
	fake.set("worker_ms", 0);
	set_attribute(5, 1);
	set_attribute(9, 1);
	OPEN(10);
	launch(2); /* the first buffer waits for its return */
	client.same = client.dirty = client.hold = true;
	pthread_create(&thread, NULL, launch_some, (void *)1);
	while (client.requests < 3)
		wait_ms(1);
	fake.deliver(false);
	CHECK_EQ(client.completions, 1);
	client.hold = false;
	pthread_join(thread, NULL);
	CHECK_EQ(totals().shared, 1);
	CHECK_EQ(totals().faults, 0);
	on_another_thread(1); /* while it is lent */
	CHECK_EQ(totals().shared, 2);
	CHECK_EQ(totals().faults, 0);
	fake.deliver(true);
	on_another_thread(1); /* when nobody has it */
	CHECK_EQ(totals().shared, 2);
	CHECK_EQ(totals().faults, 1);
}

/* ---- completions ---- */

void row_worker_completes(void)
{
	client.bytes = 1024;
	OPEN(10);
	launch(100);
	wait_ms(60);
	CHECK(client.on_others > 10);
	CHECK_EQ(client.on_this_thread, 0);
	CHECK_EQ(client.odd_context, 0);
	CHECK_EQ(totals().by_worker, client.on_others);
	CHECK(count_kind(10) < 100); /* the last buffer is not full */
	flush(false);
	CHECK_EQ(count_kind(10), 100);
	CHECK_EQ(client.on_this_thread, 1);
}

void row_worker_by_hand(void)
{
	fake.set("worker_ms", 0);
	client.bytes = 1024;
	OPEN(10);
	launch(10);
	wait_ms(60);
	CHECK_EQ(client.completions, 0);
	fake.deliver(false);
	CHECK(client.completions >= 2);
	CHECK(count_kind(10) < 10);
	fake.deliver(true);
	CHECK_EQ(count_kind(10), 10);
	CHECK_EQ(totals().by_flush, 0);
}

void row_flush_completes(void)
{
	OPEN(10);
	launch(3);
	wait_ms(20);
	CHECK_EQ(client.completions, 0);
	flush(false);
	CHECK_EQ(client.on_this_thread, 1);
	CHECK_EQ(count_kind(10), 3);
	flush(false);
	CHECK_EQ(client.completions, 1);
}

void row_both_complete(void)
{
	unsigned i;

	fake.set("share_flush", 1);
	fake.set("worker_ms", 60000); /* by itself it does not come */
	client.bytes = 1024;
	OPEN(10);
	for (i = 0; i < 20; i++) {
		launch(40);
		flush(true);
	}
	wait_ms(50); /* CUPTI's thread may still be in one */
	CHECK_EQ(count_kind(10), 20 * 40);
	CHECK(client.on_this_thread >= 20);
	CHECK(client.on_others >= 20);
}

void row_empty_buffers(void)
{
	fake.set("empty_every", 1);
	OPEN(10);
	launch(1);
	wait_ms(5);
	flush(false);
	CHECK_EQ(client.completions, 2);
	CHECK_EQ(client.empty, 1);
	CHECK_EQ(count_kind(10), 1);
}

void row_late_buffers(void)
{
	fake.set("late_every", 1);
	fake.set("late_ms", 60);
	OPEN(10);
	launch(1);
	wait_ms(5);
	cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	flush(true);
	CHECK_EQ(client.completions, 0);
	wait_ms(150);
	CHECK_EQ(client.completions, 1);
	CHECK_EQ(client.on_others, 1);
}

void row_thread_that_ended(void)
{
	set_attribute(9, 1);
	OPEN(10);
	on_another_thread(2);
	CHECK_EQ(totals().lent, 1);
	wait_ms(5);
	flush(false);
	CHECK_EQ(count_kind(10), 2);
	on_another_thread(1); /* and its lane serves the next one */
	wait_ms(5);
	flush(false);
	CHECK_EQ(count_kind(10), 3);
}

/* ---- flushing ---- */

void row_flush_withholds(void)
{
	fake.set("hold", 1);
	OPEN(10);
	launch(2);
	wait_ms(5);
	flush(false);
	CHECK_EQ(client.completions, 0);
	fake.set("hold", 0);
	flush(false);
	CHECK_EQ(count_kind(10), 2);
}

void row_forced_gives_zeros(void)
{
	CUpti_ActivityKernel10 k;

	fake.set("hold", 1);
	OPEN(10);
	launch(2);
	flush(true);
	CHECK_EQ(count_kind(10), 2);
	memcpy(&k, find_kind(10, 0)->bytes, offsetof(CUpti_ActivityKernel10, deviceId));
	CHECK_EQ(k.start, 0);
	CHECK_EQ(k.end, 0);
}

void row_flush_inside(void)
{
	client.flush_in_request = true;
	OPEN(10);
	launch(1);
	CHECK_EQ(totals().faults, 1);
	CHECK(strstr(fake.fault(0), "requested") != NULL);
	client.flush_in_request = false;
	client.flush_in_complete = true;
	wait_ms(5);
	flush(false);
	CHECK_EQ(totals().faults, 2);
	CHECK(strstr(fake.fault(1), "completed") != NULL);
	CHECK(fake.fault(2) == NULL);
}

void row_flush_blocks(void)
{
	fake.set("flush_blocks", 1);
	OPEN(10);
	alarm(1); /* what ends it */
	cupti.cuptiActivityFlushAll(0);
}

void row_flush_returns_nothing(void)
{
	fake.set("flush_nothing", 1);
	OPEN(10);
	launch(1);
	wait_ms(5);
	flush(false);
	CHECK_EQ(client.completions, 0);
	flush(true);
	CHECK_EQ(count_kind(10), 1);
}

/* ---- another tool ---- */

void row_foreign_takes_all(void)
{
	set_attribute(9, 1);
	client.bytes = 1024;
	OPEN(10);
	launch(3);
	fake.set("foreign", 1);
	launch(20);
	wait_ms(20);
	CHECK_EQ(client.requests, 1);
	flush(true);
	CHECK_EQ(client.completions, 0); /* even the buffer that is ours went elsewhere */
	CHECK(totals().foreign > 0);
}

void row_foreign_buffers(void)
{
	client.bytes = 1024;
	fake.set("foreign", 2);
	fake.set("foreign_after", 3);
	OPEN(10);
	launch(20);
	wait_ms(10);
	flush(true);
	for (int i = 0; i < 1000 && client.completions < 2; i++)
		wait_ms(1); /* CUPTI's own thread may be at one */
	CHECK_EQ(client.requests, 1);
	CHECK_EQ(client.completions, 2); /* one of them was never ours */
	CHECK(totals().foreign > 0);
}

void row_foreign_disables(void)
{
	uint64_t before = 0, after = 0;

	OPEN(10);
	cupti.cuptiGetTimestamp(&before);
	fake.set("foreign", 3);
	launch(20);
	cupti.cuptiGetTimestamp(&after);
	CHECK(before - after > UINT64_C(1000000000) && after < before);
	wait_ms(5);
	flush(true);
	CHECK_EQ(count_kind(10), 1); /* the one under way when it came */
}

/* ---- life ---- */

void row_fork_is_seen(void)
{
	int status = 0;
	pid_t child;

	OPEN(10);
	launch(1);
	child = fork();
	if (child == 0) {
		launch(3);
		CHECK_EQ(totals().faults, 0);
		CHECK_EQ(fake.made(10), 1); /* nothing is recorded */
		cupti.cuptiActivityFlushAll(1);
		_exit(totals().faults == 1 ? 7 : 1);
	}
	waitpid(child, &status, 0);
	CHECK_EQ(WEXITSTATUS(status), 7);
	launch(1);
	wait_ms(5);
	flush(false);
	CHECK_EQ(count_kind(10), 2);
	CHECK_EQ(totals().faults, 0);
}

void row_finalize(void)
{
	OPEN(10);
	launch(1);
	CHECK_EQ(cupti.cuptiFinalize(), 0);
	launch(5);
	CHECK_EQ(fake.made(10), 1);
	CHECK_EQ(totals().finalized, 1);
}

void row_finalize_crashes(void)
{
	fake.set("finalize_crashes", 1);
	cupti.cuptiFinalize();
}

void row_strict(void)
{
	fake.set("strict", 1);
	client.crooked = true;
	OPEN(10);
	launch(1);
}

void row_driver_crash(void)
{
	uint32_t version;

	fake.set("driver", 0);
	fake.set("driver_crash", 1);
	CHECK_EQ(cupti.cuptiGetVersion(&version), 0); /* not in the older ones */
	cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

static unsigned elapsed_ms(const struct timespec *since)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned)((t.tv_sec - since->tv_sec) * 1000 +
			  (t.tv_nsec - since->tv_nsec) / 1000000);
}

void row_slow_calls(void)
{
	struct timespec t;

	fake.set("enable_us", 50000);
	clock_gettime(CLOCK_MONOTONIC, &t);
	OPEN(10);
	CHECK(elapsed_ms(&t) >= 50);
	fake.set("flush_us", 50000);
	clock_gettime(CLOCK_MONOTONIC, &t);
	flush(false);
	CHECK(elapsed_ms(&t) >= 50);
}
