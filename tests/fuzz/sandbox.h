/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs code from a random state until a signal ends the run. Keeps the state at the end of the run:
 * all registers, the flags, x87 and vector state, and memory.
 *
 * The high half of each address is neither zero nor all ones. So an address that was truncated to
 * 32 bits is never right by chance, whether it was then extended with zeros or with its sign.
 */
#ifndef FUZZ_SANDBOX_H
#define FUZZ_SANDBOX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SANDBOX		16384u			/* bytes of each area: code, data and stack */
#define TEXT		0x30009abc0000ull	/* the code; this mapping isn't writable */
#define ORIGINAL	(TEXT + SANDBOX / 2)
#define STUB1		(TEXT + 0x6a5b7000)	/* code and data of a stub */
#define STUB2		(TEXT + 0x35e2b000)
#define DATA		(TEXT + (1ull << 20))
#define STACK		(TEXT + (2ull << 20))

#define REG_NR_RSP	4			/* rsp's register number in instructions */
#define XSTATE_MAX	4096

struct result {
	int signal;
	uint64_t fault, pc, flags, reg[16];
	uint8_t fp[XSTATE_MAX];		/* x87 and vector state, as XSAVE writes it */
	uint8_t data[SANDBOX], stack[SANDBOX];
};

enum { RUN_ORIGINAL, RUN_PATCHED, NR_RUNS };
extern struct result results[NR_RUNS];

/* Maps the memory and sets the signal handlers. Later calls in the same process do nothing. */
void sandbox_set_up(void);
/* Fills the area at TEXT with int3. */
void sandbox_clear_text(void);
/* Writes bytes at an address in the area at TEXT. */
void sandbox_write_text(uint64_t at, const void *bytes, size_t size);
/* Makes the random state in which the following runs start. */
void sandbox_random_start(uint64_t seed);
/* Runs from pc, and stores the state at the end in results[which]. After ms (< 1000) milliseconds
 * the run ends with SIGALRM. */
void sandbox_run(uint64_t pc, int which, unsigned ms);

/* Returns whether the compared state has more than SSE. */
bool sandbox_has_vectors(void);

/* Clears the 8 bytes at addr in a result. result_same() ignores bytes that were cleared in both
 * results. */
void result_forget(struct result *r, uint64_t addr);
bool result_same(struct result *a, struct result *b);
/* Prints the differences on stderr. */
void result_explain(const struct result *a, const struct result *b);
#endif
