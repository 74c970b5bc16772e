// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tests how helpers call the functions of a host (struct pb_bpf_host), and how helpers use the
 * results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <asm/ptrace.h>
#include "bpf/core/format.h"
#include "bpf/helper/dynptr.h"
#include "bpf/helper/helper_fns.h"
#include "bpf/helper/helper_priv.h"
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/test_run.h"

/* ---- a host that remembers its calls ------------------------------------------------- */

static struct {
	char trace[256];
	uint32_t sig, cpu;
	bool thread, overridden;
	uint64_t value;
	char event[64];
	uint32_t event_len, event_index;
	void *object;
} seen;

static void host_trace(struct pb_bpf_run *run, const char *text, uint32_t len)
{
	snprintf(seen.trace, sizeof(seen.trace), "%.*s", (int)len, text);
}

static int host_signal(struct pb_bpf_run *run, uint32_t sig, bool thread)
{
	seen.sig = sig;
	seen.thread = thread;
	return 0;
}

static uint32_t host_cpu(struct pb_bpf_run *run)
{
	return seen.cpu;
}

/* The ids of the control groups are 1 (the root), 5 and 9. */
static uint64_t host_cgroup(struct pb_bpf_run *run, uint32_t level)
{
	static const uint64_t ids[] = { 1, 5, 9 };

	return level == ~0u ? 9 : level < 3 ? ids[level] : 0;
}

static uint32_t host_symbol(struct pb_bpf_run *run, char *to, uint32_t n, uint64_t addr,
			    bool offset)
{
	return addr < 0x1000 ? 0 :
	       (uint32_t)snprintf(to, n, offset ? "name+%#lx/0x100" : "name", addr & 0xff);
}

static int host_event(struct pb_bpf_run *run, struct pb_bpf_map *map, uint32_t index, void *object,
		      const void *data, uint64_t size, const void *more, uint64_t more_size)
{
	memcpy(seen.event, data, size);
	if (more_size)
		memcpy(seen.event + size, more, more_size);
	seen.event_len = (uint32_t)(size + more_size);
	seen.event_index = index;
	seen.object = object;
	return 0;
}

static int host_event_read(struct pb_bpf_run *run, void *object, struct bpf_perf_event_value *v)
{
	*v = (struct bpf_perf_event_value){ 11, 22, 33 };
	return 0;
}

static uint64_t host_func_ip(struct pb_bpf_run *run)
{
	return 0x1234;
}

static int host_func_arg(struct pb_bpf_run *run, uint32_t n, uint64_t *value)
{
	*value = 100 + n;
	return n < 2 ? 0 : -EINVAL;
}

static uint32_t host_arg_cnt(struct pb_bpf_run *run)
{
	return 2;
}

static void host_override(struct pb_bpf_run *run, uint64_t value)
{
	seen.overridden = true;
	seen.value = value;
}

static struct pb_bpf_host host;
static struct pb_bpf_prog prog;
static struct pb_bpf_run run;

static int setup(void **state)
{
	memset(&seen, 0, sizeof(seen));
	host = *pb_bpf_host_linux();
	prog = (struct pb_bpf_prog){ .type = pb_bpf_type_of(BPF_PROG_TYPE_KPROBE) };
	run = (struct pb_bpf_run){ .prog = &prog, .host = &host };
	return 0;
}

/* Calls a helper with up to five arguments, as the engines do. */
#define DO(name, ...)	((int64_t)do5(pb_bpf_do_##name, (uint64_t[5]){ __VA_ARGS__ }))
static uint64_t do5(pb_bpf_fn *fn, const uint64_t r[5])
{
	return fn(r[0], r[1], r[2], r[3], r[4], &run);
}
#define P(p)	((uint64_t)(p))

/* ---- memory ------------------------------------------------------------------------ */

