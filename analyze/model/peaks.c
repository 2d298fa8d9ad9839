/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/model/peaks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rates in the order of NUMBER_LIST: none, FP64, FP32, TF32, FP16, BF16, FP8, FP4, INT8. */
#define MATRIX(fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8)                                       \
	{                                                                                          \
		0, fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8                                    \
	}

/* The first row whose pattern matches the name is used; a pattern "A B" needs both words. Units and
 * the other numbers identify devices whose name is unknown. */
/* clang-format off */
static const struct {
	const char *pattern;
	uint64_t units, warp, major, minor; /* 0: only the name identifies it */
	struct peaks peaks;
} rows[] = {
	{ "V100 PCIE", 0, 0, 0, 0, { "V100 PCIe", "Tesla V100 data sheet", MATRIX(0, 0, 0, 112, 0, 0, 0, 56), 7.1f, 14.1f, 900, 0, 32, 1, 1380 } },
	{ "V100", 80, 32, 7, 0, { "V100 SXM2", "Volta white paper", MATRIX(0, 0, 0, 125, 0, 0, 0, 62.7f), 7.8f, 15.7f, 900, 300, 32, 1, 1530 } },
	{ "T4", 40, 32, 7, 5, { "T4", "T4 data sheet", MATRIX(0, 0, 0, 65, 0, 0, 0, 130), 0.25f, 8.1f, 320, 0, 32, 1, 1590 } },
	{ "TITAN RTX", 0, 0, 0, 0, { "TITAN RTX", "Turing white paper", MATRIX(0, 0, 0, 130.5f, 0, 0, 0, 261), 0.51f, 16.3f, 672, 0, 32, 1, 1770 } },
	{ "RTX 2080 Ti", 68, 32, 7, 5, { "RTX 2080 Ti", "Turing white paper", MATRIX(0, 0, 0, 53.8f, 0, 0, 0, 215), 0.42f, 13.4f, 616, 100, 32, 1, 1545 } },
	{ "A100 PCIE 40", 0, 0, 0, 0, { "A100 PCIe 40GB", "A100 data sheet", MATRIX(19.5f, 0, 156, 312, 312, 0, 0, 624), 9.7f, 19.5f, 1555, 600, 64, 2, 1410 } },
	{ "A100 PCIE", 0, 0, 0, 0, { "A100 PCIe 80GB", "A100 data sheet", MATRIX(19.5f, 0, 156, 312, 312, 0, 0, 624), 9.7f, 19.5f, 1935, 600, 64, 2, 1410 } },
	{ "A100 80", 0, 0, 0, 0, { "A100 SXM 80GB", "A100 data sheet", MATRIX(19.5f, 0, 156, 312, 312, 0, 0, 624), 9.7f, 19.5f, 2039, 600, 64, 2, 1410 } },
	{ "A100", 108, 32, 8, 0, { "A100 SXM 40GB", "A100 data sheet", MATRIX(19.5f, 0, 156, 312, 312, 0, 0, 624), 9.7f, 19.5f, 1555, 600, 64, 2, 1410 } },
	{ "A800", 0, 0, 0, 0, { "A800", "A100 data sheet", MATRIX(19.5f, 0, 156, 312, 312, 0, 0, 624), 9.7f, 19.5f, 2039, 400, 64, 2, 1410 } },
	{ "A30", 0, 0, 0, 0, { "A30", "A30 data sheet", MATRIX(10.3f, 0, 82, 165, 165, 0, 0, 330), 5.2f, 10.3f, 933, 200, 64, 2, 1440 } },
	{ "A10G", 0, 0, 0, 0, { "A10G", "A10 data sheet", MATRIX(0, 0, 35, 70, 70, 0, 0, 140), 0.49f, 31.2f, 600, 0, 64, 2, 1695 } },
	{ "A10", 72, 32, 8, 6, { "A10", "A10 data sheet", MATRIX(0, 0, 62.5f, 125, 125, 0, 0, 250), 0.49f, 31.2f, 600, 0, 64, 2, 1695 } },
	{ "A40", 84, 32, 8, 6, { "A40", "A40 data sheet", MATRIX(0, 0, 74.8f, 149.7f, 149.7f, 0, 0, 299), 0.58f, 37.4f, 696, 112, 64, 2, 1740 } },
	{ "L40S", 142, 32, 8, 9, { "L40S", "L40S data sheet", MATRIX(0, 0, 183, 362, 362, 733, 0, 733), 1.4f, 91.6f, 864, 0, 64, 2, 2520 } },
	{ "L40", 0, 0, 0, 0, { "L40", "L40 data sheet", MATRIX(0, 0, 90.5f, 181, 181, 362, 0, 362), 1.4f, 90.5f, 864, 0, 64, 2, 2490 } },
	{ "L4", 58, 32, 8, 9, { "L4", "L4 data sheet", MATRIX(0, 0, 60, 121, 121, 242.5f, 0, 242.5f), 0.47f, 30.3f, 300, 0, 64, 2, 2040 } },
	{ "RTX 4090", 128, 32, 8, 9, { "RTX 4090", "Ada white paper", MATRIX(0, 0, 82.6f, 165, 165, 330, 0, 661), 1.3f, 82.6f, 1008, 0, 64, 2, 2520 } },
	{ "RTX 5090", 170, 32, 12, 0, { "RTX 5090", "RTX Blackwell white paper", MATRIX(0, 0, 105, 209.5f, 209.5f, 419, 1676, 838), 1.6f, 104.8f, 1792, 0, 128, 2, 2407 } },
	{ "RTX 3090", 82, 32, 8, 6, { "RTX 3090", "Ampere GA102 white paper", MATRIX(0, 0, 35.6f, 71, 71, 0, 0, 284), 0.56f, 35.6f, 936, 112, 64, 2, 1695 } },
	{ "RTX 3080", 68, 32, 8, 6, { "RTX 3080", "Ampere GA102 white paper", MATRIX(0, 0, 29.8f, 59.5f, 59.5f, 0, 0, 238), 0.47f, 29.8f, 760, 0, 64, 2, 1710 } },
	{ "RTX 3070", 46, 32, 8, 6, { "RTX 3070", "Ampere GA102 white paper", MATRIX(0, 0, 20.3f, 40.6f, 40.6f, 0, 0, 163), 0.32f, 20.3f, 448, 0, 64, 2, 1725 } },
	{ "RTX 4080", 76, 32, 8, 9, { "RTX 4080", "Ada white paper", MATRIX(0, 0, 48.7f, 97.5f, 97.5f, 195, 0, 390), 0.76f, 48.7f, 717, 0, 64, 2, 2505 } },
	{ "RTX 6000 Ada", 0, 0, 0, 0, { "RTX 6000 Ada", "RTX 6000 Ada data sheet", MATRIX(0, 0, 182, 364, 364, 728, 0, 728), 1.4f, 91.1f, 960, 0, 64, 2, 2505 } },
	{ "RTX A6000", 84, 32, 8, 6, { "RTX A6000", "RTX A6000 data sheet", MATRIX(0, 0, 77.4f, 154.8f, 154.8f, 0, 0, 310), 0.6f, 38.7f, 768, 112, 64, 2, 1800 } },
	{ "H100 PCIe", 114, 32, 9, 0, { "H100 PCIe", "H100 data sheet", MATRIX(51, 0, 378, 756, 756, 1513, 0, 1513), 25.6f, 51.2f, 2039, 600, 128, 2, 1620 } },
	{ "H100 NVL", 0, 0, 0, 0, { "H100 NVL", "H100 NVL product brief", MATRIX(60, 0, 418, 835, 835, 1671, 0, 1671), 30, 60, 3938, 600, 128, 2, 1785 } },
	{ "GH200", 0, 0, 0, 0, { "GH200", "GH200 data sheet", MATRIX(67, 0, 494, 989, 989, 1979, 0, 1979), 34, 67, 4000, 900, 128, 2, 1830 } },
	{ "H200", 0, 0, 0, 0, { "H200 SXM", "H200 data sheet", MATRIX(66.9f, 0, 495, 989, 989, 1979, 0, 1979), 33.5f, 66.9f, 4800, 900, 128, 2, 1830 } },
	{ "H800", 0, 0, 0, 0, { "H800", "H100 data sheet", MATRIX(0, 0, 495, 989, 989, 1979, 0, 1979), 0, 66.9f, 3350, 400, 128, 2, 1830 } },
	{ "H100", 132, 32, 9, 0, { "H100 SXM", "H100 data sheet", MATRIX(66.9f, 0, 495, 989, 989, 1979, 0, 1979), 33.5f, 66.9f, 3350, 900, 128, 2, 1830 } },
	{ "GB200", 0, 0, 0, 0, { "GB200", "Blackwell brief", MATRIX(40, 0, 1250, 2500, 2500, 5000, 10000, 5000), 40, 80, 8000, 1800, 256, 2, 0 } },
	{ "B100", 0, 0, 0, 0, { "B100", "Blackwell brief", MATRIX(30, 0, 875, 1750, 1750, 3500, 7000, 3500), 30, 60, 8000, 1800, 128, 2, 0 } },
	{ "B200", 148, 32, 10, 0, { "B200 HGX", "HGX B200 table", MATRIX(37, 0, 1125, 2250, 2250, 4500, 9000, 4500), 37, 75, 8000, 1800, 128, 2, 1850 } },
	{ "B300", 0, 32, 10, 3, { "B300 HGX", "HGX B300 table", MATRIX(1.25f, 0, 1125, 2250, 2250, 4500, 13125, 150), 1.25f, 75, 8000, 1800, 256, 2, 0 } },
	{ "MI250X", 110, 64, 9, 0, { "MI250X, a die", "CDNA 2 white paper", MATRIX(47.9f, 47.9f, 0, 191.5f, 191.5f, 0, 0, 191.5f), 23.9f, 23.9f, 1638, 400, 64, 1, 1700 } },
	{ "MI250", 0, 0, 0, 0, { "MI250, a die", "CDNA 2 white paper", MATRIX(45.3f, 45.3f, 0, 181, 181, 0, 0, 181), 22.6f, 22.6f, 1638, 300, 64, 1, 1700 } },
	{ "MI210", 104, 64, 9, 0, { "MI210, or a die of MI250", "CDNA 2 white paper", MATRIX(45.3f, 45.3f, 0, 181, 181, 0, 0, 181), 22.6f, 22.6f, 1638, 300, 64, 1, 1700 } },
	{ "MI325X", 0, 0, 0, 0, { "MI325X", "MI325X data sheet", MATRIX(163.4f, 163.4f, 653.7f, 1307, 1307, 2615, 0, 2615), 81.7f, 163.4f, 6000, 896, 128, 2, 2100 } },
	{ "MI300", 304, 64, 9, 4, { "MI300X", "CDNA 3 white paper", MATRIX(163.4f, 163.4f, 653.7f, 1307, 1307, 2615, 0, 2615), 81.7f, 163.4f, 5300, 896, 128, 2, 2100 } },
	{ "MI355X", 256, 64, 9, 5, { "MI355X", "MI355X data sheet", MATRIX(78.6f, 157.3f, 0, 2517, 2517, 5033, 10066, 5033), 78.6f, 157.3f, 8000, 1075, 128, 2, 2400 } },
};
/* clang-format on */
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct peaks *peaks_row(size_t index, const char **pattern)
{
	if (index >= ROWS)
		return NULL;
	*pattern = rows[index].pattern;
	return &rows[index].peaks;
}

