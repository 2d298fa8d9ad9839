/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_nccl.c - a program that plays NCCL to a profiler plugin, in each version of the interface.
 *
 *	fake_nccl VERSION [STEPS [COMMUNICATORS]]
 *
 * A step is an AllReduce, then a Send and a Recv in one launch, then a Send in one of its own.  A
 *thread of its own plays the proxy.  The plugin is what NCCL_PROFILER_PLUGIN names.  At the end
 *stands what was done, as JSON.  Offsets of members are those of NVIDIA's headers, by their
 *compiler.
 */
#include "tests/fake/fake_cuda.h"

#include <nvtx3/nvToolsExt.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COLL = 2, P2P = 4, OP = 8, STEP = 16, CHANNEL = 64, LAUNCH = 2048, CE = 4096 };
enum { CHANNELS = 4, HANDLES = 4096 };
#define HASH UINT64_C(0xfeedface00c0ffee)

struct profiler {
	const char *name;
	void *init;
	int (*start)(void *context, void **handle, void *descriptor);
	int (*stop)(void *handle);
	int (*record)(void *handle, int state, void *argument);
	int (*finalize)(void *context);
};
static struct profiler *plugin;
static int version, mask, bad;
static void *context;
static nvtxDomainHandle_t domain; /* as NCCL marks its own calls */
static uint64_t sequence, colls, points, channels, operations, gpu_ns, bytes;

static void is(const char *what, bool good)
{
	if (good)
		return;
	fprintf(stderr, "fake_nccl: %s\n", what);
	bad = 1;
}

/* As NCCL leaves it: what has no meaning is noise in versions before 5. */
struct descriptor {
	_Alignas(8) uint8_t at[128];
};

static void put_u64(struct descriptor *d, unsigned at, uint64_t v)
{
	memcpy(d->at + at, &v, 8);
}

static void put_u32(struct descriptor *d, unsigned at, uint32_t v)
{
	memcpy(d->at + at, &v, 4);
}

static void put_text(struct descriptor *d, unsigned at, const char *text, unsigned number)
{
	if (version == 1)
		d->at[at] = (uint8_t)number;
	else
		put_u64(d, at, (uintptr_t)text);
}

static struct descriptor describe(uint64_t type, const void *parent)
{
	struct descriptor d;

	memset(&d, version < 5 ? 0xa5 : 0, sizeof(d));
	if (version < 5)
		d.at[0] = (uint8_t)type;
	else
		put_u64(&d, 0, type);
	put_u64(&d, 8, (uintptr_t)parent);
	put_u32(&d, 16, 1); /* the rank */
	return d;
}

static void *start(struct descriptor *d)
{
	void *handle = &handle;

	is("start", plugin->start(context, &handle, d) == 0 && handle != &handle);
	return handle;
}

