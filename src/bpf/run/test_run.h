/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_PROG_TEST_RUN: runs a program on a packet or a context from the caller, and returns the
 * results. Checks, fields, flags and errors are the kernel's (net/bpf/test_run.c), with these
 * differences:
 *   - kprobe, tracepoint and perf_event programs run if there is a context. Without a context the
 *     error is -524 (ENOTSUPP), as in the kernel
 *   - an xdp packet is always in one piece
 *   - cgroup_skb programs find the packet's end in data_end, which older kernels leave unset
 * A packet's buffer is between two inaccessible pages. One of its ends touches such a page, so that
 * an access beyond this end faults. Between the buffer's other end and the other inaccessible page,
 * less than a page of accessible memory may lie.
 *
 * Context: not in a run, not in a signal handler.
 */
#ifndef PB_BPF_RUN_TEST_RUN_H
#define PB_BPF_RUN_TEST_RUN_H
#include "bpf/core/host.h"
#include "bpf/core/packet.h"

struct pb_bpf_test_run {
	/* in */
	const struct pb_bpf_prog *prog;
	const struct pb_bpf_host *host;
	bool interpret;			/* if set, use the interpreter even if there is native
					 * code */
	uint32_t attach_type, cpu_slot;
	uint32_t ctx_needed;		/* for raw_tracepoint: the context must have at least this
					 * many bytes, even if the program needs fewer */
	const void *data_in, *ctx_in;
	uint32_t data_size_in, ctx_size_in;
	uint32_t repeat;		/* 0: once */
	uint32_t flags, cpu, batch_size;
	/*
	 * tight: there is no room around the packet. The packet ends directly before an
	 * inaccessible page, so that an access after its end faults. If begin_tight is set, too,
	 * the packet begins directly after an inaccessible page instead, so that an access before
	 * its start faults. If tight isn't set, programs can make the packet longer: there is at
	 * least as much room as in the kernel
	 */
	bool tight, begin_tight;
	/* facts about the packet, which helpers return to programs that run on an sk_buff. May be
	 * NULL */
	const struct pb_bpf_skb *about;
	uint64_t cookie;
	/* results; the buffers may be NULL. data_size_out, ctx_size_out: on call, the size of the
	 * buffer; on return, the full size of the result. If data_size_out is 0 on call, data_out
	 * must have room for the whole result */
	void *data_out, *ctx_out;
	uint32_t data_size_out, ctx_size_out;
	/* out */
	uint32_t retval, duration;	/* duration: average time of a run in nanoseconds */
	uint32_t redirect_ifindex;
};

/* Returns 0 or -errno. -ENOSPC: an output buffer is too small. In this case the buffer contains the
 * beginning of the result. */
int pb_bpf_test_run(struct pb_bpf_test_run *t);
#endif
