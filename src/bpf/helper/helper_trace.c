/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for traced functions: registers, stacks and events. */
#include <asm/ptrace.h>
#include <linux/bpf_perf_event.h>
#include "bpf/helper/helper_priv.h"
#include "bpf/map/map_stack.h"

PB_BPF_HELPER(get_attach_cookie)
{
	return run->cookie;
}

PB_BPF_HELPER(get_func_ip)
{
	return run->host->func_ip ? run->host->func_ip(run) : 0;
}

/* r2 number of the argument, r3 result */
PB_BPF_HELPER(get_func_arg)
{
	int err = -EINVAL;

	*(uint64_t *)PB_BPF_PTR(r3) = 0;
	if (run->host->func_arg && (uint32_t)r2 == r2)
		err = run->host->func_arg(run, (uint32_t)r2, PB_BPF_PTR(r3));
	return (uint64_t)(int64_t)err;
}

PB_BPF_HELPER(get_func_ret)
{
	int err = -EOPNOTSUPP;

	*(uint64_t *)PB_BPF_PTR(r2) = 0;
	if (run->host->func_ret)
		err = run->host->func_ret(run, PB_BPF_PTR(r2));
	return (uint64_t)(int64_t)err;
}

PB_BPF_HELPER(get_func_arg_cnt)
{
	return run->host->func_arg_cnt ? run->host->func_arg_cnt(run) : 0;
}

/* r1 the registers at the function's entry or return, r2 the value that the function shall
 * return */
PB_BPF_HELPER(override_return)
{
	struct pt_regs *regs = PB_BPF_PTR(r1);

	if (run->host->override) {
		run->host->override(run, r2);
		return 0;
	}
	regs->rax = r2;
	if (!run->host->read(run, &regs->rip, regs->rsp, 8))
		regs->rsp += 8;
	return 0;
}

/* Returns the registers of the program's context, or NULL. */
static const struct pt_regs *regs_of(struct pb_bpf_run *run)
{
	switch (run->prog->type->type) {
	case BPF_PROG_TYPE_KPROBE:
		return run->ctx;
	case BPF_PROG_TYPE_PERF_EVENT:
		return (const void *)&((struct bpf_perf_event_data *)run->ctx)->regs;
	case BPF_PROG_TYPE_TRACEPOINT:
		/* the address of the registers is in the record's first 8 bytes, which programs
		 * can't read */
		return *(const struct pt_regs **)run->ctx;
	}
	return run->host->regs ? run->host->regs(run) : NULL;
}

/* Follows frame pointers. Each frame has the caller's frame pointer and the return address. */
static int follow_frames(struct pb_bpf_run *run, const struct pt_regs *regs, uint64_t *ips,
			 uint32_t n)
{
	uint64_t fp, next[2];
	uint32_t nr = 0;

	if (!regs || !n)
		return regs ? 0 : -EFAULT;
	ips[nr++] = regs->rip;
	for (fp = regs->rbp; nr < n && !(fp & 7); fp = next[0]) {
		if (run->host->read(run, next, fp, sizeof(next)) || !next[1])
			break;
		ips[nr++] = next[1];
		if (next[0] <= fp)
			break;
	}
	return (int)nr;
}

static int walk(struct pb_bpf_run *run, uint64_t *ips, uint32_t n)
{
	const struct pt_regs *regs = regs_of(run);

	return run->host->stack ? run->host->stack(run, regs, ips, n) :
	       follow_frames(run, regs, ips, n);
}

static uint32_t depth(uint64_t wanted, uint32_t skip)
{
	return wanted + skip < PB_BPF_MAX_STACK ? (uint32_t)wanted + skip : PB_BPF_MAX_STACK;
}

/* r2 buffer, r3 its size, r4 flags. BPF_F_USER_STACK has no effect, because there is only one
 * stack. */
PB_BPF_HELPER(get_stack)
{
	uint32_t size = (uint32_t)r3, skip = r4 & BPF_F_SKIP_FIELD_MASK, each = 8;
	uint64_t ips[PB_BPF_MAX_STACK];
	int nr = -EINVAL;

	/* Build ids aren't supported: to find them, the helper would have to read the traced
	 * program's files. A tool can find the build ids from the addresses. */
	if (!(r4 & ~(uint64_t)(BPF_F_SKIP_FIELD_MASK | BPF_F_USER_STACK)) && !(size % each))
		nr = walk(run, ips, depth(size / each, skip));
	if (nr >= 0 && (uint32_t)nr < skip)
		nr = -EFAULT;
	if (nr < 0) {
		memset(PB_BPF_PTR(r2), 0, size);
		return (uint64_t)(int64_t)nr;
	}
	nr -= (int)skip;
	if ((uint32_t)nr > size / each)
		nr = (int)(size / each);
	memcpy(PB_BPF_PTR(r2), ips + skip, (size_t)nr * each);
	memset((char *)PB_BPF_PTR(r2) + (size_t)nr * each, 0, size - (size_t)nr * each);
	return (uint64_t)nr * each;
}

