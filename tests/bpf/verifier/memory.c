/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests how much memory the verifier, the resolver and the JIT need for the worst programs. Each
 * kind of program comes near one of the verifier's limits or exceeds it, for example the limit on
 * instructions or on branches that wait to be walked. A separate process verifies, resolves and
 * compiles the program. The test limits the peak resident size of this process, and checks the
 * verdict.
 *
 *	memory [KIND...]	tests these kinds, or all; MEMORY=1 prints the memory of each kind
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "insns.h"
#include "bpf/run/fixup.h"
#include "bpf/run/image.h"
#include "bpf/verifier/verify.h"

#define MOST_RESIDENT	(100l << 20)
#define MOST_INSNS	1000000u

#define CALL(fn)	BPF_CALL_FN(BPF_FUNC_##fn)
#define MOV(d, s)	BPF_MOV64_REG(d, s)
#define SET(d, imm)	BPF_MOV64_IMM(d, imm)
#define ADD(d, imm)	BPF_ALU64_IMM(BPF_ADD, d, imm)
#define EXIT()		BPF_EXIT_INSN()
#define STORE(off, imm)	BPF_ST_MEM(BPF_DW, 10, off, imm)
#define SPILL(off, r)	BPF_STX_MEM(BPF_DW, 10, r, off)
#define FILL(r, off)	BPF_LDX_MEM(BPF_DW, r, 10, off)

static struct bpf_insn insns[MOST_INSNS];
static uint32_t nr;
static uint32_t subprogs[8], nr_subprogs;

static void put(struct bpf_insn i)
{
	if (nr < MOST_INSNS)
		insns[nr++] = i;
}
#define PUT(...) do { \
	const struct bpf_insn list[] = { __VA_ARGS__ }; \
	for (size_t k = 0; k < sizeof list / sizeof *list; k++) \
		put(list[k]); \
} while (0)

/* Loads an unknown number into r6. */
static void unknown(void)
{
	PUT(CALL(get_prandom_u32), MOV(6, 0));
}

static void fill_stack(int32_t first)
{
	for (int s = 1; s <= 64; s++)
		PUT(STORE(-8 * s, first + s));
}

/* For each slot, makes an access that depends on the slot's value. */
static void use_stack(void)
{
	for (int s = 1; s <= 64; s++)
		PUT(FILL(1, -8 * s), BPF_ALU64_IMM(BPF_AND, 1, 7), MOV(2, 10), ADD(2, -16),
		    BPF_ALU64_REG(BPF_ADD, 2, 1), BPF_LDX_MEM(BPF_B, 3, 2, 0));
}

/* Makes eight functions, each with `slots` stack slots. Each function calls the next function. The
 * eighth function contains the instructions that `body` makes. */
static void deep(void (*body)(void), int slots)
{
	for (int n = 0; n < 8; n++) {
		subprogs[nr_subprogs++] = nr;
		unknown();
		for (int s = 1; s <= slots; s++)
			PUT(STORE(-8 * s, 1000 * n + s));
		if (n < 7)
			PUT(BPF_CALL_REL(0, slots + 2));	/* the next function begins after
								 * the rest of this function */
		else
			body();
		for (int s = 1; s <= slots; s++)
			PUT(FILL(1, -8 * s));
		PUT(SET(0, 0), EXIT());
	}
}

/* ---- kinds ------------------------------------------------------------------------------- */

/* Makes many branches. Each branch stores a number on only one of its paths. */
static void many_branches(void)
{
	for (int n = 0; n < 62; n++)
		PUT(CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JEQ, 0, 0, 1),
		    STORE(-8 * (n + 1), 100 + n));
	use_stack();
}

static void branches(void)
{
	unknown();
	fill_stack(0);
	many_branches();
	PUT(SET(0, 0), EXIT());
}

static void deep_branches(void)
{
	deep(many_branches, 64);
}

/* Makes one path with the maximal number of states. The verifier keeps a state after it has walked
 * eight instructions and two jumps since the last state. */
static void long_path(int slots)
{
	for (int32_t n = 0; nr < MOST_INSNS - 1000; n++)
		PUT(STORE(-8 * (n % slots + 1), n), STORE(-8 * (n % (slots - 1) + 1), -n),
		    SET(7, n), SET(8, -n), STORE(-8, n ^ 5555), ADD(9, 0), BPF_JMP_A(0),
		    BPF_JMP_A(0));
}

static void one_path(void)
{
	unknown();
	PUT(SET(9, 0));
	fill_stack(0);
	long_path(64);
	use_stack();
	PUT(SET(0, 0), EXIT());
}

static void long_path_in_callee(void)
{
	PUT(SET(9, 0));
	long_path(8);
}