static void memory_that_is_not_there(void **state)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		buf[32];

	mprotect(p + 4096, 4096, PROT_NONE);
	strcpy(p + 4090, "abcd");
	memset(buf, 7, sizeof(buf));
	assert_int_equal(DO(probe_read_user, P(buf), 6, P(p + 4090)), 0);
	assert_string_equal(buf, "abcd");
	assert_int_equal(DO(probe_read_user, P(buf), 7, P(p + 4090)), -EFAULT);
	assert_memory_equal(buf, "\0\0\0\0\0\0\0\7", 8);
	/* the text's terminating NUL is inside the page */
	assert_int_equal(DO(probe_read_user_str, P(buf), 32, P(p + 4090)), 5);
	assert_string_equal(buf, "abcd");
	memset(p + 4090, 'x', 6);
	assert_int_equal(DO(probe_read_user_str, P(buf), 32, P(p + 4090)), -EFAULT);
	assert_int_equal(buf[0], 0);
	assert_int_equal(DO(probe_read_user_str, P(buf), 4, P(p + 4090)), 4);
	assert_string_equal(buf, "xxx");
	assert_int_equal(DO(probe_read_str, P(buf), 0, 1), 0);
	assert_int_equal(DO(probe_write_user, P(p), P("new"), 4), 0);
	assert_string_equal(p, "new");
	assert_int_equal(DO(probe_write_user, P(p + 4094), P("new"), 4), -EFAULT);
	host.write = NULL;
	assert_int_equal(DO(probe_write_user, P(p), P("new"), 4), -EPERM);
	munmap(p, 8192);
}

static void who_runs(void **state)
{
	struct bpf_pidns_info info;
	char comm[20];
	int64_t task;

	assert_int_equal(DO(get_current_pid_tgid),
			 (uint64_t)getpid() << 32 | (uint32_t)syscall(SYS_gettid));
	assert_int_equal(DO(get_current_uid_gid), (uint64_t)getgid() << 32 | getuid());
	memset(comm, 'x', sizeof(comm));
	assert_int_equal(DO(get_current_comm, P(comm), 20), 0);
	assert_memory_equal(comm, "test_bpf_helper", 15);
	assert_memory_equal(comm + 15, "\0\0\0\0", 5);
	assert_int_equal(DO(get_current_comm, P(comm), 5), 0);
	assert_string_equal(comm, "test");
	task = DO(get_current_task);
	assert_int_equal(DO(probe_read_kernel, P(comm), 8, (uint64_t)task + 16), -EFAULT);
	assert_memory_equal(comm, "\0\0\0\0\0\0\0\0", 8);
	run.thread = (uint32_t)syscall(SYS_gettid);
	assert_int_equal(DO(get_current_task), task);
	run.thread++;
	assert_int_not_equal(DO(get_current_task), task);
	assert_int_equal(DO(get_ns_current_pid_tgid, 1, 1, P(&info), sizeof(info)), -EINVAL);
	assert_int_equal(info.pid, 0);
	assert_int_equal(DO(send_signal, 65), -EINVAL);
	host.signal = host_signal;
	assert_int_equal(DO(send_signal_thread, 10), 0);
	assert_true(seen.sig == 10 && seen.thread);
	host.signal = NULL;
	assert_int_equal(DO(send_signal, 10), -EPERM);
	assert_int_equal(DO(get_current_cgroup_id), 0);
	host.cgroup = host_cgroup;
	assert_int_equal(DO(get_current_cgroup_id), 9);
	assert_int_equal(DO(get_current_ancestor_cgroup_id, 1), 5);
	assert_int_equal(DO(get_current_ancestor_cgroup_id, 7), 0);
	assert_int_equal(DO(get_current_ancestor_cgroup_id, 0xffffffffull), 0);
}

