/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison of two runs for CI systems: JUnit's XML, and GitHub's annotations. */
#include "analyze/format/diff/diff.h"

#include "schemas/base/utf8.h"

/* Writes text for XML 1.0, which allows only three control characters, and valid UTF-8. */
static void put_xml(struct buf *out, const char *text)
{
	static const char *const names[128] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"
	};

	while (*text) {
		char bytes[4];
		uint32_t c = utf8_next(&text);

		if (c < 128 && names[c])
			buf_put_text(out, names[c]);
		else if (utf8_is_control(c))
			buf_put_byte(out, '?');
		else
			buf_put(out, bytes, utf8_put(bytes, c));
	}
}

static void put_attribute(struct buf *out, const char *name, const char *text)
{
	buf_putf(out, " %s=\"", name);
	put_xml(out, text);
	buf_put_byte(out, '"');
}

static void put_number(struct buf *out, const char *name, int64_t value)
{
	buf_putf(out, "   <property name=\"%s\" value=\"%lld\"/>\n", name, (long long)value);
}

static void put_unlikes(const struct diff *d, struct buf *out)
{
	buf_put_text(out, "  <testcase classname=\"tacho\" name=\"equal conditions\"");
	if (!d->unlike_count) {
		buf_put_text(out, "/>\n");
		return;
	}
	buf_put_text(out, ">\n   <skipped");
	put_attribute(out, "message", "the runs differ in what is compared");
	buf_put_text(out, "/>\n   <system-out>");
	for (size_t i = 0; i < d->unlike_count; i++) {
		const struct diff_unlike *u = &d->unlikes[i];

		put_xml(out, u->what);
		buf_put_text(out, ": ");
		put_xml(out, u->a[0] ? u->a : "unknown");
		buf_put_text(out, " and ");
		put_xml(out, u->b[0] ? u->b : "unknown");
		buf_put_text(out, "\n");
	}
	buf_put_text(out, "</system-out>\n  </testcase>\n");
}

void diff_put_junit(const struct diff *d, struct buf *out)
{
	char sentence[DIFF_SENTENCE], reason[DIFF_SENTENCE], edits[DIFF_SENTENCE];
	bool is_slower = d->estimate.verdict == DIFF_SLOWER;
	bool is_open = d->estimate.verdict == DIFF_CANNOT_TELL;

	diff_sentence(d, sentence);
	diff_reason(d, reason);
	diff_edits_text(d, edits);
	buf_putf(out,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		 " <testsuite name=\"tacho\" tests=\"2\" failures=\"%d\" errors=\"0\" "
		 "skipped=\"%d\">\n  <properties>\n",
		 is_slower, is_open + (d->unlike_count > 0));
	put_number(out, "a.mean_step_ns", d->a.mean_ns);
	put_number(out, "b.mean_step_ns", d->b.mean_ns);
	buf_put_text(out, "  </properties>\n");
	put_unlikes(d, out);
	buf_put_text(out, "  <testcase classname=\"tacho\" name=\"mean step\"");
	/* JUnit expects seconds: the step of B. */
	buf_putf(out, " time=\"%.9f\">\n", (double)d->b.mean_ns / 1e9);
	if (is_slower || is_open) {
		buf_put_text(out, is_slower ? "   <failure" : "   <skipped");
		put_attribute(out, "message", sentence);
		buf_put_text(out, is_slower ? ">" : "/>\n");
	}
	if (is_slower) {
		put_xml(out, reason);
		buf_put_text(out, "</failure>\n");
	}
	buf_put_text(out, "   <system-out>");
	put_xml(out, sentence);
	buf_put_text(out, " ");
	put_xml(out, reason);
	buf_put_text(out, edits[0] ? " " : "");
	put_xml(out, edits);
	buf_put_text(out, "</system-out>\n  </testcase>\n </testsuite>\n</testsuites>\n");
}

/* Writes text of a workflow command, which ends with its line, so % escapes line breaks and
 * itself. */
static void put_command(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '%' || *text == '\n' || *text == '\r')
			buf_putf(out, "%%%02X", (unsigned char)*text);
		else
			buf_put_byte(out, (uint8_t)*text);
	}
}

void diff_put_annotation(const struct diff *d, struct buf *out)
{
	static const char *const commands[] = {
		[DIFF_SLOWER] = "error",  [DIFF_LITTLE_SLOWER] = "warning", [DIFF_SAME] = "notice",
		[DIFF_FASTER] = "notice", [DIFF_CANNOT_TELL] = "warning",
	};
	char sentence[DIFF_SENTENCE], reason[DIFF_SENTENCE];

	diff_sentence(d, sentence);
	diff_reason(d, reason);
	buf_putf(out, "::%s title=step time::", commands[d->estimate.verdict]);
	put_command(out, sentence);
	if (reason[0])
		buf_put_byte(out, ' ');
	put_command(out, reason);
	buf_put_byte(out, '\n');
}
