/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autograd.c - which forward operator a backward operator belongs to.
 *
 * Autograd numbers its nodes per thread.  A forward operator has the number that the next node of
 * its thread will get, so several operators may have one number, and the last of them to start made
 * the node.  A backward operator has the number of its node and autograd's own number of the thread
 * that ran the forward.  Its path continues below that forward operator's, behind the mark
 * PATH_BACKWARD.
 *
 * Forward operators inside a backward one are what activation checkpointing runs again, unless the
 * backward itself is recorded to be differentiated: then they include derivatives, and only modules
 * tell what is run again.
 */
#include "convert/stage/context/internal.h"

#include "schemas/base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
	FORWARDS_FIRST = 1 << 8,
	FORWARDS_MAX = 1 << 15, /* of a thread; of an older operator the backward is not found */
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
 * The track that autograd calls `id`.  It is learnt from the first number that only one thread has
 * given; 0 while several have.
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

	/* The engine's event and the node's in it have the same number. */
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

/* Whether a module is open inside of what the innermost mark of a path stands for. */
static bool has_module(const struct host *h, uint32_t path)
{
	const struct path_node *node = trace_get_path(h->trace, path);

	for (; node->parent && node->class < PATH_IDLE;
	     node = trace_get_path(h->trace, node->parent))
		if (node->class == RANGE_PYTHON && name_is_module(h, node->name))
			return true;
	return false;
}

/* Inside of a backward operator. */
static void enter_again(struct host *h, struct host_process *p, struct event *e)
{
	const char *name = trace_text(h->trace, e->name, NULL);

	if (e->subkind == RANGE_OP) {
		if (!e->number || trace_get_path(h->trace, e->path)->pass != PASS_BACKWARD)
			return;
		p->has_double_backward |= strstr(name, "backward") != NULL;
		if (!p->has_double_backward)
			e->path = trace_path_mark(h->trace, e->path, e->path, PATH_RECOMPUTE);
		return;
	}
	if (name_is_module(h, e->name) && !has_module(h, e->path)) {
		uint32_t module = host_name_info(h, e->name)->module;

		e->path = trace_path_mark(h->trace, module ? module : e->path, e->path,
					  PATH_RECOMPUTE);
	} else if (strstr(name, "checkpoint.py(") && strstr(name, ": recompute_fn")) {
		e->path = trace_path_mark(h->trace, e->path, e->path, PATH_RECOMPUTE);
	}
}

void autograd_enter(struct host *h, struct host_process *p, struct host_thread *t, struct event *e)
{
	bool is_forward = trace_get_path(h->trace, e->path)->pass == PASS_FORWARD;

	if (e->subkind == RANGE_OP && host_has_forward(h, e->schema))
		enter_backward(h, t, e);
	else if (!is_forward)
		enter_again(h, p, e);
	else if (e->subkind == RANGE_OP && host_is_autograd(h, e->name, e->schema))
		e->path = trace_path_mark(h->trace, e->path, e->path, PATH_BACKWARD);
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
