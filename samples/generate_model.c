/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/generate_model.h"

#include "schemas/model/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_NS                                                                                   \
	1790000000000000000u /* an arbitrary instant; ranks start within a millisecond of it */

enum { BUCKETS = 8, OPS_MOST = 256 };

/* Average durations in ns. */
enum {
	DATA_NS = 1500000,
	OP_NS = 22000,
	CALL_NS = 4200,
	LATENCY_NS = 3000,
	ALL_REDUCE_NS = 310000,
	COPY_NS = 190000,
};

static const struct kernel_form {
	const char *op, *kernel;
	uint32_t mean_ns, grid, block, registers;
} forms[] = {
	{ "aten::mm", "ampere_sgemm_128x64_tn", 61000, 320, 256, 122 },
	{ "aten::addmm", "ampere_sgemm_32x128_nn", 38000, 256, 256, 86 },
	{ "aten::native_layer_norm",
	  "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, "
	  "float, float const*, float const*, float const*, float*, float*, float*)",
	  9000, 4096, 128, 40 },
	{ "aten::gelu",
	  "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl"
	  "(at::TensorIteratorBase&)::{lambda()#1}, at::detail::Array<char*, 2> >(int)",
	  5200, 2048, 128, 24 },
	{ "aten::softmax",
	  "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>"
	  "(float*, float const*, int, int, int, bool const*, int, bool)",
	  7700, 1024, 128, 32 },
	{ "aten::add",
	  "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
	  "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)",
	  3100, 1536, 128, 18 },
	{ "aten::dropout",
	  "void at::native::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>"
	  "(float const*, float*, bool*)",
	  4400, 1536, 256, 34 },
	{ "aten::bmm", "ampere_sgemm_64x64_nt", 27000, 640, 128, 126 },
};
enum { FORMS = sizeof(forms) / sizeof(*forms) };

struct model {
	const struct model_request *req;
	struct trace *trace;
	model_put put;
	void *self;
	struct model_truth *truth;
	struct error *err;
	enum status status;
	uint64_t random;

	uint32_t process, main_thread, autograd, compute, comm, copies;
	uint32_t launch_call, copy_call;
	uint32_t plain_schema, launch_schema, copy_schema, kernel_schemas[FORMS];
	uint64_t correlation, sequence, first_gpu_ns, last_gpu_ns;
	uint64_t free_ns[3]; /* when the work of each stream ends */
	size_t reduces;      /* number of all-reduces so far */
	struct busy {        /* kernels of this step, in order of begin */
		uint64_t begin_ns[OPS_MOST], end_ns[OPS_MOST];
		size_t count;
	} compute_busy, comm_busy;
};

