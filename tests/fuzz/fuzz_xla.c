/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a program of XLA: what each instruction costs is a number, and the same each time.
 */
#include "analyze/model/xla.h"
#include "schemas/base/pb.h"
#include "tests/fuzz/target.h"

static void ask(struct xla_program *p, const struct bytes *name)
{
	char *text = fuzz_all(name->at, bytes_left(name));
	struct model_cost c, again;
	bool is_known = xla_cost(p, text, &c);

	if (is_known &&
	    !(c.flops >= 0 && c.flops <= MODEL_MOST && c.bytes >= 0 && c.bytes <= MODEL_MOST))
		abort();
	/* the second time may be one too many */
	if (xla_cost(p, text, &again) &&
	    (!is_known || c.flops != again.flops || c.bytes != again.bytes))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes proto = { .at = data, .end = data + size };
	struct pb_field module, computation, instruction, f;
	struct xla_program *p = NULL;

	if (xla_read(data, size, &p, NULL) != ST_OK)
		abort();
	while (pb_next(&proto, &module))
		while (pb_next(&module.bytes, &computation))
			while (pb_next(&computation.bytes, &instruction))
				if (pb_next(&instruction.bytes, &f))
					ask(p, &f.bytes);
	xla_free(p);
	return 0;
}
