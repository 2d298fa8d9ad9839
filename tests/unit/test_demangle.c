/* SPDX-License-Identifier: Apache-2.0 */
/* Mangled names: read from a log as the C++ text, and shortened where they are too long. */
#include "convert/name/name.h"
#include "convert/source/source.h"
#include "schemas/base/utf8.h"
#include "schemas/log/writer.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CEILING = 16 << 20 };

/* A log of three events: a kernel and a range of one mangled name, a kernel that is not C++. */
static void write_kernels(struct buf *file)
{
	static const char *const names[] = { "_ZN2at6native4fillIfEEvPT_i", "_Z", "device_kernel" };
	struct track track = { .device = NO_ID, .context = NO_ID, .type = TRACK_THREAD };
	struct error err = { 0 };
	struct log_writer *w;
	struct trace *t;

	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	track.process = trace_process(t, &(struct process){ .pid = 7 }, &err);
	struct attr grid = { .key = trace_name(t, "grid_x", 6, &err), .bits = 9 };
	struct arg_schema schema = { &grid, NULL, 1, 0 };
	CHECK_OK(log_writer_new(&w, t, CEILING, &err), &err);
	log_writer_begin(w, file, &err);
	for (unsigned i = 0; i < 4; i++) {
		const char *name = names[i % 3];
		struct event_desc desc = { .track = trace_track(t, &track, &err),
					   .name = trace_name(t, name, strlen(name), &err),
					   .schema = trace_schema(t, &schema, &err),
					   .kind = i == 3 ? KIND_RANGE : KIND_KERNEL };
		struct event e = { .begin_ns = 1000 + i, .end_ns = 1000 + i, .kind = desc.kind };

		e.track = desc.track;
		CHECK_OK(log_writer_put(w, &e, trace_desc(t, &desc, &err), 0, file, &err), &err);
	}
	CHECK_OK(log_writer_end(w, file, &err), &err);
	log_writer_free(w);
	trace_free(t);
}

void test_source_log_mangled(void)
{
	static const char *const wanted[] = { "void at::native::fill<float>(float*, int)", "_Z",
					      "device_kernel", "_ZN2at6native4fillIfEEvPT_i" };
	const struct budget budget = { .opening = CEILING, .resident = 1 << 16, .scratch = "/tmp" };
	struct source *s = NULL;
	struct error err = { 0 };
	struct input *in;
	struct batch batch;
	struct trace *t;
	struct buf file;
	size_t seen = 0;

	buf_init(&file, CEILING);
	write_kernels(&file);
	CHECK_OK(trace_new(&t, CEILING, &err), &err);
	in = log_input(file.data, file.len);
	CHECK_OK(source_log.open(&s, in, t, &budget, NULL, &err), &err);
	while (s && source_log.next(s, &batch, &err) == ST_OK)
		for (size_t i = 0; i < batch.count && seen < 4; i++, seen++) {
			const struct event *e = &batch.events[i];
			const struct attr *was = trace_find_attr(t, e->schema, "mangled");

			CHECK_STR(trace_text(t, e->name, NULL), wanted[seen]);
			CHECK(trace_find_attr(t, e->schema, "grid_x")->bits == 9);
			CHECK(!was == (seen > 0));
			if (was)
				CHECK_STR(trace_text(t, (uint32_t)was->bits, NULL), wanted[3]);
		}
	CHECK_U64(seen, 4);
	if (s)
		source_log.close(s);
	input_close(in);
	trace_free(t);
	buf_release(&file);
}

static const struct {
	const char *mangled, *plain;
} kernels[] = {
	{ "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
	  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
	  "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
	  "T1_",
	  "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	  "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)" },
	{ "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_"
	  "23direct_"
	  "copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE5_clEvEUlfE_EEvS4_RKT_"
	  "EUliE_"
	  "EEviT1_",
	  "void at::native::elementwise_kernel<128, 2, "
	  "at::native::gpu_kernel_impl_nocast<at::native::"
	  "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
	  "const::{lambda()#7}"
	  "::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, "
	  "at::native::direct_copy_"
	  "kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
	  "const::{lambda()#7}::operator()"
	  "() const::{lambda(float)#1} const&)::{lambda(int)#1}>(int, "
	  "at::native::gpu_kernel_impl_nocast<"
	  "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()()"
	  " const::"
	  "{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, "
	  "at::native::direct"
	  "_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
	  "const::{lambda()#7}::"
	  "operator()() const::{lambda(float)#1} const&)::{lambda(int)#1})" },
	{ "_Z4packIJifPdEEvDpT_", "void pack<int, float, double*>(int, float, double*)" },
	{ "_Z4packIJEEvDpT_", "void pack<>()" },
	{ "_Z2enIL1E1E6__halfEvPKT0_RVi", "void en<(E)1, __half>(__half const*, int volatile&)" },
	{ "_Z3seqIJLin3ELb1EEEvPFiOfERA4_c", "void seq<-3, true>(int (*)(float&&), char (&) [4])" },
	{ "_ZN12_GLOBAL__N_14anonENS_1SIiEE",
	  "(anonymous namespace)::anon((anonymous namespace)::S<int>)" },
	{ "_Z3vecI17__nv_dl_wrapper_tI27__nv_dl_trailing_return_tagIM1CFviEXadL_ZNS2_3runIiEEvT_"
	  "EEfLj1EEJi"
	  "EELi4EEvS6_Pf",
	  "void vec<__nv_dl_wrapper_t<__nv_dl_trailing_return_tag<void (C::*)(int), &(void "
	  "C::run<int>"
	  "(int)), float, 1u>, int>, 4>(__nv_dl_wrapper_t<__nv_dl_trailing_return_tag<void "
	  "(C::*)(int), "
	  "&(void C::run<int>(int)), float, 1u>, int>, float*)" },
	{ "_Z1fIiENSt9enable_ifIXeqstT_Li4EEvE4typeES1_",
	  "std::enable_if<(sizeof (int))==(4), void>::type f<int>(int)" },
};

