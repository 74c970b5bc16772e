/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs code from a random state until a signal ends it, and keeps what it left:
 * every register, the flags, x87 and vector state, and memory.
 *
 * Addresses have high halves and low halves with bit 31 set, so that nothing
 * that is cut or extended wrongly fits by luck.
 */
#ifndef FUZZ_SANDBOX_H
#define FUZZ_SANDBOX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SANDBOX		16384u			/* bytes of each */
#define TEXT		0x30009abc0000ull	/* code, not writable by itself */
#define ORIGINAL	(TEXT + SANDBOX / 2)
#define STUB1		(TEXT + 0x6a5b7000)	/* code and data */
#define STUB2		(TEXT + 0x35e2b000)
#define DATA		(TEXT + (1ull << 20))
#define STACK		(TEXT + (2ull << 20))

#define REG_NR_RSP	4			/* as in instructions */
#define XSTATE_MAX	4096

struct result {
	int signal;
	uint64_t fault, pc, flags, reg[16];
	uint8_t fp[XSTATE_MAX];		/* as XSAVE writes it */
	uint8_t data[SANDBOX], stack[SANDBOX];
};

enum { RUN_ORIGINAL, RUN_PATCHED, NR_RUNS };
extern struct result results[NR_RUNS];

/* Maps it and takes the signals; once in a process. */
void sandbox_set_up(void);
/* TEXT: all int3, or bytes at an address of it. */
void sandbox_clear_text(void);
void sandbox_write_text(uint64_t at, const void *bytes, size_t size);
/* The same state for the runs that follow. */
void sandbox_random_start(uint64_t seed);
/* What takes longer than ms (< 1000) ends with SIGALRM. */
void sandbox_run(uint64_t pc, int which, unsigned ms);

/* Whether the state has more than SSE. */
bool sandbox_has_vectors(void);

/* 8 bytes of memory are not to be compared. */
void result_forget(struct result *r, uint64_t addr);
bool result_same(struct result *a, struct result *b);
/* What differs, on stderr. */
void result_explain(const struct result *a, const struct result *b);
#endif
