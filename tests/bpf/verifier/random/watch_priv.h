/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations for the files of the checking interpreter: the machine, and its checks. */
#ifndef PB_TEST_WATCH_PRIV_H
#define PB_TEST_WATCH_PRIV_H
#include "watch.h"
#include "world.h"

#define MOST_FRAMES	32
#define TOKEN		(1ull << 63)	/* marks the index of a callback's first instruction */
/* the contents of registers that the program must not read */
#define POISON(w)	(0xdead000000000000ull + (w)->layout)

struct frame {
	char *fp;
	uint32_t size, back;	/* size: in bytes; back: index of the caller's call instruction */
	uint64_t saved[4];	/* the caller's r6 to r9 */
	bool written[512];	/* [i]: the byte at fp - 1 - i was written */
	bool address[512];	/* [i]: the byte at fp - 1 - i is part of an address that a single
				 * store wrote as a whole */
};

struct machine {
	struct watch *w;
	struct frame frames[MOST_FRAMES];
	int top;
	uint64_t r[12];
	uint32_t at, steps;
	bool strict;		/* the program must not read unwritten stack */
	struct area key;	/* the key that the callback of bpf_for_each_map_elem gets */
};

/* Stores the reason and the current instruction's number in m->w->why. Always returns false. */
bool watch_wrong(struct machine *m, const char *format, ...);
/* Checks an access. Returns false if the program may not make it. */
bool watch_check(struct machine *m, uint64_t addr, uint64_t n, bool write);
/* Returns whether the access is to the stack. If so, *good gets whether the program may make the
 * access. */
bool watch_in_stack(struct machine *m, uint64_t addr, uint64_t n, bool write, bool *good);
/* Runs the program until the frame `bottom` returns. */
bool watch_run_from(struct machine *m, uint32_t at, int bottom);

/* Returns the size of the frame of the subprogram that contains instruction `at`. */
uint32_t watch_stack_of_sub(const struct machine *m, uint32_t at);
/* watch_push() makes the frame of a subprogram; `back` is the call's index. watch_pop() returns to
 * the caller's frame. */
bool watch_push(struct machine *m, uint32_t at, uint32_t back);
void watch_pop(struct machine *m);
/* Runs instruction i, which calls a helper or a function of the kernel. In a resolved program,
 * loads with BPF_ABS and BPF_IND are also such calls. */
bool watch_call(struct machine *m, const struct bpf_insn *i);
/* Returns whether the pointer is one of the world's maps. */
bool watch_is_map(const struct pb_bpf_map *map);

/* The result of an arithmetic instruction on d and s. */
uint64_t watch_compute(const struct bpf_insn *i, uint64_t d, uint64_t s);
/* Extends the low bytes of v with their sign. */
uint64_t watch_extend(uint64_t v, int bytes);
/* The result of an instruction that changes the order of bytes. */
uint64_t watch_swap(const struct bpf_insn *i, uint64_t v, int bytes);
/* Returns whether the condition of a jump holds. */
bool watch_holds(unsigned code, uint64_t d, uint64_t s);
#endif
