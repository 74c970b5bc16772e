/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Times eBPF programs on the JIT, on the interpreter and in this machine's kernel (through
 * BPF_PROG_TEST_RUN). A run makes many operations, so that entering the program takes a small
 * part of the run's time. The time for entering is subtracted. If the time for entering is more
 * than a tenth of the run's time, there is no figure. In each round, the kernel, the JIT and the
 * interpreter take turns: each repeats its runs for a slice of time (SLICE_NS). A figure is the
 * median over the rounds. The bench needs the right to load programs into the kernel.
 *
 *	bench_bpf [ROUNDS]
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "../tests/bpf/common/insns.h"
#include "../tests/bpf/common/kernel.h"
#include "base/base.h"
#include "bpf/map/map.h"
#include "bpf/run/image.h"

#define MAX_ROUNDS	101
#define SLICE_NS	20e6
#define ELEMENTS	1024
#define MOST_ENTERING	0.1

enum side { KERNEL, JIT, INTERPRETER, NR_SIDES };

/* A program in two forms. In the kernel's form, the context is a struct __sk_buff, and a descriptor
 * names each map. Patchbay's form is already resolved: for example, it has the maps' addresses. */
struct bench {
	const char *name;
	uint32_t operations;		/* number of operations in a run */
	struct bpf_insn insns[NR_SIDES - 1][64];
	uint32_t nr[NR_SIDES - 1];
	int fd;
	struct pb_bpf_prog *progs[NR_SIDES];
	uint32_t repeat[NR_SIDES];	/* number of runs in a slice */
	double ns[NR_SIDES][MAX_ROUNDS];	/* time of a whole run */
};

static struct pb_bpf_map maps[2];
static int map_fds[2];
static uint8_t packet[64];

/* ---- maps ------------------------------------------------------------------- */

static uint64_t lookup(uint64_t map, uint64_t key, uint64_t r3, uint64_t r4, uint64_t r5,
		       struct pb_bpf_run *run)
{
	struct pb_bpf_map *m = (struct pb_bpf_map *)map;

	return (uint64_t)m->ops->lookup(m, (const void *)key, run);
}

static uint64_t update(uint64_t map, uint64_t key, uint64_t value, uint64_t flags, uint64_t r5,
		       struct pb_bpf_run *run)
{
	struct pb_bpf_map *m = (struct pb_bpf_map *)map;

	return (uint64_t)(int64_t)m->ops->update(m, (const void *)key, (const void *)value, flags,
						 run);
}

static pb_bpf_fn *const calls[] = { lookup, update };

static bool make_map(int n, uint32_t type)
{
	struct pb_bpf_map_spec spec = {
		.attr = { .type = type, .key_size = 4, .value_size = 8, .max_entries = ELEMENTS },
		.types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1
	};
	union bpf_attr a = {
		.map_type = type, .key_size = 4, .value_size = 8, .max_entries = ELEMENTS
	};
	uint64_t size, span;
	void *block;
	int err;

	map_fds[n] = (int)kernel_bpf(BPF_MAP_CREATE, &a);
	size = pb_bpf_map_size(&spec, &err);
	span = pb_bpf_map_span(&spec, size);
	block = mmap(NULL, span, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!size || block == MAP_FAILED || pb_bpf_map_format(block, &spec, 1) ||
	    pb_bpf_map_open(&maps[n], block, size, span))
		return false;
	maps[n].access = PB_BPF_MAP_READ | PB_BPF_MAP_WRITE;
	for (uint32_t key = 0; key < ELEMENTS / 2; key++) {
		uint64_t value = key;
		union bpf_attr u = {
			.map_fd = (uint32_t)map_fds[n],
			.key = (uintptr_t)&key,
			.value = (uintptr_t)&value
		};

		if (kernel_bpf(BPF_MAP_UPDATE_ELEM, &u) ||
		    maps[n].ops->update(&maps[n], &key, &value, 0, NULL))
			return false;
	}
	return map_fds[n] >= 0;
}

/* ---- programs ---------------------------------------------------------------- */

