/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known.cu - a program that knows what it asked of the GPU, and tells it as one line of JSON.
 *
 *	known [--OPTION NUMBER]...      options: the table below
 *
 * A step of a thread is: copies to the device, sets, kernels, launches of a graph (3 kernels, a copy,
 * a set), copies from GPU 0 to GPU 1, one copy back, allocations from a pool, an event recorded and
 * waited for, a wait for the stream.  Where libtacho.so is loaded tacho_step() marks the steps of the
 * first thread.
 */
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
	X(allocs, 0) X(events, 1) X(spin_us, 5) X(step_us, 0) X(late_graph, 0) X(fork, 0) \
	X(before_ms, 0) X(no_sync, 0)

static struct options {
#define X(name, value) long name;
	OPTIONS(X)
#undef X
} o = {
#define X(name, value) value,
	OPTIONS(X)
#undef X
};

enum { BYTES = 1 << 20 };

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

struct worker {
	long number;
	cudaStream_t stream;
	cudaEvent_t event;
	cudaGraphExec_t graph;
	char *host, *device, *other;
	long long cycles;
	unsigned long long launches, copies, sets, graphs, peers, allocs, syncs, events;
	unsigned long long before_ns, after_ns; /* round the first kernel and a wait for it */
};
static struct worker workers[64];
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

static void launch(struct worker *w, long i)
{
	if (i % 2)
		spin<1><<<1, 32, 0, w->stream>>>(w->cycles, NULL);
	else
		spin<0><<<2, 64, 0, w->stream>>>(w->cycles, NULL);
}

static void make_graph(struct worker *w)
{
	cudaGraph_t graph;
	int i;

	CUDA(cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
	for (i = 0; i < 3; i++)
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

static void pool(struct worker *w)
{
	void *p;
	long i;

	for (i = 0; i < o.allocs; i++) {
		CUDA(cudaMallocAsync(&p, 65536, w->stream));
		CUDA(cudaFreeAsync(p, w->stream));
		w->allocs++;
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
	pool(w);
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
	if (o.threads > 64)
		o.threads = 64;
}

static void tell(void)
{
	struct worker sum;
	long i;

	memset(&sum, 0, sizeof(sum));
	for (i = 0; i < o.threads; i++) {
		const struct worker *w = &workers[i];

		sum.launches += w->launches;
		sum.copies += w->copies;
		sum.sets += w->sets;
		sum.graphs += w->graphs;
		sum.peers += w->peers;
		sum.allocs += w->allocs;
		sum.syncs += w->syncs;
		sum.events += w->events;
	}
	printf("{\"kernels\": %llu, \"launches\": %llu, \"copies\": %llu, \"sets\": %llu, "
	       "\"graphs\": %llu, \"peers\": %llu, \"allocs\": %llu, \"syncs\": %llu, "
	       "\"events\": %llu, \"steps\": %ld, \"before_ns\": %llu, \"after_ns\": %llu}\n",
	       sum.launches + 3 * sum.graphs, sum.launches, sum.copies + sum.graphs + sum.peers,
	       sum.sets + sum.graphs, sum.graphs, sum.peers, sum.allocs, sum.syncs, sum.events,
	       o.steps, workers[0].before_ns, workers[0].after_ns);
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int count = 0, can = 0;
	long i;

	read_options(argc, argv);
	pause_us(o.before_ms * 1000);
	*(void **)&tacho_step = dlsym(RTLD_DEFAULT, "tacho_step");
	if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
		fprintf(stderr, "known: no GPU\n");
		return 77;
	}
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
	return 0;
}
