/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file of FOLDER/TARGET/ through its target, in one plain program: what a fuzzer once found
 * stays found, without a fuzzer.
 *
 * The smallest file in the last FOLDER of each reader of SOURCE_LIST is also cut at every byte, has
 * each byte and each number of its text replaced by extremes, and 1 % of its bytes by others.  The
 * targets abort where what comes out is inconsistent.  A reader without a target fails.
 *
 * usage: replay FOLDER...
 */
#include "convert/source/source.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name) int fuzz_##name(const uint8_t *data, size_t size);
#include "list.h"
#undef X

static const struct target {
	const char *name;
	int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define X(name) { #name, fuzz_##name },
#include "list.h"
#undef X
};
enum {
	TARGETS = sizeof(targets) / sizeof(targets[0]),
	FILE_MAX = 1 << 24,
	PLACES = 1000,     /* where a file is cut: every byte of a small one, else evenly spaced */
	OVERWRITTEN = 100, /* of these */
	NUMBERS = 100,     /* that are replaced */
	DAMAGED = 100,     /* times */
};
static const char *const readers[] = {
#define X(name) #name,
	SOURCE_LIST(X)
#undef X
};

static unsigned files[TARGETS];
static struct file { /* the smallest of a target in the folder at hand */
	uint8_t *bytes;
	size_t size;
} smallest[TARGETS];

static void run_exact(const struct target *t, const uint8_t *bytes, size_t size)
{
	uint8_t *exact = malloc(size); /* so that a sanitizer sees what is read behind it */

	if (size)
		memcpy(exact, bytes, size);
	t->run(exact, size);
	free(exact);
}

static void run_file(const struct target *t, const char *path)
{
	struct file *least = &smallest[t - targets];
	uint8_t *bytes = malloc(FILE_MAX);
	FILE *f = fopen(path, "rb");
	size_t size = f ? fread(bytes, 1, FILE_MAX, f) : 0;

	if (!f) {
		perror(path);
		exit(1);
	}
	fclose(f);
	run_exact(t, bytes, size);
	files[t - targets]++;
	if (least->bytes && least->size <= size) {
		free(bytes);
		return;
	}
	free(least->bytes);
	*least = (struct file){ bytes, size };
}

/* ---- readers ---------------------------------------------------------------------------- */

/* Whole numbers of a text become what no field can hold. */
static unsigned run_numbers(const struct target *t, const struct file *f, uint8_t *made)
{
	static const char *const extremes[] = { "-1",    "0",    "18446744073709551616",
						"1e308", "null", "" };
	unsigned runs = 0;
	size_t end;

	for (size_t at = 0; at < f->size && runs < 6 * NUMBERS; at = end) {
		for (end = at; end < f->size && isdigit(f->bytes[end]); end++)
			;
		for (size_t i = 0; end > at && i < sizeof(extremes) / sizeof(extremes[0]); i++) {
			size_t len = strlen(extremes[i]);

			memcpy(made, f->bytes, at);
			memcpy(made + at, extremes[i], len);
			memcpy(made + at + len, f->bytes + end, f->size - end);
			run_exact(t, made, at + len + f->size - end);
			runs++;
		}
		end += end == at;
	}
	return runs;
}

/* Returns how many files were made of its smallest one. */
static unsigned run_damaged(const struct target *t)
{
	static const uint8_t bytes[] = { 0, 0x7f, 0x80, 0xff };
	const struct file *f = &smallest[t - targets];
	size_t step = f->size / PLACES + 1;
	uint8_t *made = malloc(f->size + 64);
	unsigned seed = 1, runs = 0;

	for (size_t at = 0; at < f->size; at += step) {
		run_exact(t, f->bytes, at);
		runs++;
	}
	for (size_t at = 0; at < f->size; at += f->size / OVERWRITTEN + 1) {
		memcpy(made, f->bytes, f->size);
		for (size_t i = 0; i < sizeof(bytes); i++, runs++) {
			made[at] = bytes[i];
			run_exact(t, made, f->size);
		}
	}
	for (unsigned round = 0; round < DAMAGED; round++, runs++) {
		memcpy(made, f->bytes, f->size);
		for (size_t i = 0; i < f->size / 100 + 1; i++)
			made[(size_t)rand_r(&seed) % f->size] = (uint8_t)rand_r(&seed);
		run_exact(t, made, f->size);
	}
	runs += run_numbers(t, f, made);
	free(made);
	return runs;
}

/* Whether the reader has a target, whose smallest file was damaged in all ways. */
static bool run_reader(const char *name)
{
	for (size_t i = 0; i < TARGETS; i++)
		if (!strcmp(targets[i].name, name) && smallest[i].size) {
			printf("ok - reader %s: %u damaged files of %zu bytes\n", name,
			       run_damaged(&targets[i]), smallest[i].size);
			return true;
		}
	printf("not ok - reader %s: no tests/fuzz/fuzz_%s.c with seeds\n", name, name);
	return false;
}

static void run_folder(const struct target *t, const char *folder)
{
	char path[4096];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", folder, t->name);
	d = opendir(path);
	if (d) {
		free(smallest[t - targets].bytes);
		smallest[t - targets] = (struct file){ NULL, 0 };
	}
	while (d && (entry = readdir(d)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", folder, t->name, entry->d_name);
		run_file(t, path);
	}
	if (d)
		closedir(d);
}

/* Findings of a target that is gone would never run again, unseen. */
static int strays(const char *folder)
{
	struct dirent *entry;
	DIR *d = opendir(folder);
	size_t i;
	int count = 0;

	while (d && (entry = readdir(d)) != NULL) {
		for (i = 0; i < TARGETS && strcmp(targets[i].name, entry->d_name) != 0; i++)
			;
		if (i < TARGETS || entry->d_name[0] == '.')
			continue;
		printf("not ok - %s/%s: no such target\n", folder, entry->d_name);
		count++;
	}
	if (d)
		closedir(d);
	return count;
}

int main(int argc, char **argv)
{
	int failed = 0, passed = 0, i;
	size_t t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1; i < argc; i++)
		failed += strays(argv[i]);
	for (t = 0; t < TARGETS; t++) {
		for (i = 1; i < argc; i++)
			run_folder(&targets[t], argv[i]);
		printf("%s - %s: %u files\n", files[t] ? "ok" : "not ok", targets[t].name,
		       files[t]);
		failed += !files[t];
		passed += files[t] != 0;
	}
	for (size_t r = 0; r < sizeof(readers) / sizeof(readers[0]); r++) {
		bool is_good = run_reader(readers[r]);

		passed += is_good;
		failed += !is_good;
	}
	for (t = 0; t < TARGETS; t++)
		free(smallest[t].bytes);
	printf("replay: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
