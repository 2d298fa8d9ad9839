/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_mlp.c - a small training loop on the CPU, marked with tacho.h.
 *
 * A network of two hidden layers learns to separate three spirals.  The program needs nothing but
 * libc, runs for a second, and has the steps of training loops: it loads a batch, runs forward and
 * backward, updates the weights by Adam, and sometimes evaluates the network.  Its results do not
 * depend on whether it is recorded.
 *
 *	train_mlp [--steps N] [--batch N] [--seed S] [--slow STEP:MS] [--quiet]
 *	tacho-record --window steps:10-60 -- train_mlp
 *
 * --slow makes the data phase of one step MS longer, for the report to find.
 */
#include "collector/api/tacho.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	INPUTS = 2,
	HIDDEN = 64,
	CLASSES = 3,
	LAYERS = 3,
	POINTS = 3000,
	HELD_OUT = 600,
	BATCH_MAX = 1024,
	EVALUATE_EVERY = 50,
};
static const int widths[LAYERS + 1] = { INPUTS, HIDDEN, HIDDEN, CLASSES };

struct options {
	int steps, batch, seed, slow_step, slow_ms, quiet;
};

struct layer {
	int in, out;
	float *weight, *bias; /* out x in, out */
	float *weight_grad, *bias_grad;
	float *moments;              /* of Adam: first and second of weights, then of biases */
	float *output, *output_grad; /* BATCH_MAX x out */
	char range[16];
};

static struct layer layers[LAYERS];
static float points[POINTS][INPUTS];
static int labels[POINTS];
static float batch_inputs[BATCH_MAX * INPUTS];
static int batch_labels[BATCH_MAX];
static uint64_t random_state;