static void put(struct bench *b, int side, struct bpf_insn i)
{
	b->insns[side][b->nr[side]++] = i;
}

static void put_both(struct bench *b, const struct bpf_insn *i, size_t n)
{
	for (; n--; i++) {
		put(b, KERNEL, *i);
		put(b, JIT, *i);
	}
}
#define BOTH(b, ...) \
	put_both(b, (const struct bpf_insn[]){ __VA_ARGS__ }, \
		 sizeof((const struct bpf_insn[]){ __VA_ARGS__ }) / sizeof(struct bpf_insn))

static void put_map(struct bench *b, int n)
{
	const struct bpf_insn theirs[] = {
		BPF_LD_IMM64_RAW(1, BPF_PSEUDO_MAP_FD, (uint32_t)map_fds[n])
	};
	const struct bpf_insn ours[] = { BPF_LD_IMM64_RAW(1, 0, &maps[n]) };

	for (int k = 0; k < 2; k++) {
		put(b, KERNEL, theirs[k]);
		put(b, JIT, ours[k]);
	}
}

static void put_call(struct bench *b, int helper, int own)
{
	put(b, KERNEL, BPF_CALL_FN(helper));
	put(b, JIT, BPF_CALL_FN(own));
}

static void empty(struct bench *b)
{
	BOTH(b, BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN());
}

static void alu_loop(struct bench *b)
{
	BOTH(b, BPF_MOV64_IMM(0, 1), BPF_MOV64_IMM(1, (int32_t)b->operations),
	     BPF_ALU64_REG(BPF_ADD, 0, 1), BPF_ALU64_IMM(BPF_XOR, 0, 0x5a),
	     BPF_ALU64_IMM(BPF_LSH, 0, 1), BPF_ALU64_IMM(BPF_ADD, 0, 7),
	     BPF_ALU64_IMM(BPF_SUB, 1, 1), BPF_JMP_IMM(BPF_JNE, 1, 0, -6), BPF_EXIT_INSN());
}

/* Writes a lookup in an array. Usually run/fixup.c inlines such lookups, but Patchbay's form
 * doesn't pass through it. So this function writes the inlined code itself. The kernel's form has a
 * call, which the kernel's verifier inlines. */
static void put_array_lookup(struct bench *b)
{
	const struct bpf_insn inlined[] = {
		BPF_LDX_MEM(BPF_W, 0, 2, 0), BPF_JMP_IMM(BPF_JGE, 0, ELEMENTS, 5),
		BPF_LD_IMM64_RAW(1, 0, maps[0].elems), BPF_ALU64_IMM(BPF_LSH, 0, 3),
		BPF_ALU64_REG(BPF_ADD, 0, 1), BPF_JMP_A(1), BPF_MOV64_IMM(0, 0) };

	put_map(b, 0);
	put(b, KERNEL, BPF_CALL_FN(BPF_FUNC_map_lookup_elem));
	for (size_t k = 0; k < pb_array_size(inlined); k++)
		put(b, JIT, inlined[k]);
}

static void put_call_with_map(struct bench *b, int n, int helper, int own)
{
	put_map(b, n);
	put_call(b, helper, own);
}

/* Begins a loop. r6 counts down. It is also the key, so each operation is on a different
 * element. */
static void begin_loop(struct bench *b, uint32_t *top)
{
	top[KERNEL] = b->nr[KERNEL];
	top[JIT] = b->nr[JIT];
	BOTH(b, BPF_STX_MEM(BPF_W, 10, 6, -4), BPF_MOV64_REG(2, 10), BPF_ALU64_IMM(BPF_ADD, 2, -4));
}

static void end_loop(struct bench *b, const uint32_t *top)
{
	BOTH(b, BPF_ALU64_IMM(BPF_SUB, 6, 1));
	for (enum side e = KERNEL; e <= JIT; e++)
		put(b, e, BPF_JMP_IMM(BPF_JNE, 6, 0, (int16_t)(top[e] - b->nr[e] - 1)));
}

