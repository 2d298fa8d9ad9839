/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_mlp.cu - the loop of train_mlp.c on a GPU: products by cuBLAS, the rest by small kernels.
 *
 *	train_mlp_cuda [--steps N] [--batch N] [--hidden N] [--seed S] [--slow STEP:MS] [--quiet]
 *	tacho-record --window steps:10-60 -- train_mlp_cuda
 *
 * Without a GPU it reports that and exits with 0.  Matrices are stored by rows; cuBLAS expects
 * columns, so it computes the transposed product.
 */
#include "collector/api/tacho.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INPUTS = 2, CLASSES = 3, LAYERS = 3, POINTS = 30000, HELD_OUT = 4096, EVERY = 50 };
enum { BATCH_MAX = 65536, THREADS = 256 };

struct options {
	int steps, batch, hidden, seed, slow_step, slow_ms, quiet;
};

struct layer {
	int in, out;
	float *weight, *bias, *weight_grad, *bias_grad, *weight_moments, *bias_moments;
	float *output, *output_grad; /* rows x out */
};

static struct layer layers[LAYERS];
static float *inputs, *losses; /* on the device; `losses`: of each row, then 1 for each right row */
static int *labels;
static float *host_inputs, *host_losses; /* pinned */
static int *host_labels;
static float points[POINTS][INPUTS];
static int point_labels[POINTS];
static cublasHandle_t blas;
static unsigned long long random_state;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "train_mlp_cuda: %s: %s\n", what, why);
	exit(1);
}

static void cuda(cudaError_t status, const char *what)
{
	if (status != cudaSuccess)
		die(what, cudaGetErrorString(status));
}

static void cublas(cublasStatus_t status, const char *what)
{
	if (status != CUBLAS_STATUS_SUCCESS)
		die(what, cublasGetStatusString(status));
}

static double uniform(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (double)((random_state * 2685821657736338717ull) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	double u = uniform(), v = uniform();

	return sqrt(-2 * log(u + 1e-12)) * cos(6.283185307179586 * v);
}

static float *device_floats(size_t count)
{
	float *p;

	cuda(cudaMalloc(&p, count * sizeof(float)), "cudaMalloc");
	cuda(cudaMemset(p, 0, count * sizeof(float)), "cudaMemset");
	return p;
}

/* ---- kernels ---- */

__global__ void bias_relu(float *y, const float *bias, int rows, int out, int is_last)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float v;

	if (i >= rows * out)
		return;
	v = y[i] + bias[i % out];
	y[i] = is_last || v > 0 ? v : 0;
}

/* Computes softmax and cross entropy of a row, and the gradient of its outputs. */
__global__ void softmax_loss(const float *z, const int *label, float *grad, float *loss, int rows)
{
	int r = blockIdx.x * blockDim.x + threadIdx.x, best = 0, o;
	float sum = 0;

	if (r >= rows)
		return;
	z += r * CLASSES;
	for (o = 1; o < CLASSES; o++)
		best = z[o] > z[best] ? o : best;
	for (o = 0; o < CLASSES; o++)
		sum += expf(z[o] - z[best]);
	for (o = 0; o < CLASSES; o++)
		grad[r * CLASSES + o] = (expf(z[o] - z[best]) / sum - (o == label[r])) / rows;
	loss[r] = logf(sum) - (z[label[r]] - z[best]);
	loss[rows + r] = best == label[r];
}

/* Sets the gradient of outputs that were not above zero to 0. */
__global__ void relu_back(float *grad, const float *y, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count && y[i] <= 0)
		grad[i] = 0;
}

__global__ void bias_back(const float *grad, float *bias_grad, int rows, int out)
{
	int o = blockIdx.x * blockDim.x + threadIdx.x, r;
	float sum = 0;

	if (o >= out)
		return;
	for (r = 0; r < rows; r++)
		sum += grad[r * out + o];
	bias_grad[o] = sum;
}

__global__ void adam(float *value, const float *grad, float *moments, int count, float fix_one,
		     float fix_two)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float first, second;

	if (i >= count)
		return;
	first = moments[i] = 0.9f * moments[i] + 0.1f * grad[i];
	second = moments[count + i] = 0.999f * moments[count + i] + 0.001f * grad[i] * grad[i];
	value[i] -= 0.003f * (first / fix_one) / (sqrtf(second / fix_two) + 1e-8f);
}

