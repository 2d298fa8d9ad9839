/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_train.c - a training program on the stub driver; tells what it did, as one JSON object.
 *
 *	fake_train [--OPTION VALUE]...        (options: the table below; --help)
 *
 * Each thread runs the steps on streams of its own.  A step is, in this order: copies to the
 * device, sets, kernels, launches of a graph, peer copies, a copy back, allocations, events, calls
 * that say nothing, a wait for the streams.  So every count is per step and thread, and the truth
 * of a window of some steps is a multiplication.  Where libtacho.so is loaded its tacho_step()
 * marks steps of the first thread.
 */
#include "tests/fake/fake_train.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options o = {
#define X(name, value, help) .name = value,
	OPTIONS(X)
#undef X
};

enum { NAMES = 1024, NAME_BYTES = 6000 };
static char *kernel_names[NAMES];
static _Atomic unsigned long name_counts[NAMES];

void tacho_step(void) __attribute__((weak));
void tacho_flush(void) __attribute__((weak));

static void pause_ms(double ms)
{
	struct timespec t = { .tv_sec = (time_t)(ms / 1000) };

	t.tv_nsec = (long)((ms - (double)t.tv_sec * 1000) * 1e6);
	if (ms > 0)
		nanosleep(&t, NULL);
}

/* ---- names ---- */

/*
 * As a compiler mangles them: "void (anonymous namespace)::kernel_3<float, 9>(float*)".  What makes
 * them long is a namespace, so that they differ at their end only.
 */
static void make_names(void)
{
	static const char wild[] = "\xff\xfe\"\\\x01\n\xc3(";
	static const char nccl[] = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgs"
				   "StorageILm4096EE";
	char plain[64], space[NAME_BYTES - 200] = "12_GLOBAL__N_1";
	long i;

	if (o.name_bytes > 0 && o.name_bytes < NAME_BYTES - 300) {
		i = snprintf(space, sizeof(space), "%ld", o.name_bytes);
		memset(space + i, 'n', (size_t)o.name_bytes);
	}
	for (i = 0; i < o.names && i < NAMES; i++) {
		char *name = calloc(1, NAME_BYTES);

		if (!name)
			exit(3);
		snprintf(plain, sizeof(plain), "kernel_%ld", i);
		snprintf(name, NAME_BYTES, "_ZN%s%zu%sIfLi%ldEEEvPf%s", space, strlen(plain), plain,
			 i * i, o.wild ? wild : "");
		if (o.nccl && i == 0)
			memcpy(name, nccl, sizeof(nccl));
		kernel_names[i] = name;
	}
}

/* ---- the injected library ---- */

static void inject_again(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *handle = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
	void *symbol = handle ? dlsym(handle, "InitializeInjection") : NULL;
	int (*initialize)(void);

	memcpy(&initialize, &symbol, sizeof(initialize));
	if (!symbol || initialize() != 1)
		fprintf(stderr, "fake_train: the library did not let itself be initialized\n");
}

/* ---- one thread ---- */

static void keep_rate(struct worker *w)
{
	if (!o.rate)
		return;
	w->next.tv_nsec += 1000000000 / o.rate;
	w->next.tv_sec += w->next.tv_nsec / 1000000000;
	w->next.tv_nsec %= 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &w->next, NULL);
}

void launch(struct worker *w, long i)
{
	long name = (i + w->number) % o.names;
	struct fake_work work = { .duration_ns = (uint64_t)o.duration_ns,
				  .registers = 32,
				  .static_shared = 1024 };

	keep_rate(w);
	name_counts[name]++;
	fake_cuda_next(&work);
	cudaLaunchKernel(kernel_names[name], 128 + (unsigned)name,
			 1 + (unsigned)(name_counts[name] % (unsigned long)o.shapes), 1, 256, 1, 1,
			 NULL, 0, stream(w, i));
}

