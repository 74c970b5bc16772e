/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What bpf_trace_printk, bpf_trace_vprintk and bpf_snprintf make of a format: the
 * kernel's choice of conversions and its text. Addresses are shown as they are.
 */
#ifndef PB_BPF_CORE_FORMAT_H
#define PB_BPF_CORE_FORMAT_H
#include <stdint.h>

struct pb_bpf_run;

#define PB_BPF_FORMAT_ARGS	12	/* MAX_BPRINTF_VARARGS */
#define PB_BPF_FORMAT_BUF	1024	/* of a trace line */

/*
 * Whether the kernel would take a format (ends in a 0 within size) with that many
 * arguments: 0 or -EINVAL. For the verifier, too. Context: any.
 */
int pb_bpf_format_check(const char *format, uint32_t size, uint32_t nr_args);

/*
 * Writes the text, at most size bytes with a 0 (size 0: none). Its whole length
 * without the 0, or -errno: as above, or -ENOSPC, more than 512 bytes of arguments.
 * Texts and addresses (%s, %pI4) are read through the run's host.
 */
int64_t pb_bpf_format(struct pb_bpf_run *run, char *to, uint32_t size, const char *format,
		      uint32_t format_size, const uint64_t *args, uint32_t nr_args);
#endif