static void lookups(struct bench *b, int n)
{
	uint32_t top[2];

	BOTH(b, BPF_MOV64_IMM(6, (int32_t)b->operations), BPF_MOV64_IMM(7, 0));
	begin_loop(b, top);
	if (n)
		put_call_with_map(b, n, BPF_FUNC_map_lookup_elem, 0);
	else
		put_array_lookup(b);
	BOTH(b, BPF_JMP_IMM(BPF_JEQ, 0, 0, 2), BPF_LDX_MEM(BPF_DW, 1, 0, 0),
	     BPF_ALU64_REG(BPF_ADD, 7, 1));
	end_loop(b, top);
	BOTH(b, BPF_MOV64_REG(0, 7), BPF_EXIT_INSN());
}

static void array_lookups(struct bench *b)
{
	lookups(b, 0);
}

static void hash_lookups(struct bench *b)
{
	lookups(b, 1);
}

static void hash_updates(struct bench *b)
{
	uint32_t top[2];

	BOTH(b, BPF_MOV64_IMM(6, (int32_t)b->operations));
	begin_loop(b, top);
	put_call_with_map(b, 1, BPF_FUNC_map_lookup_elem, 0);
	BOTH(b, BPF_JMP_IMM(BPF_JEQ, 0, 0, 11), BPF_LDX_MEM(BPF_DW, 1, 0, 0),
	     BPF_ALU64_IMM(BPF_ADD, 1, 1), BPF_STX_MEM(BPF_DW, 10, 1, -16), BPF_MOV64_REG(2, 10),
	     BPF_ALU64_IMM(BPF_ADD, 2, -4), BPF_MOV64_REG(3, 10), BPF_ALU64_IMM(BPF_ADD, 3, -16),
	     BPF_MOV64_IMM(4, 0));
	put_call_with_map(b, 1, BPF_FUNC_map_update_elem, 1);
	end_loop(b, top);
	BOTH(b, BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN());
}

/* Writes a program that parses the same packet in each iteration of a loop. If the packet is TCP
 * over IPv4 to port 80, the program computes a hash of the packet's addresses and ports. */
static void packet_parses(struct bench *b)
{
	put(b, KERNEL, BPF_LDX_MEM(BPF_W, 8, 1, offsetof(struct __sk_buff, data)));
	put(b, KERNEL, BPF_LDX_MEM(BPF_W, 9, 1, offsetof(struct __sk_buff, data_end)));
	put(b, JIT, BPF_LDX_MEM(BPF_DW, 8, 1, 0));
	put(b, JIT, BPF_LDX_MEM(BPF_DW, 9, 1, 8));
	BOTH(b, BPF_MOV64_IMM(6, (int32_t)b->operations), BPF_MOV64_IMM(7, 0),
	     BPF_MOV64_REG(4, 8), BPF_ALU64_IMM(BPF_ADD, 4, 34), BPF_JMP_REG(BPF_JGT, 4, 9, 32),
	     BPF_LDX_MEM(BPF_H, 5, 8, 12), BPF_JMP_IMM(BPF_JNE, 5, 8, 30),
	     BPF_LDX_MEM(BPF_B, 5, 8, 23), BPF_JMP_IMM(BPF_JNE, 5, 6, 28),
	     BPF_LDX_MEM(BPF_B, 5, 8, 14), BPF_ALU64_IMM(BPF_AND, 5, 15),
	     BPF_ALU64_IMM(BPF_LSH, 5, 2), BPF_MOV64_REG(4, 8), BPF_ALU64_IMM(BPF_ADD, 4, 14),
	     BPF_ALU64_REG(BPF_ADD, 4, 5), BPF_MOV64_REG(5, 4),
	     BPF_ALU64_IMM(BPF_ADD, 5, 20), BPF_JMP_REG(BPF_JGT, 5, 9, 19),
	     BPF_LDX_MEM(BPF_H, 5, 4, 2), I(BPF_ALU | BPF_END | BPF_TO_BE, 5, 0, 0, 16),
	     BPF_JMP_IMM(BPF_JNE, 5, 80, 16),
	     BPF_LDX_MEM(BPF_W, 0, 8, 26), BPF_ALU32_IMM(BPF_MUL, 0, 0x9e3779b1),
	     BPF_LDX_MEM(BPF_W, 5, 8, 30), BPF_ALU32_REG(BPF_XOR, 0, 5),
	     BPF_ALU32_IMM(BPF_MUL, 0, 0x85ebca77), BPF_LDX_MEM(BPF_W, 5, 4, 0),
	     BPF_ALU32_REG(BPF_XOR, 0, 5), BPF_ALU32_IMM(BPF_MUL, 0, 0xc2b2ae3d),
	     BPF_MOV64_REG(5, 0), BPF_ALU64_IMM(BPF_RSH, 5, 15), BPF_ALU32_REG(BPF_XOR, 0, 5),
	     BPF_ALU64_REG(BPF_ADD, 7, 0), BPF_ALU64_IMM(BPF_SUB, 6, 1),
	     BPF_JMP_IMM(BPF_JNE, 6, 0, -33), BPF_MOV64_REG(0, 7), BPF_EXIT_INSN(),
	     BPF_MOV64_IMM(0, 0), BPF_EXIT_INSN());
}

