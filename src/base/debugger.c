/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gdb's JIT interface (debugger.h): the function and the list of ELF files, under the names that
 * gdb looks for. */
#include <stddef.h>
#include "base/debugger.h"

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };

extern struct pb_debugger_descriptor {
	uint32_t version, action;
	struct pb_debugger_entry *relevant, *first;
} __jit_debug_descriptor;
void __jit_debug_register_code(void);

struct pb_debugger_descriptor __jit_debug_descriptor = { .version = 1 };

/* gdb sets a breakpoint in this function. */
__attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

static void notify(uint32_t action, struct pb_debugger_entry *e)
{
	__jit_debug_descriptor.action = action;
	__jit_debug_descriptor.relevant = e;
	__jit_debug_register_code();
	__jit_debug_descriptor.action = JIT_NOACTION;
	__jit_debug_descriptor.relevant = NULL;
}

void pb_debugger_add(struct pb_debugger_entry *e)
{
	e->prev = NULL;
	e->next = __jit_debug_descriptor.first;
	if (e->next)
		e->next->prev = e;
	__jit_debug_descriptor.first = e;
	notify(JIT_REGISTER, e);
}

void pb_debugger_remove(struct pb_debugger_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		__jit_debug_descriptor.first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	notify(JIT_UNREGISTER, e);
}