/* Returns whether the name contains all words of the pattern; "A10" does not match "A100". */
static bool name_has(const char *name, const char *pattern)
{
	char word[PEAKS_NAME];

	for (const char *p = pattern; *p;) {
		size_t len = strcspn(p, " ");
		const char *at = name;

		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		while ((at = strcasestr(at, word)) &&
		       ((isdigit((unsigned char)word[len - 1]) &&
			 isdigit((unsigned char)at[len])) ||
			(at > name && isalnum((unsigned char)at[-1]) && strcmp(word, "40") != 0 &&
			 strcmp(word, "80") != 0)))
			at++;
		if (!at || !len)
			return false;
		p += len;
		p += strspn(p, " ");
	}
	return true;
}

/* Returns whether the name is of a card whose rates differ from those of the pattern's card. */
static bool is_variant(const char *name, const char *pattern)
{
	static const char *const words[] = { " Ti", " SUPER", " Laptop", " Max-Q" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]) && !strstr(pattern, words[i]))
			return true;
	return false;
}

struct file_row {
	char name[PEAKS_NAME];
	struct peaks peaks;
};
struct peaks_file {
	size_t count;
	struct file_row rows[];
};

static const struct peaks *sheet_find(const struct peaks_device *d)
{
	for (size_t r = 0; r < ROWS; r++)
		if (name_has(d->name, rows[r].pattern) && !is_variant(d->name, rows[r].pattern)) {
			bool is_80 =
				d->memory > 60000000000u && strcmp(rows[r].pattern, "A100") == 0;

			return &rows[is_80 ? r - 1 : r].peaks;
		}
	for (size_t r = 0; r < ROWS; r++)
		if (rows[r].units && rows[r].warp && rows[r].units == d->units &&
		    rows[r].warp == d->warp && rows[r].major == d->major &&
		    rows[r].minor == d->minor)
			return &rows[r].peaks;
	return NULL;
}

