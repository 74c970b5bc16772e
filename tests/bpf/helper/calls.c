// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes series of helper calls: calls_ours() in Patchbay, calls_kernel() in the kernel. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "bpf/helper/helper.h"
#include "bpf/run/test_run.h"
#include "calls.h"
#include "kernel.h"

/* ---- our helpers: the program has no instructions, its entry function makes all calls -- */

static const struct calls *now;
static struct outcome *out;

static uint64_t make_calls(uint64_t ctx, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			   struct pb_bpf_run *run)
{
	for (uint32_t i = 0; i < now->nr; i++) {
		const struct call *c = &now->call[i];
		uint64_t r[5] = { 0 };

		for (int k = 0; k < 5; k++)
			r[k] = c->arg[k].kind == ARG_CTX ? ctx :
			       c->arg[k].kind == ARG_MEM ? (uint64_t)(out->mem + c->arg[k].v) :
			       c->arg[k].kind == ARG_TEXT ? (uint64_t)(now->text + c->arg[k].v) :
			       (uint64_t)c->arg[k].v;
		out->ret[i] = pb_bpf_helper_of(c->id)->fn(r[0], r[1], r[2], r[3], r[4], run);
	}
	return 0;
}

static uint64_t enter(const void *ctx, struct pb_bpf_run *run)
{
	return make_calls((uint64_t)ctx, 0, 0, 0, 0, run);
}

void calls_ours(const struct calls *c, struct outcome *o)
{
	struct pb_bpf_prog prog = { .type = pb_bpf_type_of(c->prog_type), .enter = enter,
		.perfmon = true };
	bool raw = c->prog_type == BPF_PROG_TYPE_RAW_TRACEPOINT;
	struct pb_bpf_test_run t = {
		.prog = &prog, .host = pb_bpf_host_linux(), .flags = c->flags,
		.data_in = raw ? NULL : c->data, .data_size_in = raw ? 0 : c->data_len,
		.data_out = raw ? NULL : o->data, .data_size_out = raw ? 0 : sizeof(o->data),
		.ctx_in = c->has_ctx ? c->ctx : NULL, .ctx_size_in = c->has_ctx ? c->ctx_len : 0,
		.ctx_out = c->has_ctx && !raw ? o->ctx : NULL,
		.ctx_size_out = c->has_ctx && !raw ? sizeof(o->ctx) : 0,
	};

	memset(o, 0, sizeof(*o));
	memcpy(o->mem, c->mem, sizeof(o->mem));
	now = c;
	out = o;
	o->err = pb_bpf_test_run(&t);
	o->data_len = t.data_size_out;
	if (o->err && o->err != -ENOSPC)
		o->data_len = 0;
}

/* ---- the kernel's helpers ----------------------------------------------------------- */

static int make_map(uint32_t value_size, uint32_t flags, const void *value)
{
	uint32_t key = 0;
	union bpf_attr a;
	int fd;

	memset(&a, 0, sizeof(a));
	a.map_type = BPF_MAP_TYPE_ARRAY;
	a.key_size = 4;
	a.value_size = value_size;
	a.max_entries = 1;
	a.map_flags = flags;
	fd = (int)kernel_bpf(BPF_MAP_CREATE, &a);
	memset(&a, 0, sizeof(a));
	a.map_fd = (uint32_t)fd;
	a.key = (uintptr_t)&key;
	a.value = (uintptr_t)value;
	kernel_bpf(BPF_MAP_UPDATE_ELEM, &a);
	if (flags) {
		memset(&a, 0, sizeof(a));
		a.map_fd = (uint32_t)fd;
		kernel_bpf(BPF_MAP_FREEZE, &a);
	}
	return fd;
}

struct both {
	uint8_t mem[CALLS_MEM];
	uint64_t ret[CALLS_MAX];
};

