/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.cu - a program that knows what it asked of the GPU, and tells it as one line of JSON.
 *
 *	known [--OPTION NUMBER]...      options: the table below
 *
 * A step of a thread is: copies to the device, sets, kernels, launches of a graph (3 kernels, a
 * copy, a set), copies from GPU 0 to GPU 1, one copy back, allocations from a pool, pools, kernels
 * launched through the driver, kernels under an external id, decompressions, an event recorded and
 * waited for, a wait for the stream.  With --polls it asks for an event again and again, with --fill
 * the GPU's memory is full, with --timed a kernel measures itself, with --quick it ends by _exit().
 * Before the first step a thread compiles modules, and the
 * first one launches kernels that nobody has used.  Where libtacho.so is loaded tacho_step() marks
 * the steps of the first thread.  What this GPU cannot do is told as 0.
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS(X) \
	X(threads, 1) X(steps, 20) X(kernels, 20) X(copies, 2) X(sets, 1) X(graphs, 0) X(peers, 0) \
	X(allocs, 0) X(pools, 0) X(drives, 0) X(drives_ex, 0) X(externals, 0) X(expands, 0) \
	X(jits, 0) X(lazies, 0) X(events, 1) X(spin_us, 5) X(step_us, 0) X(late_graph, 0) \
	X(fork, 0) X(before_ms, 0) X(no_sync, 0) X(polls, 0) X(fill, 0) X(timed, 0) X(quick, 0)

static struct options {
#define X(name, value) long name;
	OPTIONS(X)
#undef X
} o = {
#define X(name, value) value,
	OPTIONS(X)
#undef X
};

enum { BYTES = 1 << 20, EXPANDED = 4096, LAZY_KERNELS = 16 };
enum { ALLOC_BYTES = 261 * 512 }; /* check_gpu.py knows it: nobody else allocates so many */

static void check(cudaError_t status, const char *what)
{
	if (status == cudaSuccess)
		return;
	fprintf(stderr, "known: %s: %s\n", what, cudaGetErrorString(status));
	exit(3);
}
#define CUDA(call) check(call, #call)

/* Instantiated twice, so that there are two names. */
template <int N> __global__ void spin(long long cycles, int *out)
{
	long long begin = clock64();

	while (clock64() - begin < cycles)
		;
	if (out)
		*out = N;
}

/* What is counted; told under these names. */
#define COUNTS(X) \
	X(launches) X(captured) X(copies) X(sets) X(graphs) X(peers) X(allocs) X(pools) X(drives) X(drives_ex) \
	X(externals) X(expands) X(jits) X(lazies) X(syncs) X(events) X(polls)

struct worker {
	long number;
	cudaStream_t stream;
	cudaEvent_t event;
	cudaGraphExec_t graph;
	CUfunction function; /* of the newest module */
	char *host, *device, *other, *packed;
	long long cycles;
#define X(name) unsigned long long name;
	COUNTS(X)
#undef X
	unsigned long long before_ns, after_ns; /* round the first kernel and a wait for it */
};
enum { THREADS = 128 };
static struct worker workers[THREADS];
static double timed_ns, timed_events_ns;
static void (*tacho_step)(void);
static int peer;

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static void pause_us(long us)
{
	struct timespec t;

	t.tv_sec = us / 1000000;
	t.tv_nsec = us % 1000000 * 1000;
	if (us > 0)
		nanosleep(&t, NULL);
}

/* ---- what is not linked: a machine without a driver runs this too, and is told so ---- */

#define DRIVER(X) X(ModuleLoadData) X(ModuleGetFunction) X(LaunchKernel) X(LaunchKernelEx)
static struct {
#define X(name) decltype(&cu##name) name;
	DRIVER(X)
#undef X
#if CUDA_VERSION >= 12080
	decltype(&cuMemBatchDecompressAsync) MemBatchDecompressAsync;
#endif
	int (*push)(int kind, unsigned long long id);
	int (*pop)(int kind, unsigned long long *id);
} f;

static void find_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		return;
#define X(name) f.name = (decltype(f.name))dlsym(driver, "cu" #name);
	DRIVER(X)
#undef X
#if CUDA_VERSION >= 12080
	f.MemBatchDecompressAsync = (decltype(f.MemBatchDecompressAsync))dlsym(
		driver, "cuMemBatchDecompressAsync");
#endif
}

/* The copy that somebody has loaded, whoever that is. */
static void find_cupti(void)
{
	static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so" };
	void *cupti = NULL;
	int i;

	for (i = 0; !cupti && i < 3; i++)
		cupti = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
	if (!cupti)
		return;
	f.push = (decltype(f.push))dlsym(cupti, "cuptiActivityPushExternalCorrelationId");
	f.pop = (decltype(f.pop))dlsym(cupti, "cuptiActivityPopExternalCorrelationId");
}