static int blocks(int count)
{
	return (count + THREADS - 1) / THREADS;
}

/* ---- data ---- */

static void make_points(void)
{
	int i;

	for (i = 0; i < POINTS; i++) {
		double along = uniform(), angle;

		point_labels[i] = i % CLASSES;
		angle = 4.5 * along + point_labels[i] * (6.283185307179586 / CLASSES) +
			0.12 * normal();
		points[i][0] = (float)(along * cos(angle));
		points[i][1] = (float)(along * sin(angle));
	}
}

static void load_point(int slot, int point, double noise)
{
	int k;

	for (k = 0; k < INPUTS; k++)
		host_inputs[slot * INPUTS + k] = points[point][k] + (float)(noise * normal());
	host_labels[slot] = point_labels[point];
}

static void copy_to_device(int rows)
{
	cuda(cudaMemcpyAsync(inputs, host_inputs, (size_t)rows * INPUTS * sizeof(float),
			     cudaMemcpyHostToDevice), "copy of inputs");
	cuda(cudaMemcpyAsync(labels, host_labels, (size_t)rows * sizeof(int),
			     cudaMemcpyHostToDevice), "copy of labels");
}

static void load_batch(const struct options *o, int step)
{
	struct timespec wait = { o->slow_ms / 1000, (long)(o->slow_ms % 1000) * 1000000 };
	int i;

	tacho_phase_push("data");
	for (i = 0; i < o->batch; i++)
		load_point(i, HELD_OUT + (int)(uniform() * (POINTS - HELD_OUT)), 0.01);
	if (step == o->slow_step)
		nanosleep(&wait, NULL);
	copy_to_device(o->batch);
	tacho_phase_pop();
}

/* ---- network ---- */

static void make_layer(struct layer *l, int in, int out, int rows)
{
	size_t count = (size_t)in * (size_t)out, i;
	float *start = (float *)malloc(count * sizeof(float));

	if (!start)
		die("weights", "out of memory");
	for (i = 0; i < count; i++)
		start[i] = (float)(normal() * sqrt(2.0 / in));
	l->in = in;
	l->out = out;
	l->weight = device_floats(count);
	l->weight_grad = device_floats(count);
	l->weight_moments = device_floats(2 * count);
	l->bias = device_floats((size_t)out);
	l->bias_grad = device_floats((size_t)out);
	l->bias_moments = device_floats(2 * (size_t)out);
	l->output = device_floats((size_t)rows * (size_t)out);
	l->output_grad = device_floats((size_t)rows * (size_t)out);
	cuda(cudaMemcpy(l->weight, start, count * sizeof(float), cudaMemcpyHostToDevice),
	     "copy of weights");
	free(start);
}

static void make_network(const struct options *o)
{
	int rows = o->batch > HELD_OUT ? o->batch : HELD_OUT;
	int widths[LAYERS + 1] = { INPUTS, o->hidden, o->hidden, CLASSES }, i;

	for (i = 0; i < LAYERS; i++)
		make_layer(&layers[i], widths[i], widths[i + 1], rows);
	inputs = device_floats((size_t)rows * INPUTS);
	losses = device_floats((size_t)rows * 2);
	cuda(cudaMalloc(&labels, (size_t)rows * sizeof(int)), "cudaMalloc");
	cuda(cudaMallocHost(&host_inputs, (size_t)rows * INPUTS * sizeof(float)), "pinned");
	cuda(cudaMallocHost(&host_losses, (size_t)rows * 2 * sizeof(float)), "pinned");
	cuda(cudaMallocHost(&host_labels, (size_t)rows * sizeof(int)), "pinned");
}

static void network_forward(int rows)
{
	const float one = 1, zero = 0, *x = inputs;
	int i;

	for (i = 0; i < LAYERS; i++) {
		struct layer *l = &layers[i];

		tacho_range_push("layer");
		cublas(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, l->out, rows, l->in, &one,
				   l->weight, l->in, x, l->in, &zero, l->output, l->out),
		       "product");
		bias_relu<<<blocks(rows * l->out), THREADS>>>(l->output, l->bias, rows, l->out,
							      i == LAYERS - 1);
		tacho_range_pop();
		x = l->output;
	}
	softmax_loss<<<blocks(rows), THREADS>>>(x, labels, layers[LAYERS - 1].output_grad, losses,
						rows);
}

