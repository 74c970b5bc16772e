/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes the generator's maps in the kernel, loads programs there, and runs them (ask.h). */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/btf.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "kernel.h"
#include "bpf/helper/kfunc.h"
#include "bpfload/load_btf.h"
#include "ask.h"
#include "world.h"

#define LOG_STATS	4	/* a log level: only statistics and the reason of a refusal */

static int fds[GEN_MAPS], btf_fd;
static char *direct[GEN_MAPS];		/* the mapped memory of arrays */
static unsigned long *ring_consumed;
static const unsigned long *ring_produced;
char ask_log[1 << 20];
int ask_seconds = 30;

/* Loads BTF for functions. Type 1 is int, type 2 is the prototype int (), type 3 is a static
 * function of type 2. */
static int make_btf(void)
{
	static const char names[] = "\0int\0f";
	struct {
		struct btf_header h;
		struct btf_type i;
		uint32_t bits;
		struct btf_type proto, func;
		char names[8];
	} raw = {
		.h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof raw.h,
		       .type_len = 40, .str_off = 40, .str_len = sizeof names },
		.i = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.bits = BTF_INT_SIGNED << 24 | 32,
		.proto = { .info = BTF_KIND_FUNC_PROTO << 24, .type = 1 },
		.func = { .name_off = 5, .info = BTF_KIND_FUNC << 24, .type = 2 },
	};
	union bpf_attr a = { .btf = (uintptr_t)&raw,
			     .btf_size = sizeof raw - sizeof raw.names + sizeof names };

	memcpy(raw.names, names, sizeof names);
	return (int)kernel_bpf(BPF_BTF_LOAD, &a);
}

static int make_map(const struct pb_bpf_map_attr *m)
{
	union bpf_attr a = { .map_type = m->type, .key_size = m->key_size,
			     .value_size = m->value_size, .max_entries = m->max_entries,
			     .map_flags = m->type == BPF_MAP_TYPE_ARRAY ? BPF_F_MMAPABLE : 0 };

	return (int)kernel_bpf(BPF_MAP_CREATE, &a);
}

/* Returns the program array for a program type. Each program type needs a separate array, because
 * the first program that uses an array fixes the array's type. */
static int progs_of(uint32_t type)
{
	static int of[32];

	if (!of[type % 32])
		of[type % 32] = make_map(&gen_maps[GEN_PROGS]);
	return of[type % 32];
}

void ask_make_all(void)
{
	for (uint32_t type = 1; type < 32; type++)
		progs_of(type);
}

static int map_memory(int i)
{
	if (gen_maps[i].type == BPF_MAP_TYPE_ARRAY)
		direct[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
	if (gen_maps[i].type == BPF_MAP_TYPE_RINGBUF) {
		ring_consumed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
		ring_produced = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[i], 4096);
	}
	return direct[i] == MAP_FAILED || (void *)ring_consumed == MAP_FAILED ||
	       ring_produced == MAP_FAILED ? -errno : 0;
}

static void interrupted(int sig)
{
}

int ask_open(void)
{
	const struct sigaction interrupts = { .sa_handler = interrupted };

	sigaction(SIGPROF, &interrupts, NULL);
	for (int i = 0; i < GEN_MAPS; i++) {
		int err;

		fds[i] = make_map(&gen_maps[i]);
		err = fds[i] < 0 ? -errno : map_memory(i);
		if (err)
			return err;
	}
	btf_fd = make_btf();
	if (btf_fd < 0)
		printf("no types for the kernel: %s\n", strerror(errno));
	return 0;
}

static void give_funcs(const struct gen_program *p, union bpf_attr *a, struct bpf_func_info *info)
{
	for (uint32_t i = 0; i < p->nr_funcs; i++)
		info[i] = (struct bpf_func_info){ p->funcs[i].insn, 3 };
	if (!p->nr_funcs || btf_fd < 0)
		return;
	a->prog_btf_fd = (uint32_t)btf_fd;
	a->func_info_rec_size = sizeof *info;
	a->func_info = (uintptr_t)info;
	a->func_info_cnt = p->nr_funcs;
}

/* Returns the kernel's number for a function of kfunc.h. The number is the function's BTF type
 * id. */
