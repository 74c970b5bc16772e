/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of helpers, made from helper_table.h, and the lookup of the helper that a program
 * calls. */
#include <stddef.h>
#include "bpf/helper/helper.h"
#include "bpf/helper/helper_fns.h"
#include "bpf/helper/helper_table.h"

/* names of sets in helper_table.h */
enum {
#define SET(name) name = PB_BPF_SET_##name
	SET(BASE), SET(CAP_BPF), SET(PERFMON), SET(NET_PERFMON), SET(TRACING), SET(KPROBE),
	SET(KPROBE_MULTI), SET(TRACEPOINT), SET(RAW_TRACEPOINT), SET(PERF_EVENT), SET(NET),
	SET(SOCKET_FILTER), SET(XDP), SET(SCHED_CLS), SET(CGROUP_SKB), SET(FENTRY),
#undef SET
};

enum {
	GPL = PB_BPF_HELPER_GPL, PKT = PB_BPF_HELPER_PKT, MOVES_PKT = PB_BPF_HELPER_MOVES_PKT,
	SLEEPS = PB_BPF_HELPER_SLEEPS,
};

/* names of return types */
enum {
#define RET(name) name = PB_BPF_RET_##name
	RET(INTEGER), RET(VOID), RET(MAP_VALUE), RET(SOCKET), RET(TCP_SOCK), RET(SOCK_COMMON),
		RET(MEM),
	RET(ALLOC_MEM), RET(BTF_ID), RET(MEM_OR_BTF_ID),
#undef RET
};

/* names of arguments and their flags */
enum {
	NONE = PB_BPF_ARG_DONTCARE,
#define ARG(name) name = PB_BPF_ARG_##name
	ARG(CONST_MAP_PTR), ARG(PTR_TO_MAP_KEY), ARG(PTR_TO_MAP_VALUE), ARG(PTR_TO_MEM),
		ARG(CONST_SIZE),
	ARG(CONST_SIZE_OR_ZERO), ARG(PTR_TO_CTX), ARG(ANYTHING), ARG(PTR_TO_SPIN_LOCK),
	ARG(PTR_TO_SOCK_COMMON), ARG(PTR_TO_BTF_ID), ARG(PTR_TO_ALLOC_MEM),
	ARG(CONST_ALLOC_SIZE_OR_ZERO), ARG(PTR_TO_BTF_ID_SOCK_COMMON), ARG(PTR_TO_PERCPU_BTF_ID),
	ARG(PTR_TO_FUNC), ARG(PTR_TO_STACK), ARG(PTR_TO_CONST_STR), ARG(PTR_TO_TIMER),
	ARG(PTR_TO_KPTR), ARG(PTR_TO_DYNPTR),
#undef ARG
	OR_NULL = PB_BPF_MAYBE_NULL, UNINIT = PB_BPF_UNINIT, RDONLY = PB_BPF_RDONLY,
	RELEASE = PB_BPF_RELEASE, FIXED = PB_BPF_FIXED_SIZE, LOCAL = PB_BPF_DYNPTR_LOCAL,
	RINGBUF = PB_BPF_DYNPTR_RINGBUF, WRITE = PB_BPF_MEM_WRITE, ALIGNED = PB_BPF_MEM_ALIGNED,
};

#define A(...)	{ __VA_ARGS__ }
#define DO(helper)	pb_bpf_do_##helper
#define NO(helper)	NULL
#define ROW(helper, fn_, sets_, flags_, ret_, arg_, ...) \
	{ .name = "bpf_" #helper, .fn = fn_(helper), .sets = (sets_), .flags = (flags_), \
	  .ret = (ret_), .arg = arg_, __VA_ARGS__ },

static const struct pb_bpf_helper helpers[] = {
	{ .name = "bpf_unspec" },
#define X(helper, ...) [BPF_FUNC_##helper] = ROW(helper, __VA_ARGS__)
	PB_BPF_HELPERS(X)
#undef X
};

static const struct variant { uint32_t id; struct pb_bpf_helper h; } variants[] = {
#define X(helper, ...) { BPF_FUNC_##helper, ROW(helper, __VA_ARGS__) },
	PB_BPF_HELPER_VARIANTS(X)
#undef X
};

const struct pb_bpf_helper *pb_bpf_helper_of(uint32_t id)
{
	static const struct pb_bpf_helper none;

	return id < sizeof(helpers) / sizeof(helpers[0]) ? &helpers[id] : &none;
}

static uint32_t allowed_sets(const struct pb_bpf_type *type, uint32_t attach_type, uint32_t caps)
{
	uint32_t sets = type->helpers | BASE;

	if (caps & PB_BPF_CAP_BPF)
		sets |= caps & PB_BPF_CAP_PERFMON ? CAP_BPF | PERFMON : CAP_BPF;
	if (caps & PB_BPF_CAP_PERFMON && type->helpers & NET)
		sets |= NET_PERFMON;
	if (type->helpers & KPROBE && attach_type == BPF_TRACE_KPROBE_MULTI)
		sets |= KPROBE_MULTI;
	return sets;
}

const struct pb_bpf_helper *pb_bpf_helper_for(const struct pb_bpf_type *type, uint32_t attach_type,
					      uint32_t caps, uint32_t id)
{
	uint32_t sets = allowed_sets(type, attach_type, caps);

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
		if (variants[i].id == id && variants[i].h.sets & sets)
			return &variants[i].h;
	return pb_bpf_helper_of(id)->sets & sets ? pb_bpf_helper_of(id) : NULL;
}