static void deep_path(void)
{
	deep(long_path_in_callee, 8);
}

/* Makes many branches. After each branch, one of its two paths waits to be walked. Almost as many
 * paths wait as the verifier allows. */
static void wait_body(void)
{
	uint32_t n;

	PUT(SET(9, 0));
	for (n = 0; n < 8190; n++) {
		for (int k = 0; k < 10; k++)
			PUT(STORE(-8 * (int)((n * 10 + (uint32_t)k) % 64 + 1),
				  (int32_t)(n * 16 + (uint32_t)k)));
		PUT(CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JEQ, 0, 0, 0));
	}
}

static void waiting(void)
{
	unknown();
	fill_stack(0);
	wait_body();
	use_stack();
	PUT(SET(0, 0), EXIT());
}

static void deep_waiting(void)
{
	deep(wait_body, 64);
}

/* Each slot has a different packet pointer. After each of 8,100 comparisons, one path waits to be
 * walked. Each comparison updates the range of all pointers. This is the only kind that the
 * verifier refuses for lack of memory. The kernel gives up with E2BIG. */
static void packets(void)
{
	PUT(BPF_LDX_MEM(BPF_W, 7, 1, 76), BPF_LDX_MEM(BPF_W, 8, 1, 80));
	for (int s = 1; s <= 64; s++)
		PUT(MOV(2, 7), ADD(2, s), SPILL(-8 * s, 2));
	for (int32_t n = 100; n < 8200; n++)
		PUT(MOV(2, 7), ADD(2, n), BPF_JMP_REG(BPF_JGT, 2, 8, 0));
	for (int s = 1; s <= 64; s++)
		PUT(FILL(1, -8 * s));
	PUT(SET(0, 0), EXIT());
}

/* Makes as many accesses to the stack as possible. The verifier records each of them for
 * backtracking. */
static void noted(void)
{
	unknown();
	PUT(MOV(7, 10));
	while (nr < MOST_INSNS - 100)
		PUT(BPF_STX_MEM(BPF_DW, 7, 6, -8), BPF_STX_MEM(BPF_DW, 7, 6, -16));
	PUT(FILL(1, -8), SET(0, 0), EXIT());
}

/* Like noted(), but with jumps between the accesses. */
static void noted_jumps(void)
{
	unknown();
	PUT(MOV(7, 10));
	while (nr < MOST_INSNS - 100)
		PUT(BPF_STX_MEM(BPF_DW, 7, 6, -8), BPF_JMP_A(0));
	PUT(FILL(1, -8), SET(0, 0), EXIT());
}

/* A loop of few instructions, but with many iterations. The verifier walks about a million
 * instructions. */
static void loop(void)
{
	unknown();
	fill_stack(0);
	PUT(SET(7, 0), STORE(-8, 0), FILL(1, -8), ADD(1, 1), SPILL(-8, 1), SPILL(-16, 7),
	    BPF_JMP_A(0), BPF_JMP_A(0), ADD(7, 1), BPF_JMP_IMM(BPF_JLT, 7, 120000, -8), SET(0, 0),
	    EXIT());
}

/* A callback whose iterations all differ. */
static void callbacks(void)
{
	subprogs[nr_subprogs++] = 0;
	unknown();
	fill_stack(0);
	PUT(SET(1, 1 << 23), I(BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_FUNC, 0, 0),
	    I(0, 0, 0, 0, 0), MOV(3, 10), SET(4, 0), CALL(loop));
	for (int s = 1; s <= 64; s++)
		PUT(FILL(1, -8 * s));
	PUT(SET(0, 0), EXIT());
	for (uint32_t i = 0; i < nr; i++)
		if (insns[i].code == (BPF_LD | BPF_DW | BPF_IMM))
			insns[i].imm = (int32_t)(nr - i - 1);
	subprogs[nr_subprogs++] = nr;
	PUT(MOV(8, 1), MOV(9, 2), CALL(get_prandom_u32), MOV(6, 0));
	for (int n = 0; n < 62; n++)
		PUT(CALL(get_prandom_u32), BPF_JMP_IMM(BPF_JEQ, 0, 0, 1),
		    BPF_ST_MEM(BPF_DW, 9, -8 * (n + 1), 100 + n));
	for (int s = 1; s <= 64; s++)
		PUT(BPF_LDX_MEM(BPF_DW, 1, 9, -8 * s), BPF_ALU64_IMM(BPF_AND, 1, 7), MOV(2, 10),
		    ADD(2, -16), BPF_ALU64_REG(BPF_ADD, 2, 1), BPF_ST_MEM(BPF_B, 2, 0, 0));
	PUT(SET(0, 0), EXIT());
}

