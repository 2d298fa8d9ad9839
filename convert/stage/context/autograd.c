/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autograd.c - finds the forward operator that a backward operator belongs to.
 *
 * Autograd numbers its nodes per thread.  A forward operator has the number of the next node of its
 * thread, so several operators may share one number; the last of them made the node.  A backward
 * operator has the number of its node and that of the forward thread.  Its path continues below the
 * forward operator, after the mark PATH_BACKWARD.  Forward operators inside a backward one are
 * recomputation of activation checkpointing, unless the backward itself is recorded to be
 * differentiated.
 */
#include "convert/stage/context/internal.h"

#include "convert/name/name.h"
#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	FORWARDS_FIRST = 1 << 8,
	FORWARDS_MAX = 1 << 15, /* per thread; the backward of older operators is not found */
};

static const struct forward_op *forward_find(const struct host_thread *t, uint64_t number)
{
	const struct forward_op *one;

	if (!t->forwards.cap)
		return NULL;
	one = &t->forwards.items[number & (t->forwards.cap - 1)];
	return one->node && one->number == number ? one : NULL;
}

static enum status forward_put(struct forward_ops *f, struct forward_op op, struct error *err)
{
	struct forward_op *at = f->cap ? &f->items[op.number & (f->cap - 1)] : NULL;

	if (at && (!at->node || at->number == op.number || f->cap >= FORWARDS_MAX)) {
		*at = op;
		return ST_OK;
	}
	struct forward_ops wider = { .cap = f->cap ? f->cap * 2 : FORWARDS_FIRST };
	TRY(vec_new(&wider.items, wider.cap, err));
	for (size_t i = 0; i < f->cap; i++)
		if (f->items[i].node)
			wider.items[f->items[i].number & (wider.cap - 1)] = f->items[i];
	free(f->items);
	*f = wider;
	return forward_put(f, op, err);
}

/*
 * Returns the track of the thread that autograd numbers `id`, or 0.  The relation is learnt from
 * the first sequence number that occurs on only one thread; until then the result is 0.
 */
static uint32_t forward_thread(struct host *h, uint32_t process, uint64_t id, uint64_t number)
{
	uint64_t key = (uint64_t)process << 32 | (uint32_t)id, *known;
	uint32_t found = 0;

	known = map_find(&h->forward_threads, key);
	if (known)
		return (uint32_t)*known;
	for (uint32_t i = 1; i <= h->thread_count; i++) {
		if (h->threads[i].process != process || !forward_find(&h->threads[i], number))
			continue;
		if (found)
			return 0;
		found = i;
	}
	known = found ? map_put(&h->forward_threads, key, NULL) : NULL;
	if (known)
		*known = found;
	return found;
}

static void enter_backward(struct host *h, struct host_thread *t, struct event *e)
{
	const struct attr *id = trace_find_attr(h->trace, e->schema, "fwd_thread");
	const struct forward_op *forward;

	/* The engine's event and the node's event inside it have the same number. */
	if (t->backward_until_ns > e->begin_ns && t->backward_number == e->number)
		return;
	t->backward_number = e->number;
	t->backward_until_ns = e->end_ns;
	forward = forward_find(host_thread(h, forward_thread(h, t->process, id->bits, e->number)),
			       e->number);
	e->path = trace_path_mark(h->trace, forward ? forward->node : e->path, e->path,
				  PATH_BACKWARD);
}

static bool name_is_module(const struct host *h, uint32_t name)
{
	return !strncmp(trace_text(h->trace, name, NULL), "nn.Module: ", 11);
}

/* Returns whether a module is open inside the innermost mark (PATH_BACKWARD, PATH_RECOMPUTE) of a
 * path. */
static bool has_module(const struct host *h, uint32_t path)
{
	const struct path_node *node = trace_get_path(h->trace, path);

	for (; node->parent && node->class < PATH_IDLE;
	     node = trace_get_path(h->trace, node->parent))
		if (node->class == RANGE_PYTHON && name_is_module(h, node->name))
			return true;
	return false;
}

/* Returns whether the innermost operator of a path is a node of autograd, or the engine's event
 * around it.  If `in_checkpoint`, returns whether the path contains the node by which checkpointing
 * runs a backward of its own. */