static void launch(struct worker *w, long i)
{
	if (i % 2)
		spin<1><<<1, 32, 0, w->stream>>>(w->cycles, NULL);
	else
		spin<0><<<2, 64, 0, w->stream>>>(w->cycles, NULL);
}

/* ---- a kernel that measures itself, and two events round it ---- */

__global__ void timed(unsigned long long *out, unsigned long long ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - begin < ns);
	*out = now - begin;
}

/* The last of several, as the first are slow. */
static void measure(struct worker *w)
{
	const unsigned long long wanted = 2000000;
	unsigned long long took = 0;
	cudaEvent_t begin, end;
	float ms = 0;
	int i;

	CUDA(cudaEventCreate(&begin));
	CUDA(cudaEventCreate(&end));
	for (i = 0; i < 5; i++, w->launches++, w->copies++, w->events += 2, w->syncs++) {
		CUDA(cudaEventRecord(begin, w->stream));
		timed<<<1, 1, 0, w->stream>>>((unsigned long long *)w->device, wanted);
		CUDA(cudaEventRecord(end, w->stream));
		CUDA(cudaMemcpyAsync(&took, w->device, sizeof(took), cudaMemcpyDeviceToHost,
				     w->stream));
		CUDA(cudaStreamSynchronize(w->stream));
	}
	CUDA(cudaEventElapsedTime(&ms, begin, end));
	timed_ns = (double)took;
	timed_events_ns = ms * 1e6;
}

/* All that the GPU has, in smaller and smaller blocks. */
static void fill_memory(void)
{
	size_t bytes = (size_t)1 << 40;
	void *p;

	for (; bytes >= 65536; bytes /= 2)
		while (cudaMalloc(&p, bytes) == cudaSuccess)
			;
	cudaGetLastError();
}

/* ---- kernels that are loaded when they are first used ---- */

template <int N> __global__ void lazy(int *out)
{
	if (out)
		*out = N * 3;
}

template <int N> static void launch_lazies(struct worker *w, long count)
{
	if (LAZY_KERNELS - N >= count)
		return launch_lazies<N - 1>(w, count);
	lazy<N><<<1, 32, 0, w->stream>>>(NULL);
	w->launches++;
	w->lazies++;
	launch_lazies<N - 1>(w, count);
}
template <> void launch_lazies<0>(struct worker *w, long count)
{
}

/* ---- modules that the driver compiles, and launches of their kernel ---- */

static const char ptx[] =
	".version 6.4\n.target sm_75\n.address_size 64\n"
	".visible .entry driver_spin(.param .u64 cycles)\n{\n"
	"\t.reg .pred %p;\n\t.reg .u64 %begin, %now, %much;\n"
	"\tld.param.u64 %much, [cycles];\n\tmov.u64 %begin, %clock64;\n"
	"again:\n\tmov.u64 %now, %clock64;\n\tsub.u64 %now, %now, %begin;\n"
	"\tsetp.lt.u64 %p, %now, %much;\n\t@%p bra again;\n\tret;\n}\n";

static void check_driver(CUresult status, const char *what)
{
	if (status == CUDA_SUCCESS)
		return;
	fprintf(stderr, "known: %s: error %d of the driver\n", what, (int)status);
	exit(3);
}
#define DRIVE(call) check_driver(f.call, #call)

static void compile(struct worker *w)
{
	long count = o.jits ? o.jits : o.drives + o.drives_ex > 0, i;
	CUmodule module;

	for (i = 0; i < count; i++, w->jits++) {
		DRIVE(ModuleLoadData(&module, ptx));
		DRIVE(ModuleGetFunction(&w->function, module, "driver_spin"));
	}
}

static void drive(struct worker *w)
{
	void *words[] = { &w->cycles };
	CUlaunchConfig config;
	long i;

	memset(&config, 0, sizeof(config));
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = 32;
	config.blockDimY = config.blockDimZ = 1;
	config.hStream = w->stream;
	for (i = 0; i < o.drives; i++, w->drives++)
		DRIVE(LaunchKernel(w->function, 1, 1, 1, 32, 1, 1, 0, w->stream, words, NULL));
	for (i = 0; i < o.drives_ex; i++, w->drives_ex++)
		DRIVE(LaunchKernelEx(&config, w->function, words, NULL));
}

/* ---- ids of another tool ---- */

static void launch_with_ids(struct worker *w)
{
	enum { CUSTOM = 3 }; /* CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 */
	unsigned long long id;
	long i;

	for (i = 0; i < o.externals && f.push && f.pop; i++, w->externals++, w->launches++) {
		id = 1000000ull * (w->number + 1) + w->externals;
		if (f.push(CUSTOM, id) != 0)
			return;
		launch(w, i);
		f.pop(CUSTOM, &id);
	}
}