/* A program that is large, but easy to verify. The JIT must compile the whole program. */
static void size(void)
{
	unknown();
	while (nr < MOST_INSNS - 2)
		PUT(ADD(6, 1));
	PUT(SET(0, 0), EXIT());
}

/* The JIT makes several native instructions from each eBPF instruction. */
static void size_of_calls(void)
{
	while (nr < MOST_INSNS - 2)
		PUT(CALL(ktime_get_ns));
	PUT(SET(0, 0), EXIT());
}

static const struct kind {
	const char *name;
	void (*make)(void);
	uint32_t type;
	int verdict;
	uint32_t lacking, flags;
} kinds[] = {
	{ "branches", branches, BPF_PROG_TYPE_SOCKET_FILTER, -E2BIG },
	{ "deep-branches", deep_branches, BPF_PROG_TYPE_SOCKET_FILTER, -E2BIG },
	{ "one-path", one_path, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "deep-path", deep_path, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "each-state", deep_path, BPF_PROG_TYPE_SOCKET_FILTER, 0, 0, BPF_F_TEST_STATE_FREQ },
	{ "waiting", waiting, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "deep-waiting", deep_waiting, BPF_PROG_TYPE_SOCKET_FILTER, -EACCES },
	{ "packets", packets, BPF_PROG_TYPE_SCHED_CLS, -ENOMEM },
	{ "noted", noted, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "noted-jumps", noted_jumps, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "loop", loop, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "callbacks", callbacks, BPF_PROG_TYPE_SOCKET_FILTER, -E2BIG },
	{ "size", size, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
	{ "size-of-calls", size_of_calls, BPF_PROG_TYPE_SOCKET_FILTER, 0 },
};

/* ---- one kind -------------------------------------------------------------------------------- */

static size_t taken, most_taken;

static void *mem_alloc(struct pb_bpf_mem *mem, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	taken += size;
	most_taken = taken > most_taken ? taken : most_taken;
	return p == MAP_FAILED ? NULL : p;
}

static void mem_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	taken -= size;
	munmap(p, size);
}

static struct pb_bpf_mem mem = { mem_alloc, mem_free };

/* Tests one kind, in a child process. Returns 0, or 1 after a message. */
static int go(const struct kind *k)
{
	static char text[4096];
	struct pb_bpf_text log = { .buf = text, .size = sizeof text };
	struct pb_bpf_func funcs[8];
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(k->type), .caps = PB_BPF_CAP_ALL & ~k->lacking, .gpl = true,
		.flags = k->flags, .insns = insns, .mem = &mem, .log = &log, .log_level = 4,
	};
	struct pb_bpf_resolved r = { 0 };
	struct pb_bpf_prog *prog = NULL;
	int err;

	k->make();
	v.nr = nr;
	for (uint32_t i = 0; i < nr_subprogs; i++)
		funcs[i] = (struct pb_bpf_func){ .insn = subprogs[i], .name = "f" };
	v.funcs = funcs;
	v.nr_funcs = nr_subprogs;
	err = pb_bpf_verify(&v);
	if (getenv("MEMORY"))
		printf("%s: %u instructions, %d\n%s   verifier's %zu MB\n", k->name, nr, err, text,
		       most_taken >> 20);
	if (err != k->verdict) {
		printf("%s: %d, not %d: %s\n", k->name, err, k->verdict, text);
		return 1;
	}
	if (err)
		return 0;
	err = pb_bpf_resolve(&v, &r);
	pb_bpf_facts_free(&mem, v.facts);
	if (!err)
		err = pb_bpf_prog_make(&r.spec, &prog);
	pb_bpf_resolved_free(&r);
	if (err)
		printf("%s: making it: %s\n", k->name, strerror(-err));
	pb_bpf_prog_free(prog);
	return !!err;
}

static int run(const struct kind *k)
{
	struct rusage used;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int ret = go(k);

		fflush(stdout);
		_exit(ret);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		return 1;
	if (getenv("MEMORY"))
		printf("   %ld MB resident, %ld.%02ld s\n", used.ru_maxrss >> 10,
		       (long)used.ru_utime.tv_sec, (long)used.ru_utime.tv_usec / 10000);
	if (used.ru_maxrss * 1024 > MOST_RESIDENT) {
		printf("not ok %s: %ld MB\n", k->name, used.ru_maxrss >> 10);
		return 1;
	}
	printf("%s %s\n", status ? "not ok" : "ok", k->name);
	return !!status;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		bool wanted = argc < 2;

		for (int n = 1; n < argc; n++)
			wanted |= !strcmp(argv[n], kinds[i].name);
		if (wanted)
			failed += run(&kinds[i]);
	}
	return failed != 0;
}
