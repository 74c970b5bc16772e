/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory for the verifier, from malloc(). */
#include "bpf/run/heap.h"

#include <stdlib.h>

static void *heap_alloc(struct pb_bpf_mem *mem, size_t size)
{
	return calloc(1, size);
}

static void heap_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	free(p);
}

struct pb_bpf_mem pb_bpf_heap = { heap_alloc, heap_free };
