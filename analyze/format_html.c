/* SPDX-License-Identifier: Apache-2.0 */
/* One file for a browser: the page of `summary` with charts; no script, nothing fetched. */
#include "analyze/html/put.h"

#include <string.h>

static const char page_begin[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
	"style-src 'unsafe-inline'\">\n<title>";

/* Hatches that stand for what no colour may: before and after the work, and nothing seen. */
static const char patterns[] =
	"<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs>"
	"<pattern id=\"lead\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"var(--paper)\"/>"
	"<rect width=\"1.4\" height=\"5\" fill=\"var(--lead)\"/></pattern>"
	"<pattern id=\"unseen\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"var(--paper)\"/>"
	"<rect width=\"1.4\" height=\"5\" fill=\"var(--warn)\"/></pattern></defs></svg>\n";

static void put_title(struct html *h)
{
	struct view inputs = page_view(&h->page, "inputs");
	const char *path = inputs.count ? view_cell(&inputs, 0, "path").text : "";
	const char *slash = path ? strrchr(path, '/') : NULL;

	html_text(h, slash ? slash + 1 : path);
	html_raw(h, " \xc2\xb7 Tacho</title>\n<style>");
}

static enum status put_blocks(struct html *h, struct error *err)
{
	html_head(h);
	TRY(html_gpus(h, err));
	html_fix(h);
	TRY(html_steps(h, err));
	TRY(html_phases(h, err));
	TRY(html_memory(h, err));
	TRY(html_kernels(h, err));
	TRY(html_comm(h, err));
	TRY(html_ranks(h, err));
	html_frontier(h);
	html_copies(h);
	html_trust(h);
	return ST_OK;
}

static enum status html_write(const struct format_request *how, struct buf *out,
			      struct error *err)
{
	struct html h = { .out = out };
	struct view *views;
	enum status status;

	TRY(views_new(&views, how->tables, err));
	page_init(&h.page, how, views, out);
	html_raw(&h, page_begin);
	put_title(&h);
	html_raw(&h, html_style);
	html_raw(&h, "</style></head><body>\n");
	html_raw(&h, patterns);
	html_raw(&h, "<main>\n");
	status = put_blocks(&h, err);
	html_raw(&h, "<p class=\"foot\">How a figure is computed: <code>tacho-analyze --explain "
		     "exposed_comm</code>, or any other name on this page.</p>\n"
		     "</main></body></html>\n");
	views_free(views, how->tables);
	return status == ST_OK ? buf_status(out, err) : status;
}

const struct format_type format_html = {
	.name = "html",
	.help = "one file for a browser: charts and tables, light and dark",
	.pictures = PICTURES_FINE,
	.write = html_write,
};
