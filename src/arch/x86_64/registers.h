/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Registers in a signal's context and in struct pt_regs. arch/arch.h has the contracts. */
#ifndef PB_ARCH_X86_64_REGISTERS_H
#define PB_ARCH_X86_64_REGISTERS_H
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>
#include "arch/x86_64/frame.h"

struct pb_hot_range;
struct pt_regs;

struct pb_context {
	greg_t *g;				/* the registers in the signal's context */
	greg_t real[NGREG], shown[NGREG];	/* copies of g: as interrupted, and as shown to the
						 * handler */
	uint64_t *frame[NGREG];			/* where the program's value is; NULL: in g */
	const struct pb_hot_range *range;	/* the code that was interrupted */
	uint64_t off;				/* the offset of the interrupted pc in that code */
	bool own;				/* the interrupted instruction is a stub's own, not
						 * a copy of an instruction of the program */
};

static inline uint64_t pb_context_pc(const ucontext_t *uc)
{
	return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
}

static inline uint64_t pb_context_sp(const ucontext_t *uc)
{
	return (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
}

static inline void pb_context_set_pc(ucontext_t *uc, uint64_t pc)
{
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

/* Uses offsets, because <asm/ptrace.h> and <sys/ptrace.h> can't both be included. */
static inline uint64_t *pb_regs_at(const struct pt_regs *r, int offset)
{
	return (uint64_t *)((uint64_t)r + (uint64_t)offset);
}

static inline uint64_t pb_regs_pc(const struct pt_regs *r)
{
	return *pb_regs_at(r, R_RIP);
}

static inline uint64_t pb_regs_sp(const struct pt_regs *r)
{
	return *pb_regs_at(r, R_RSP);
}

static inline uint64_t pb_regs_fp(const struct pt_regs *r)
{
	return *pb_regs_at(r, R_RBP);
}

static inline void pb_regs_finish(struct pt_regs *r, uint64_t pc)
{
	uint64_t saved = *pb_regs_at(r, R_FLAGS);

	/* from the macro `save` (hot.inc): byte 1 has the flags that lahf stores, and byte 0 has
	 * the overflow flag */
	*pb_regs_at(r, R_FLAGS) = (saved >> 8 & 0xd5) | 0x202 | (saved & 1) << 11;
	*pb_regs_at(r, R_RIP) = pc;
	*pb_regs_at(r, R_ORIG_RAX) = ~0ul;
	*pb_regs_at(r, R_CS) = 0x33;
	*pb_regs_at(r, R_SS) = 0x2b;
}

static inline void pb_regs_return(struct pt_regs *r)
{
	*pb_regs_at(r, R_RSP) += 8;
}

static inline void pb_regs_set_result(struct pt_regs *r, uint64_t value)
{
	*pb_regs_at(r, R_RAX) = value;
}
#endif
