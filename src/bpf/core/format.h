/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Format strings of bpf_trace_printk, bpf_trace_vprintk and bpf_snprintf. Conversions and output
 * are those of the kernel, with one difference: addresses are shown as they are, and not hashed.
 */
#ifndef PB_BPF_CORE_FORMAT_H
#define PB_BPF_CORE_FORMAT_H
#include <stdint.h>

struct pb_bpf_run;

#define PB_BPF_FORMAT_ARGS	12	/* MAX_BPRINTF_VARARGS */
#define PB_BPF_FORMAT_BUF	1024	/* the largest number of bytes of a trace line */

/*
 * Checks a format as the kernel does. Returns 0 if the format ends with a 0 within size bytes and
 * is valid for nr_args arguments, else -EINVAL. The verifier uses this function, too. Context: any.
 */
int pb_bpf_format_check(const char *format, uint32_t size, uint32_t nr_args);

/*
 * Writes the formatted text to `to`, at most `size` bytes with the final 0. If size is 0, writes
 * nothing. Returns the full length of the text without the 0. -EINVAL: pb_bpf_format_check()
 * rejects the format. -ENOSPC: the arguments take more than 512 bytes. Strings (%s) and IP
 * addresses (for example %pI4) are read through the run's host. All of them are read before the
 * first byte is written, so `to` may overlap with them. Other threads may change the format
 * meanwhile. Then the text may be a mixture, but no memory outside of the format is read.
 */
int64_t pb_bpf_format(struct pb_bpf_run *run, char *to, uint32_t size, const char *format,
		      uint32_t format_size, const uint64_t *args, uint32_t nr_args);
#endif
