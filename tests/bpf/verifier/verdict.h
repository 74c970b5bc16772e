/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verifies a few instructions, and returns the verdict. The instructions may use seven maps. Map 0
 * is an array of programs. Map 1 is an array of one value of 32 bytes. Map 2 is a ring buffer. Map
 * 3 is an array of constants, and has the size of map 1. Map 4 is an array of maps. Maps 5 and 6
 * are like map 1, but the value has a lock. If the environment variable LOUD is set, logs are
 * printed.
 */
#ifndef PB_TEST_VERDICT_H
#define PB_TEST_VERDICT_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "insns.h"
#include "bpf/core/opcodes.h"
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"
#include "bpf/run/image.h"
#include "bpf/verifier/verify.h"

#define CALL(fn)	BPF_CALL_FN(BPF_FUNC_##fn)
#define MOV(d, s)	BPF_MOV64_REG(d, s)
#define SET(d, imm)	BPF_MOV64_IMM(d, imm)
#define EXIT()		BPF_EXIT_INSN()
#define FUNC(d, to)	I(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_FUNC, 0, to), I(0, 0, 0, 0, 0)
#define SUB(to)		I(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, to)
#define LDSX_B(d, s, o)	I(BPF_LDX | BPF_MEMSX | BPF_B, d, s, o, 0)

static char text[1 << 20];
static uint32_t lacking;	/* capabilities that the loader doesn't have */
static uint32_t flags;
static uint64_t walked;		/* steps of backtracking in the last verification */
static char values[32];
static int32_t lock_at = -1;	/* offset of the lock in the value of map 1; -1: there is none */

static bool measure;		/* find `room` for each accepted program */
static uint32_t room;		/* bytes of the thread's stack that the last program may need */

static inline uint32_t room_of(const struct pb_bpf_verify *v)
{
	struct pb_bpf_resolved r;
	struct pb_bpf_prog *prog;
	uint32_t bytes = 0;

	if (pb_bpf_resolve(v, &r))
		return 0;
	if (!pb_bpf_prog_make(&r.spec, &prog)) {
		bytes = prog->room;
		pb_bpf_prog_free(prog);
	}
	pb_bpf_resolved_free(&r);
	return bytes;
}

static inline void *direct(struct pb_bpf_map *map, uint32_t off)
{
	return values + off;
}

static inline int verdict(uint32_t type, const struct bpf_insn *insns, size_t nr,
			  const struct pb_bpf_func *funcs, uint32_t nr_funcs)
{
	static const struct pb_bpf_map_ops ops = { .direct = direct };
	static struct pb_bpf_map progs = { .ops = &ops,
					   .attr = { BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0 },
					   .types = { .spin_lock_off = -1, .timer_off = -1 } };
	static struct pb_bpf_map array = { .ops = &ops,
					   .attr = { BPF_MAP_TYPE_ARRAY, 4, sizeof values, 1, 0 },
					   .types = { .spin_lock_off = -1, .timer_off = -1 } };
	static struct pb_bpf_map ring = { .ops = &ops,
					  .attr = { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
					  .types = { .spin_lock_off = -1, .timer_off = -1 } };
	static struct pb_bpf_map constants = { .ops = &ops, .frozen = true,
					       .attr = { BPF_MAP_TYPE_ARRAY, 4, sizeof values, 1,
							 BPF_F_RDONLY_PROG },
					       .types = { .spin_lock_off = -1, .timer_off = -1 } };
	static struct pb_bpf_map outer = { .ops = &ops,
					   .attr = { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 4, 0 },
					   .inner = { BPF_MAP_TYPE_ARRAY, 4, sizeof values, 1, 0 },
					   .types = { .spin_lock_off = -1, .timer_off = -1 } };
	static struct pb_bpf_map locked[2];
	struct pb_bpf_map *maps[] = { &progs, &array, &ring, &constants, &outer, &locked[0],
				      &locked[1] };
	struct pb_bpf_text log = { .buf = text, .size = sizeof text };
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(type), .caps = PB_BPF_CAP_ALL & ~lacking, .gpl = true,
		.insns = insns, .nr = (uint32_t)nr, .maps = maps,
		.nr_maps = sizeof maps / sizeof *maps, .flags = flags,
		.log = &log, .log_level = getenv("LOUD") ? 2 : 1, .mem = &pb_bpf_heap,
		.funcs = funcs, .nr_funcs = nr_funcs,
	};
	int err;

	array.types.spin_lock_off = lock_at;
	array.types.btf_value = lock_at >= 0;
	locked[0] = array;
	locked[0].types = (struct pb_bpf_map_types){ .timer_off = -1, .btf_key = 1,
						     .btf_value = 2 };
	locked[1] = locked[0];
	err = pb_bpf_verify(&v);
	if (getenv("LOUD"))
		fprintf(stderr, "%s\n-> %d\n", text, err);
	walked = v.stats.walked;
	room = !err && measure ? room_of(&v) : 0;
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	return err;
}

#define VERDICT(type, insns) \
	verdict(BPF_PROG_TYPE_##type, insns, sizeof(insns) / sizeof *(insns), NULL, 0)
#define VERDICT_SUBS(type, insns, funcs) \
	verdict(BPF_PROG_TYPE_##type, insns, sizeof(insns) / sizeof *(insns), funcs, \
		sizeof(funcs) / sizeof *(funcs))
#endif