static void make_graph(struct worker *w)
{
	static const char *const names[] = { "graph_a", "graph_b", "graph_c" };
	struct fake_work work = { .duration_ns = 2000 };
	struct CUgraph_st *graph;
	int i;

	cuGraphCreate(&graph, 0);
	for (i = 0; i < 3; i++) {
		work.name = names[i];
		fake_cuda_node(graph, FACT_KERNEL, &work);
	}
	work.name = NULL;
	work.bytes = 4096;
	fake_cuda_node(graph, FACT_COPY, &work);
	fake_cuda_node(graph, FACT_SET, &work);
	cuGraphInstantiateWithFlags(&w->exec, graph, 0);
}

/* By a library of its own: this program is built without the headers of NVTX. */
static struct {
	pthread_once_t once;
	void (*stream)(void *, const char *, int);
	void (*object)(int, const char *, const char *);
} namer = { .once = PTHREAD_ONCE_INIT };

/* Once for all threads: the first call into NVTX looks for the tool, in NVTX's own header, by plain
 * reads beside its writes; hosts that care initialise it before they have threads. */
static void find_namer(void)
{
	void *handle = dlopen("libfake_nvtx_named.so", RTLD_NOW);
	void *init = handle ? dlsym(handle, "fake_nvtx_init") : NULL;
	void *stream = handle ? dlsym(handle, "fake_nvtx_name_stream") : NULL;
	void *object = handle ? dlsym(handle, "fake_nvtx_name_thing") : NULL;
	void (*initialize)(void);

	if (!init || !stream || !object)
		exit(3);
	memcpy(&initialize, &init, sizeof(init));
	memcpy(&namer.stream, &stream, sizeof(stream));
	memcpy(&namer.object, &object, sizeof(object));
	initialize();
}

static void give_names(const struct worker *w)
{
	char name[64];
	long i;

	pthread_once(&namer.once, find_namer);
	for (i = 0; i < o.streams; i++) {
		snprintf(name, sizeof(name), "stream %ld of thread %ld", i, w->number);
		namer.stream(w->streams[i], name, (int)(i % 2));
	}
	snprintf(name, sizeof(name), "launcher %ld", w->number);
	namer.object((int)(w->number % o.devices), "the named device", name);
}

static void open_worker(struct worker *w)
{
	long i;

	cudaSetDevice((int)(w->number % o.devices));
	for (i = 0; i < o.streams; i++)
		cuStreamCreate(&w->streams[i], 1);
	cuEventCreate(&w->event, 0);
	if (o.graphs && o.known)
		capture_as_known(w);
	else if (o.graphs)
		make_graph(w);
	if (o.named == 1)
		give_names(w);
	begin_as_known(w);
	clock_gettime(CLOCK_MONOTONIC, &w->next);
}

static void others(const struct worker *w)
{
	tell_fact(w, FACT_JIT, COMPILED);
	tell_fact(w, FACT_OVERHEAD, LAZY_LOADING);
	tell_fact(w, FACT_OVERHEAD, FULL_BUFFER); /* has data of its own, malloc'd for the client */
	tell_fact(w, FACT_POOL, MADE);
	tell_fact(w, FACT_EXPAND, 2);
}

static void polls(const struct worker *w)
{
	int unused;
	long i;

	for (i = 0; i < o.polls; i++) {
		if (i % 3 == 0)
			cudaGetLastError();
		else if (i % 3 == 1)
			cudaGetDevice(&unused);
		else
			cudaStreamIsCapturing(stream(w, 0), &unused);
	}
}

static void memory(const struct worker *w)
{
	void *address;
	long i;

	for (i = 0; i < o.allocs; i++) {
		cudaMalloc(&address, ALLOC_BYTES);
		cudaFree(address);
	}
}

