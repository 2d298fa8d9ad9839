/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - the model of a page: a list of blocks of a few kinds.
 *
 * A section of a page (kernels, phases, ...) is built once, as blocks. The renderers for a
 * terminal, a browser and Markdown draw kinds of blocks and are independent of sections. If the
 * three show different selections of the same data, the builder chooses by page->medium: how many
 * rows, which columns, at which place of a terminal's line.
 *
 * All blocks and their texts belong to one arena and live until blocks_release(). After an
 * allocation failed, the adding functions have no effect, and blocks_status() returns the error.
 * Texts of an input may contain any bytes; renderers escape them.
 */
#pragma once

#include "analyze/format/page/picture.h"
#include "analyze/engine/number.h"
#include "schemas/base/arena.h"
#include "schemas/base/status.h"

/* The meaning of a colour, which is the same in every section and medium. */
enum token {
	TOKEN_TEXT,
	TOKEN_BOLD,
	TOKEN_DIM,
	TOKEN_WARN,
	TOKEN_CODE, /* text that a user would type */
	TOKEN_COMPUTE,
	TOKEN_COMM,
	TOKEN_DATA,
	TOKEN_IDLE,
	TOKEN_LEAD, /* lead and tail: time of the window before and after all GPU work */
	TOKEN_UNSEEN,
	TOKEN_FORWARD,
	TOKEN_BACKWARD,
	TOKEN_OPTIMIZER,
	TOKEN_ASIDE,
	TOKEN_OTHER,
	TOKEN_COUNT,
};
/* Returns the token of a phase by its name. */
enum token token_of_phase(const char *name);
/* The letters of phases in the table `strips`, in the order of a step; the last has name NULL. */
extern const struct phase_letter {
	char letter;
	const char *name;
} phase_letters[];
enum token token_of_letter(char letter);
/* Returns the token of a class of GPU time or a cause: "exposed_comm", "host:forward". */
enum token token_of_kind(const char *kind);
/* Returns the token of a class of GPU time by its letter in the table `strips`: c, m, d, i, l. */
static inline enum token token_of_class(char letter)
{
	return letter == 'c'   ? TOKEN_COMPUTE
	       : letter == 'm' ? TOKEN_COMM
	       : letter == 'd' ? TOKEN_DATA
	       : letter == 'l' ? TOKEN_LEAD
			       : TOKEN_IDLE;
}

enum medium { MEDIUM_TEXT, MEDIUM_HTML, MEDIUM_MD };
#define IN(medium) (1u << (medium))
enum { LEFT_OUT = 1 << 8 }; /* bit in block_column.hidden: does not fit into the terminal */

struct span {
	struct span *next;
	const char *text;
	enum token token;
};
struct stack_part { /* a part of a stacked bar */
	enum token token;
	double ns;
	const char *label; /* NULL: not labelled */
	int tenths;        /* tenths of a percent, beside the label */
};
struct stack {
	struct stack_part *parts;
	size_t count;
	double whole_ns; /* time for the full width; 0: the sum of the parts */
};

