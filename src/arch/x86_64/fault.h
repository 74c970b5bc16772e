/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A load that may fault. Each instruction that may stands in a table with the
 * place where to go on; the process' handler of SIGSEGV and SIGBUS looks there
 * first. When it may be used at all: engine/uaccess.h. doc/design/reads.md.
 */
#ifndef PB_ARCH_FAULT_H
#define PB_ARCH_FAULT_H
#include <asm/errno.h>
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

/* One load of 8 bytes. 0, -EFAULT (nothing is mapped there), -EACCES (it can't
 * be read now). */
int pb_fault_load(uint64_t address, uint64_t *value) __attribute__((visibility("hidden")));

struct pb_fault_entry {
	int32_t at, to;		/* counted from the fields themselves */
};
extern const struct pb_fault_entry pb_fault_table[] __attribute__((visibility("hidden")));
extern const struct pb_fault_entry pb_fault_table_end[] __attribute__((visibility("hidden")));

/* In a handler of SIGSEGV or SIGBUS: if the signal is a fault of such a load,
 * the context goes on behind it. info must be the kernel's (SA_SIGINFO). */
static inline int pb_fault_fixup(int sig, const siginfo_t *info, ucontext_t *uc)
{
	greg_t *g = uc->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)g[REG_RIP];

	if (info->si_code <= 0)
		return 0;
	for (const struct pb_fault_entry *e = pb_fault_table; e < pb_fault_table_end; e++) {
		if (pc != (uint64_t)&e->at + (uint64_t)(int64_t)e->at)
			continue;
		g[REG_RIP] = (greg_t)((uint64_t)&e->to + (uint64_t)(int64_t)e->to);
		g[REG_RAX] = sig == SIGSEGV && info->si_code == SEGV_MAPERR ? -EFAULT : -EACCES;
		return 1;
	}
	return 0;
}
#endif