static struct bench benches[] = {
	{ .name = "empty", .operations = 1 },
	{ .name = "ALU, a round of 6", .operations = 1000 },
	{ .name = "packet parse, 64 bytes", .operations = 400 },
	{ .name = "array lookup", .operations = 500 },
	{ .name = "hash lookup", .operations = 100 },
	{ .name = "hash lookup and update", .operations = 100 },
};
static void (*const writers[])(struct bench *b) = {
	empty, alu_loop, packet_parses, array_lookups, hash_lookups, hash_updates,
};

static bool make(struct bench *b, void (*write)(struct bench *b))
{
	struct pb_bpf_prog_spec s = {
		.insns = b->insns[JIT], .calls = calls, .nr_calls = 2, .stack = 16
	};
	uint8_t ops[64];

	write(b);
	b->fd = kernel_load(BPF_PROG_TYPE_SCHED_CLS, 0, b->insns[KERNEL], b->nr[KERNEL], NULL, 0);
	s.nr = b->nr[JIT];
	s.ops = ops;
	for (uint32_t i = 0; i < s.nr; i++) {
		ops[i] = (uint8_t)pb_bpf_decode(&b->insns[JIT][i]);
		if (ops[i] == PB_BPF_OP_LD_IMM64)
			ops[++i] = 0;
	}
	for (enum side e = JIT; e < NR_SIDES; e++) {
		pb_bpf_settings.jit_enable = e == JIT;
		if (pb_bpf_prog_make(&s, &b->progs[e]))
			return false;
	}
	return b->fd >= 0 && b->progs[JIT]->jited;
}

/* ---- time ----------------------------------------------------------------------- */

/* Returns the CPU time of this thread, not wall time, because other threads may get the processor
 * meanwhile. */
static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static uint32_t run(struct bench *b, enum side e, uint32_t times)
{
	struct { const uint8_t *data, *end; } ctx = { packet, packet + sizeof(packet) };
	union bpf_attr a;
	uint64_t ret = 0;

	if (e != KERNEL) {
		for (uint32_t n = 0; n < times; n++) {
			struct pb_bpf_run r = { .prog = b->progs[e], .ctx = &ctx };

			ret = pb_bpf_enter(&r);
		}
		return (uint32_t)ret;
	}
	memset(&a, 0, sizeof(a));
	a.test.prog_fd = (uint32_t)b->fd;
	a.test.data_in = (uintptr_t)packet;
	a.test.data_size_in = sizeof(packet);
	a.test.repeat = times;
	if (kernel_bpf(BPF_PROG_TEST_RUN, &a)) {
		perror("BPF_PROG_TEST_RUN");
		exit(1);
	}
	return a.test.retval;
}

static double slice(struct bench *b, enum side e)
{
	double from = now();

	run(b, e, b->repeat[e]);
	return (now() - from) / b->repeat[e];
}

