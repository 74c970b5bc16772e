/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keeps a forked child from writing to its parent's chunks. A signal handler may fork after it has
 * interrupted code of the agent. In the child, the handler then returns to that code, which holds
 * addresses in the parent's chunks. So the child must not go on unchanged. Code in own_store.S is
 * sent back to the comparison of serials, which now fails. Code on the hit path has the address in
 * one register. This register gets an address in memory that only the child has and that nobody
 * reads.
 */
#include "abi/ring.h"
#include "arch/arch.h"
#include "arch/x86_64/forked.h"

/* Memory that nobody reads. It contains an aligned block of the size of a chunk. */
static uint8_t nowhere[2 * PB_CHUNK_SIZE];

void pb_own_resume(ucontext_t *uc, uint64_t ring, uint64_t size)
{
	static const int registers[] = { [PB_FORKED_RAX] = REG_RAX, [PB_FORKED_RDX] = REG_RDX };
	uint64_t trash = ((uint64_t)nowhere + PB_CHUNK_SIZE - 1) & -(uint64_t)PB_CHUNK_SIZE;
	greg_t *g = uc->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)g[REG_RIP];

	for (const struct pb_forked_words *f = __start_pb_forked_words;
	     f < __stop_pb_forked_words; f++) {
		greg_t *r = &g[registers[f->reg]];

		if (pc - pb_offset_target(&f->start) < f->length && (uint64_t)*r - ring < size)
			*r = (greg_t)(trash | ((uint64_t)*r & (PB_CHUNK_SIZE - 1)));
	}
	for (const struct pb_forked_to *f = __start_pb_forked_to; f < __stop_pb_forked_to; f++)
		if (pc - pb_offset_target(&f->start) < f->length)
			g[REG_RIP] = (greg_t)pb_offset_target(&f->to);
}