static struct bpf_insn *load64(struct bpf_insn *i, uint8_t dst, uint8_t src, uint64_t v)
{
	*i++ = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = dst,
				  .src_reg = src & 15, .imm = (int32_t)v };
	*i++ = (struct bpf_insn){ .imm = (int32_t)(v >> 32) };
	return i;
}

static uint32_t assemble(const struct calls *c, struct bpf_insn *insns, int mem_fd, int text_fd)
{
	struct bpf_insn *i = insns;

	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 };
	for (uint32_t n = 0; n < c->nr; n++) {
		for (uint8_t k = 0; k < 5; k++) {
			uint64_t v = (uint64_t)c->call[n].arg[k].v;
			uint8_t r = (uint8_t)(k + 1);

			switch (c->call[n].arg[k].kind) {
			case ARG_CTX:
				*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X,
							  .dst_reg = r & 15, .src_reg = 6 };
				break;
			case ARG_MEM:
				i = load64(i, r, BPF_PSEUDO_MAP_VALUE, (uint32_t)mem_fd | v << 32);
				break;
			case ARG_TEXT:
				i = load64(i, r, BPF_PSEUDO_MAP_VALUE, (uint32_t)text_fd | v << 32);
				break;
			case ARG_IMM:
				i = load64(i, r, 0, v);
				break;
			case ARG_NONE:
				break;
			}
		}
		*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = (int)c->call[n].id };
		i = load64(i, 1, BPF_PSEUDO_MAP_VALUE,
			   (uint32_t)mem_fd | (uint64_t)(offsetof(struct both, ret) + 8 * n) << 32);
		*i++ = (struct bpf_insn){ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 1 };
	}
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return (uint32_t)(i - insns);
}

static void run_kernel(const struct calls *c, struct outcome *o, int prog)
{
	bool raw = c->prog_type == BPF_PROG_TYPE_RAW_TRACEPOINT;
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.test.prog_fd = (uint32_t)prog;
	a.test.flags = c->flags;
	if (!raw) {
		a.test.data_in = (uintptr_t)c->data;
		a.test.data_size_in = c->data_len;
		a.test.data_out = (uintptr_t)o->data;
		a.test.data_size_out = sizeof(o->data);
	}
	if (c->has_ctx) {
		a.test.ctx_in = (uintptr_t)c->ctx;
		a.test.ctx_size_in = c->ctx_len;
		a.test.ctx_out = raw ? 0 : (uintptr_t)o->ctx;
		a.test.ctx_size_out = raw ? 0 : sizeof(o->ctx);
	}
	o->err = kernel_bpf(BPF_PROG_TEST_RUN, &a) < 0 ? -errno : 0;
	o->data_len = o->err && o->err != -ENOSPC ? 0 : a.test.data_size_out;
}

void calls_kernel(const struct calls *c, struct outcome *o)
{
	static char log[1 << 16];
	struct bpf_insn insns[CALLS_MAX * 16];
	struct both both;
	int mem, text, prog;
	uint32_t key = 0;
	union bpf_attr a;

	memset(o, 0, sizeof(*o));
	memset(&both, 0, sizeof(both));
	memcpy(both.mem, c->mem, sizeof(both.mem));
	mem = make_map(sizeof(both), 0, &both);
	text = make_map(sizeof(c->text), BPF_F_RDONLY_PROG, c->text);
	prog = kernel_load(c->prog_type, 0, insns, assemble(c, insns, mem, text), log, sizeof(log));
	if (prog < 0) {
		o->err = -1;
		o->why = log;
	} else {
		run_kernel(c, o, prog);
		close(prog);
		memset(&a, 0, sizeof(a));
		a.map_fd = (uint32_t)mem;
		a.key = (uintptr_t)&key;
		a.value = (uintptr_t)&both;
		kernel_bpf(BPF_MAP_LOOKUP_ELEM, &a);
		memcpy(o->mem, both.mem, sizeof(o->mem));
		memcpy(o->ret, both.ret, sizeof(o->ret));
	}
	close(mem);
	close(text);
}
