/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gdb's JIT interface, for code that was made at run time. gdb stops in a function of the
 * agent, and then reads the ELF files in memory that are on a list. The interface's symbols
 * are local to the agent. So a program that uses the interface itself keeps its own symbols,
 * and gdb finds both, because it searches each file.
 *
 * Context: not on a hit. The caller ensures that only one thread at a time is here.
 */
#ifndef PB_DEBUGGER_H
#define PB_DEBUGGER_H
#include <stdint.h>

/* Layout and meaning are gdb's ("JIT Compilation Interface"). */
struct pb_debugger_entry {
	struct pb_debugger_entry *next, *prev;
	const char *symfile;
	uint64_t size;
};

/* The caller has set symfile and size. The entry must stay in memory until it is removed. */
void pb_debugger_add(struct pb_debugger_entry *e);
void pb_debugger_remove(struct pb_debugger_entry *e);
#endif
