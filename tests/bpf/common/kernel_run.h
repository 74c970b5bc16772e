/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a program of a test in this machine's kernel: as a subprogram of one of type
 * xdp, that hands it part of a packet (r1, r2: length) and puts all 64 bits of what
 * it returned behind that part. r3 is the packet's end.
 */
#ifndef TESTS_BPF_KERNEL_RUN_H
#define TESTS_BPF_KERNEL_RUN_H
#include <linux/bpf.h>
#include <stdint.h>

#define KERNEL_MOST_MEMORY	3000

/* Bytes of the packet around a part of so many. */
static inline uint32_t kernel_packet_len(uint32_t len)
{
	return len + 8 < 14 ? 14 : len + 8;	/* 14: the kernel's limit */
}

struct kernel_prog {
	int fd;
	uint32_t len;		/* of the memory that it is given */
};

/* The program around it, and it: all has room for nr + KERNEL_AROUND. Returns how many. */
#define KERNEL_AROUND	16
uint32_t kernel_prog_wrap(const struct bpf_insn *insns, uint32_t nr, uint32_t len, struct bpf_insn *all);
#define KERNEL_DONE	2	/* what it returns: XDP_PASS */
/* 0, or -errno with the verifier's log. */
int kernel_prog_load(struct kernel_prog *p, const struct bpf_insn *insns, uint32_t nr, uint32_t len,
		     char *log, uint32_t log_size);
/* 0 with the result and what became of the memory, or -errno. */
int kernel_prog_run(const struct kernel_prog *p, uint8_t *mem, uint64_t *result);
void kernel_prog_close(struct kernel_prog *p);
/* The kernel's name and version, for reports. */
const char *kernel_version(void);
#endif