/* ---- decompression ---- */

/* A block of DEFLATE as it is stored: the bytes themselves. */
static void pack(struct worker *w)
{
	unsigned char block[5 + EXPANDED] = { 1, EXPANDED & 255, EXPANDED >> 8,
					      ~EXPANDED & 255, ~EXPANDED >> 8 & 255 };

	CUDA(cudaMalloc((void **)&w->packed, 4 * EXPANDED));
	CUDA(cudaMemcpyAsync(w->packed, block, sizeof(block), cudaMemcpyHostToDevice, w->stream));
	CUDA(cudaStreamSynchronize(w->stream));
	w->copies++;
	w->syncs++;
}

static void expand(struct worker *w)
{
#if CUDA_VERSION >= 12080
	CUmemDecompressParams p;
	long i;

	memset(&p, 0, sizeof(p));
	p.srcNumBytes = 5 + EXPANDED;
	p.dstNumBytes = EXPANDED;
	p.src = w->packed;
	p.dst = w->packed + 2 * EXPANDED;
	p.dstActBytes = (cuuint32_t *)(w->packed + 3 * EXPANDED);
	p.algo = CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
	for (i = 0; i < o.expands && w->packed; i++, w->expands++)
		DRIVE(MemBatchDecompressAsync(&p, 1, 0, NULL, w->stream));
#endif
}

static bool can_expand(void)
{
#if CUDA_VERSION >= 12080
	const int mask = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK;
	int formats = 0;

	if (!f.MemBatchDecompressAsync ||
	    cudaDeviceGetAttribute(&formats, (cudaDeviceAttr)mask, 0) != cudaSuccess)
		return false;
	return formats & CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE;
#else
	return false;
#endif
}

/* ---- threads ---- */

static void make_graph(struct worker *w)
{
	cudaGraph_t graph;
	int i;

	CUDA(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
	for (i = 0; i < 3; i++, w->captured++) /* calls that launch nothing */
		launch(w, i);
	CUDA(cudaMemcpyAsync(w->device, w->device + BYTES / 2, 4096, cudaMemcpyDeviceToDevice,
			     w->stream));
	CUDA(cudaMemsetAsync(w->device, 0, 4096, w->stream));
	CUDA(cudaStreamEndCapture(w->stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&w->graph, graph, 0));
}

static void open_worker(struct worker *w)
{
	int khz = 0;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&w->event));
	CUDA(cudaMallocHost((void **)&w->host, BYTES));
	CUDA(cudaMalloc((void **)&w->device, BYTES));
	CUDA(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
	w->cycles = (long long)khz * o.spin_us / 1000;
	if (peer) {
		CUDA(cudaSetDevice(1));
		CUDA(cudaMalloc((void **)&w->other, BYTES));
		CUDA(cudaSetDevice(0));
	}
	if (o.graphs && !o.late_graph)
		make_graph(w);
	compile(w);
	if (o.expands && can_expand())
		pack(w);
	if (o.timed && w->number == 0)
		measure(w);
	if (o.fill && w->number == 0)
		fill_memory();
	if (w->number == 0)
		launch_lazies<LAZY_KERNELS>(w, o.lazies);
}

static void bracket(struct worker *w)
{
	if (w->before_ns)
		return;
	CUDA(cudaStreamSynchronize(w->stream));
	w->syncs++;
	w->before_ns = now_ns();
	launch(w, 0);
	w->launches++;
	CUDA(cudaStreamSynchronize(w->stream));
	w->syncs++;
	w->after_ns = now_ns();
}

static void allocate(struct worker *w)
{
	void *p;
	long i;

	for (i = 0; i < o.allocs; i++, w->allocs++) {
		CUDA(cudaMallocAsync(&p, ALLOC_BYTES, w->stream));
		CUDA(cudaFreeAsync(p, w->stream));
	}
}

/* Made, used, trimmed, destroyed. */
static void use_pools(struct worker *w)
{
	cudaMemPoolProps props;
	cudaMemPool_t pool;
	void *p;
	long i;

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	for (i = 0; i < o.pools; i++, w->pools++, w->allocs++, w->syncs++) {
		CUDA(cudaMemPoolCreate(&pool, &props));
		CUDA(cudaMallocFromPoolAsync(&p, ALLOC_BYTES, pool, w->stream));
		CUDA(cudaFreeAsync(p, w->stream));
		CUDA(cudaStreamSynchronize(w->stream));
		CUDA(cudaMemPoolTrimTo(pool, 0));
		CUDA(cudaMemPoolDestroy(pool));
	}
}

