/* SPDX-License-Identifier: Apache-2.0 */
/* Pages in terminals of any width: what is cut, what is not, and what reads apart. */
#include "analyze/format/text/line.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

enum { PAGE_BYTES = 1 << 16 };

static const unsigned widths[] = { 60, 80, 100, 140, 200 };

/* Draws the blocks at a width, without UTF-8 if `is_plain`; out is emptied before. */
static const char *draw(struct buf *out, const struct blocks *b, unsigned width, bool is_plain)
{
	struct format_request how = { .is_utf8 = !is_plain, .width = width };
	struct text t;

	buf_clear(out);
	text_init(&t, &how, out);
	text_draw(&t, b);
	return buf_text(out);
}

static unsigned longest_line(const char *text)
{
	char line[PAGE_BYTES];
	unsigned longest = 0;

	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		memcpy(line, text, len);
		line[len] = '\0';
		if (text_width(line) > longest)
			longest = text_width(line);
	}
	return longest;
}

/* Characters are as wide as the C library says, and what takes no column is shown as one. */
void test_text_wide_characters(void)
{
	struct buf out;
	struct text t;

	CHECK_U64(text_width("\xf0\x9f\xab\xa0"), 2); /* an emoji of 2021 */
	CHECK_U64(text_width("\xe2\x8c\x9a"), 2);     /* a watch */
	CHECK_U64(text_width("\xef\xbd\xb1"), 1);     /* half-width kana */
	CHECK_U64(text_width("e\xcc\x81"), 2);        /* e and an accent of no width */
	buf_init(&out, PAGE_BYTES);
	text_init(&t, &(struct format_request){ .is_utf8 = true, .width = 8 }, &out);
	text_at(&t, text_at(&t, 0, TOKEN_TEXT, "e\xcc\x81\xe2\x80\xae"), TOKEN_TEXT, "x");
	text_end(&t);
	CHECK_STR(buf_text(&out), "e??x\n");
	buf_clear(&out);
	/* a line that is too long says so, also where half a character is at its end */
	text_at(&t, 0, TOKEN_TEXT, "1234567890");
	text_end(&t);
	text_at(&t, 0, TOKEN_TEXT, "123456\xe4\xb8\xad\xe4\xb8\xad");
	text_end(&t);
	text_at(&t, 0, TOKEN_TEXT, "12345\xe4\xb8\xad\xe4\xb8\xad");
	text_end(&t);
	CHECK_STR(buf_text(&out),
		  "1234567\xe2\x80\xa6\n123456\xe2\x80\xa6\n12345\xe4\xb8\xad\xe2\x80\xa6\n");
	buf_release(&out);
}

