/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/model/nvtx.h"

static const struct nvtx_type types[NVTX_TYPE_END] = {
#define X(name, number, form, type) [number] = { NVTX_FORM_##form, sizeof(type), _Alignof(type) },
	NVTX_TYPE_LIST(X)
#undef X
};

struct nvtx_type nvtx_type_find(uint64_t type)
{
	return type < NVTX_TYPE_END ? types[type] : (struct nvtx_type){ 0 };
}
