/* SPDX-License-Identifier: Apache-2.0 */
/* The page for a browser: jobs without a GPU, jobs of several ranks, names that are cut. */
#include "analyze/engine/engine.h"
#include "analyze/format/format.h"
#include "analyze/report/report_list.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 10, PAGE_BYTES = 1 << 20 };

/* The page of files with these texts; the caller's buffer is emptied before. */
static const char *page_of(struct buf *out, char *const *texts, size_t count)
{
	static const struct report_type *const summary[] = { &report_summary, NULL };
	struct engine_outcome outcomes[RANKS];
	char names[RANKS][32], *paths[RANKS];
	struct engine_request how = { .paths = paths,
				      .count = count,
				      .reports = summary,
				      .threads = 1,
				      .memory_bytes = 256 << 20,
				      .pictures = format_html.pictures,
				      .scratch = "/tmp" };
	struct format_request page = { .reports = summary };
	struct name_rules *rules = NULL;
	struct error err = { .at = NOWHERE };

	for (size_t i = 0; i < count; i++) {
		int fd;

		paths[i] = strcpy(names[i], "/tmp/tacho-XXXXXX");
		fd = mkstemp(paths[i]);
		CHECK(fd >= 0 &&
		      write(fd, texts[i], strlen(texts[i])) == (ssize_t)strlen(texts[i]));
		close(fd);
	}
	CHECK_OK(name_rules_new(&rules, NULL, 0, NULL), NULL);
	how.rules = rules;
	CHECK_OK(engine_run(&page.tables, &how, outcomes, &err), &err);
	buf_clear(out);
	if (page.tables)
		CHECK_OK(format_html.write(&page, out, &err), &err);
	tables_free(page.tables);
	name_rules_free(rules);
	for (size_t i = 0; i < count; i++)
		unlink(paths[i]);
	return buf_text(out);
}

#define STEP(begin, length)                                                                        \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#5\",\"pid\":9,"         \
	"\"tid\":9,\"ts\":" #begin ",\"dur\":" #length "}"

/* Nothing on the page of a job without a GPU speaks of strips or times of one. */
void test_html_without_gpu(void)
{
	static char text[] = "{\"traceEvents\":[" STEP(
		100, 1000) ",{\"ph\":\"X\",\"cat\":\"cpu_op\","
			   "\"name\":\"aten::mm\",\"pid\":9,\"tid\":9,\"ts\":200,\"dur\":300}]}";
	const char *page;
	struct buf out;

	buf_init(&out, PAGE_BYTES);
	page = page_of(&out, (char *[]){ text }, 1);
	CHECK(strstr(page, "The host, by phase.") != NULL);
	CHECK(strstr(page, "<p>Host, mean per step.") != NULL);
	CHECK(!strstr(page, "strip:") && !strstr(page, "Host and GPU") &&
	      !strstr(page, "busy for it"));
	CHECK(strstr(page, "--explain wall_ns") != NULL);
	CHECK(strstr(page, "role=\"img\" aria-label=\"step 5, host:") != NULL);
	buf_release(&out);
}

/* The slowest rank first, causes of all, and medians over all calls. */
void test_html_of_ranks(void)
{
	static const char text[] =
		"{\"distributedInfo\":{\"rank\":%u,\"world_size\":10},\"traceEvents\":["
		"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#5\",\"pid\":9,"
		"\"tid\":9,\"ts\":100,\"dur\":%u},"
		"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,"
		"\"tid\":9,\"ts\":200,\"dur\":10,\"args\":{\"correlation\":5}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void at::native::a_kernel<1>(int)\","
		"\"pid\":0,\"tid\":7,\"ts\":300,\"dur\":%u,"
		"\"args\":{\"device\":0,\"stream\":7,\"correlation\":5}}]}";
	char made[RANKS][sizeof(text) + 32], *texts[RANKS];
	const char *page, *steps;
	struct buf out;

	for (unsigned i = 0; i < RANKS; i++) {
		texts[i] = made[i];
		snprintf(made[i], sizeof(made[i]), text, i, i == 9 ? 2000u : 1000u, 100 + 10 * i);
	}
	buf_init(&out, PAGE_BYTES);
	page = page_of(&out, texts, RANKS);
	steps = strstr(page, "<h2>Steps</h2>");
	if (CHECK(steps != NULL)) {
		CHECK(strstr(steps, "rank 9</td>") && strstr(steps, "rank 0</td>") &&
		      strstr(steps, "rank 9</td>") < strstr(steps, "rank 0</td>"));
		CHECK(strstr(steps, "2 more ranks, none of them slower") != NULL);
	}
	CHECK(strstr(page, "Not busy, by cause") != NULL);
	/* 100, 110, ... 190: of an even count the mean of the middle two */
	CHECK(strstr(page, "<td class=\"median\">145</td><td class=\"median\">190</td>") != NULL);
	CHECK(strstr(page, "<details><summary title=\"void at::native::a_kernel&lt;1&gt;(int)\">"
			   "a_kernel&lt;1&gt;</summary>void at::native::a_kernel&lt;1&gt;(int)"
			   "</details>") != NULL);
	CHECK(strstr(page, "<caption>Kernels</caption>") != NULL);
	CHECK(strstr(page, "print-color-adjust:exact") != NULL);
	buf_release(&out);
}