static void one_step(struct worker *w, long step)
{
	void *device = (void *)0x7f0000001000, *host = (void *)0x1000;
	long i;

	for (i = 0; i < o.copies; i++)
		cudaMemcpyAsync(device, host, 65536, 1, stream(w, i));
	for (i = 0; i < o.sets; i++)
		cudaMemsetAsync(device, 0, 1024, stream(w, i));
	for (i = 0; i < o.kernels; i++)
		launch(w, i);
	if (o.queries)
		cudaEventRecord(w->event, stream(w, 0));
	for (i = 0; i < o.queries; i++) {
		cuEventQuery(w->event);
		cudaStreamQuery(stream(w, i));
	}
	for (i = 0; i < o.graphs; i++)
		cudaGraphLaunch(w->exec, stream(w, i));
	for (i = 0; i < o.peers; i++)
		cudaMemcpyPeerAsync(device, 1, device, 0, 8192, stream(w, i));
	if (o.copies)
		cudaMemcpyAsync(host, device, 4, 2, stream(w, 0));
	memory(w);
	step_as_known(w, step);
	for (i = 0; i < o.events; i++) {
		cudaEventRecord(w->event, stream(w, i));
		cudaEventSynchronize(w->event);
	}
	polls(w);
	if (o.others)
		others(w);
	for (i = 0; o.sync && i < o.streams; i++)
		cudaStreamSynchronize(stream(w, i));
	pause_ms((double)o.step_us / 1000);
}

/* ---- the middle ---- */

static void fork_one(void)
{
	pid_t child = fork();
	int status;

	if (child == 0 && o.fork == 2)
		_exit(0);
	if (child == 0 && o.fork == 3)
		execl("/bin/true", "true", (char *)NULL);
	if (child == 0 && o.fork == 4)
		execl("/usr/bin/printenv", "printenv", "LD_PRELOAD", (char *)NULL);
	if (child == 0)
		exit(0);
	if (waitpid(child, &status, 0) != child || status != 0)
		fprintf(stderr, "fake_train: the child ended with %x\n", (unsigned)status);
}

static void unload(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *handle = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
	int i;

	for (i = 0; handle && i < 3; i++)
		dlclose(handle);
}

/* It has nothing to report. */
static void load_second(void)
{
	unsetenv("FAKE_CUPTI_REPORT");
	if (!dlopen(getenv("FAKE_TRAIN_SECOND"), RTLD_NOW | RTLD_LOCAL))
		fprintf(stderr, "fake_train: %s\n", dlerror());
}

static void at_step(const struct worker *w, long step)
{
	if (w->number == 0 && tacho_step)
		tacho_step();
	if (w->number == 0 && tacho_flush && o.flush && step % o.flush == 0)
		tacho_flush();
	if (w->number == 0 && o.tool_to && step == o.tool_from)
		tool_begins();
	if (w->number == 0 && o.tool_to && step == o.tool_to)
		tool_ends();
	if (o.again && step == 1)
		inject_again();
	if (w->number == 0 && o.profiler && step == o.steps / 4)
		cudaProfilerStart();
	if (w->number == 0 && o.profiler && step == o.steps * 3 / 4)
		cudaProfilerStop();
	if (w->number == 0 && step == o.steps / 2) {
		if (o.fork)
			fork_one();
		if (o.second)
			load_second();
		if (o.unload)
			unload();
		if (o.named == 2)
			give_names(w);
	}
}

static void run_steps(struct worker *w, long from, long to)
{
	long i;

	for (i = from; i < to; i++) {
		at_step(w, i);
		one_step(w, i);
	}
}

static void *first_half(void *worker)
{
	open_worker(worker);
	run_steps(worker, 0, o.churn ? o.steps / 2 : o.steps);
	if (o.quick == 2 && ((struct worker *)worker)->number == 0)
		exit((int)o.exit);
	return NULL;
}

static void *second_half(void *worker)
{
	run_steps(worker, o.steps / 2, o.steps);
	return NULL;
}