static uint64_t next_random(struct model *m)
{
	uint64_t z = m->random += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* Returns `mean` with a random deviation of up to 10 %, as a multiple of 32 ns like times of GPUs.
 */
static uint64_t around(struct model *m, uint64_t mean)
{
	uint64_t low = mean - mean / 10;

	return (low + next_random(m) % (mean / 5 + 1)) / 32 * 32 + 32;
}

static uint32_t name_of(struct model *m, const char *text)
{
	return trace_name(m->trace, text, strlen(text), m->err);
}

/* Returns the time that the clock of this host shows at the true time `ns`. */
static uint64_t told(const struct model *m, uint64_t ns)
{
	double away_s = (double)(int64_t)(ns - START_NS) / 1e9;

	return ns + (uint64_t)(m->req->skew_ns + (int64_t)((double)m->req->drift_ns * away_s));
}

static void put_event(struct model *m, struct event *given)
{
	struct event here = *given, *e = &here;
	struct event_desc s = { e->track, e->name, e->schema, e->kind, e->subkind };
	uint32_t desc;

	if (m->status != ST_OK)
		return;
	e->begin_ns = told(m, e->begin_ns);
	e->end_ns = told(m, e->end_ns);
	desc = trace_desc(m->trace, &s, m->err);
	m->status = desc ? m->put(m->self, e, desc, m->err) : m->err->status;
	m->truth->events++;
}

/* ---- tables ---- */

static struct attr attr_of(struct model *m, const char *key, uint8_t unit, uint64_t value)
{
	return (struct attr){
		.key = name_of(m, key), .type = ATTR_U64, .unit = unit, .bits = value
	};
}

static uint32_t track_of(struct model *m, enum track_type type, uint64_t id, const char *name)
{
	struct track k = {
		.type = type,
		.process = m->process,
		.name = name_of(m, name),
		.device = type == TRACK_STREAM ? 0 : NO_ID,
		.context = type == TRACK_STREAM ? 1 : NO_ID,
		.id = id,
	};

	return trace_track(m->trace, &k, m->err);
}

static uint32_t kernel_schema(struct model *m, const struct kernel_form *f)
{
	struct attr consts[] = {
		attr_of(m, "grid_x", UNIT_COUNT, f->grid),
		attr_of(m, "grid_y", UNIT_COUNT, 1),
		attr_of(m, "grid_z", UNIT_COUNT, 1),
		attr_of(m, "block_x", UNIT_COUNT, f->block),
		attr_of(m, "block_y", UNIT_COUNT, 1),
		attr_of(m, "block_z", UNIT_COUNT, 1),
		attr_of(m, "registers", UNIT_COUNT, f->registers),
	};
	struct arg_schema s = { .consts = consts, .const_count = sizeof(consts) / sizeof(*consts) };

	return trace_schema(m->trace, &s, m->err);
}

static uint32_t one_attr_schema(struct model *m, const char *key, uint8_t unit, uint64_t value)
{
	struct attr consts = attr_of(m, key, unit, value);
	struct arg_schema s = { .consts = &consts, .const_count = 1 };

	return trace_schema(m->trace, &s, m->err);
}

static void fill_tables(struct model *m)
{
	uint32_t per_host;
	char text[64];
	struct process p = { .pid = 4000 + m->req->rank,
			     .rank = m->req->rank,
			     .world_size = m->req->ranks };

	per_host = m->req->ranks_per_host ? m->req->ranks_per_host : 8;
	snprintf(text, sizeof(text), "synthetic-node-%u", m->req->rank / per_host);
	p.host = name_of(m, text);
	p.command = name_of(m, "synthetic training, no measurement");
	p.schema = one_attr_schema(m, "synthetic", UNIT_FLAG, 1);
	m->process = trace_process(m->trace, &p, m->err);
	struct device d = { .process = m->process, .name = name_of(m, "synthetic GPU") };
	trace_device(m->trace, &d, m->err);
	m->main_thread = track_of(m, TRACK_THREAD, p.pid, "python3");
	m->autograd = track_of(m, TRACK_THREAD, p.pid + 100000u, "pt_autograd_0");
	m->compute = track_of(m, TRACK_STREAM, 7, "");
	m->comm = track_of(m, TRACK_STREAM, 20, "");
	m->copies = track_of(m, TRACK_STREAM, 13, "");
	m->launch_call = name_of(m, "cudaLaunchKernel");
	m->copy_call = name_of(m, "cudaMemcpyAsync");
	m->launch_schema = one_attr_schema(m, "cbid", UNIT_ENUM, 211);
	m->copy_schema = one_attr_schema(m, "cbid", UNIT_ENUM, 41);
	for (size_t i = 0; i < FORMS; i++)
		m->kernel_schemas[i] = kernel_schema(m, &forms[i]);
	trace_provenance(m->trace)->is_synthetic = true;
}

/* ---- GPU work ---- */

static void add_busy(struct busy *b, const struct event *e)
{
	b->begin_ns[b->count] = e->begin_ns;
	b->end_ns[b->count] = e->end_ns;
	b->count += b->count + 1 < OPS_MOST;
}

static void count_gpu(struct model *m, const struct event *e)
{
	struct model_truth *t = m->truth;
	uint64_t length = e->end_ns - e->begin_ns;

	if (!m->first_gpu_ns || e->begin_ns < m->first_gpu_ns)
		m->first_gpu_ns = e->begin_ns;
	if (e->end_ns > m->last_gpu_ns)
		m->last_gpu_ns = e->end_ns;
	t->kernels += e->kind == KIND_KERNEL;
	t->copies += e->kind == KIND_MEMCPY;
	if (e->track == m->compute) {
		t->compute_ns += length;
		add_busy(&m->compute_busy, e);
	} else if (e->track == m->comm) {
		t->comm_ns += length;
		add_busy(&m->comm_busy, e);
	} else {
		t->copy_ns += length;
		t->exposed_copy_ns += length; /* the batch is copied before anything computes */
	}
}

/* Adds the communication that no compute kernel overlaps, at the end of a step, when all work has
 * ended. */
static void count_exposed(struct model *m)
{
	struct busy *comm = &m->comm_busy, *compute = &m->compute_busy;

	for (size_t i = 0; i < comm->count; i++) {
		uint64_t exposed = comm->end_ns[i] - comm->begin_ns[i];

		for (size_t k = 0; k < compute->count; k++) {
			uint64_t begin = compute->begin_ns[k] > comm->begin_ns[i]
						 ? compute->begin_ns[k]
						 : comm->begin_ns[i];
			uint64_t end = compute->end_ns[k] < comm->end_ns[i] ? compute->end_ns[k]
									    : comm->end_ns[i];
			exposed -= end > begin ? end - begin : 0;
		}
		m->truth->exposed_comm_ns += exposed;
	}
	comm->count = compute->count = 0;
}

/* Puts a call at `at` on `thread`, and its work on `stream` as soon as the stream is free. */
static uint64_t launch(struct model *m, uint64_t at, uint32_t thread, struct event gpu,
		       unsigned stream, uint64_t length)
{
	uint64_t begin, end = at + around(m, CALL_NS);
	struct event call = {
		.begin_ns = at,
		.end_ns = end,
		.correlation = ++m->correlation,
		.track = thread,
		.name = gpu.kind == KIND_MEMCPY ? m->copy_call : m->launch_call,
		.schema = gpu.kind == KIND_MEMCPY ? m->copy_schema : m->launch_schema,
		.kind = KIND_API,
	};

	begin = end + LATENCY_NS > m->free_ns[stream] ? end + LATENCY_NS : m->free_ns[stream] + 64;
	gpu.begin_ns = begin;
	gpu.end_ns = begin + length;
	gpu.correlation = call.correlation;
	m->free_ns[stream] = gpu.end_ns;
	put_event(m, &call);
	put_event(m, &gpu);
	count_gpu(m, &gpu);
	return end;
}

static bool is_slow(const struct model *m)
{
	return m->req->rank == m->req->slow_rank;
}

static uint64_t slowed(const struct model *m, uint64_t length)
{
	return is_slow(m) ? length + length * m->req->slow_percent / 100 : length;
}

/* Puts an operator that launches one kernel; returns its end. */
static uint64_t op(struct model *m, uint64_t at, uint32_t thread, const char *name, size_t form)
{
	struct event kernel = {
		.track = m->compute,
		.name = name_of(m, forms[form].kernel),
		.schema = m->kernel_schemas[form],
		.kind = KIND_KERNEL,
	};
	struct event range = {
		.begin_ns = at,
		.end_ns = at + (m->req->pace ? slowed(m, around(m, OP_NS)) : around(m, OP_NS)),
		.number = ++m->sequence,
		.track = thread,
		.name = name_of(m, name),
		.kind = KIND_RANGE,
		.subkind = RANGE_OP,
	};

	put_event(m, &range);
	launch(m, at + 6000, thread, kernel, 0, slowed(m, around(m, forms[form].mean_ns)));
	return range.end_ns;
}

/* ---- a step ---- */

static void annotation(struct model *m, uint64_t begin, uint64_t end, const char *name)
{
	struct event e = {
		.begin_ns = begin,
		.end_ns = end,
		.track = m->main_thread,
		.name = name_of(m, name),
		.kind = KIND_RANGE,
		.subkind = RANGE_ANNOTATION,
	};

	put_event(m, &e);
}

static uint64_t load_data(struct model *m, uint64_t at)
{
	uint64_t end = at + (m->req->pace ? DATA_NS : around(m, DATA_NS));
	struct event copy = {
		.track = m->copies,
		.name = name_of(m, "Memcpy HtoD (Pinned -> Device)"),
		.bytes = 4 << 20,
		.kind = KIND_MEMCPY,
		.subkind = 1, /* CUPTI: HtoD */
	};

	annotation(m, at, end, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
	m->truth->data_ns += end - at;
	launch(m, end - 20000, m->main_thread, copy, 2, around(m, COPY_NS));
	if (m->free_ns[0] < m->free_ns[2])
		m->free_ns[0] = m->free_ns[2]; /* the first kernel waits for the batch */
	return end;
}

static uint64_t forward(struct model *m, uint64_t at)
{
	uint64_t begin = at;

	for (size_t i = 0; i < m->req->ops; i++)
		at = op(m, at, m->main_thread, forms[i % FORMS].op, i % FORMS);
	m->truth->forward_ns += at - begin;
	return at;
}

static struct model_met *pace_add(struct model *m)
{
	struct model_pace *p = m->req->pace;
	size_t cap = p->cap ? p->cap * 2 : 256;
	struct model_met *wider;

	if (p->count == p->cap) {
		wider = realloc(p->met, cap * sizeof(*wider));
		if (!wider) {
			m->status = fail(m->err, ST_MEMORY, NOWHERE, "no memory for a job");
			return NULL;
		}
		p->met = wider;
		p->cap = cap;
	}
	return &p->met[p->count++];
}

void model_pace_release(struct model_pace *p)
{
	free(p->met);
	*p = (struct model_pace){ 0 };
}

/* Puts an all-reduce that ends when that of the slow rank does, which arrives last. */
static void all_reduce_together(struct model *m, uint64_t at, struct event comm)
{
	uint64_t length = around(m, ALL_REDUCE_NS / 4), begin, end;
	struct model_met *met;

	if (m->free_ns[1] < m->free_ns[0])
		m->free_ns[1] = m->free_ns[0]; /* it waits for the gradients */
	if (is_slow(m)) {
		launch(m, at, m->autograd, comm, 1, length);
		met = m->reduces == m->req->pace->count ? pace_add(m) : NULL;
		if (met)
			*met = (struct model_met){ m->free_ns[1], length };
	} else if (m->reduces < m->req->pace->count) {
		met = &m->req->pace->met[m->reduces];
		/* the work begins after the latest possible end of its call */
		begin = m->free_ns[1] + 64;
		end = at + CALL_NS + CALL_NS / 10 + LATENCY_NS + 128;
		begin = begin > end ? begin : end;
		m->free_ns[1] = begin - 64;
		length = met->end_ns - begin;
		if (met->end_ns < begin + met->length_ns)
			length = met->length_ns;
		launch(m, at, m->autograd, comm, 1, length);
		m->truth->wait_ns += length - met->length_ns;
	}
	m->reduces++;
}

static void all_reduce(struct model *m, uint64_t at)
{
	struct event comm = {
		.track = m->comm,
		.name = name_of(m, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"),
		.schema = m->kernel_schemas[0],
		.kind = KIND_KERNEL,
	};

	if (m->req->pace)
		all_reduce_together(m, at, comm);
	else
		launch(m, at, m->autograd, comm, 1, around(m, ALL_REDUCE_NS));
}

static uint64_t backward(struct model *m, uint64_t at)
{
	uint64_t begin = at, bucket = m->req->ops < BUCKETS ? 1 : m->req->ops / BUCKETS;
	char name[64];

	for (size_t i = 0; i < m->req->ops; i++) {
		const struct kernel_form *f = &forms[FORMS - 1 - i % FORMS];

		snprintf(name, sizeof(name), "autograd::engine::evaluate_function: %sBackward0",
			 f->op + 6);
		at = op(m, at, m->autograd, name, (size_t)(f - forms));
		if ((i + 1) % bucket == 0)
			all_reduce(m, at - 8000);
	}
	m->truth->backward_ns += at - begin;
	return at;
}

static uint64_t optimize(struct model *m, uint64_t at)
{
	uint64_t begin = at;

	at += 4000;
	for (size_t i = 0; i < 4; i++)
		at = op(m, at, m->main_thread, "aten::_foreach_add_", 5);
	at += 4000;
	annotation(m, begin, at, "Optimizer.step#AdamW.step");
	m->truth->optimizer_ns += at - begin;
	return at;
}

/* Puts a step, which ends when the GPU is idle: no work reaches into the next step, so the figures
 * of steps can be added up. */
static uint64_t step(struct model *m, uint64_t at)
{
	char name[32];
	uint64_t begin = at, latest = 0;
	uint64_t number = m->truth->steps++;

	at = load_data(m, at);
	at = forward(m, at);
	at = backward(m, at);
	at = optimize(m, at);
	for (size_t i = 0; i < 3; i++)
		latest = m->free_ns[i] > latest ? m->free_ns[i] : latest;
	if (at < latest)
		at = latest;
	snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)number);
	annotation(m, begin, at, name);
	count_exposed(m);
	m->truth->wall_ns += at - begin;
	return at;
}

enum status model_run(const struct model_request *req, struct trace *trace, model_put put,
		      void *self, struct model_truth *truth, struct error *err)
{
	struct error own = { 0 };
	struct model m = {
		.req = req,
		.trace = trace,
		.put = put,
		.self = self,
		.truth = truth,
		.err = err ? err : &own,
		.random = req->seed * 1000003u + req->rank,
	};
	uint64_t at = START_NS + (req->pace ? 0 : next_random(&m) % 1000000);

	*truth = (struct model_truth){ 0 };
	fill_tables(&m);
	while (truth->events < req->events && m.status == ST_OK)
		at = step(&m, at);
	truth->span_ns = m.last_gpu_ns - m.first_gpu_ns;
	return m.status;
}
