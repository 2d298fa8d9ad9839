/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page/talk.h - the sentences of a page: what was read, why not to trust it, and why to.  A page
 * says where they go and how they look; words may end in the middle of a sentence.
 */
#ifndef ANALYZE_PAGE_TALK_H
#define ANALYZE_PAGE_TALK_H

#include "analyze/text/page.h"

struct talk { /* first member of a page's own */
	void (*words)(struct talk *t, enum token token, const char *words);
	void (*end)(struct talk *t); /* of a line */
	/* A reason for distrust, in a word and one or two sentences (second: NULL). */
	void (*distrust)(struct talk *t, const char *word, const char *first, const char *second);
};

/* Ranks, GPUs, steps, format: one line, not ended. */
void talk_head(const struct page *p, struct talk *t);
void talk_distrust(const struct page *p, struct talk *t);
void talk_trust(const struct page *p, struct talk *t);

#endif