static void clocks(void **state)
{
	struct timespec ts;
	int64_t a, b, coarse, jiffies;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	a = DO(ktime_get_ns);
	b = DO(ktime_get_ns);
	assert_true(a >= ts.tv_sec * 1000000000 + ts.tv_nsec && b >= a);
	assert_true(DO(ktime_get_boot_ns) >= a - 1000000000);
	coarse = DO(ktime_get_coarse_ns);
	b = DO(ktime_get_ns);
	assert_true(coarse <= b);
	assert_true(DO(ktime_get_tai_ns) > 1000000000000000000);
	jiffies = DO(jiffies64);
	b = DO(ktime_get_ns);
	assert_in_range(jiffies, a / 4000000, b / 4000000);
}

/* ---- texts ------------------------------------------------------------------------ */

static void traces(void **state)
{
	uint64_t args[2] = { P("text"), 0x401020 };

	host.trace = host_trace;
	assert_int_equal(DO(trace_printk, P("%d %s %x"), 9, 5, P("abc"), 255), 8);
	assert_string_equal(seen.trace, "5 abc ff");
	host.symbol = host_symbol;
	assert_int_equal(DO(trace_vprintk, P("%s %ps %pS."), 12, P(args), 8), -EINVAL);
	assert_int_equal(DO(trace_vprintk, P("%s %pS."), 8, P(args), 16), 21);
	assert_string_equal(seen.trace, "text name+0x20/0x100.");
	args[0] = 0x18;
	assert_int_equal(DO(trace_vprintk, P("%ps %pB"), 8, P(args), 16), 20);
	assert_string_equal(seen.trace, "0x18 name+0x1f/0x100");
	/* a pointer without a width has 16 columns; zeroes fill them only at the left */
	assert_int_equal(DO(trace_printk, P("<%px>"), 6, 0x1a2b, 0, 0), 18);
	assert_string_equal(seen.trace, "<0000000000001a2b>");
	assert_int_equal(DO(trace_printk, P("<%-px>"), 7, 0x1a2b, 0, 0), 18);
	assert_string_equal(seen.trace, "<1a2b            >");
	assert_int_equal(DO(trace_printk, P("<%-p>"), 6, 0x1a2b, 0, 0), 18);
	assert_string_equal(seen.trace, "<1a2b            >");
	/* an unmapped address */
	assert_int_equal(DO(trace_printk, P("<%s>"), 5, 8, 0, 0), 2);
	assert_string_equal(seen.trace, "<>");
}

static char format[16];
static const char *changed;

/* Reads a string while another thread changes the format. */
static int64_t host_read_str(struct pb_bpf_run *r, char *to, uint64_t from, uint32_t n)
{
	strcpy(format, changed);
	return pb_bpf_host_linux()->read_str(r, to, from, n);
}

static void formats_that_change(void **state)
{
	static const struct {
		const char *before, *after;
		int64_t len;
	} cases[] = {
		{ "%s %d", "%s %z", -EINVAL },
		{ "%s %%d", "%s %d%d", -EINVAL },
		{ "%s", "%s %d %d %d", 1 }, { "%s %d", "%s", -EINVAL },
		{ "%d %s", "%z %z", 3 },
	};
	uint64_t args[3] = { 5, 5, ~0ull };

	host.trace = host_trace;
	host.read_str = host_read_str;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		changed = cases[i].after;
		strcpy(format, cases[i].before);
		args[0] = format[1] == 's' ? P("t") : 5;
		args[1] = format[1] == 's' ? 5 : P("t");
		assert_int_equal(DO(trace_vprintk, P(format), sizeof(format), P(args), 16),
				 cases[i].len);
	}
}

