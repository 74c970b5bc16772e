/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs an accepted program of the fuzzer in several ways. The checking interpreter (watch.h) runs
 * the program twice, the second time with memory at other addresses. Both engines run the program
 * with its memory between inaccessible pages. The kernel also runs the program. All results must be
 * equal, except results that depend on addresses.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ask.h"
#include "fuzz.h"
#include "guarded.h"
#include "watch.h"
#include "world.h"

#define ENOUGH_STEPS	4000
#define ENOUGH_LOOKS	30		/* limit of the checks of one instruction in one run */

char fuzz_why[400];

struct result {
	uint64_t r0, sum, kernel_sum;
	bool vague, endless;
};

enum finding fuzz_find(enum finding what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(fuzz_why, sizeof fuzz_why, format, ap);
	va_end(ap);
	return what;
}

static enum finding looked;
static uint16_t looks[GEN_MOST];
static bool ran[GEN_MOST];

static bool look(struct watch *w, const struct machine *m, uint32_t insn)
{
	char text[200];

	ran[insn % GEN_MOST] = true;
	if (looks[insn % GEN_MOST]++ > ENOUGH_LOOKS)
		return true;
	if (beliefs_check(&fuzz_states, m, insn, text)) {
		if (beliefs_check(&fuzz_bases, m, insn, text))
			return true;
		looked = BASE;
	} else {
		looked = BELIEF;
	}
	snprintf(w->why, sizeof w->why, "insn %u: %.180s", insn, text);
	return false;
}

void fuzz_stand_in(struct pb_bpf_resolved *r)
{
	pb_bpf_fn **calls = (pb_bpf_fn **)r->spec.calls;

	for (uint32_t i = 0; i < r->spec.nr_calls; i++)
		calls[i] = world_stand_in(calls[i]);
}

static struct pb_bpf_run new_run(const struct subject *s, uint64_t input, uint8_t noise)
{
	world_set_noise(noise);
	world_reset(s->v.type, input);
	fuzz_all->executions++;
	return (struct pb_bpf_run){ .prog = s->prog, .ctx = world_ctx(), .host = &world_host,
				    .thread = 1 };
}

static enum finding run_watched(const struct subject *s, uint64_t input, unsigned layout,
				struct result *out)
{
	struct pb_bpf_run run = new_run(s, input, (uint8_t)(0x11 + 0x66 * layout));
	struct watch w = { .v = &s->v, .r = &s->r, .run = &run, .layout = layout,
			   .most_steps = ENOUGH_STEPS, .look = look };

	looked = ACCESS;
	memset(looks, 0, sizeof looks);
	memset(ran, 0, sizeof ran);
	*out = (struct result){ 0 };
	if (!watch_run(&w)) {
		out->endless = w.endless;
		return w.endless ? NOTHING : fuzz_find(looked, "%s", w.why);
	}
	*out = (struct result){ w.r0, world_sum(),
				s->v.type->type != BPF_PROG_TYPE_KPROBE ? ask_sum(s->v.type->type) :
					0, w.vague, false };
	return NOTHING;
}

static bool same_result(const struct result *a, const struct result *b)
{
	return a->r0 == b->r0 && a->sum == b->sum && a->kernel_sum == b->kernel_sum;
}

/* Returns whether the result differs if all memory is at other addresses. Tries several addresses
 * of the frame, because a program may look at a single bit of the frame's address. */
static bool depends_on_addresses(const struct subject *s, uint64_t input, const struct result *a)
{
	struct subject other = *s;
	struct result b = *a;

	world_elsewhere(true);
	if (!pb_bpf_resolve(&other.v, &other.r)) {
		fuzz_stand_in(&other.r);
		other.prog = NULL;
		for (unsigned layout = 0; layout < 16 && same_result(&b, a); layout++)
			run_watched(&other, input, layout * 2, &b);
		pb_bpf_resolved_free(&other.r);
	}
	world_elsewhere(false);
	return !same_result(&b, a);
}

static enum finding run_real(const struct subject *s, uint64_t input, bool jit,
			     const struct result *a)
{
	struct pb_bpf_run run = new_run(s, input, 0x11);
	const char *name = jit ? "JIT" : "interpreter";
	uint64_t r0, sum;

	if (guarded_run(&run, jit, &r0))
		return fuzz_find(ENGINES, "%s: a fault", name);
	sum = world_sum();
	if (a->vague || (a->r0 == r0 && a->sum == sum) || depends_on_addresses(s, input, a))
		return NOTHING;
	return fuzz_find(ENGINES, "%s: r0 %#lx and %#lx, memory %#lx and %#lx", name, a->r0, r0,
			 a->sum, sum);
}

/* Returns whether the helper has another result in the kernel. Such results are times, random
 * numbers, and identifiers of threads, processors, users, sockets and packets. */
