/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plug-in protocol of the bpf_conformance suite. A plug-in runs a program with the address of a
 * memory area in r1, and the area's length in r2. It prints the result in hexadecimal. As in the
 * suite's plug-in for the kernel, the memory area is the packet of an XDP program: the verifier
 * checks a packet's exact bounds, and accepts accesses of any alignment. To set r1 and r2, this
 * file puts instructions before the program. These instructions load the packet's address from an
 * xdp context. Without a memory area, r1 and r2 are 0.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/core/host.h"
#include "bpf/core/packet.h"
#include "cli/bpf/bpf_common.h"

#define ROOM	256u		/* bytes before the memory area, as in the kernel */
#define MEMORY	3520u		/* limit on the memory area, as in the kernel's test runs */
#define BEFORE	8		/* limit on the instructions that are put before the program */

static _Alignas(64) uint8_t buffer[ROOM + MEMORY + ROOM];

#define INSN(op, dst, src, offset, value) \
	((struct bpf_insn){ .code = (op), .dst_reg = (dst), .src_reg = (src), \
	.off = (offset), .imm = (value) })

/* Writes the instructions that run before the program. Returns their end. */
static struct bpf_insn *put_registers(struct bpf_insn *i, uint32_t len)
{
	if (!len) {
		*i++ = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 0);
		*i++ = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0);
		return i;
	}
	*i++ = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, -1);
	*i++ = INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, offsetof(struct xdp_md, data_end), 0);
	*i++ = INSN(BPF_LDX | BPF_MEM | BPF_W, 1, 1, offsetof(struct xdp_md, data), 0);
	*i++ = INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 1, 0, 0);
	*i++ = INSN(BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, (int32_t)len);
	*i++ = INSN(BPF_JMP | BPF_JLE | BPF_X, 3, 2, 1, 0);
	*i++ = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	*i++ = INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, (int32_t)len);
	return i;
}

static int execute(struct bpf_session *s, struct bpf_insn *insns, uint32_t nr, uint32_t len)
{
	struct bpf_unit u = { .name = "plugin", .type = pb_bpf_type_of(BPF_PROG_TYPE_XDP),
		.insns = insns, .nr = nr,
			      .gpl = true };
	uint8_t *data = buffer + ROOM;
	struct pb_bpf_xdp xdp = { .pkt = { data, data + len, data, buffer, data + len } };
	struct bpf_loaded l;
	struct pb_bpf_run run;
	uint64_t r0;

	if (bpf_session_load(s, &u, &l)) {
		bpf_session_show_log(s);
		return 1;
	}
	run = (struct pb_bpf_run){ .prog = l.prog, .ctx = &xdp, .host = pb_bpf_host_linux() };
	r0 = s->interpret ? pb_bpf_interpret(&run) : pb_bpf_enter(&run);
	printf("%lx\n", r0);
	pb_bpf_prog_free(l.prog);
	return 0;
}

int bpf_plugin(struct bpf_session *s, const char *program, char **args, int nr_args)
{
	struct bpf_insn *insns, *all, *end;
	char *text = (char *)program;
	long len = nr_args ? bpf_unhex(s->command, args[0], buffer + ROOM, MEMORY) : 0;
	uint32_t nr;
	int ret;

	if (len < 0)
		return 1;
	if (bpf_read_insns(s, &text, program ? 1 : 0, &insns, &nr))
		return 1;
	all = malloc((BEFORE + nr) * sizeof(*all));
	if (!all)
		return pb_error(s->command, "out of memory");
	end = put_registers(all, (uint32_t)len);
	memcpy(end, insns, nr * sizeof(*insns));
	ret = execute(s, all, (uint32_t)(end - all) + nr, (uint32_t)len);
	free(all);
	free(insns);
	return ret;
}
