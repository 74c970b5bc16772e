/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A child goes on with code that a handler interrupted, and the handler forked: the ring is shared
 * memory, and addresses in it that this code holds are of the parent's chunks. In own_store.S it is
 * sent back to the comparison of serials, which fails now. On the hit path, where the address is in
 * one register, what is stored goes to memory of the child's own that nobody reads.
 */
#include "abi/ring.h"
#include "arch/arch.h"
#include "arch/x86_64/forked.h"

/* Aligned and long enough for any offset in a chunk. */
static uint8_t nowhere[2 * PB_CHUNK_SIZE];

static uint64_t target_of(const int32_t *offset)
{
	return (uint64_t)offset + (uint64_t)(int64_t)*offset;
}

void pb_own_resume(ucontext_t *uc, uint64_t ring, uint64_t size)
{
	static const int registers[] = { [PB_FORKED_RAX] = REG_RAX, [PB_FORKED_RDX] = REG_RDX };
	uint64_t trash = ((uint64_t)nowhere + PB_CHUNK_SIZE - 1) & -(uint64_t)PB_CHUNK_SIZE;
	greg_t *g = uc->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)g[REG_RIP];

	for (const struct pb_forked_words *f = __start_pb_forked_words;
	     f < __stop_pb_forked_words; f++) {
		greg_t *r = &g[registers[f->reg]];

		if (pc - target_of(&f->start) < f->length && (uint64_t)*r - ring < size)
			*r = (greg_t)(trash | ((uint64_t)*r & (PB_CHUNK_SIZE - 1)));
	}
	for (const struct pb_forked_to *f = __start_pb_forked_to; f < __stop_pb_forked_to; f++)
		if (pc - target_of(&f->start) < f->length)
			g[REG_RIP] = (greg_t)target_of(&f->to);
}