static void output_over_its_input(void **state)
{
	struct pb_bpf_dynptr d;
	char buf[32] = "abc";
	uint64_t args[2] = { 7, P(buf) };

	assert_int_equal(DO(snprintf, P(buf), 16, P("%d%s"), P(args), 16), 5);
	assert_string_equal(buf, "7abc");
	args[0] = 0x3131313131313131;
	args[1] = 0x3232323232323232;
	assert_int_equal(DO(snprintf, P(args), 16, P("ab%lx%lx"), P(args), 16), 35);
	assert_memory_equal(args, "ab3131313131313", 16);
	memcpy(buf, "ABCDEFGHIJKLMNOPQRSTUVWX", 24);
	assert_int_equal(DO(dynptr_from_mem, P(buf), 24, 0, P(&d)), 0);
	assert_int_equal(DO(dynptr_read, P(buf + 1), 20, P(&d), 0), 0);
	assert_memory_equal(buf, "AABCDEFGHIJKLMNOPQRSTVWX", 24);
}

/* The verifier accepts a pointer that may be NULL together with a size that isn't 0. */
static void no_memory(void **state)
{
	uint32_t words[4] = { 1, 2, 3, 4 };

	assert_int_equal(DO(snprintf, 0, 16, P("text"), 0, 0), -EINVAL);
	assert_int_equal(DO(snprintf, 0, 0, P("text"), 0, 0), 5);
	assert_int_equal(DO(snprintf, P(words), 16, P("text"), 0, 8), -EINVAL);
	assert_int_equal(DO(trace_vprintk, P("text"), 5, 0, 8), -EINVAL);
	assert_int_equal(DO(csum_diff, 0, 16, 0, 0, 0), -EINVAL);
	assert_int_equal(DO(csum_diff, P(words), 16, 0, 16, 0), -EINVAL);
	assert_int_equal(DO(csum_diff, 0, 0, P(words), 16, 0), 10);
	assert_int_equal(DO(read_branch_records, 0, 0, 16, 0), -ENOENT);
	assert_int_equal(DO(redirect_neigh, 1, 0, 4, 0), 2);
}

/* ---- functions that are traced ------------------------------------------------------ */

static void functions(void **state)
{
	struct pt_regs regs = { .rip = 1 };
	uint64_t v = 9, stack[2] = { 0x777, 0 };

	run.cookie = 42;
	assert_int_equal(DO(get_attach_cookie, P(&regs)), 42);
	assert_int_equal(DO(get_func_ip, P(&regs)), 0);
	assert_int_equal(DO(get_func_arg, P(&regs), 0, P(&v)), -EINVAL);
	assert_int_equal(v, 0);
	assert_int_equal(DO(get_func_ret, P(&regs), P(&v)), -EOPNOTSUPP);
	host.func_ip = host_func_ip;
	host.func_arg = host_func_arg;
	host.func_arg_cnt = host_arg_cnt;
	assert_int_equal(DO(get_func_ip, P(&regs)), 0x1234);
	assert_int_equal(DO(get_func_arg, P(&regs), 1, P(&v)), 0);
	assert_int_equal(v, 101);
	assert_int_equal(DO(get_func_arg, P(&regs), 2, P(&v)), -EINVAL);
	assert_int_equal(DO(get_func_arg_cnt, P(&regs)), 2);
	/* As at a function's entry, rsp points to the return address. So override_return can take
	 * the return address off the stack and put it into rip. */
	regs.rsp = P(stack);
	assert_int_equal(DO(override_return, P(&regs), 5), 0);
	assert_true(regs.rax == 5 && regs.rip == 0x777 && regs.rsp == P(&stack[1]));
	host.override = host_override;
	DO(override_return, P(&regs), 6);
	assert_true(seen.overridden && seen.value == 6 && regs.rax == 5);
}

/* There are three frames: 0x10 is the innermost, its caller is 0x20, and the next caller is
 * 0x30. */
