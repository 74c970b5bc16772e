/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The plug-in protocol of the bpf_conformance suite: a program that is given memory in
 * r1 and its length in r2; what it returns, in hexadecimal. It is verified as any other,
 * behind instructions that put the memory on the stack and call it.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/host.h"
#include "cli/bpf.h"

#define MEMORY	448u		/* that fits on the stack beside the program's own */

static struct bpf_insn *put_memory(struct bpf_insn *i, const uint8_t *mem, uint32_t len)
{
	uint32_t room = (len + 7) / 8 * 8;

	for (uint32_t off = 0; off < room; off += 8) {
		uint32_t word[2] = { 0 };

		memcpy(word, mem + off, len - off < 8 ? len - off : 8);
		for (int k = 0; k < 2; k++)
			*i++ = (struct bpf_insn){ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = 10,
						  .off = (int16_t)((int)off + 4 * k - (int)room),
						  .imm = (int32_t)word[k] };
	}
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10 };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -(int32_t)room };
	if (!len)
		i[-2] = i[-1] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1 };
	*i++ = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = (int32_t)len };
	*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 };
	*i++ = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return i;
}

static int execute(struct bpf_session *s, struct bpf_insn *insns, uint32_t nr)
{
	struct bpf_unit u = { .name = "plugin", .type = pb_bpf_type_of(BPF_PROG_TYPE_RAW_TRACEPOINT),
			      .insns = insns, .nr = nr, .gpl = true };
	static uint64_t ctx[12];
	struct bpf_loaded l;
	struct pb_bpf_run run;
	uint64_t r0;

	if (bpf_session_load(s, &u, &l)) {
		fprintf(stderr, "%s\n", s->log);
		return 1;
	}
	run = (struct pb_bpf_run){ .prog = l.prog, .ctx = ctx, .host = pb_bpf_host_linux() };
	r0 = s->interpret ? pb_bpf_interpret(&run) : pb_bpf_enter(&run);
	printf("%lx\n", r0);
	pb_bpf_prog_free(l.prog);
	return 0;
}

int bpf_plugin(struct bpf_session *s, const char *program, char **args, int nr_args)
{
	uint8_t mem[MEMORY];
	struct bpf_insn *insns, *all, *end;
	char *text = (char *)program;
	long len = nr_args ? bpf_unhex(s->command, args[0], mem, sizeof(mem)) : 0;
	uint32_t nr;
	int ret;

	if (len < 0)
		return 1;
	if (bpf_read_insns(s, &text, program ? 1 : 0, &insns, &nr))
		return 1;
	all = malloc((MEMORY / 4 + 8 + nr) * sizeof(*all));
	end = put_memory(all, mem, (uint32_t)len);
	memcpy(end, insns, nr * sizeof(*insns));
	s->log_level = 1;
	ret = execute(s, all, (uint32_t)(end - all) + nr);
	free(all);
	free(insns);
	return ret;
}
