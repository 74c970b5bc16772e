/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verifies random programs with maps, and runs them by the interpreter, by the JIT (engines.h), and
 * in this machine's kernel. A program starts with empty maps and gets several packets, one after
 * another. The engines and the kernel get the same packets. After each run, all must have the same
 * result and packet. At the end, all must have the same contents in their maps.
 *
 *	bpf_fuzz_maps [--seconds N] [--seed N] [--inputs N] [--no-kernel] [--only PROGRAM]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bpf/core/disasm.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "gen.h"
#include "kernel.h"
#include "kernel_run.h"
#include "own.h"

#define MOST_INPUTS	10000
#define KERNEL		NR_ENGINES
#define NR_SIDES	(NR_ENGINES + 1)

static struct {
	uint64_t seed, only;
	double seconds;
	unsigned inputs;
	bool kernel, has_only;
} opt = { .seed = 1, .seconds = 10, .inputs = 200, .kernel = true };

struct outcome {
	uint64_t result;
	uint8_t mem[GEN_MEMORY];
};

struct contents {
	uint8_t array[GEN_ARRAY_ENTRIES][GEN_ARRAY_VALUE];
	uint8_t hash[GEN_HASH_KEYS][GEN_HASH_VALUE];
	bool present[GEN_HASH_KEYS];
};

static const struct pb_bpf_map_attr attrs[GEN_NR_MAPS] = {
	[GEN_ARRAY] = { .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = GEN_ARRAY_VALUE,
			.max_entries = GEN_ARRAY_ENTRIES },
	[GEN_HASH] = { .type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = GEN_HASH_VALUE,
		       .max_entries = GEN_HASH_ENTRIES },
};
static struct pb_bpf_map maps[GEN_NR_MAPS];
static int fds[GEN_NR_MAPS];
static struct bpf_insn insns[GEN_MOST_INSNS + KERNEL_AROUND];
static struct outcome outcomes[NR_SIDES][MOST_INPUTS];
static struct contents contents[NR_SIDES];
static uint64_t nr_programs, nr_runs, nr_with_maps, nr_refused;
static const char zeros[64];

/* ---- maps -------------------------------------------------------------------- */

static bool make_maps(void)
{
	for (int k = 0; k < GEN_NR_MAPS; k++) {
		struct pb_bpf_map_spec spec = { .attr = attrs[k],
			.types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1 };
		union bpf_attr a = { .map_type = attrs[k].type, .key_size = 4,
			.value_size = attrs[k].value_size,
			.max_entries = attrs[k].max_entries };

		if (pb_bpf_map_create(&maps[k], &spec))
			return false;
		fds[k] = opt.kernel ? (int)kernel_bpf(BPF_MAP_CREATE, &a) : -1;
	}
	return true;
}

static int map_op(int side, int op, int map, uint32_t key, void *value)
{
	union bpf_attr a = { .map_fd = (uint32_t)fds[map], .key = (uintptr_t)&key,
		.value = (uintptr_t)value };

	if (side == KERNEL)
		return (int)kernel_bpf(op, &a);
	if (op == BPF_MAP_UPDATE_ELEM)
		return pb_bpf_map_update_elem(&maps[map], &key, value, 0);
	if (op == BPF_MAP_DELETE_ELEM)
		return pb_bpf_map_delete_elem(&maps[map], &key);
	return pb_bpf_map_lookup_elem(&maps[map], &key, value, 0);
}

static void empty_maps(int side)
{
	for (uint32_t key = 0; key < GEN_ARRAY_ENTRIES; key++)
		map_op(side, BPF_MAP_UPDATE_ELEM, GEN_ARRAY, key, (void *)zeros);
	for (uint32_t key = 0; key < GEN_HASH_KEYS; key++)
		map_op(side, BPF_MAP_DELETE_ELEM, GEN_HASH, key, NULL);
}

static void read_maps(int side, struct contents *c)
{
	memset(c, 0, sizeof(*c));
	for (uint32_t key = 0; key < GEN_ARRAY_ENTRIES; key++)
		map_op(side, BPF_MAP_LOOKUP_ELEM, GEN_ARRAY, key, c->array[key]);
	for (uint32_t key = 0; key < GEN_HASH_KEYS; key++)
		c->present[key] = !map_op(side, BPF_MAP_LOOKUP_ELEM, GEN_HASH, key, c->hash[key]);
}

/* ---- programs ----------------------------------------------------------------- */

static void print_program(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		char line[100] = "";
		struct pb_bpf_text t = { .buf = line, .size = sizeof(line) };

		pb_bpf_disasm(&t, &insns[i], NULL);
		printf("%4u: %s\n", i, line);
		i += insns[i].code == (BPF_LD | BPF_IMM | BPF_DW);
	}
}

/* Runs the program on one engine, or in the kernel, with all inputs. Returns 0 or -errno. -EPROTO:
 * a run didn't return KERNEL_DONE. */
