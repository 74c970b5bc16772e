/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests CO-RE. Each program returns one value that depends on the types of target.bpf.c.
 * test_load.c has the expected values.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct moved {
	int a;
	int b;
	unsigned short grown;
	struct { int deep; } in;
	int list[4];
	unsigned bits : 3, more : 5;
	int sign : 4;
};
struct moved___absent {
	int missing;
};
struct gone {
	int x;
};
struct two {
	int x;
};
struct third {
	int first, second;
};
struct pt_regs {
	long di;
};
struct same_shape {
	int x;
	struct moved *p;
};
struct other_shape {
	long x;
};
#pragma clang attribute pop

enum colour { RED = 1, GREEN = 2, NEVER = 3 };
enum colour___flavour { BLUE___x = 1 };
typedef int (*handler)(int, struct moved *);

#define PROG(name, expr) SEC("socket") \
	long name(struct __sk_buff *skb) { struct moved *m = (void *)skb; return expr; }
PROG(off_b, __builtin_preserve_field_info(m->b, BPF_FIELD_BYTE_OFFSET))
PROG(off_deep, __builtin_preserve_field_info(m->in.deep, BPF_FIELD_BYTE_OFFSET))
PROG(off_list, __builtin_preserve_field_info(m->list[2], BPF_FIELD_BYTE_OFFSET))
PROG(size_grown, bpf_core_field_size(m->grown))
PROG(size_list, bpf_core_field_size(m->list))
PROG(exists_a, bpf_core_field_exists(m->a))
PROG(exists_missing, bpf_core_field_exists(((struct moved___absent *)m)->missing))
PROG(signed_sign, __builtin_preserve_field_info(m->sign, BPF_FIELD_SIGNED))
PROG(signed_bits, __builtin_preserve_field_info(m->bits, BPF_FIELD_SIGNED))
PROG(lshift_more, __builtin_preserve_field_info(m->more, BPF_FIELD_LSHIFT_U64))
PROG(rshift_more, __builtin_preserve_field_info(m->more, BPF_FIELD_RSHIFT_U64))
PROG(off_more, __builtin_preserve_field_info(m->more, BPF_FIELD_BYTE_OFFSET))
PROG(type_exists, bpf_core_type_exists(struct moved))
PROG(type_gone, bpf_core_type_exists(struct gone))
PROG(type_size, bpf_core_type_size(struct moved))
PROG(type_size_gone, bpf_core_type_size(struct gone))
/* clang may not support type_matches. So the test matches() in test_load.c changes every
 * type_exists relocation of this file to type_matches. The next two programs are for this test. */
PROG(matches, bpf_core_type_exists(struct same_shape))
PROG(matches_not, bpf_core_type_exists(struct other_shape))
PROG(exists_function, bpf_core_type_exists(handler))
PROG(enum_green, bpf_core_enum_value(enum colour, GREEN))
PROG(enum_exists, bpf_core_enum_value_exists(enum colour, RED))
PROG(enum_never, bpf_core_enum_value_exists(enum colour, NEVER))
PROG(enum_flavour, bpf_core_enum_value(enum colour___flavour, BLUE___x))
PROG(id_target, bpf_core_type_id_kernel(struct moved))
PROG(id_local, bpf_core_type_id_local(struct moved) > 0)
PROG(missing, ((struct moved___absent *)m)->missing)
PROG(enum_poison, bpf_core_enum_value(enum colour, NEVER))
PROG(ambiguous, ((struct two *)m)->x)
PROG(regs, ((struct pt_regs *)m)->di)
/* refused, which must not change what the next program finds */
PROG(ambiguous_second, ((struct third *)m)->second)
PROG(exists_first, bpf_core_field_exists(((struct third *)m)->first))

/* the relocation makes this load wider */
SEC("socket") int load_grown(struct __sk_buff *skb)
{
	return ((struct moved *)(void *)skb)->grown;
}

char LICENSE[] SEC("license") = "GPL";
