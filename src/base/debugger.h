/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gdb's JIT interface, for code that was made at run time. The agent has a function and a list of
 * ELF files in memory. gdb sets a breakpoint in the function, and reads the files when the program
 * stops there. The symbols of the function and of the list are local to the agent. So they don't
 * replace the program's symbols if the program uses the interface, too. gdb searches the
 * executable and each library for the symbols, so it finds both the program's and the agent's.
 *
 * Context: not on a hit. The caller ensures that only one thread at a time calls these functions.
 */
#ifndef PB_DEBUGGER_H
#define PB_DEBUGGER_H
#include <stdint.h>

/* Layout and meaning are defined by gdb ("JIT Compilation Interface"). */
struct pb_debugger_entry {
	struct pb_debugger_entry *next, *prev;
	const char *symfile;
	uint64_t size;
};

/* Adds an entry to the list. The caller has set symfile and size. The entry must stay in memory
 * until it is removed. */
void pb_debugger_add(struct pb_debugger_entry *e);
void pb_debugger_remove(struct pb_debugger_entry *e);
#endif