/* A column of a table. In media for which its table is not built it may show anything. */
struct block_column {
	const char *title;            /* for all media without an own title; NULL: empty */
	const char *text, *html, *md; /* "\n" breaks the line of an HTML title */
	unsigned hidden;              /* bit IN(medium): left out there */
	/* Text: cells begin at `at` and lose their middle beyond `width` (0: only in a terminal
	 * that is too narrow), or end before `end`. Longer cells move their neighbours. `title_at`:
	 * begin of the title if not aligned with cells; `wish`: the original `end`. */
	unsigned at, width, end, title_at, wish;
	/* HTML: class of the cells, also of the title if it controls the display in narrow pages.
	 * NULL: empty. */
	const char *class;
	bool has_no_class;    /* HTML: no class attribute at all */
	bool has_title_class; /* an empty class is written at the title */
	bool is_left;         /* not figures; for Markdown and automatic layout */
	bool is_bar;          /* a bar of at most `width` columns */
	bool is_signed;       /* text: bars grow from the middle, negative ones to the left */
};
struct block_cell {
	const char *text;  /* NULL: empty */
	const char *more;  /* text: follows directly, dim; NULL: nothing */
	const char *whole; /* HTML: shown on hover; NULL: nothing */
	const char *class; /* HTML: replaces the column's class if has_class */
	bool has_class;
	enum token token; /* of the text or bar; TOKEN_TEXT: the row's token */
	enum token mark;  /* colour of a square before the text; TOKEN_TEXT: none */
	double share;     /* length of a bar, 0 to 1 */
	const struct stack *stack;
	size_t seen, number; /* text: see line.h; 0: unused */
};
struct block_row {
	struct block_row *next;
	struct block_cell *cells; /* one for each column */
	enum token token;
	const char *class; /* HTML; NULL: no class */
	bool is_filled;    /* HTML: unused cells are written too */
	size_t used;       /* number of cells that were added */
};
struct block_table {
	struct block_column *columns;
	size_t count;
	struct block_row *rows, *last;
	const char *class;  /* HTML; NULL: no class */
	const char *empty;  /* HTML: text of a row that is one cell; NULL: no such row */
	bool has_no_titles; /* text: no line of titles */
	bool is_fitted;     /* text: automatic layout, columns are as wide as their cells */
	bool is_beside;     /* to the right of the previous table */
	bool is_framed;     /* text: columns do not move */
	const struct block_table *like;  /* text: uses the columns of this earlier table */
	const struct block_table *below; /* text: figures are aligned with those of this table */
	bool is_in_line; /* text: the first row is in the line of the section's title */
};

enum role {
	ROLE_TEXT,   /* a paragraph */
	ROLE_STRONG, /* a paragraph in bold */
	ROLE_NOTE,   /* small print */
	ROLE_LINE,   /* one of several lines that make a paragraph */
	ROLE_ALONE,  /* the only content of a section */
};
enum flow {
	FLOW_WRAP,
	FLOW_CLIP /* one line; a longer text is cut between words, with an ellipsis */
};
struct block_words {
	enum role role;
	enum flow flow;
	const char *label; /* text: at column label_at; NULL: none */
	const char *more;  /* text: follows, dim, up to the edge; NULL: nothing */
	enum token label_token;
	unsigned label_at, left; /* text: lines begin at `left` */
	bool is_open;            /* text: the next block continues in this line */
	bool is_hanging;         /* text: the first line begins two columns further left */
	struct span *spans, *last;
};
struct fix {
	const char *rule, *brief, *evidence, *advice;
	const char *where;       /* place in the model; NULL: unknown */
	const char *saving;      /* "12.5"; NULL: saves no time */
	double share;            /* percent of a step */
	const char *sign;        /* before the saving: a minus, or "of" for the time in question */
	const char *figure, *of; /* HTML: both with the unit; "41.9 % of a step" */
};
enum block_kind {
	BLOCK_INPUT,     /* the inputs: top of a page */
	BLOCK_WARNING,   /* a reason not to trust the page */
	BLOCK_VERDICT,   /* the verdict, above all sections */
	BLOCK_SECTION,   /* begin of a section */
	BLOCK_WORDS,     /* a paragraph or line */
	BLOCK_STACK,     /* one stacked bar over the whole width */
	BLOCK_TABLE,     /* columns and rows */
	BLOCK_FINDINGS,  /* findings, by their savings */
	BLOCK_SPARK,     /* one value for each step */
	BLOCK_TIMELINES, /* steps over time */
	BLOCK_CURVE,     /* memory over time */
	BLOCK_HEAT,      /* a matrix as colours */
	BLOCK_FLAME,     /* a flame graph */
	BLOCK_ROOFLINE,  /* operators and the peaks of their GPU */
};
struct block {
	enum block_kind kind;
	bool has_gap; /* text: an empty line before it, except before the first block */
	struct block *next;
	union {
		struct {
			const char *path, *more, *report;
			struct block_words words;
		} input;
		struct {
			const char *label, *first, *second; /* second NULL: none */
		} callout; /* for BLOCK_WARNING and BLOCK_VERDICT */
		struct {
			const char *title, *note, *right; /* right: text only, at the right edge */
			unsigned note_at;                 /* text */
			enum token token;                 /* text: token of the title */
		} section;
		struct block_words words;
		struct stack stack;
		struct block_table table;
		struct {
			const struct fix *rows;
			size_t count;
			unsigned brief_at;    /* text */
			const char *together; /* savings of several together, NULL: unknown */
		} findings;
		struct {
			const double *values;
			size_t count;
			double median;
			uint64_t first, last; /* step numbers at both ends */
		} spark;
		struct {
			const struct step_timeline *rows;
			size_t count;
			double most_ns;
			struct time_unit unit;
			bool is_sampled;
		} timelines;
		struct curve curve;
		struct heat heat;
		struct {
			const struct flame_box *boxes;
			size_t count, depth;    /* depth: of the innermost box */
			double whole_ns, steps; /* steps: the divisor of times */
			const char *of;         /* unit of times after the division: "per step" */
		} flame;
		struct roofline roofline;
	};
};
enum { COLUMNS_MAX = 32 /* limit of a table */ };
struct blocks {
	struct arena memory;
	struct block *first, *last;
	bool is_full; /* out of memory; the page is abandoned */
	/* The adding functions return these then, so that builders need no checks. */
	struct block spare_block;
	struct block_row spare_row;
	struct block_cell spare_cells[COLUMNS_MAX];
};