static bool is_kernels_own(int32_t helper)
{
	static const int32_t own[] = {
		BPF_FUNC_ktime_get_ns, BPF_FUNC_ktime_get_boot_ns, BPF_FUNC_ktime_get_coarse_ns,
		BPF_FUNC_jiffies64, BPF_FUNC_get_prandom_u32, BPF_FUNC_get_smp_processor_id,
		BPF_FUNC_get_socket_cookie, BPF_FUNC_get_socket_uid,
		BPF_FUNC_get_hash_recalc, BPF_FUNC_get_current_task, BPF_FUNC_get_current_pid_tgid,
		BPF_FUNC_get_current_comm,
	};

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (helper == own[i])
			return true;
	return false;
}

/* Returns whether results may differ from the kernel's results (doc/design/bpf.md). After some
 * atomics, Linux 6.18 removes branches that the program takes. In our runs a packet has no room to
 * grow, so skb_change_tail may fail. */
static bool kernel_differs(const struct pb_bpf_verify *v)
{
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct bpf_insn *in = &v->insns[i];

		if (BPF_CLASS(in->code) == BPF_STX && BPF_MODE(in->code) == BPF_ATOMIC &&
		    ((in->imm & BPF_FETCH && in->dst_reg == 10) ||
		     (in->imm == BPF_CMPXCHG && BPF_SIZE(in->code) == BPF_W)))
			return true;
		/* If the program loads byte 1, 2 or 3 of the field pkt_type, Linux loads the byte
		 * of the sk_buff that has the field's bits. It doesn't shift this byte, so the
		 * result isn't the byte of the field. */
		if (BPF_CLASS(in->code) == BPF_LDX &&
		    in->off > (int)offsetof(struct __sk_buff, pkt_type) &&
		    in->off < (int)offsetof(struct __sk_buff, mark))
			return true;
		if (in->code == (BPF_JMP | BPF_CALL) && !in->src_reg &&
		    (in->imm == BPF_FUNC_skb_change_tail || is_kernels_own(in->imm)))
			return true;
	}
	return false;
}

/* Returns whether the run reaches an instruction that the kernel has removed. The kernel removes
 * instructions that its verifier didn't reach. A flaw of Linux 6.18 makes it remove too many
 * instructions. After a load with sign extension from the stack, its verifier assumes that the
 * register has the stored number, without the sign extension. */
static bool kernel_left_out(const struct subject *s, uint64_t input)
{
	static bool seen[GEN_MOST];
	int fd = ask_load(s->p, 2);
	struct result again;
	char *rest;

	if (fd >= 0)
		close(fd);
	if (fd < 0 || strlen(ask_log) + 1 >= sizeof ask_log)
		return false;
	memset(seen, 0, sizeof seen);
	for (const char *line = ask_log; *line;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		unsigned long at = strtoul(line, &rest, 10);

		if (rest != line && !strncmp(rest, ": (", 3) && at < GEN_MOST)
			seen[at] = true;
	}
	run_watched(s, input, 0, &again);
	for (uint32_t i = 0; i < s->v.nr && i < GEN_MOST; i++)
		if (ran[i] && !seen[i])
			return true;
	return false;
}

static enum finding run_kernel(const struct subject *s, uint64_t input, const struct result *a)
{
	struct ask_result k;

	if (s->fd < 0 || a->vague || s->v.type->type == BPF_PROG_TYPE_KPROBE ||
	    kernel_differs(&s->v))
		return NOTHING;
	new_run(s, input, 0x11);
	if (ask_run(s->fd, s->v.type->type, &k))
		return NOTHING;
	fuzz_all->kernel_runs++;
	if ((k.r0 == (uint32_t)a->r0 && k.sum == a->kernel_sum) ||
	    depends_on_addresses(s, input, a))
		return NOTHING;
	if (kernel_left_out(s, input)) {
		fuzz_all->kernel_bugs++;
		return NOTHING;
	}
	return fuzz_find(KERNEL, "r0 %#x, in the kernel %#x; "
			 "checksum of memory %#lx, in the kernel %#lx", (unsigned)a->r0, k.r0,
			 a->kernel_sum, k.sum);
}

enum finding fuzz_run(struct subject *s, int n)
{
	uint64_t input = s->seed * 1000 + (uint64_t)n;
	struct result a, b;
	enum finding f;

	world_as_kernel(n & 1);
	f = run_watched(s, input, 0, &a);
	if (f || a.endless)
		return f;
	f = run_watched(s, input, 1, &b);
	if (f || b.endless)
		return f;
	/* if a result depends on addresses or on unwritten memory, it differs between two runs */
	if (a.r0 != b.r0 || a.sum != b.sum)
		return s->v.caps & PB_BPF_CAP_PERFMON ? NOTHING :
		       fuzz_find(ADDRESSES, "r0 %#lx and %#lx, memory %#lx and %#lx", a.r0, b.r0,
				 a.sum, b.sum);
	fuzz_all->compared += !a.vague;
	f = run_real(s, input, false, &a);
	if (!f && s->prog->jited)
		f = run_real(s, input, true, &a);
	return f || fuzz_opt.first || !(n & 1) ? f : run_kernel(s, input, &a);
}