static int run_side(int side, const struct own_prog *p, int fd, uint64_t state)
{
	uint8_t in[GEN_MEMORY + 16] = { 0 };
	struct own_run r = { .in = in, .len = kernel_packet_len(GEN_MEMORY) };

	empty_maps(side);
	for (unsigned n = 0; n < opt.inputs; n++) {
		struct outcome *o = &outcomes[side][n];
		int err;

		gen_memory(&state, in);
		err = side == KERNEL ? kernel_test_run(fd, &r) : own_run(p, side, &r);
		if (err || r.retval != KERNEL_DONE)
			return err ? err : -EPROTO;
		memcpy(o->mem, r.out, GEN_MEMORY);
		memcpy(&o->result, r.out + GEN_MEMORY, sizeof(o->result));
		nr_runs++;
	}
	read_maps(side, &contents[side]);
	return 0;
}

static const char *name_of(int side)
{
	return side == KERNEL ? "kernel" : engine_names[side];
}

static int compare(uint64_t program, int side, uint32_t nr)
{
	unsigned n = 0;

	while (n < opt.inputs &&
	       !memcmp(&outcomes[0][n], &outcomes[side][n], sizeof(outcomes[0][n])))
		n++;
	if (n == opt.inputs && !memcmp(&contents[0], &contents[side], sizeof(contents[0])))
		return 0;
	printf("FAIL program %lu: %s differs from the %s in ", program, name_of(side), name_of(0));
	if (n < opt.inputs)
		printf("run %u: %#lx, not %#lx\n", n, outcomes[side][n].result,
		       outcomes[0][n].result);
	else
		printf("the maps\n");
	printf("     again: bpf_fuzz_maps --seed %lu --inputs %u --only %lu\n", opt.seed,
	       opt.inputs, program);
	print_program(nr);
	return 1;
}

static uint32_t for_kernel(const struct bpf_insn *from, uint32_t nr, struct bpf_insn *to)
{
	memcpy(to, from, nr * sizeof(*to));
	for (uint32_t i = 0; i < nr; i++)
		if (to[i].code == (BPF_LD | BPF_IMM | BPF_DW) && to[i].src_reg == BPF_PSEUDO_MAP_FD)
			to[i].imm = fds[to[i].imm];
	return nr;
}

static int run_program(uint64_t program)
{
	static struct bpf_insn all[GEN_MOST_INSNS + KERNEL_AROUND],
		theirs[GEN_MOST_INSNS + KERNEL_AROUND];
	struct pb_bpf_map *list[GEN_NR_MAPS] = { &maps[0], &maps[1] };
	uint64_t seed = opt.seed * 0x100000001b3ull + program;
	uint32_t nr = gen_program(seed, true, insns),
		total = kernel_prog_wrap(insns, nr, GEN_MEMORY, all);
	bool uses_maps = false;
	struct own_prog p;
	int fd = -1, bad = 0, err;

	for (uint32_t i = 0; i < nr && !uses_maps; i++)
		uses_maps = insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) && insns[i].src_reg;
	if (!uses_maps)
		return 0;
	nr_programs++;
	nr_with_maps += uses_maps;
	err = own_load(&p, BPF_PROG_TYPE_XDP, all, total, list, GEN_NR_MAPS, NULL, 0);
	if (opt.kernel)
		fd = kernel_load(BPF_PROG_TYPE_XDP, 0, theirs, for_kernel(all, total, theirs), NULL,
				 0);
	if (err || (opt.kernel && fd < 0)) {
		nr_refused++;
		if (opt.has_only)
			printf("ours: %d, the kernel's: %d\n", err, fd);
	} else {
		for (int side = 0; side < NR_SIDES - !opt.kernel && !bad; side++) {
			err = run_side(side, &p, fd, seed);
			if (err) {
				printf("FAIL program %lu: %s: %d\n", program, name_of(side), err);
				bad = 1;
			} else {
				bad = side && compare(program, side, nr);
			}
		}
	}
	if (fd >= 0)
		close(fd);
	own_free(&p);
	return bad;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double start = now();
	int bad = 0;

	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "0";

		if (!strcmp(a, "--no-kernel"))
			opt.kernel = false;
		else if (i++, !strcmp(a, "--seconds"))
			opt.seconds = atof(v);
		else if (!strcmp(a, "--seed"))
			opt.seed = strtoull(v, NULL, 0);
		else if (!strcmp(a, "--inputs"))
			opt.inputs = (unsigned)atoi(v);
		else if (!strcmp(a, "--only"))
			opt.only = strtoull(v, NULL, 0), opt.has_only = true;
		else
			return 2;
	}
	if (opt.inputs > MOST_INPUTS)
		opt.inputs = MOST_INPUTS;
	opt.kernel = opt.kernel && kernel_is_there();
	if (!make_maps()) {
		printf("FAIL no maps\n0 passed, 1 failed\n");
		return 1;
	}
	if (opt.has_only)
		bad = run_program(opt.only);
	else
		for (uint64_t n = 0; !bad && now() - start < opt.seconds; n++)
			bad = run_program(n);
	printf("%lu programs with maps, %lu runs on %d engines%s%s; %lu refused; "
	       "seed %lu, %.0f s\n", nr_with_maps, nr_runs, NR_ENGINES,
	       opt.kernel ? " and Linux " : "", opt.kernel ? kernel_version() : "", nr_refused,
	       opt.seed, now() - start);
	if (nr_refused * 10 > nr_programs + 20) {
		printf("FAIL too many programs are refused for this to be a test\n");
		bad = 1;
	}
	printf("%d passed, %d failed\n", !bad, bad);
	return bad;
}
