/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Instructions that the agent recognises or makes without an analysis. arch/arch.h has the
 * contracts. */
#ifndef PB_ARCH_X86_64_CODE_H
#define PB_ARCH_X86_64_CODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "abi/analysis.h"
#include "arch/x86_64/frame.h"

#define PB_LINKER_STUB	16	/* bytes that pb_linker_stub_word() may read */

#define PB_JMP_REL32	0xe9
#define PB_RET_N	0xc2	/* ret $n */
#define PB_REPNE	0xf2	/* also the prefix bnd */
#define PB_REP		0xf3
#define PB_NOTRACK	0x3e
#define PB_JMP_WORD	{ 0xff, 0x25 }	/* jmp *word(%rip) */
#define PB_ENDBR64	{ 0xf3, 0x0f, 0x1e, 0xfa }

/* Returns the address that an offset in a table of code (hot.h, forked.h) stands for. The offset is
 * relative to its own address. */
static inline uint64_t pb_offset_target(const int32_t *offset)
{
	return (uint64_t)offset + (uint64_t)(int64_t)*offset;
}

static inline bool pb_exit_pops(const void *from)
{
	const uint8_t *code = (const uint8_t *)from + PB_EXIT_RELOAD_LEN;

	return *code == PB_RET_N || ((*code == PB_REPNE || *code == PB_REP) && code[1] == PB_RET_N);
}

/* Returns the displacement of the jmp *word(%rip) at `code`, or NULL if `code` is another
 * instruction. */
static inline const uint8_t *pb_jmp_word_displacement(const uint8_t *code)
{
	static const uint8_t jmp[] = PB_JMP_WORD;

	if (*code == PB_NOTRACK || *code == PB_REPNE)
		code++;
	return code[0] == jmp[0] && code[1] == jmp[1] ? code + sizeof(jmp) : NULL;
}

static inline bool pb_jumps_through_word(const uint8_t *code)
{
	return pb_jmp_word_displacement(code);
}

static inline const uint64_t *pb_linker_stub_word(const uint8_t *code)
{
	static const uint8_t endbr64[] = PB_ENDBR64;
	const uint8_t *at;
	int32_t rel;

	if (!__builtin_memcmp(code, endbr64, sizeof(endbr64)))
		code += sizeof(endbr64);
	at = pb_jmp_word_displacement(code);
	if (!at)
		return NULL;
	__builtin_memcpy(&rel, at, sizeof(rel));
	return (const uint64_t *)((uint64_t)at + sizeof(rel) + (uint64_t)(int64_t)rel);
}

static inline void pb_jump_emit_first(uint8_t out[PB_JUMP_SHARED])
{
	out[0] = PB_JMP_REL32;
}

static inline void pb_shared_targets(uint64_t first, uint32_t rel, uint64_t target[2])
{
	uint64_t second = first + PB_JUMP_SHARED;

	target[0] = first + PB_JUMP_LEN + (uint64_t)(int64_t)(int32_t)(rel << 8 | PB_JMP_REL32);
	target[1] = second + PB_JUMP_LEN + (uint64_t)(int64_t)(int32_t)rel;
}
#endif
