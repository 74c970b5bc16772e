/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The parts of the agent's start that depend on the processor: the thread pointer of the agent's
 * own thread, the search for a system call in libc's code, and the shadow stack. */
#include <asm/prctl.h>
#include "arch/arch.h"
#include "base/mem.h"
#include "base/sys.h"

#define TCB_SELF	0x10	/* offset of the second pointer to itself in glibc's TCB */
#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS	0x5005
#define ARCH_SHSTK_SHSTK	1ul
#endif

int pb_thread_pointer_set(uint64_t tp)
{
	*(uint64_t *)tp = tp;
	*(uint64_t *)(tp + TCB_SELF) = tp;
	return (int)pb_sys(SYS_arch_prctl, ARCH_SET_FS, tp);
}

/* Looks for mov $nr, %eax at each byte of the code. */
bool pb_code_calls(const uint8_t *code, size_t size, uint32_t nr)
{
	uint8_t load[5] = { 0xb8 };

	memcpy(load + 1, &nr, sizeof(nr));
	for (size_t i = 0; i + sizeof(load) <= size; i++)
		if (!memcmp(code + i, load, sizeof(load)))
			return true;
	return false;
}

/* A kernel that knows no shadow stacks refuses the call. */
bool pb_shadow_stack_is_on(void)
{
	uint64_t features = 0;

	return !pb_sys(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features) && features & ARCH_SHSTK_SHSTK;
}
