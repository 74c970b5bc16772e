/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a test's program in this machine's kernel, as a subprogram of an XDP program. The XDP
 * program passes a part of the packet to the subprogram. r1 is the part's address, r2 its length,
 * and r3 the end of the packet. The XDP program stores the subprogram's 64-bit result after the
 * part.
 */
#ifndef TESTS_BPF_KERNEL_RUN_H
#define TESTS_BPF_KERNEL_RUN_H
#include <linux/bpf.h>
#include <stdint.h>

#define KERNEL_MOST_MEMORY	3000

/* Returns the length of a packet that contains a part of len bytes and the result. */
static inline uint32_t kernel_packet_len(uint32_t len)
{
	return len + 8 < 14 ? 14 : len + 8;	/* 14: the kernel refuses packets of fewer than 14
						 * bytes */
}

struct kernel_prog {
	int fd;
	uint32_t len;		/* length of the part of the packet that the program gets */
};

/* Writes the XDP program and insns to all[], which has room for nr + KERNEL_AROUND instructions.
 * Returns the number of instructions. */
#define KERNEL_AROUND	16
uint32_t kernel_prog_wrap(const struct bpf_insn *insns, uint32_t nr, uint32_t len,
			  struct bpf_insn *all);
#define KERNEL_DONE	2	/* XDP_PASS: the XDP program returns it if it has called the
				 * subprogram */
/* Loads the program. Returns 0, or -errno with the verifier's log. */
int kernel_prog_load(struct kernel_prog *p, const struct bpf_insn *insns, uint32_t nr, uint32_t len,
		     char *log, uint32_t log_size);
/* Runs the program on mem. The program may change mem. Returns 0 with the result, or -errno. */
int kernel_prog_run(const struct kernel_prog *p, uint8_t *mem, uint64_t *result);
void kernel_prog_close(struct kernel_prog *p);
/* Returns the kernel's release, for example "6.1.0-18-amd64", for reports. */
const char *kernel_version(void);
#endif