static int32_t kernel_kfunc(int32_t id)
{
	static struct pb_bpf_btf *btf;
	const char *why;

	if (!pb_bpf_kfunc_of(id) ||
	    (!btf && pb_bpf_btf_open_file("/sys/kernel/btf/vmlinux", &btf, &why)))
		return id;
	return (int32_t)pb_bpf_btf_find(btf, pb_bpf_kfunc_of(id)->name, BTF_KIND_FUNC);
}

/*
 * After `seconds`, a signal makes the kernel give up. 0 means no limit. A timer of CPU time would
 * not work: the kernel sends the signal of such a timer only when the system call returns.
 */
static void limit_time(time_t seconds)
{
	const struct itimerspec time = { .it_value = { seconds, 0 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
	static timer_t timer;
	static pid_t made;	/* the process that made the timer; a child doesn't inherit
				 * timers */

	if (made != getpid() && timer_create(CLOCK_MONOTONIC, &event, &timer))
		return;
	made = getpid();
	timer_settime(timer, 0, &time, NULL);
}

int ask_load(const struct gen_program *p, int level)
{
	struct bpf_func_info info[GEN_MOST_FUNCS];
	struct bpf_insn insns[GEN_MOST];
	union bpf_attr a = { 0 };
	long fd;

	memcpy(insns, p->insns, sizeof(insns[0]) * (size_t)p->nr);
	fds[GEN_PROGS] = progs_of(p->type);
	for (int i = 0; i < p->nr; i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) &&
		    insns[i].src_reg == BPF_PSEUDO_KFUNC_CALL) {
			insns[i].imm = kernel_kfunc(insns[i].imm);
		} else if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (insns[i].src_reg == BPF_PSEUDO_MAP_FD ||
			    insns[i].src_reg == BPF_PSEUDO_MAP_VALUE)
				insns[i].imm = (uint32_t)insns[i].imm < GEN_MAPS ?
					       fds[insns[i].imm] : -1;
			i++;
		}
	a.prog_type = p->type;
	a.insns = (uintptr_t)insns;
	a.insn_cnt = (uint32_t)p->nr;
	a.license = (uintptr_t)"GPL";
	a.prog_flags = p->flags;
	a.fd_array = (uintptr_t)fds;
	give_funcs(p, &a, info);
	ask_log[0] = 0;
	a.log_buf = (uintptr_t)ask_log;
	a.log_size = sizeof ask_log;
	a.log_level = level ? (uint32_t)level : LOG_STATS;
	limit_time(ask_seconds);
	fd = kernel_bpf(BPF_PROG_LOAD, &a);
	fd = fd < 0 ? -errno : fd;
	limit_time(0);
	return (int)fd;
}

int ask_verdict(const struct gen_program *p, int level)
{
	int fd = ask_load(p, level);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Returns the start of the statistics at the end of the log. At log level LOG_STATS, the statistics
 * begin with additional lines. */
static const char *statistics(void)
{
	for (const char *line = ask_log; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, "verification time ", 18) || !strncmp(line, "processed ", 10))
			return line;
	return ask_log + strlen(ask_log);
}

const char *ask_last_line(void)
{
	const char *end = statistics(), *line;

	while (end > ask_log && end[-1] == '\n')
		end--;
	for (line = end; line > ask_log && line[-1] != '\n'; line--)
		;
	return line;
}

static bool says_too_complex(const char *line)
{
	const char *jumps = strstr(line, "jumps is too complex");

	return !strncmp(line, "BPF program is too large", 24) ||
	       (!strncmp(line, "The sequence of ", 16) && jumps &&
		jumps < line + strcspn(line, "\n"));
}

enum ask_answer ask_answer(int err)
{
	if (err >= 0)
		return ASK_ACCEPTS;
	if (says_too_complex(ask_last_line()))
		return ASK_GIVES_UP;
	switch (err) {
	case -ENOMEM: case -EAGAIN: case -EINTR: case -ENOSPC:
		return ASK_GIVES_UP;
	case -EFAULT:
		return ASK_HAS_BUG;
	default:
		return ASK_REFUSES;
	}
}

/* ---- runs ------------------------------------------------------------------------------------ */

static uint64_t add(uint64_t sum, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const uint8_t *)p)[i]) * 0x100000001b3ull;
	return sum;
}

#define FIRST_SUM 0xcbf29ce484222325ull

static char *place(int map, uint32_t n)
{
	return direct[map] + n * ((gen_maps[map].value_size + 7) & ~7u);
}