static void run_all(struct worker *workers, void *(*part)(void *))
{
	pthread_t threads[256];
	long i;

	for (i = 0; i < o.threads; i++)
		pthread_create(&threads[i], NULL, part, &workers[i]);
	for (i = 0; i < o.threads; i++)
		pthread_join(threads[i], NULL);
}

/* ---- truth ---- */

static void tell_calls(uint32_t domain, const char *key)
{
	const char *comma = "";
	uint32_t i;

	printf(", \"%s\": {", key);
	for (i = 0; i < 1024; i++) {
		if (!fake_cuda_calls(domain, i))
			continue;
		printf("%s\"%u\": %llu", comma, i, (unsigned long long)fake_cuda_calls(domain, i));
		comma = ", ";
	}
	printf("}");
}

static void tell(void)
{
	static const struct {
		const char *name;
		enum fake_fact_type type;
	} counts[] = {
		{ "kernels", FACT_KERNEL },   { "copies", FACT_COPY },
		{ "peers", FACT_PEER },       { "sets", FACT_SET },
		{ "graphs", FACT_GRAPH },     { "syncs", FACT_SYNC },
		{ "events", FACT_EVENT },     { "memory", FACT_MEMORY },
		{ "pools", FACT_POOL },       { "jits", FACT_JIT },
		{ "expands", FACT_EXPAND },   { "overheads", FACT_OVERHEAD },
		{ "contexts", FACT_CONTEXT }, { "streams", FACT_STREAM },
		{ "calls", FACT_LEAVE },
	};
	size_t i;
	long n;

	printf("{\"pid\": %d, \"steps\": %ld, \"threads\": %ld", getpid(), o.steps, o.threads);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		printf(", \"%s\": %llu", counts[i].name,
		       (unsigned long long)fake_cuda_count(counts[i].type));
	printf(", \"tool\": %lu", tool_count());
	tell_calls(FAKE_DRIVER, "driver");
	tell_calls(FAKE_RUNTIME, "runtime");
	printf(", \"by_name\": [");
	for (n = 0; n < o.names && n < NAMES; n++)
		printf("%s%lu", n ? ", " : "", name_counts[n]);
	puts("]}");
	fflush(stdout);
}

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- words ---- */

static void help(void)
{
#define X(name, value, text) printf("  --%-12s %8ld  %s\n", #name, (long)(value), text);
	OPTIONS(X)
#undef X
}

static bool take_option(const char *name, const char *value)
{
#define X(option, preset, text)                                                                    \
	if (!strcmp(name, #option) && value) {                                                     \
		o.option = strtol(value, NULL, 0);                                                 \
		return true;                                                                       \
	}
	OPTIONS(X)
#undef X
	return false;
}

int main(int argc, char **argv)
{
	static struct worker workers[256];
	uint64_t before_ns = wall_ns();
	int i;

	for (i = 1; i < argc; i += 2) {
		if (strncmp(argv[i], "--", 2) != 0 || !take_option(argv[i] + 2, argv[i + 1])) {
			help();
			return strcmp(argv[i], "--help") ? 2 : 0;
		}
	}
	if (o.threads < 1 || o.threads > 256 || o.streams < 1 || o.streams > 64 || o.names < 1 ||
	    o.names > NAMES || o.devices < 1 || o.shapes < 1)
		return 2;
	make_names();
	if (o.again)
		atexit(inject_again);
	if (o.early && tacho_step)
		tacho_step();
	pause_ms((double)o.before_ms);
	for (i = 0; i < o.threads; i++)
		workers[i].number = i;
	if (!o.no_cuda)
		run_all(workers, first_half);
	if (!o.no_cuda && o.churn)
		run_all(workers, second_half);
	pause_ms((double)o.after_ms);
	if (o.known)
		tell_as_known(before_ns, wall_ns());
	else
		tell();
	if (o.kill)
		raise((int)o.kill);
	if (o.quick == 1)
		_exit((int)o.exit);
	return (int)o.exit;
}