static void work(struct worker *w)
{
	long i;

	for (i = 0; i < o.copies; i++, w->copies++)
		CUDA(cudaMemcpyAsync(w->device, w->host, 65536, cudaMemcpyHostToDevice, w->stream));
	for (i = 0; i < o.sets; i++, w->sets++)
		CUDA(cudaMemsetAsync(w->device, 1, 4096, w->stream));
	for (i = 0; i < o.kernels; i++, w->launches++)
		launch(w, i);
	for (i = 0; i < o.graphs && w->graph; i++, w->graphs++)
		CUDA(cudaGraphLaunch(w->graph, w->stream));
	for (i = 0; i < o.peers && peer; i++, w->peers++)
		CUDA(cudaMemcpyPeerAsync(w->other, 1, w->device, 0, 65536, w->stream));
	if (o.copies) {
		CUDA(cudaMemcpyAsync(w->host, w->device, 1024, cudaMemcpyDeviceToHost, w->stream));
		w->copies++;
	}
}

static void one_step(struct worker *w)
{
	long i;

	work(w);
	allocate(w);
	use_pools(w);
	drive(w);
	launch_with_ids(w);
	expand(w);
	if (o.polls) {
		CUDA(cudaEventRecord(w->event, w->stream));
		w->events++;
		for (; cudaEventQuery(w->event) == cudaErrorNotReady; w->polls++)
			;
	}
	for (i = 0; i < o.events; i++, w->events++, w->syncs++) {
		CUDA(cudaEventRecord(w->event, w->stream));
		CUDA(cudaEventSynchronize(w->event));
	}
	if (!o.no_sync) {
		CUDA(cudaStreamSynchronize(w->stream));
		w->syncs++;
	}
	pause_us(o.step_us);
}

static void fork_one(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, &status, 0);
}

static void *run(void *arg)
{
	struct worker *w = (struct worker *)arg;
	long i;

	open_worker(w);
	bracket(w);
	for (i = 0; i < o.steps; i++) {
		if (w->number == 0 && tacho_step)
			tacho_step();
		if (o.graphs && o.late_graph && i == o.steps / 2)
			make_graph(w);
		if (w->number == 0 && o.fork && i == o.steps / 2)
			fork_one();
		one_step(w);
	}
	CUDA(cudaStreamSynchronize(w->stream));
	w->syncs++;
	return NULL;
}

static void read_options(int argc, char **argv)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
#define X(name, value) \
		if (!strcmp(argv[i], "--" #name)) \
			o.name = atol(argv[i + 1]);
		OPTIONS(X)
#undef X
	}
	if (o.threads > THREADS)
		o.threads = THREADS;
	if (o.lazies > LAZY_KERNELS)
		o.lazies = LAZY_KERNELS;
}

static void tell(void)
{
	struct worker sum;
	long i;

	memset(&sum, 0, sizeof(sum));
	for (i = 0; i < o.threads; i++) {
#define X(name) sum.name += workers[i].name;
		COUNTS(X)
#undef X
	}
	printf("{\"kernels\": %llu", sum.launches + sum.drives + sum.drives_ex + 3 * sum.graphs);
	sum.copies += sum.graphs + sum.peers;
	sum.sets += sum.graphs;
#define X(name) printf(", \"" #name "\": %llu", sum.name);
	COUNTS(X)
#undef X
	printf(", \"timed_ns\": %.0f, \"timed_events_ns\": %.0f", timed_ns, timed_events_ns);
	printf(", \"steps\": %ld, \"before_ns\": %llu, \"after_ns\": %llu}\n", o.steps,
	       workers[0].before_ns, workers[0].after_ns);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int count = 0, can = 0;
	long i;

	read_options(argc, argv);
	setenv("CUDA_MODULE_LOADING", "LAZY", 1);
	setenv("CUDA_CACHE_DISABLE", "1", 1); /* each module is compiled */
	pause_us(o.before_ms * 1000);
	*(void **)&tacho_step = dlsym(RTLD_DEFAULT, "tacho_step");
	if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
		fprintf(stderr, "known: no GPU\n");
		return 77;
	}
	find_driver();
	find_cupti();
	if (o.peers && count > 1 && cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess)
		peer = 1;
	for (i = 0; i < o.threads; i++) {
		workers[i].number = i;
		pthread_create(&threads[i], NULL, run, &workers[i]);
	}
	for (i = 0; i < o.threads; i++)
		pthread_join(threads[i], NULL);
	CUDA(cudaDeviceSynchronize());
	tell();
	if (o.quick) {
		fflush(stdout);
		_exit(0);
	}
	return 0;
}