static long hash_op(int cmd, uint64_t key, void *value)
{
	union bpf_attr a = { .map_fd = (uint32_t)fds[GEN_HASH], .key = (uintptr_t)&key,
			     .value = (uintptr_t)value };

	return kernel_bpf(cmd, &a);
}

static void set_maps(void)
{
	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; direct[i] && n < gen_maps[i].max_entries; n++)
			memcpy(place(i, n), world_element(i, n), gen_maps[i].value_size);
	for (uint32_t n = 0; n < gen_maps[GEN_HASH].max_entries; n++)
		if (world_is_there(GEN_HASH, n))
			hash_op(BPF_MAP_UPDATE_ELEM, n, world_element(GEN_HASH, n));
		else
			hash_op(BPF_MAP_DELETE_ELEM, n, NULL);
	*(volatile unsigned long *)ring_consumed = *(const volatile unsigned long *)ring_produced;
}

static uint64_t sum_maps(void)
{
	uint64_t sum = FIRST_SUM;
	char value[GEN_HASH_VALUE];

	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; direct[i] && n < gen_maps[i].max_entries; n++)
			sum = add(sum, place(i, n), gen_maps[i].value_size);
	for (uint32_t n = 0; n < gen_maps[GEN_HASH].max_entries; n++) {
		bool there = !hash_op(BPF_MAP_LOOKUP_ELEM, n, value);

		sum = add(sum, &there, 1);
		sum = there ? add(sum, value, sizeof value) : sum;
	}
	return sum;
}

static uint8_t *packet_start(uint32_t type)
{
	return type == BPF_PROG_TYPE_SOCKET_FILTER ? ((struct pb_bpf_skb *)world_ctx())->mac :
	       world_pkt()->data_meta;
}

/* After the program has ended, a test run overwrites bytes at the packet's start. Returns the
 * number of these bytes. */
static uint32_t hidden(uint32_t type)
{
	return type == BPF_PROG_TYPE_SOCKET_FILTER ? 14 : 0;
}

uint64_t ask_sum(uint32_t type)
{
	uint64_t sum = FIRST_SUM;

	for (int i = 0; i < GEN_MAPS; i++)
		for (uint32_t n = 0; direct[i] && n < gen_maps[i].max_entries; n++)
			sum = add(sum, world_element(i, n), gen_maps[i].value_size);
	for (uint32_t n = 0; n < gen_maps[GEN_HASH].max_entries; n++) {
		bool there = world_is_there(GEN_HASH, n);

		sum = add(sum, &there, 1);
		sum = there ? add(sum, world_element(GEN_HASH, n), GEN_HASH_VALUE) : sum;
	}
	return add(sum, packet_start(type) + hidden(type),
		   (size_t)(world_pkt()->data_end - packet_start(type)) - hidden(type));
}

int ask_run(int fd, uint32_t type, struct ask_result *out)
{
	static uint8_t packet[4096];
	struct __sk_buff skb = { 0 };
	union bpf_attr a = { 0 };

	set_maps();
	a.test.prog_fd = (uint32_t)fd;
	a.test.data_in = (uintptr_t)packet_start(type);
	a.test.data_size_in = (uint32_t)(world_pkt()->data_end - packet_start(type));
	a.test.data_out = (uintptr_t)packet;
	a.test.data_size_out = sizeof packet;
	if (type != BPF_PROG_TYPE_XDP) {
		const struct pb_bpf_skb *ours = world_ctx();

		skb.mark = ours->s.mark;
		skb.priority = ours->s.priority;
		memcpy(skb.cb, ours->s.cb, sizeof skb.cb);
		a.test.ctx_in = (uintptr_t)&skb;
		a.test.ctx_size_in = sizeof skb;
	}
	if (kernel_bpf(BPF_PROG_TEST_RUN, &a))
		return -errno;
	out->r0 = a.test.retval;
	out->sum = add(sum_maps(), packet + hidden(type), a.test.data_size_out - hidden(type));
	return 0;
}

bool ask_takes_delta_for_offset(void)
{
	const char *at = strstr(ask_log, "pointer offset "), *id = ask_log;
	size_t len = at ? strspn(at + 15, "-0123456789") : 0;

	for (; len && (id = strstr(id, "id=")); id++) {
		const char *delta = id + 3 + strspn(id + 3, "0123456789");

		if (!strncmp(delta + (*delta == '+'), at + 15, len))
			return true;
	}
	return false;
}