/* Returns the mean loss and the share of correct results; waits for the device. */
static double fetch_loss(int rows, double *right)
{
	double loss = 0;
	int r;

	cuda(cudaMemcpy(host_losses, losses, (size_t)rows * 2 * sizeof(float),
			cudaMemcpyDeviceToHost), "copy of losses");
	*right = 0;
	for (r = 0; r < rows; r++) {
		loss += host_losses[r];
		*right += host_losses[rows + r];
	}
	*right /= rows;
	return loss / rows;
}

static void network_backward(int rows)
{
	const float one = 1, zero = 0;
	int i;

	tacho_phase_push("backward");
	for (i = LAYERS - 1; i >= 0; i--) {
		struct layer *l = &layers[i], *below = i ? &layers[i - 1] : NULL;

		cublas(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, l->in, l->out, rows, &one,
				   below ? below->output : inputs, l->in, l->output_grad, l->out,
				   &zero, l->weight_grad, l->in), "product");
		bias_back<<<blocks(l->out), THREADS>>>(l->output_grad, l->bias_grad, rows, l->out);
		if (!below)
			break;
		cublas(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, l->in, rows, l->out, &one,
				   l->weight, l->in, l->output_grad, l->out, &zero,
				   below->output_grad, l->in), "product");
		relu_back<<<blocks(rows * l->in), THREADS>>>(below->output_grad, below->output,
							     rows * l->in);
	}
	tacho_phase_pop();
}

static void optimize(int step)
{
	float one = (float)(1 - pow(0.9, step + 1)), two = (float)(1 - pow(0.999, step + 1));
	int i;

	tacho_phase_push("optimizer");
	for (i = 0; i < LAYERS; i++) {
		struct layer *l = &layers[i];
		int count = l->in * l->out;

		adam<<<blocks(count), THREADS>>>(l->weight, l->weight_grad, l->weight_moments,
						 count, one, two);
		adam<<<blocks(l->out), THREADS>>>(l->bias, l->bias_grad, l->bias_moments, l->out,
						  one, two);
	}
	tacho_phase_pop();
}

static double evaluate(void)
{
	double right;
	int i;

	tacho_phase_push("evaluation");
	for (i = 0; i < HELD_OUT; i++)
		load_point(i, i, 0);
	copy_to_device(HELD_OUT);
	network_forward(HELD_OUT);
	fetch_loss(HELD_OUT, &right);
	tacho_phase_pop();
	return right;
}

/* ---- the loop ---- */

static double train_step(const struct options *o, int step)
{
	double loss, right;

	load_batch(o, step);
	tacho_phase_push("forward");
	network_forward(o->batch);
	tacho_phase_pop();
	network_backward(o->batch);
	optimize(step);
	loss = fetch_loss(o->batch, &right);
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
		if ((step + 1) % EVERY && step + 1 != o->steps)
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
		else if (!strcmp(argv[i], "--hidden"))
			o->hidden = atoi(value);
		else if (!strcmp(argv[i], "--seed"))
			o->seed = atoi(value);
		else if (strcmp(argv[i], "--slow") != 0 ||
			 sscanf(value, "%d:%d", &o->slow_step, &o->slow_ms) != 2)
			return 0;
		i++;
	}
	return o->steps > 0 && o->batch > 0 && o->batch <= BATCH_MAX && o->hidden > 0 &&
	       o->hidden <= 8192 && o->slow_ms >= 0;
}

int main(int argc, char **argv)
{
	struct options o = { 300, 1024, 512, 1, -1, 0, 0 };
	int devices = 0;

	if (!parse(&o, argc, argv)) {
		fprintf(stderr, "usage: train_mlp_cuda [--steps N] [--batch N] [--hidden N] "
			"[--seed S] [--slow STEP:MS] [--quiet]\n");
		return 2;
	}
	if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) {
		printf("train_mlp_cuda: no GPU here: skipped\n");
		return 0;
	}
	random_state = 0x9e3779b97f4a7c15ull * (unsigned long long)(o.seed + 1) | 1;
	cublas(cublasCreate(&blas), "cuBLAS");
	make_points();
	make_network(&o);
	train(&o);
	cuda(cudaDeviceSynchronize(), "the last step");
	cublasDestroy(blas);
	return 0;
}
