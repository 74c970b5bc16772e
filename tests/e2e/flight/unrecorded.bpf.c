/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Leaves the calls of slow() out of the recording. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("kprobe/slow")
int leave_out(void *ctx)
{
	return 0;
}
