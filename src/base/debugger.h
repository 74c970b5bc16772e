/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gdb's interface for code that was made at run time: it stops in a function of ours and
 * reads ELF files in memory. Its names aren't public: a program that has the interface
 * itself keeps its own (gdb looks at each file's symbols).
 *
 * Context: not on a hit; one thread at a time, which is the caller's to see to.
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

/* symfile and size are set; the entry stays until it is taken away. */
void pb_debugger_add(struct pb_debugger_entry *e);
void pb_debugger_remove(struct pb_debugger_entry *e);
#endif