/* r2 a stack_trace map, r3 flags */
PB_BPF_HELPER(get_stackid)
{
	struct pb_bpf_map *map = PB_BPF_PTR(r2);
	uint32_t skip = r3 & BPF_F_SKIP_FIELD_MASK;
	uint64_t ips[PB_BPF_MAX_STACK];
	int nr;

	if (r3 & ~(uint64_t)(BPF_F_SKIP_FIELD_MASK | BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP |
			     BPF_F_REUSE_STACKID))
		return PB_BPF_ERR(EINVAL);
	nr = walk(run, ips, depth(map->attr.value_size / 8, skip));
	if (nr < 0 || (uint32_t)nr <= skip)
		return PB_BPF_ERR(EFAULT);
	return (uint64_t)pb_bpf_stack_put(map, ips + skip, (uint32_t)nr - skip,
					  r3 & ~(uint64_t)BPF_F_SKIP_FIELD_MASK, run);
}

/* r1 buffer, r2 its size, r3 flags. Only the kernel can read the processor's branch records. So
 * this helper and read_branch_records find no records. */
PB_BPF_HELPER(get_branch_snapshot)
{
	memset(PB_BPF_PTR(r1), 0, (uint32_t)r2);
	return r3 ? PB_BPF_ERR(EINVAL) : PB_BPF_ERR(ENOENT);
}

/* r2 buffer or NULL, r3 its size, r4 flags */
PB_BPF_HELPER(read_branch_records)
{
	return r4 & ~(uint64_t)BPF_F_GET_BRANCH_RECORDS_SIZE ? PB_BPF_ERR(EINVAL) :
	       PB_BPF_ERR(ENOENT);
}

/* ---- events ------------------------------------------------------------------------ */

/* Finds the event that `flags` select in a perf_event_array, and the event's index. */
static int find_event(struct pb_bpf_run *run, struct pb_bpf_map *map, uint64_t flags,
		      uint32_t *index, void **object)
{
	uint64_t i = flags & BPF_F_INDEX_MASK;

	if (i == BPF_F_CURRENT_CPU)
		i = run->host->cpu(run);
	if (i >= map->attr.max_entries)
		return -E2BIG;
	*index = (uint32_t)i;
	*object = map->ops->lookup(map, index, run);
	return *object ? 0 : -ENOENT;
}

static bool has_packet(uint32_t type)
{
	return type == BPF_PROG_TYPE_XDP || type == BPF_PROG_TYPE_SOCKET_FILTER ||
	       type == BPF_PROG_TYPE_SCHED_CLS || type == BPF_PROG_TYPE_SCHED_ACT ||
	       type == BPF_PROG_TYPE_CGROUP_SKB;
}

/* r2 map, r3 flags, r4 data, r5 its size. If the context is a packet, r3 also has the number of the
 * packet's bytes to append. */
PB_BPF_HELPER(perf_event_output)
{
	uint32_t type = run->prog->type->type, index;
	struct pb_bpf_map *map = PB_BPF_PTR(r2);
	uint64_t more = has_packet(type) ? (r3 & BPF_F_CTXLEN_MASK) >> 32 : 0;
	uint64_t known = BPF_F_INDEX_MASK | (has_packet(type) ? BPF_F_CTXLEN_MASK : 0);
	const struct pb_bpf_pkt *pkt = has_packet(type) ? pb_bpf_pkt_of(type, PB_BPF_PTR(r1)) :
				       NULL;
	void *object;
	int err;

	if (r3 & ~known)
		return PB_BPF_ERR(EINVAL);
	if (pkt && more > (uint64_t)(pkt->data_end - pkt->data))
		return PB_BPF_ERR(EFAULT);
	err = find_event(run, map, r3, &index, &object);
	if (!err)
		err = !run->host->event_output ? -EOPNOTSUPP :
		      run->host->event_output(run, map, index, object, PB_BPF_PTR(r4), r5,
					      pkt ? pkt->data : NULL, more);
	return (uint64_t)(int64_t)err;
}

static int read_event(struct pb_bpf_run *run, uint64_t map, uint64_t flags,
		      struct bpf_perf_event_value *v)
{
	uint32_t index;
	void *object;
	int err;

	if (flags & ~(uint64_t)BPF_F_INDEX_MASK)
		return -EINVAL;
	err = find_event(run, PB_BPF_PTR(map), flags, &index, &object);
	if (err)
		return err;
	return run->host->event_read ? run->host->event_read(run, object, v) : -EOPNOTSUPP;
}

/* r1 map, r2 flags; returns the count, or -errno */
PB_BPF_HELPER(perf_event_read)
{
	struct bpf_perf_event_value v = { 0 };
	int err = read_event(run, r1, r2, &v);

	return err ? (uint64_t)(int64_t)err : v.counter;
}

/* r1 map, r2 flags, r3 struct bpf_perf_event_value, r4 its size */
PB_BPF_HELPER(perf_event_read_value)
{
	struct bpf_perf_event_value v;
	int err = (uint32_t)r4 == sizeof(v) ? read_event(run, r1, r2, &v) : -EINVAL;

	if (err)
		memset(PB_BPF_PTR(r3), 0, (uint32_t)r4);
	else
		memcpy(PB_BPF_PTR(r3), &v, sizeof(v));
	return (uint64_t)(int64_t)err;
}

/* r2 struct bpf_perf_event_value, r3 its size */
PB_BPF_HELPER(perf_prog_read_value)
{
	struct bpf_perf_event_value v;
	int err = -EINVAL;

	if ((uint32_t)r3 == sizeof(v) && run->host->event_own)
		err = run->host->event_own(run, &v);
	if (err)
		memset(PB_BPF_PTR(r2), 0, (uint32_t)r3);
	else
		memcpy(PB_BPF_PTR(r2), &v, sizeof(v));
	return (uint64_t)(int64_t)err;
}