void blocks_init(struct blocks *b);
void blocks_release(struct blocks *b);
enum status blocks_status(const struct blocks *b, struct error *err);

/* Returns zeroed memory that lives as long as the blocks; NULL only if is_full. */
void *blocks_take(struct blocks *b, size_t count, size_t size);
/* Returns a text that lives as long as the blocks; "" if is_full. */
const char *blocks_text(struct blocks *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Format figures like number.h. */
const char *show_time(struct blocks *b, double ns, const struct time_unit *unit);
/* with a sign: +0.33 */
const char *show_signed(struct blocks *b, double ns, const struct time_unit *unit);
const char *show_number(struct blocks *b, double value, unsigned decimals);
const char *show_count(struct blocks *b, uint64_t value);
const char *show_bytes(struct blocks *b, double bytes);
const char *show_percent(struct blocks *b, int tenths);
/* Returns the name of a kernel or copy in at most `width` columns. */
const char *show_name(struct blocks *b, const char *name, unsigned width);

/* The caller fills the parts. NULL: out of memory. */
struct stack *new_stack(struct blocks *b, size_t count, double whole_ns);

struct block *add_block(struct blocks *b, enum block_kind kind);
/* `note` NULL: none. The caller may set further members. */
struct block *add_section(struct blocks *b, const char *title, const char *note);
struct block_words *add_words(struct blocks *b, enum role role, unsigned left);
void add_span(struct blocks *b, struct block_words *w, enum token token, const char *text);
/* Adds a paragraph with one span, whose token is that of the role. */
void add_sentence(struct blocks *b, enum role role, unsigned left, const char *text);

/* Adds lines that begin at `left`; the first has a label before it. */
struct block_words *add_labelled(struct blocks *b, unsigned left, unsigned label_at,
				 enum token token, const char *label);

struct block_table *add_table(struct blocks *b, const struct block_column *columns, size_t count);
#define ADD_TABLE(b, columns) add_table(b, columns, sizeof(columns) / sizeof((columns)[0]))
/* Begins a row; cells are added from the left. `class`: for HTML; NULL: none. */
struct block_row *add_row(struct blocks *b, struct block_table *t, enum token token,
			  const char *class);
struct block_cell *add_cell(struct block_row *r, const char *text);
/* The same with formatted texts. */
#define add_spanf(b, w, token, ...)       add_span(b, w, token, blocks_text(b, __VA_ARGS__))
#define add_sentencef(b, role, left, ...) add_sentence(b, role, left, blocks_text(b, __VA_ARGS__))
#define add_cellf(b, r, ...)              add_cell(r, blocks_text(b, __VA_ARGS__))
void add_time(struct blocks *b, struct block_row *r, double ns, const struct time_unit *unit);
void add_number(struct blocks *b, struct block_row *r, double value, unsigned decimals);
void add_count(struct blocks *b, struct block_row *r, uint64_t value);
void add_percent(struct blocks *b, struct block_row *r, int tenths);
void add_bar(struct block_row *r, enum token token, double share);

/* Returns the title of a column; NULL: the medium does not show the column. */
static inline const char *column_title(const struct block_column *c, enum medium medium)
{
	const char *own = medium == MEDIUM_TEXT ? c->text : medium == MEDIUM_HTML ? c->html : c->md;

	return c->hidden & IN(medium) ? NULL : own ? own : c->title ? c->title : "";
}
