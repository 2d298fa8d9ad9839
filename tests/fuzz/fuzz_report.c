/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any events, as a log whose checksums were made right, through all stages and all reports, and
 * what they say in every format.
 */
#include "analyze/engine/engine.h"
#include "analyze/report/report_list.h"
#include "tests/fuzz/finished.h"
#include "tests/fuzz/log_sign.h"
#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct engine_outcome outcome = { 0 };
	static struct name_rules *rules; /* for good */
	struct filter filter = { 0 };
	struct tables *tables = NULL;
	char path[64], *paths[] = { path };
	struct engine_request how = { .paths = paths,
				      .count = 1,
				      .reports = report_types,
				      .filter = &filter,
				      .per_step = size & 1,
				      .pictures = PICTURES_FINE,
				      .threads = 1,
				      .memory_bytes = 64 << 20,
				      .scratch = "/tmp" };
	int fd;

	memcpy(copy, data, size);
	log_sign(copy, size);
	fd = fuzz_file(copy, size, path);
	free(copy);
	if (!rules && name_rules_new(&rules, NULL, 0, NULL) != ST_OK)
		abort();
	how.rules = rules;
	if (engine_run(&tables, &how, &outcome, NULL) == ST_OK)
		fuzz_finished(tables);
	tables_free(tables);
	close(fd);
	return 0;
}