const struct peaks *peaks_find(const struct peaks_file *file, const struct peaks_device *device)
{
	for (size_t r = 0; file && r < file->count; r++)
		if (strcasestr(device->name, file->rows[r].name))
			return &file->rows[r].peaks;
	return sheet_find(device);
}

double peaks_rate(const struct peaks *p, const struct model_cost *cost, bool is_tf32)
{
	enum number n = is_tf32 && cost->number == NUMBER_FP32 ? NUMBER_TF32 : cost->number;
	double rate = cost->is_matrix ? (double)p->matrix[n] : 0;

	if (rate > 0)
		return rate;
	return (double)(cost->number == NUMBER_FP64 ? p->fp64 : p->fp32);
}

static float *file_value(struct peaks *p, const char *key)
{
	const struct {
		const char *key;
		float *into;
	} keys[] = { { "fp64_vector", &p->fp64 }, { "fp32_vector", &p->fp32 },
		     { "memory", &p->memory_gb }, { "link", &p->link_gb },
		     { "pcie", &p->pcie_gb },     { "mhz", &p->boost_mhz } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(keys[i].key, key))
			return keys[i].into;
	for (int n = NUMBER_FP64; n < NUMBER_COUNT; n++)
		if (!strcmp(number_words[n], key))
			return &p->matrix[n];
	return NULL;
}