/* Four names that differ in their middle, or their end, or both. */
void test_text_far_apart_differences(void)
{
	static const char *const names[] = {
		"volta_sgemm_kernel_of_some_length_FIRST_and_then_more_of_it_END1",
		"volta_sgemm_kernel_of_some_length_FIRST_and_then_more_of_it_END2",
		"volta_sgemm_kernel_of_some_length_OTHER_and_then_more_of_it_END1",
		"volta_sgemm_kernel_of_some_length_OTHER_and_then_more_of_it_END2",
	};
	static const struct block_column columns[] = { { .width = 24 }, { .end = 40 } };
	char lines[8][160], *line, *end;
	struct block_table *table;
	struct blocks b;
	struct buf out;
	size_t count = 0;

	blocks_init(&b);
	buf_init(&out, PAGE_BYTES);
	table = ADD_TABLE(&b, columns);
	table->has_no_titles = true;
	for (size_t i = 0; i < 8; i++) { /* of two ranks: a name reads the same in both */
		struct block_row *r = add_row(&b, table, TOKEN_TEXT, NULL);

		add_cell(r, names[i % 4]);
		add_cell(r, "1.00");
	}
	draw(&out, &b, 60, false);
	for (line = (char *)(uintptr_t)buf_text(&out); (end = strchr(line, '\n')) && count < 8;
	     line = end + 1) {
		*end = '\0';
		snprintf(lines[count++], sizeof(lines[0]), "%s", line);
	}
	CHECK_U64(count, 8);
	for (size_t i = 0; i < 8; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(!strcmp(lines[i], lines[k]) == (i % 4 == k % 4));
	CHECK(longest_line(draw(&out, &b, 60, false)) <= 60);
	/* where there is room they are whole */
	draw(&out, &b, 140, false);
	for (size_t i = 0; i < 4; i++)
		CHECK(strstr(buf_text(&out), names[i]) != NULL);
	blocks_release(&b);
	buf_release(&out);
}

/* A figure below another table's figures stands in its column, whatever the names are. */
void test_text_tables_below(void)
{
	static const struct block_column columns[] = { { .width = 30 },
						       { .title = "ms", .end = 40 } };
	static const struct block_column below[] = { { .at = 14, .width = 16 },
						     { .end = 40 },
						     { .at = 0 } };
	struct block_table *above, *table;
	struct block_row *r;
	struct blocks b;
	struct buf out;

	blocks_init(&b);
	buf_init(&out, PAGE_BYTES);
	above = ADD_TABLE(&b, columns);
	r = add_row(&b, above, TOKEN_TEXT, NULL);
	add_cell(r, "a_kernel_whose_name_is_longer_than_thirty_columns<float, 128, 256>");
	add_cell(r, "1.25");
	table = ADD_TABLE(&b, below);
	table->has_no_titles = true;
	table->below = above;
	r = add_row(&b, table, TOKEN_TEXT, NULL);
	add_cell(r, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
	add_cell(r, "1,002.50");
	add_cell(r, "COMM");
	for (size_t i = 0; i < 5; i++) {
		char upper[256], lower[256];
		const char *at = strchr(draw(&out, &b, widths[i], false), '\n') + 1;

		snprintf(upper, sizeof(upper), "%.*s", (int)strcspn(at, "\n"), at);
		at += strlen(upper) + 1;
		snprintf(lower, sizeof(lower), "%.*s", (int)strcspn(at, "\n"), at);
		CHECK(strstr(upper, "  1.25") && strstr(lower, "  1,002.50"));
		CHECK(!strncmp(lower, "COMM  ", 6) && longest_line(buf_text(&out)) <= widths[i]);
		CHECK_U64(text_width(lower), text_width(upper));
	}
	blocks_release(&b);
	buf_release(&out);
}

/* A label that goes on over an empty cell is whole where there is room. */
void test_text_cells_over_next(void)
{
	static const struct block_column columns[] = { { .title = "" },
						       { .title = "", .at = 14, .width = 26 },
						       { .title = "A", .end = 51 } };
	static const char label[] = "outside of the steps counted";
	struct block_table *table;
	struct block_row *r;
	struct blocks b;
	struct buf out;

	blocks_init(&b);
	buf_init(&out, PAGE_BYTES);
	table = ADD_TABLE(&b, columns);
	r = add_row(&b, table, TOKEN_TEXT, NULL);
	add_cell(r, "idle");
	add_cell(r, "dispatch");
	add_cell(r, "0.136");
	r = add_row(&b, table, TOKEN_DIM, NULL);
	add_cell(r, label);
	add_cell(r, NULL);
	add_cell(r, "26.049");
	r = add_row(&b, table, TOKEN_TEXT, NULL); /* the same of nothing */
	add_cell(r, NULL);
	add_cell(r, NULL);
	add_cell(r, "1.000");
	for (size_t i = 0; i < 5; i++)
		CHECK(strstr(draw(&out, &b, widths[i], false), label) != NULL);
	blocks_release(&b);
	buf_release(&out);
}

/* Two bars of one scale are equally long for equal values, or are not there. */
void test_text_bars_shrink_alike(void)
{
	static const struct block_column columns[] = {
		{ .width = 34 },
		{ .title = "rank 0", .end = 42 },
		{ .at = 45, .width = 20, .is_bar = true },
		{ .title = "rank 1", .end = 76 },
		{ .at = 79, .width = 20, .is_bar = true },
	};
	struct block_table *table;
	struct block_row *r;
	struct blocks b;
	struct buf out;

	blocks_init(&b);
	buf_init(&out, PAGE_BYTES);
	table = ADD_TABLE(&b, columns);
	table->has_no_titles = true;
	r = add_row(&b, table, TOKEN_TEXT, NULL);
	add_cell(r, "a name of more than twenty columns");
	for (size_t i = 0; i < 2; i++) {
		add_cell(r, "123.45");
		add_bar(r, TOKEN_COMPUTE, 1);
	}
	for (unsigned width = 40; width <= 120; width++) {
		size_t bars[2] = { 0, 0 };
		const char *at = draw(&out, &b, width, true);

		for (size_t i = 0; i < 2 && (at = strchr(at, '#')); i++) {
			bars[i] = strspn(at, "#");
			at += bars[i];
		}
		CHECK_U64(bars[0], bars[1]);
		CHECK(longest_line(buf_text(&out)) <= width);
	}
	blocks_release(&b);
	buf_release(&out);
}

/* A name in a remedy stays in one line as long as a line can hold it, and is else divided behind a
 * sign; what follows without a blank begins no line. */
void test_text_words_whole(void)
{
	static const char name[] = "torch.nn.functional.scaled_dot_product_attention";
	struct fix fix = { .rule = "unfused_attention",
			   .sign = "of",
			   .saving = "9.2",
			   .brief = "2 softmax kernels",
			   .advice = "torch.nn.functional.scaled_dot_product_attention (flash)" };
	struct block_words *w;
	struct block *list;
	struct blocks b;
	struct buf out;

	blocks_init(&b);
	buf_init(&out, PAGE_BYTES);
	list = add_block(&b, BLOCK_FINDINGS);
	list->findings.rows = &fix;
	list->findings.count = 1;
	list->findings.brief_at = 33;
	w = add_words(&b, ROLE_LINE, 14);
	add_span(&b, w, TOKEN_TEXT, "one of several sentences that fill a line nearly");
	add_span(&b, w, TOKEN_DIM, ": and what belongs to it");
	for (unsigned width = 50; width <= 110; width++) {
		draw(&out, &b, width, false);
		CHECK(strstr(buf_text(&out), name) != NULL);
		CHECK(strstr(buf_text(&out), "nearly:") != NULL);
		CHECK(longest_line(buf_text(&out)) <= width);
	}
	draw(&out, &b, 40, false);
	CHECK(strstr(buf_text(&out), "functional.\nscaled_dot_product_attention") != NULL);
	draw(&out, &b, 25, false); /* what is longer than a line is divided behind an underscore */
	CHECK(strstr(buf_text(&out), "scaled_dot_product_\nattention") != NULL);
	fix.advice = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
	draw(&out, &b, 60, false); /* a last underscore alone on a line says nothing */
	CHECK(strstr(buf_text(&out), "__next__") != NULL);
	blocks_release(&b);
	buf_release(&out);
}
