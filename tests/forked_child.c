/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forked_child.c - no search for leaks in the child of a fork
 *
 * At exit the address sanitizer takes every lock of its allocator.  gcc 12 and 13 do not hold these
 * locks over a fork: where another thread had one, the child has it for ever and its exit never
 * ends.  The parent is still searched.  Without that sanitizer nobody asks.
 */
#include <pthread.h>
#include <stdbool.h>

static bool is_child;

static void forked(void)
{
	is_child = true;
}

static __attribute__((constructor)) void start(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* Named by the sanitizer (<sanitizer/lsan_interface.h>), which calls it before it searches. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}