static void stop(void *handle)
{
	if (handle)
		is("stop", plugin->stop(handle) == 0);
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

/* ---- the proxy thread ---- */

static void play_channel(void *task, unsigned number)
{
	struct descriptor d = describe(CHANNEL, task);
	uint64_t timer = 1000000 + sequence;

	d.at[24] = (uint8_t)number;
	put_u64(&d, 32, timer);
	void *handle = start(&d);
	if (!handle)
		return;
	uint64_t end = timer + 5000 + number;
	if (version > 3)
		plugin->record(handle, 22, &end);
	stop(handle);
	channels++;
	gpu_ns += version > 3 ? 5000 + number : 0;
}

static void play_operation(void *task, unsigned number, bool sends)
{
	static const int states[2][4] = { { 10, 11, 12, 0 }, { 8, 20, 9, 0 } };
	struct descriptor d = describe(OP, task);
	uint64_t size = 4096;
	enum { STEPS = 3 };

	put_u32(&d, 24, (uint32_t)getpid());
	d.at[28] = (uint8_t)number;
	put_u32(&d, 32, 7);
	put_u32(&d, 36, STEPS);
	put_u32(&d, 40, 4096);
	put_u32(&d, 44, sends);
	void *operation = start(&d);
	if (!operation)
		return;
	for (int i = 0; i < STEPS; i++) {
		d = describe(STEP, operation);
		put_u32(&d, 24, (uint32_t)i);
		void *step = start(&d);
		for (int k = 0; step && states[sends][k]; k++) {
			if (version < 4 && states[sends][k] == 20)
				continue;
			plugin->record(step, states[sends][k], version > 3 ? &size : NULL);
			pause_us(states[sends][k] == 9 || states[sends][k] == 10 ? 300 : 20);
		}
		stop(step);
		uint64_t so_far[2] = { size * (uint64_t)(i + 1), (uint64_t)i + 1 };
		if (version < 4)
			plugin->record(operation, sends ? 2 : 6, so_far);
	}
	stop(operation);
	operations++;
	bytes += STEPS * size;
}

static void *play_proxy(void *task)
{
	for (unsigned i = 0; i < CHANNELS && version > 2 && mask & CHANNEL; i++)
		play_channel(task, i);
	for (unsigned i = 0; i < 2 && mask & OP; i++)
		play_operation(task, i, i);
	return NULL;
}

static void run_proxy(void *task)
{
	pthread_t thread;

	pthread_create(&thread, NULL, play_proxy, task);
	pthread_join(thread, NULL);
}

/* ---- the program's thread ---- */

static void launch(const char *name)
{
	void *handle = NULL;

	if (version > 4 && mask & LAUNCH) {
		struct descriptor d = describe(LAUNCH, NULL);
		handle = start(&d);
	}
	fake_cuda_next(&(struct fake_work){ .name = name, .duration_ns = 50000 });
	cudaLaunchKernel(name, CHANNELS, 1, 1, 512, 1, 1, NULL, 0, NULL);
	stop(handle);
}

static void *begin_coll(uint64_t count)
{
	static const uint8_t at[][9] = { [1] = { 40, 48, 72, 80, 84, 104, 105, 106, 107 },
					 [2] = { 40, 48, 72, 80, 88, 104, 105, 112, 120 },
					 [3] = { 40, 48, 72, 80, 88, 96, 97, 104, 112 },
					 [4] = { 24, 32, 56, 64, 72, 80, 81, 88, 96 } };
	const uint8_t *o = at[version < 4 ? version : 4];
	struct descriptor d = describe(COLL, NULL);

	if (version < 4)
		put_u64(&d, 32, HASH);
	put_u64(&d, o[0], sequence);
	put_text(&d, o[1], "AllReduce", 4);
	put_u64(&d, o[2], count);
	put_u32(&d, o[3], 0);
	put_text(&d, o[4], "ncclFloat32", 7);
	d.at[o[5]] = CHANNELS;
	d.at[o[6]] = 16;
	put_text(&d, o[7], "RING", 1);
	put_text(&d, o[8], "LL", 0);
	return start(&d);
}

static void *begin_point(bool sends, uint64_t count)
{
	struct descriptor d = describe(P2P, NULL);
	unsigned base = version < 4 ? 40 : 24;

	if (version < 4)
		put_u64(&d, 32, HASH);
	else
		d.at[60] = 2;
	put_text(&d, base, sends ? "Send" : "Recv", sends ? 6 : 7);
	put_text(&d, base + 16, "ncclBfloat16", 9);
	put_u64(&d, base + 24, count);
	put_u32(&d, base + 32, 7);
	return start(&d);
}

static void push(const char *name)
{
	nvtxEventAttributes_t a = { .version = NVTX_VERSION,
				    .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE };

	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = name;
	nvtxDomainRangePushEx(domain, &a);
}

static void all_reduce(void)
{
	push("ncclAllReduce");
	launch("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE");
	if (mask & COLL) {
		void *task = begin_coll(1 << 20);
		colls++;
		stop(task);
		run_proxy(task);
	}
	sequence++;
	nvtxDomainRangePop(domain);
}

static void send_receive(int count)
{
	void *tasks[2] = { NULL, NULL };

	push(count > 1 ? "ncclGroupEnd" : "ncclSend");
	launch("_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE");
	for (int i = 0; i < count && mask & P2P; i++) {
		tasks[i] = begin_point(i == 0, 1000);
		points++;
	}
	stop(tasks[0]);
	stop(tasks[1]);
	nvtxDomainRangePop(domain);
}

static int init(void **to)
{
	int (*init_1)(void **, int *) = NULL;
	int (*init_4)(void **, int *, const char *, uint64_t, int, int, int, void *) = NULL;
	int (*init_5)(void **, uint64_t, int *, const char *, int, int, int, void *) = NULL;

	memcpy(&init_1, &plugin->init, sizeof(init_1));
	memcpy(&init_4, &plugin->init, sizeof(init_4));
	memcpy(&init_5, &plugin->init, sizeof(init_5));
	return version < 4    ? init_1(to, &mask)
	       : version == 4 ? init_4(to, &mask, "dp", HASH, 2, 16, 1, NULL)
			      : init_5(to, HASH, &mask, "dp", 2, 16, 1, NULL);
}

/* Runs this program as ranks 0 to 2 of a job that hangs. */
static int run_job(char **argv)
{
	for (int i = 0; i < 3; i++) {
		char rank[2] = { (char)('0' + i), '\0' };

		if (fork() == 0) {
			setenv("RANK", rank, 1);
			argv[4] = "hang";
			execv(argv[0], argv);
			_exit(127);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* All ranks but one make two more collectives, and then all die in that step. */
static void hang(void)
{
	const char *rank = getenv("RANK");

	for (int i = 0; i < 2 && rank && strcmp(rank, "1") != 0; i++)
		all_reduce();
	pause_us(1300000);
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	const char *path = getenv("NCCL_PROFILER_PLUGIN");
	int steps = argc > 2 ? atoi(argv[2]) : 10, more = argc > 3 ? atoi(argv[3]) : 0;
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL, *others[HANDLES];
	void (*tacho_step)(void);
	char name[32];

	if (argc > 4 && !strcmp(argv[4], "job"))
		return run_job(argv);
	version = argc > 1 ? atoi(argv[1]) : 7;
	snprintf(name, sizeof(name), "ncclProfiler_v%d", version);
	plugin = library ? dlsym(library, name) : NULL;
	*(void **)&tacho_step = dlsym(RTLD_DEFAULT, "tacho_step");
	if (!plugin) {
		printf("{\"missing\": \"%s has no %s\"}\n", path ? path : "nothing", name);
		return 3;
	}
	domain = nvtxDomainCreateA("NCCL");
	is("init", init(&context) == 0);
	for (int i = 0; i < more && i < HANDLES; i++)
		is("another communicator", init(&others[i]) == 0);
	for (int i = 0; i < steps; i++) {
		if (tacho_step)
			tacho_step();
		all_reduce();
		send_receive(2);
		send_receive(1);
		pause_us(2000);
		if (argc > 4 && i == steps - 1)
			hang();
	}
	cudaDeviceSynchronize();
	for (int i = 0; i < 500 && steps > 10 && mask; i++) /* the window's end may come late */
		pause_us(10000);
	for (int i = 0; i < more && i < HANDLES; i++)
		plugin->finalize(others[i]);
	is("finalize", plugin->finalize(context) == 0);
	dlclose(library);
	printf("{\"colls\": %llu, \"points\": %llu, \"channels\": %llu, \"operations\": %llu, "
	       "\"gpu_ns\": %llu, \"bytes\": %llu, \"mask\": %d}\n",
	       (unsigned long long)colls, (unsigned long long)points, (unsigned long long)channels,
	       (unsigned long long)operations, (unsigned long long)gpu_ns,
	       (unsigned long long)bytes, mask);
	return bad;
}