/* Parses one line, which the caller owns and which ends with 0. */
static enum status row_read(struct file_row *row, char *line, size_t number, struct error *err)
{
	char *colon = strchr(line, ':'), *end;

	if (!colon || colon == line || colon - line >= PEAKS_NAME)
		return fail(err, ST_FORMAT, NOWHERE,
			    "line %zu: the name of a GPU and a colon are missing", number);
	snprintf(row->name, sizeof(row->name), "%.*s", (int)(colon - line), line);
	const struct peaks *sheet = sheet_find(&(struct peaks_device){ .name = row->name });
	row->peaks = sheet ? *sheet : (struct peaks){ .sparse = 1 };
	row->peaks.source = "the file of --peaks";
	for (char *word = strtok_r(colon + 1, " \t\r", &end); word;
	     word = strtok_r(NULL, " \t\r", &end)) {
		char *equals = strchr(word, '='), *stop = NULL;
		float *into = NULL;
		double value = 0;

		if (equals) {
			*equals = '\0';
			into = file_value(&row->peaks, word);
			value = strtod(equals + 1, &stop);
		}
		if (!into || stop == equals + 1 || *stop || !(value >= 0 && value < 1e9))
			return fail(err, ST_FORMAT, NOWHERE,
				    "line %zu: %s is not a known key with a number", number, word);
		*into = (float)value;
	}
	return ST_OK;
}

enum status peaks_load(struct peaks_file **out, const char *text, size_t len, struct error *err)
{
	size_t lines = 1, number = 0;
	enum status st = ST_OK;

	*out = NULL;
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	struct peaks_file *f = calloc(1, sizeof(*f) + lines * sizeof(f->rows[0]));
	char *copy = malloc(len + 1);
	if (!f || !copy)
		st = fail_memory(err);
	if (st == ST_OK) {
		memcpy(copy, text, len);
		copy[len] = '\0';
	}
	for (char *line = copy, *next; st == ST_OK && line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		line += strspn(line, " \t\r");
		if (!*line || *line == '#')
			continue;
		st = row_read(&f->rows[f->count], line, number, err);
		f->count++;
	}
	free(copy);
	if (st != ST_OK) {
		free(f);
		return st;
	}
	for (size_t r = 0; r < f->count; r++)
		f->rows[r].peaks.name = f->rows[r].name;
	*out = f;
	return ST_OK;
}

void peaks_free(struct peaks_file *file)
{
	free(file);
}