static void stacks(void **state)
{
	uint64_t frames[] = { 0, 0x20, 0, 0x30, 0, 0 }, ips[8];
	struct pt_regs regs = { .rip = 0x10, .rbp = P(frames) };
	struct pb_bpf_map_spec spec = {
		.attr = { BPF_MAP_TYPE_STACK_TRACE, 4, 24, 16, 0 },
		.types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1,
	};
	struct pb_bpf_map map;
	int64_t id;

	frames[0] = P(frames + 2);
	frames[2] = P(frames + 4);
	run.ctx = &regs;
	memset(ips, 7, sizeof(ips));
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 64, 0), 24);
	assert_true(ips[0] == 0x10 && ips[1] == 0x20 && ips[2] == 0x30 && !ips[3]);
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 64, 1 | BPF_F_USER_STACK), 16);
	assert_true(ips[0] == 0x20 && ips[1] == 0x30 && !ips[2]);
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 8, 0), 8);
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 64, 4), -EFAULT);
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 60, 0), -EINVAL);
	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
	id = DO(get_stackid, P(&regs), P(&map), 0);
	assert_in_range(id, 0, 15);
	assert_int_equal(DO(get_stackid, P(&regs), P(&map), 0), id);
	assert_int_equal(pb_bpf_map_lookup_elem(&map, &id, ips, 0), 0);
	assert_true(ips[0] == 0x10 && ips[2] == 0x30);
	assert_int_equal(DO(get_stackid, P(&regs), P(&map), 3), -EFAULT);
	assert_int_equal(DO(get_stackid, P(&regs), P(&map), 1 << 12), -EINVAL);
	/* an invalid frame pointer */
	regs.rbp = 8;
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 64, 0), 8);
	prog.type = pb_bpf_type_of(BPF_PROG_TYPE_RAW_TRACEPOINT);
	assert_int_equal(DO(get_stack, P(&regs), P(ips), 64, 0), -EFAULT);
	pb_bpf_map_close(&map);
}

/* ---- maps of objects ---------------------------------------------------------------- */

static uint64_t cgroups[3] = { 5, 6, 9 };

static void *objects_find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	return kind == PB_BPF_OBJECT_CGROUP ? &cgroups[id - 1] : (void *)(uintptr_t)(id + 1000);
}

static int64_t objects_get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return handle + 1;
}

static void objects_put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

static void make_objects(struct pb_bpf_map *map, uint32_t type)
{
	static const struct pb_bpf_objects objects = {
		objects_find, objects_get, objects_put, NULL };
	struct pb_bpf_map_spec spec = {
		.attr = { type, 4, 4, 4, 0 }, .types = { .spin_lock_off = -1, .timer_off = -1 },
		.cpu_slots = 1,
	};

	assert_int_equal(pb_bpf_map_create(map, &spec), 0);
	map->objects = &objects;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(pb_bpf_map_update_elem(map, &i, &i, BPF_ANY), 0);
}

static void groups(void **state)
{
	struct pb_bpf_sock sk = { .full = true };
	struct pb_bpf_skb skb = { .cgroups = { 1, 6 }, .nr_cgroups = 2 };
	struct pb_bpf_map map;

	make_objects(&map, BPF_MAP_TYPE_CGROUP_ARRAY);
	host.cgroup = host_cgroup;
	assert_int_equal(DO(current_task_under_cgroup, P(&map), 0), 1);
	assert_int_equal(DO(current_task_under_cgroup, P(&map), 1), 0);
	assert_int_equal(DO(current_task_under_cgroup, P(&map), 3), -EAGAIN);
	assert_int_equal(DO(current_task_under_cgroup, P(&map), 4), -E2BIG);
	assert_int_equal(DO(skb_under_cgroup, P(&skb), P(&map), 1), -ENOENT);
	skb.s.sk = &sk.s;
	assert_int_equal(DO(skb_under_cgroup, P(&skb), P(&map), 1), 1);
	assert_int_equal(DO(skb_under_cgroup, P(&skb), P(&map), 2), 0);
	assert_int_equal(DO(skb_under_cgroup, P(&skb), P(&map), 9), -E2BIG);
	assert_int_equal(DO(skb_cgroup_id, P(&skb)), 6);
	assert_int_equal(DO(skb_ancestor_cgroup_id, P(&skb), 0), 1);
	assert_int_equal(DO(skb_ancestor_cgroup_id, P(&skb), 2), 0);
	pb_bpf_map_close(&map);
}

