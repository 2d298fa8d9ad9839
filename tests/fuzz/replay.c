/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file of FOLDER/TARGET/ through its target, in one plain program: what a fuzzer once found
 * stays found, without a fuzzer.
 *
 * usage: replay FOLDER...
 */
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
enum { TARGETS = sizeof(targets) / sizeof(targets[0]), FILE_MAX = 1 << 24 };

static unsigned files[TARGETS];

static void run_file(const struct target *t, const char *path)
{
	uint8_t *bytes = malloc(FILE_MAX), *exact;
	FILE *f = fopen(path, "rb");
	size_t size = f ? fread(bytes, 1, FILE_MAX, f) : 0;

	if (!f) {
		perror(path);
		exit(1);
	}
	fclose(f);
	exact = malloc(size); /* so that a sanitizer sees what is read behind it */
	memcpy(exact, bytes, size);
	free(bytes);
	t->run(exact, size);
	free(exact);
	files[t - targets]++;
}

static void run_folder(const struct target *t, const char *folder)
{
	char path[4096];
	struct dirent *entry;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", folder, t->name);
	d = opendir(path);
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
	printf("replay: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