static bool is_in_node(const struct host *h, uint32_t path, bool in_checkpoint)
{
	const struct path_node *node;

	for (; path; path = node->parent) {
		node = trace_get_path(h->trace, path);
		const char *name =
			node->class == RANGE_OP ? trace_text(h->trace, node->name, NULL) : "";
		if (in_checkpoint ? strstr(name, "CheckpointFunctionBackward") != NULL
				  : name_is_autograd(name))
			return true;
		if (node->class >= PATH_IDLE || (!in_checkpoint && node->class == RANGE_OP))
			return false;
	}
	return false;
}

/*
 * Finds out whether an operator inside a backward one is recomputation.  An operator has a sequence
 * number if it is recorded to be differentiated.  That holds for recomputation, and for all of a
 * backward that is itself differentiated, in which only operators that create tensors have none.
 * Derivatives never call the operators of a layer's forward, so these are recomputation.  If Python
 * frames are known, those of checkpointing decide.
 */
static void enter_inner(struct host *h, const struct host_process *p, struct host_thread *t,
			struct event *e)
{
	static const char *const making[] = { "aten::zeros", "aten::empty", "aten::ones",
					      "aten::full", "aten::scalar_tensor" };
	const char *name = trace_text(h->trace, e->name, NULL);

	if (trace_get_path(h->trace, e->path)->pass != PASS_BACKWARD ||
	    host_is_autograd(h, e->name, e->schema))
		return;
	if (e->number) {
		if (name_is_layer(name))
			t->plain_ns = e->begin_ns;
		bool is_plain = t->plain_ns > p->forward_ns && !open_last(&t->python, e->begin_ns);

		if (is_plain || is_in_node(h, e->path, true))
			e->path = trace_path_mark(h->trace, e->path, e->path, PATH_RECOMPUTE);
		return;
	}
	for (size_t i = 0; i < sizeof(making) / sizeof(*making); i++)
		if (!strncmp(name, making[i], strlen(making[i])))
			return;
	if (t->plain_ns <= p->forward_ns && is_in_node(h, e->path, false))
		t->plain_ns = e->begin_ns;
}

/* Handles a Python function inside a backward operator. */
static void enter_function(struct host *h, struct event *e)
{
	const char *name = trace_text(h->trace, e->name, NULL),
		   *file = strstr(name, "checkpoint.py(");

	if (name_is_module(h, e->name) && !has_module(h, e->path)) {
		uint32_t module = host_name_info(h, e->name)->module;

		e->path = trace_path_mark(h->trace, module ? module : e->path, e->path,
					  PATH_RECOMPUTE);
	} else if (file && strstr(file, ": recompute_fn")) {
		e->path = trace_path_mark(h->trace, e->path, e->path, PATH_RECOMPUTE);
	}
}

void autograd_enter(struct host *h, struct host_process *p, struct host_thread *t, struct event *e)
{
	bool is_forward = trace_get_path(h->trace, e->path)->pass == PASS_FORWARD;

	if (e->subkind == RANGE_OP && host_is_autograd(h, e->name, e->schema)) {
		p->is_stale |= p->backward_at <= p->mark_begin_ns; /* the first since the mark */
		p->backward_at = e->begin_ns + 1;
	}
	if (e->subkind == RANGE_OP && host_has_forward(h, e->schema))
		enter_backward(h, t, e);
	else if (!is_forward && e->subkind == RANGE_OP)
		enter_inner(h, p, t, e);
	else if (!is_forward)
		enter_function(h, e);
	else if (e->subkind == RANGE_OP && host_is_autograd(h, e->name, e->schema))
		e->path = trace_path_mark(h->trace, e->path, e->path, PATH_BACKWARD);
	else if (e->subkind == RANGE_OP && e->number)
		p->forward_ns = e->begin_ns;
}

enum status autograd_entered(struct host *h, struct host_thread *t, const struct event *e,
			     uint32_t node, struct error *err)
{
	struct name_info *n;

	if (e->subkind == RANGE_OP && e->number && node && !host_has_forward(h, e->schema))
		return forward_put(&t->forwards, (struct forward_op){ e->number, node }, err);
	if (e->subkind != RANGE_PYTHON)
		return ST_OK;
	n = host_name_info(h, e->name);
	if (n != h->names && !n->module && trace_get_path(h->trace, node)->pass == PASS_FORWARD)
		n->module = node;
	return ST_OK;
}
