/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes series of helper calls, in Patchbay and by a program in the kernel. The tests compare what
 * the calls return and what they change.
 */
#ifndef TESTS_BPF_CALLS_H
#define TESTS_BPF_CALLS_H
#include <stdbool.h>
#include <stdint.h>

#define CALLS_MAX	16
#define CALLS_MEM	2048		/* size of the memory that the calls read and write */
#define CALLS_PACKET	65536

enum call_arg { ARG_NONE, ARG_CTX, ARG_IMM, ARG_MEM, ARG_TEXT };

struct call {
	uint32_t id;			/* BPF_FUNC_ */
	struct { enum call_arg kind; int64_t v; } arg[5];	/* v: the value (ARG_IMM), or an
								 * offset in mem (ARG_MEM) or in
								 * text (ARG_TEXT) */
};

struct calls {
	uint32_t prog_type;
	uint32_t nr;
	struct call call[CALLS_MAX];
	uint8_t mem[CALLS_MEM];
	char text[1024];		/* formats; the program can't write to them */
	uint8_t data[CALLS_PACKET];
	uint32_t data_len, flags;
	bool has_ctx;
	uint8_t ctx[256];
	uint32_t ctx_len;
};

struct outcome {
	int err;			/* error of the run, or 0 */
	const char *why;		/* the kernel's log, if err is -1 */
	uint64_t ret[CALLS_MAX];
	uint8_t mem[CALLS_MEM];
	uint8_t data[CALLS_PACKET];
	uint32_t data_len;
	uint8_t ctx[256];
};

void calls_ours(const struct calls *c, struct outcome *o);
/* If the program can't be loaded, o->err is -1 and o->why is the reason. */
void calls_kernel(const struct calls *c, struct outcome *o);
#endif
