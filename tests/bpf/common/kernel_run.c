/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs the program of a test in this machine's kernel, as part of an XDP program (kernel_run.h). */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "insns.h"
#include "kernel.h"
#include "kernel_run.h"

uint32_t kernel_prog_wrap(const struct bpf_insn *insns, uint32_t nr, uint32_t len,
			  struct bpf_insn *all)
{
	const struct bpf_insn around[] = {
		BPF_LDX_MEM(BPF_W, 7, 1, offsetof(struct xdp_md, data)),
		BPF_LDX_MEM(BPF_W, 3, 1, offsetof(struct xdp_md, data_end)),
		BPF_MOV64_REG(1, 7),
		BPF_ALU64_IMM(BPF_ADD, 1, (int32_t)kernel_packet_len(len)),
		BPF_JMP_REG(BPF_JGT, 1, 3, 6),
		BPF_MOV64_REG(1, 7),
		BPF_MOV64_IMM(2, (int32_t)len),
		BPF_CALL_REL(0, 5),
		BPF_STX_MEM(BPF_DW, 7, 0, (int16_t)len),
		BPF_MOV64_IMM(0, KERNEL_DONE),
		BPF_EXIT_INSN(),
		BPF_MOV64_IMM(0, 0),
		BPF_EXIT_INSN(),
	};

	memcpy(all, around, sizeof(around));
	memcpy(all + sizeof(around) / sizeof(around[0]), insns, nr * sizeof(*insns));
	return nr + (uint32_t)(sizeof(around) / sizeof(around[0]));
}

int kernel_prog_load(struct kernel_prog *p, const struct bpf_insn *insns, uint32_t nr, uint32_t len,
		     char *log, uint32_t log_size)
{
	struct bpf_insn *all = malloc((KERNEL_AROUND + nr) * sizeof(*all));

	nr = kernel_prog_wrap(insns, nr, len, all);
	p->len = len;
	p->fd = kernel_load(BPF_PROG_TYPE_XDP, 0, all, nr, log, log_size);
	free(all);
	return p->fd < 0 ? p->fd : 0;
}

int kernel_prog_run(const struct kernel_prog *p, uint8_t *mem, uint64_t *result)
{
	uint8_t in[KERNEL_MOST_MEMORY + 16] = { 0 }, out[KERNEL_MOST_MEMORY + 16];
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	memcpy(in, mem, p->len);
	a.test.prog_fd = (uint32_t)p->fd;
	a.test.data_in = (uintptr_t)in;
	a.test.data_size_in = kernel_packet_len(p->len);
	a.test.data_out = (uintptr_t)out;
	a.test.data_size_out = sizeof(out);
	a.test.repeat = 1;
	if (kernel_bpf(BPF_PROG_TEST_RUN, &a) < 0)
		return -errno;
	if (a.test.retval != KERNEL_DONE || a.test.data_size_out != a.test.data_size_in)
		return -EPROTO;
	memcpy(mem, out, p->len);
	memcpy(result, out + p->len, sizeof(*result));
	return 0;
}

void kernel_prog_close(struct kernel_prog *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

const char *kernel_version(void)
{
	static struct utsname u;

	return uname(&u) ? "?" : u.release;
}