static void events(void **state)
{
	uint8_t packet[8] = "12345678";
	struct pb_bpf_xdp xdp = { .pkt = { .data = packet, .data_end = packet + 8 } };
	struct bpf_perf_event_value v;
	struct pb_bpf_map map;

	make_objects(&map, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	assert_int_equal(DO(perf_event_output, 0, P(&map), 1, P("abc"), 3), -EOPNOTSUPP);
	host.event_output = host_event;
	host.event_read = host_event_read;
	host.cpu = host_cpu;
	assert_int_equal(DO(perf_event_output, 0, P(&map), 1, P("abc"), 3), 0);
	assert_true(seen.event_len == 3 && seen.event_index == 1 && (uint64_t)seen.object == 1002);
	seen.cpu = 2;
	assert_int_equal(DO(perf_event_output, 0, P(&map), BPF_F_CURRENT_CPU, P("abc"), 3), 0);
	assert_int_equal(seen.event_index, 2);
	assert_int_equal(DO(perf_event_output, 0, P(&map), 3, P("abc"), 3), -ENOENT);
	assert_int_equal(DO(perf_event_output, 0, P(&map), 1 | 1ull << 32, P("abc"), 3), -EINVAL);
	/* the upper half of the flags is the number of the packet's bytes that are appended */
	prog.type = pb_bpf_type_of(BPF_PROG_TYPE_XDP);
	assert_int_equal(DO(perf_event_output, P(&xdp), P(&map), 1 | 4ull << 32, P("abc"), 3), 0);
	assert_memory_equal(seen.event, "abc1234", 7);
	assert_int_equal(seen.event_len, 7);
	assert_int_equal(DO(perf_event_output, P(&xdp), P(&map), 1 | 9ull << 32, P("abc"), 3),
			 -EFAULT);
	assert_int_equal(DO(perf_event_read, P(&map), 1), 11);
	assert_int_equal(DO(perf_event_read, P(&map), 3), -ENOENT);
	assert_int_equal(DO(perf_event_read_value, P(&map), 1, P(&v), sizeof(v)), 0);
	assert_true(v.enabled == 22 && v.running == 33);
	assert_int_equal(DO(perf_event_read_value, P(&map), 9, P(&v), sizeof(v)), -E2BIG);
	assert_int_equal(v.enabled, 0);
	pb_bpf_map_close(&map);
}

/* A program takes a lock. A signal handler interrupts the program, and runs another program in the
 * same thread. The second program doesn't get the lock, and its unlock doesn't release the lock. */
static void locks(void **state)
{
	struct pb_bpf_map_spec spec = {
		.attr = { BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 },
		.types = { .spin_lock_off = 4, .timer_off = -1 }, .cpu_slots = 1,
	};
	struct pb_bpf_map map, *maps[] = { &map };
	struct pb_bpf_run inner;
	uint32_t zero = 0, *lock;

	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
	prog.maps = maps;
	prog.nr_maps = 1;
	lock = (uint32_t *)map.ops->lookup(&map, &zero, &run) + 1;
	DO(spin_lock, P(lock));
	assert_true(*lock && !run.lock_missed);
	inner = run;
	pb_bpf_do_spin_lock(P(lock), 0, 0, 0, 0, &inner);
	assert_true(inner.lock_missed && *lock);
	pb_bpf_do_spin_unlock(P(lock), 0, 0, 0, 0, &inner);
	assert_true(*lock);
	DO(spin_unlock, P(lock));
	assert_false(*lock);
	pb_bpf_map_close(&map);
}

static uint32_t *taken;

static void takes(struct pb_bpf_run *r, struct pb_bpf_map *map, void *what, uint64_t word)
{
	taken = what;
}

/* If the run ends by a jump while it copies the data, the host gives the record back. */
static void outputs(void **state)
{
	struct pb_bpf_map_spec spec = { .attr = { BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0 },
		.types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1 };
	struct pb_bpf_map map;
	uint64_t data = 7;

	assert_int_equal(pb_bpf_map_create(&map, &spec), 0);
	host.takes = takes;
	assert_int_equal(DO(ringbuf_output, P(&map), P(&data), sizeof(data), 0), 0);
	assert_ptr_equal(taken, map.elems + 8);
	host.takes = NULL;
	pb_bpf_map_close(&map);
}

/* ---- packets --------------------------------------------------------------------------- */

static void sockets(void **state)
{
	struct bpf_tcp_sock tcp = { 0 };
	struct pb_bpf_sock listener = { .s.state = 10, .full = true };
	struct pb_bpf_sock sk = { .tcp = &tcp, .listener = &listener, .full = true, .cookie = 77 };
	struct pb_bpf_skb skb = { .s.sk = &sk.s, .uid = 1000, .classid = 3 };
	struct bpf_xfrm_state x[2] = { { .spi = 1 }, { .spi = 2 } }, got;

	assert_int_equal(DO(sk_fullsock, P(&sk)), P(&sk));
	assert_int_equal(DO(tcp_sock, P(&sk)), P(&tcp));
	assert_int_equal(DO(get_listener_sock, P(&sk)), P(&listener));
	assert_int_equal(DO(get_listener_sock, P(&listener)), P(&listener));
	assert_int_equal(DO(get_socket_cookie, P(&skb)), 77);
	assert_int_equal(DO(get_socket_uid, P(&skb)), 1000);
	assert_int_equal(DO(skb_cgroup_classid, P(&skb)), 3);
	sk.full = false;
	assert_int_equal(DO(sk_fullsock, P(&sk)), 0);
	skb.s.sk = NULL;
	assert_int_equal(DO(get_socket_cookie, P(&skb)), 0);
	assert_int_equal(DO(get_socket_uid, P(&skb)), 65534);
	skb.xfrm = x;
	skb.nr_xfrm = 2;
	assert_int_equal(DO(skb_get_xfrm_state, P(&skb), 1, P(&got), sizeof(got), 0), 0);
	assert_int_equal(got.spi, 2);
	assert_int_equal(DO(skb_get_xfrm_state, P(&skb), 2, P(&got), sizeof(got), 0), -EINVAL);
}

/* Tries to grow a packet at its head and at its tail. Returns 0 if both attempts fail because there
 * is no room. */
static int64_t result;
static uint64_t enter_grow(const void *ctx, struct pb_bpf_run *r)
{
	const struct pb_bpf_skb *skb = ctx;

	result = (int64_t)pb_bpf_do_skb_change_head((uint64_t)ctx, 8, 0, 0, 0, r);
	if (result != -ENOMEM)
		return 1;
	result = (int64_t)pb_bpf_do_skb_change_tail((uint64_t)ctx, skb->s.len + 1, 0, 0, 0, r);
	return result != -ENOMEM;
}

static void no_room(void **state)
{
	uint8_t data[64] = { 0 };
	struct pb_bpf_test_run t = {
		.prog = &prog, .host = &host, .data_in = data, .data_size_in = sizeof(data),
		.tight = true,
	};

	prog.type = pb_bpf_type_of(BPF_PROG_TYPE_SCHED_CLS);
	prog.enter = enter_grow;
	assert_int_equal(pb_bpf_test_run(&t), 0);
	assert_int_equal(t.retval, 0);
	t.tight = false;
	t.data_size_out = 0;
	assert_int_equal(pb_bpf_test_run(&t), 0);
	assert_int_equal(t.retval, 1);
}

int main(void)
{
#define T(name)	cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(memory_that_is_not_there), T(who_runs), T(clocks), T(traces),
		T(formats_that_change), T(output_over_its_input), T(no_memory), T(functions),
		T(stacks), T(groups), T(events), T(locks), T(outputs), T(sockets), T(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