/* Returns a random number by xorshift64*, so that a seed gives the same run on any machine. */
static double uniform(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (double)((random_state * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	double u = uniform(), v = uniform();

	return sqrt(-2 * log(u + 1e-12)) * cos(6.283185307179586 * v);
}

static float *floats(size_t count)
{
	float *p = calloc(count, sizeof(float));

	if (!p) {
		fprintf(stderr, "train_mlp: out of memory\n");
		exit(1);
	}
	return p;
}

/* ---- data ---- */

static void make_points(void)
{
	int i;

	for (i = 0; i < POINTS; i++) {
		double along = uniform(), angle;

		labels[i] = i % CLASSES;
		angle = 4.5 * along + labels[i] * (6.283185307179586 / CLASSES) + 0.12 * normal();
		points[i][0] = (float)(along * cos(angle));
		points[i][1] = (float)(along * sin(angle));
	}
}

static void load_point(int slot, int point, double noise)
{
	int k;

	for (k = 0; k < INPUTS; k++)
		batch_inputs[slot * INPUTS + k] = points[point][k] + (float)(noise * normal());
	batch_labels[slot] = labels[point];
}

static void wait_ms(int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

static void load_batch(const struct options *o, int step)
{
	int i;

	tacho_phase_push("data");
	for (i = 0; i < o->batch; i++)
		load_point(i, HELD_OUT + (int)(uniform() * (POINTS - HELD_OUT)), 0.01);
	if (step == o->slow_step)
		wait_ms(o->slow_ms);
	tacho_phase_pop();
}

/* ---- network ---- */

static void make_layers(void)
{
	int i, k, n;

	for (i = 0; i < LAYERS; i++) {
		struct layer *l = &layers[i];

		l->in = widths[i];
		l->out = widths[i + 1];
		n = l->in * l->out;
		l->weight = floats((size_t)n);
		l->weight_grad = floats((size_t)n);
		l->bias = floats((size_t)l->out);
		l->bias_grad = floats((size_t)l->out);
		l->moments = floats(2 * (size_t)(n + l->out));
		l->output = floats((size_t)BATCH_MAX * (size_t)l->out);
		l->output_grad = floats((size_t)BATCH_MAX * (size_t)l->out);
		for (k = 0; k < n; k++)
			l->weight[k] = (float)(normal() * sqrt(2.0 / l->in));
		snprintf(l->range, sizeof(l->range), "layer %d", i + 1);
	}
}

static void layer_forward(struct layer *l, const float *input, int rows, int is_last)
{
	int r, o, k;

	tacho_range_push(l->range);
	for (r = 0; r < rows; r++)
		for (o = 0; o < l->out; o++) {
			const float *x = input + r * l->in, *w = l->weight + o * l->in;
			float sum = l->bias[o];

			for (k = 0; k < l->in; k++)
				sum += x[k] * w[k];
			l->output[r * l->out + o] = is_last || sum > 0 ? sum : 0;
		}
	tacho_range_pop();
}

static void network_forward(int rows)
{
	const float *input = batch_inputs;
	int i;

	for (i = 0; i < LAYERS; i++) {
		layer_forward(&layers[i], input, rows, i == LAYERS - 1);
		input = layers[i].output;
	}
}

/* Returns the cross entropy after softmax, and stores the gradient of the last layer's output. */
static double loss_of(int rows, int *right)
{
	struct layer *l = &layers[LAYERS - 1];
	double loss = 0;
	int r, o;

	*right = 0;
	for (r = 0; r < rows; r++) {
		const float *z = l->output + r * CLASSES;
		float *grad = l->output_grad + r * CLASSES;
		double sum = 0;
		int best = 0;

		for (o = 1; o < CLASSES; o++)
			best = z[o] > z[best] ? o : best;
		for (o = 0; o < CLASSES; o++)
			sum += exp((double)z[o] - z[best]);
		for (o = 0; o < CLASSES; o++)
			grad[o] = (float)((exp((double)z[o] - z[best]) / sum -
					   (o == batch_labels[r])) /
					  rows);
		loss -= (double)z[batch_labels[r]] - z[best] - log(sum);
		*right += best == batch_labels[r];
	}
	return loss / rows;
}

/* `input_grad` is NULL for the first layer. */
static void layer_backward(struct layer *l, const float *input, float *input_grad, int rows)
{
	int r, o, k;

	memset(l->weight_grad, 0, (size_t)(l->in * l->out) * sizeof(float));
	memset(l->bias_grad, 0, (size_t)l->out * sizeof(float));
	if (input_grad)
		memset(input_grad, 0, (size_t)(rows * l->in) * sizeof(float));
	for (r = 0; r < rows; r++)
		for (o = 0; o < l->out; o++) {
			float grad = l->output_grad[r * l->out + o];
			const float *x = input + r * l->in;

			l->bias_grad[o] += grad;
			for (k = 0; k < l->in; k++)
				l->weight_grad[o * l->in + k] += grad * x[k];
			for (k = 0; input_grad && k < l->in; k++)
				if (x[k] > 0) /* the ReLU of the layer below */
					input_grad[r * l->in + k] +=
						grad * l->weight[o * l->in + k];
		}
}

static void network_backward(int rows)
{
	int i;

	tacho_phase_push("backward");
	for (i = LAYERS - 1; i >= 0; i--) {
		tacho_range_push(layers[i].range);
		layer_backward(&layers[i], i ? layers[i - 1].output : batch_inputs,
			       i ? layers[i - 1].output_grad : NULL, rows);
		tacho_range_pop();
	}
	tacho_phase_pop();
}

static void adam(float *value, const float *grad, float *moments, int count, int step)
{
	const double rate = 0.01, one = 0.9, two = 0.999;
	double fix_one = 1 - pow(one, step + 1), fix_two = 1 - pow(two, step + 1);
	float *first = moments, *second = moments + count;
	int i;

	for (i = 0; i < count; i++) {
		first[i] = (float)(one * first[i] + (1 - one) * grad[i]);
		second[i] = (float)(two * second[i] + (1 - two) * grad[i] * grad[i]);
		value[i] -=
			(float)(rate * (first[i] / fix_one) / (sqrt(second[i] / fix_two) + 1e-8));
	}
}

static void optimize(int step)
{
	int i, n;

	tacho_phase_push("optimizer");
	for (i = 0; i < LAYERS; i++) {
		struct layer *l = &layers[i];

		n = l->in * l->out;
		adam(l->weight, l->weight_grad, l->moments, n, step);
		adam(l->bias, l->bias_grad, l->moments + 2 * n, l->out, step);
	}
	tacho_phase_pop();
}

/* Returns the share of correct results on the points that no batch contains. */
static double evaluate(void)
{
	int i, right;

	tacho_phase_push("evaluation");
	for (i = 0; i < HELD_OUT; i++)
		load_point(i, i, 0);
	network_forward(HELD_OUT);
	loss_of(HELD_OUT, &right);
	tacho_phase_pop();
	return (double)right / HELD_OUT;
}

/* ---- the loop ---- */

static double train_step(const struct options *o, int step)
{
	double loss;
	int right;

	load_batch(o, step);
	tacho_phase_push("forward");
	network_forward(o->batch);
	loss = loss_of(o->batch, &right);
	tacho_phase_pop();
	network_backward(o->batch);
	optimize(step);
	tacho_counter("loss", loss);
	tacho_counter("samples", o->batch);
	return loss;
}

static void train(const struct options *o)
{
	double loss = 0, accuracy = 0;
	int step;

	for (step = 0; step < o->steps; step++) {
		tacho_step();
		loss = train_step(o, step);
		if ((step + 1) % EVALUATE_EVERY && step + 1 != o->steps)
			continue;
		accuracy = evaluate();
		tacho_counter("accuracy", accuracy);
		if (!o->quiet)
			printf("step %5d  loss %.4f  accuracy %.3f\n", step + 1, loss, accuracy);
	}
	tacho_epoch_end();
	if (o->quiet)
		printf("loss %.4f accuracy %.3f\n", loss, accuracy);
}

static int usage(const char *what)
{
	fprintf(stderr,
		"train_mlp: %s\nusage: train_mlp [--steps N] [--batch N] [--seed S] "
		"[--slow STEP:MS] [--quiet]\n",
		what);
	return 2;
}

static int parse(struct options *o, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--quiet")) {
			o->quiet = 1;
			continue;
		}
		if (!strcmp(argv[i], "--steps"))
			o->steps = atoi(value);
		else if (!strcmp(argv[i], "--batch"))
			o->batch = atoi(value);
		else if (!strcmp(argv[i], "--seed"))
			o->seed = atoi(value);
		else if (strcmp(argv[i], "--slow") != 0 ||
			 sscanf(value, "%d:%d", &o->slow_step, &o->slow_ms) != 2)
			return usage(argv[i]);
		i++;
	}
	if (o->steps < 1 || o->batch < 1 || o->batch > BATCH_MAX || o->slow_ms < 0)
		return usage("--steps and --batch are 1 or more, --batch at most 1024");
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .steps = 300, .batch = 128, .seed = 1, .slow_step = -1 };
	int status = parse(&o, argc, argv);

	if (status)
		return status;
	random_state = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(o.seed + 1) | 1;
	make_points();
	make_layers();
	train(&o);
	return 0;
}