/* Whole, and cut at each byte, where it is another name or none. */
void test_name_demangle(void)
{
	char cut[1024], *plain;

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		plain = name_demangle(kernels[i].mangled);
		CHECK_STR(plain ? plain : "", kernels[i].plain);
		free(plain);
		for (size_t len = 0; len < strlen(kernels[i].mangled); len++) {
			snprintf(cut, sizeof(cut), "%.*s", (int)len, kernels[i].mangled);
			plain = name_demangle(cut);
			CHECK(!plain || strcmp(plain, kernels[i].plain) != 0);
			free(plain);
		}
	}
	CHECK(!name_demangle("device_kernel") && !name_demangle("_Z") && !name_demangle("_Z1f1"));
}

/*
 * Names over 1,024 bytes are read.  What becomes larger by far than a name, or nests very deep, is
 * not, and takes no time.
 */
void test_name_demangle_limits(void)
{
	enum { LONG = 60000 };
	char *text = malloc(LONG + 100), *plain;
	size_t at = 0;

	if (!CHECK(text))
		return;
	at = (size_t)sprintf(text, "_Z1fI");
	while (at < 4000)
		at += (size_t)sprintf(text + at, "N4cute1CILi%zuEEE", at);
	sprintf(text + at, "EvT_");
	plain = name_demangle(text);
	CHECK(plain && strlen(plain) > 3000 && strstr(plain, "cute::C<5>, cute::C<"));
	free(plain);
	for (int doublings = 4; doublings <= 32; doublings += 28) { /* a<b, b>, a<S1_, S1_> ... */
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

		at = (size_t)sprintf(text, "_Z1f1aI1bS0_E");
		for (int i = 1; i <= doublings; i++)
			at += (size_t)sprintf(text + at, "S_IS%c_S%c_E", digits[i], digits[i]);
		plain = name_demangle(text);
		CHECK(!plain == (doublings > 4));
		CHECK(!plain || strlen(plain) > 100);
		free(plain);
	}
	for (size_t depth = 100; depth < LONG; depth *= 20) {
		static const char *const nests[] = { "P", "1aI", "N1bI", "XadL_Z1cI", "F" };

		for (size_t n = 0; n < sizeof(nests) / sizeof(nests[0]); n++) {
			at = (size_t)sprintf(text, "_Z1f");
			while (at + 10 < depth * strlen(nests[n]) && at < LONG)
				at += (size_t)sprintf(text + at, "%s", nests[n]);
			sprintf(text + at, "i");
			plain = name_demangle(text);
			CHECK(!plain || (n == 0 && depth == 100));
			free(plain);
		}
	}
	free(text);
}

/* Texts that differ anywhere stay different, whole characters stay whole. */
void test_utf8_shorten(void)
{
	char text[300], one[100], other[100];

	for (size_t len = 0; len < sizeof(text); len++) {
		memset(text, 'a', len);
		size_t got = utf8_shorten(text, len, one, sizeof(one));

		CHECK(got == strlen(one) && got == (len < sizeof(one) ? len : got));
		CHECK(got < sizeof(one) && got + 4 >= (len < 95 ? len : 95));
		for (size_t at = 0; at < len; at++) {
			text[at] = 'b';
			utf8_shorten(text, len, other, sizeof(other));
			CHECK(strcmp(one, other) != 0);
			text[at] = 'a';
		}
	}
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'a', sizeof(text));
		for (size_t at = shift; at + 3 <= sizeof(text); at += 3)
			memcpy(text + at, "\xe2\x82\xac", 3);
		size_t len = shift + (sizeof(text) - shift) / 3 * 3;
		utf8_shorten(text, len, one, sizeof(one));
		for (size_t at = 0; one[at]; at += utf8_sequence(one + at, strlen(one + at)))
			if (!CHECK(utf8_sequence(one + at, strlen(one + at))))
				break;
	}
}