static void calibrate(struct bench *b)
{
	for (enum side e = 0; e < NR_SIDES; e++) {
		double from, took = 0;

		b->repeat[e] = 100;
		while (took < SLICE_NS / 4) {
			b->repeat[e] *= 2;
			from = now();
			run(b, e, b->repeat[e]);
			took = now() - from;
		}
		b->repeat[e] = (uint32_t)(b->repeat[e] * SLICE_NS / took) + 1;
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *values, int n)
{
	double sorted[MAX_ROUNDS];

	memcpy(sorted, values, (size_t)n * sizeof(*values));
	qsort(sorted, (size_t)n, sizeof(*sorted), ascending);
	return sorted[n / 2];
}

static void print(const struct bench *b, int rounds)
{
	double net[NR_SIDES][MAX_ROUNDS], ratio[NR_SIDES][MAX_ROUNDS], entering = 0;

	for (enum side e = 0; e < NR_SIDES; e++) {
		double share = median(benches[0].ns[e], rounds) / median(b->ns[e], rounds);

		entering = share > entering ? share : entering;
	}
	if (entering > MOST_ENTERING) {
		printf("%-24s no figure: entering the program takes %.0f %% of a run\n", b->name,
		       entering * 100);
		return;
	}
	for (int r = 0; r < rounds; r++) {
		for (enum side e = 0; e < NR_SIDES; e++)
			net[e][r] = (b->ns[e][r] - benches[0].ns[e][r]) / b->operations;
		ratio[JIT][r] = net[JIT][r] / net[KERNEL][r];
		/* This is the ratio of whole runs. It includes the time for entering, because every
		 * run has to enter the program. */
		ratio[INTERPRETER][r] = b->ns[INTERPRETER][r] / b->ns[JIT][r];
	}
	printf("%-24s %10.2f %10.2f %10.2f   %6.2f %8.2f   %5.1f\n", b->name,
	       median(net[KERNEL], rounds), median(net[JIT], rounds),
	       median(net[INTERPRETER], rounds), median(ratio[JIT], rounds),
	       median(ratio[INTERPRETER], rounds), entering * 100);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 7;
	static const uint8_t head[] = {
		[12] = 8, [14] = 0x45, [23] = 6, [30] = 10, [33] = 1, [37] = 80
	};

	memcpy(packet, head, sizeof(head));
	if (rounds < 1 || rounds > MAX_ROUNDS || !kernel_is_there() ||
	    !make_map(0, BPF_MAP_TYPE_ARRAY) || !make_map(1, BPF_MAP_TYPE_HASH)) {
		printf("not measured: no right to load programs\n");
		return 77;
	}
	for (size_t k = 0; k < pb_array_size(benches); k++) {
		struct bench *b = &benches[k];

		if (!make(b, writers[k])) {
			printf("%s can't be made: %s\n", b->name, strerror(errno));
			return 1;
		}
		/* JIT, interpreter and kernel must compute the same result */
		if (run(b, KERNEL, 1) != run(b, JIT, 1) ||
		    run(b, JIT, 1) != run(b, INTERPRETER, 1)) {
			printf("%s: results differ\n", b->name);
			return 1;
		}
		calibrate(b);
	}
	for (int r = 0; r < rounds; r++)
		for (size_t k = 0; k < pb_array_size(benches); k++)
			for (enum side e = 0; e < NR_SIDES; e++)
				benches[k].ns[e][r] = slice(&benches[k], e);
	printf("%-24s %10s %10s %10s   %6s %8s   %5s\n", "ns per operation", "kernel", "JIT",
	       "interp.", "JIT/k.", "int./JIT*", "%**");
	for (size_t k = 1; k < pb_array_size(benches); k++)
		print(&benches[k], rounds);
	printf("%-24s %10.2f %10.2f %10.2f\n", "empty, a whole run",
	       median(benches[0].ns[KERNEL], rounds), median(benches[0].ns[JIT], rounds),
	       median(benches[0].ns[INTERPRETER], rounds));
	printf("* whole runs, with the time to enter them\n"
	       "** largest share of a run's time that is subtracted as the time to enter it\n");
	return 0;
}
