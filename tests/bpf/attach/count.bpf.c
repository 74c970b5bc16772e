/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counts calls, sums up arguments and results, and replaces a call and results by
 * bpf_override_return(). run_attach has the expected values. */
#include <linux/bpf.h>
#include <asm/errno.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} cpu_slots SEC(".maps");

enum { ADD, ADD_SUM, NINE, NINE_SUM, FORBIDDEN, FIRST, SECOND, FIRST_RET, SECOND_RET, DEEP,
       DEEP_RET, HALF_RET, HANDLER, IP, STATUS, TASK };

static void more(int what, long by)
{
	long zero = 0, *v = bpf_map_lookup_elem(&counts, &what);

	if (!v) {
		bpf_map_update_elem(&counts, &what, &zero, BPF_NOEXIST);
		v = bpf_map_lookup_elem(&counts, &what);
	}
	if (v)
		__sync_fetch_and_add(v, by);
}

SEC("uprobe/target:add") int on_add(struct pt_regs *ctx)
{
	int zero = 0;
	long *cpu_slot = bpf_map_lookup_elem(&cpu_slots, &zero);

	more(ADD, 1);
	if (cpu_slot)
		(*cpu_slot)++;	/* while this program runs, no other run uses this per-CPU slot */
	return 1;
}

SEC("uretprobe/target:add") int on_add_ret(struct pt_regs *ctx)
{
	more(ADD_SUM, (int)PT_REGS_RC(ctx));
	return 0;
}

SEC("kprobe/nine") int on_nine(struct pt_regs *ctx)
{
	long g, h, i, sp = PT_REGS_SP(ctx);

	bpf_probe_read_user(&g, sizeof(g), (void *)(sp + 8));
	bpf_probe_read_user(&h, sizeof(h), (void *)(sp + 16));
	bpf_probe_read_user(&i, sizeof(i), (void *)(sp + 24));
	more(NINE, PT_REGS_PARM1(ctx) * 100000000 + PT_REGS_PARM2(ctx) * 10000000 +
	     PT_REGS_PARM3(ctx) * 1000000 + ctx->rcx * 100000 + PT_REGS_PARM5(ctx) * 10000 +
	     ctx->r9 * 1000 + g * 100 + h * 10 + i);
	more(IP, bpf_get_func_ip(ctx) == PT_REGS_IP(ctx));
	return 0;
}

SEC("kretprobe/nine") int on_nine_ret(struct pt_regs *ctx)
{
	more(NINE_SUM, PT_REGS_RC(ctx));
	return 0;
}

SEC("kretprobe/half") int on_half_ret(struct pt_regs *ctx)
{
	more(HALF_RET, 1);
	return 0;
}

SEC("kprobe/forbidden") int on_forbidden(struct pt_regs *ctx)
{
	more(FORBIDDEN, 1);
	if (PT_REGS_PARM1(ctx) == 3)
		bpf_override_return(ctx, 33);
	return 1;
}

SEC("kprobe/first") int on_first(struct pt_regs *ctx) { more(FIRST, 1); return 1; }
SEC("kprobe/second")
int on_second(struct pt_regs *ctx) { more(SECOND, PT_REGS_PARM1(ctx)); return 1; }
SEC("kretprobe/first")
int on_first_ret(struct pt_regs *ctx) { more(FIRST_RET, PT_REGS_RC(ctx)); return 1; }
SEC("kretprobe/second")
int on_second_ret(struct pt_regs *ctx) { more(SECOND_RET, PT_REGS_RC(ctx)); return 1; }
SEC("kprobe/deep") int on_deep(struct pt_regs *ctx) { more(DEEP, 1); return 1; }
SEC("kretprobe/deep") int on_deep_ret(struct pt_regs *ctx) { more(DEEP_RET, 1); return 1; }
SEC("kretprobe.multi/on_sig*") int on_handler(struct pt_regs *ctx) { more(HANDLER, 1); return 1; }

/* the task's structure can't be read */
SEC("kprobe/work") int on_work(struct pt_regs *ctx)
{
	char *task = (char *)bpf_get_current_task();
	long field = 1, error = bpf_probe_read_kernel(&field, sizeof(field), task + 16);

	if (task && !field && error == -EFAULT && bpf_probe_read_user(&field, 1, task) == -EFAULT)
		more(TASK, 1);
	return 1;
}

SEC("kretprobe/status") int on_status(struct pt_regs *ctx)
{
	more(STATUS, PT_REGS_RC(ctx));
	return bpf_override_return(ctx, 5);
}
/* a later program at the same return sees the new result */
SEC("kretprobe/status")
int on_status_again(struct pt_regs *ctx) { more(STATUS, 10 * PT_REGS_RC(ctx)); return 1; }
SEC("kretprobe/popped")
int on_popped(struct pt_regs *ctx) { return bpf_override_return(ctx, 20 * PT_REGS_RC(ctx)); }

char LICENSE[] SEC("license") = "GPL";
