/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests the verifier with programs of the second generator (weave.h), and with slightly changed
 * variants of each program:
 *
 * - Our verdict is compared with the running kernel's verdict. If only the kernel refuses a
 *   program, the program is reduced, and is counted by the reason of the difference
 *   (laxer_class()).
 * - An accepted program runs on a checking interpreter, on both engines between inaccessible
 *   pages, and in the kernel. All results must be the same. The checking interpreter checks each
 *   access. It compares each register with the verifier's deductions (watch.h, beliefs.h).
 * - The program is verified a second time. In this second verification, a path is pruned only if an
 *   earlier state contains the whole current state. The verdict must stay the same.
 *
 *   bpf_fuzz_verifier [-s SEED] [-n PROGRAMS] [-t SECONDS] [-i INPUTS] [-c CHANGES] [-gk]
 *                     [-o FILE] [-v]
 *   bpf_fuzz_verifier -x [-s SEED] [-i INPUTS] [-k] <REPORT
 *
 * -g: programs of the first generator (generate.h), without variants. Verdicts are compared, but
 * the programs don't run in the kernel. -k: without the kernel. -o: appends findings to FILE, with
 * reduced programs. -x: tests a reported program again. Without -s, uses the seed of the report.
 * Programs are made and tested in child processes. Exit status 1: something was found. 77: the
 * kernel can't be asked, but -k isn't given.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "beliefs.h"
#include "bpf/core/disasm.h"
#include "bpf/helper/helper.h"
#include "bpf/run/fixup.h"
#include "bpf/run/heap.h"
#include "bpf/verifier/state.h"
#include "guarded.h"
#include "reduce.h"
#include "sharper.h"
#include "watch.h"
#include "weave.h"
#include "world.h"

#define ENOUGH_STEPS	4000
#define ENOUGH_LOOKS	30		/* limit of the checks of one instruction in one run */
#define CHUNK		4000		/* number of programs for each process */
#define MOST_CLASSES	200
#define MOST_WORDS	160

enum finding {
	NOTHING, ACCESS, BELIEF, BASE, ENGINES, KERNEL, HIDDEN, ADDRESSES, LAXER, NR_FINDINGS
};
static const char *const finding_names[] = {
	"nothing", "an access outside", "a wrong deduction", "a wrong deduction (states pruned)",
	"engines differ", "the kernel's result differs", "pruning hides a refusal",
	"addresses show", "laxer than the kernel",
};

static struct {
	uint64_t seed, programs;
	double seconds;
	int inputs, changes, loud;
	bool kernel, again, seeded, first;
	const char *file;
} opt = { .seed = 1, .programs = 2000, .inputs = 8, .changes = 3, .kernel = true };

/* Progress and counts, in memory that all processes share. */
static struct {
	uint64_t at, programs, verdicts, accepted, executions, kernel_runs, both, neither, stricter,
		 laxer, known, gave_up, kernel_bugs, unheard, compared, found[NR_FINDINGS];
	struct class {
		char text[160];
		uint64_t count, seed;
		int change;
	} classes[2][MOST_CLASSES];	/* laxer, stricter */
	int nr_classes[2];
} *all;

static struct beliefs states, bases;
static char why[400], ours_log[1 << 20];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- verdicts -------------------------------------------------------------------------- */

/* Some programs are verified without the right to learn addresses. The kernel isn't asked about
 * these programs. */
static uint32_t caps = PB_BPF_CAP_ALL;

static void choose_caps(uint64_t seed)
{
	caps = seed % 8 ? PB_BPF_CAP_ALL : PB_BPF_CAP_BPF | PB_BPF_CAP_NET_ADMIN;
}

static struct pb_bpf_verify to_verify(const struct gen_program *p)
{
	return (struct pb_bpf_verify){
		.type = pb_bpf_type_of(p->type), .caps = caps, .gpl = true, .insns = p->insns,
		.nr = (uint32_t)p->nr, .maps = world_maps, .nr_maps = GEN_MAPS, .mem = &pb_bpf_heap,
		.flags = p->flags, .funcs = p->funcs, .nr_funcs = p->nr_funcs,
	};
}

/* Collects bounds for the generator. The bounds include all states that reach instruction `at`. */
struct asked {
	uint32_t at, visits;
	bool any;
	struct weave_bounds *bounds;
};

static int hear(struct pb_bpf_verify *v, const struct env *env)
{
	struct asked *a = v->visitor;

	if (++a->visits > BELIEFS_VISITS / 5)
		return -E2BIG;
	if (env->insn != a->at)
		return 0;
	for (int i = 0; i < 10; i++) {
		const struct reg *r = &cur_regs(env)[i];
		struct weave_bounds *b = &a->bounds[i];
		bool number = r->type == SCALAR;

		if (!a->any)
			*b = (struct weave_bounds){ number, r->wide.smin, r->wide.smax };
		b->number = b->number && number;
		b->smin = r->wide.smin < b->smin ? r->wide.smin : b->smin;
		b->smax = r->wide.smax > b->smax ? r->wide.smax : b->smax;
	}
	a->any = true;
	return 0;
}

static bool ask_bounds(const struct gen_program *p, int at, struct weave_bounds bounds[10])
{
	struct asked a = { (uint32_t)at, 0, false, bounds };
	struct pb_bpf_verify v = to_verify(p);
	int err;

	v.visit = hear;
	v.visitor = &a;
	err = pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	return !err && a.any;
}

/* ---- classes of differences ------------------------------------------------------------------ */

/* Known reasons to accept programs that the kernel refuses. doc/design/bpf.md ("Sharper than Linux
 * 6.18") has the proofs. */
static const char *const known[] = {
	"the kernel calls a number's distance from another its offset",
	"we know more after: a branch",
	"we know more after: a narrow operation",
	"we know more after: rN = (sN)rN",
	"we know more after: wN = (sN)wN",
	"we know more after: rN = *(uN *)(rN N)",
	"we know more after: rN = *(sN *)(rN N)",
};

/* Finds the last line of a log before the statistics. Stores the line without its numbers in
 * `out`. */
static void name_class(const char *log, char *out, size_t size)
{
	const char *end = strstr(log, "\nprocessed "), *line;

	end = end ? end : log + strlen(log);
	while (end > log && end[-1] == '\n')
		end--;
	for (line = end; line > log && line[-1] != '\n'; line--)
		;
	sharper_plain(line, out, size);
}

static bool count_class(int which, const char *text, uint64_t seed, int change)
{
	for (int i = 0; i < all->nr_classes[which]; i++) {
		if (!strcmp(all->classes[which][i].text, text)) {
			all->classes[which][i].count++;
			return false;
		}
	}
	if (all->nr_classes[which] == MOST_CLASSES)
		return false;
	all->classes[which][all->nr_classes[which]] = (struct class){ .count = 1, .seed = seed,
								      .change = change };
	snprintf(all->classes[which][all->nr_classes[which]++].text, sizeof all->classes[0][0].text,
		 "%s", text);
	return true;
}

static bool is_known(const char *text)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i], text))
			return true;
	return false;
}

/* Stores the kernel's reason to refuse the program in `out`. Returns false if the kernel accepts
 * the program this time, or gives up. */
static bool laxer_words(const struct gen_program *p, char *out, size_t size)
{
	out[0] = 0;
	if (ask_answer(ask_verdict(p, 2)) != ASK_REFUSES)
		return false;
	if (ask_takes_delta_for_offset())
		snprintf(out, size, "%s", known[0]);
	else
		sharper_plain(ask_last_line(), out, size);
	return true;
}

/*
 * Returns whether the kernel forgets something at a branch whose two paths continue at the same
 * instruction. At this kind of branch, a verifier can only learn something. So if the kernel
 * accepts the program without the branch, it has forgotten something at the branch.
 */
static bool forgets_at_branch(const struct gen_program *p)
{
	struct gen_program q = *p;

	for (int i = 0; i < p->nr; i++) {
		const struct bpf_insn *in = &p->insns[i];
		unsigned class = BPF_CLASS(in->code), op = BPF_OP(in->code);

		if ((class != BPF_JMP && class != BPF_JMP32) || op == BPF_JA || op == BPF_CALL ||
		    op == BPF_EXIT || in->off)
			continue;
		q.insns[i] = (struct bpf_insn){ .code = BPF_JMP | BPF_JA };
		if (!ask_verdict(&q, 0))
			return true;
		q.insns[i] = *in;
	}
	return false;
}

/* Classifies a reduced program. The class names the instruction after which we know more than the
 * kernel. */
static void laxer_class(const struct gen_program *p, char *out, size_t size)
{
	char insn[100], words[140];
	bool dead;

	laxer_words(p, words, sizeof words);
	/* first compare what is known on all paths to an instruction; if the class isn't a known
	 * class, compare each visit */
	for (int visits = 0; visits < 2; visits++) {
		sharper_at(to_verify(p), ask_log, visits, insn, sizeof insn, &dead);
		if (insn[0])
			snprintf(out, size, "we know more after: %s", insn);
		else
			snprintf(out, size, "%s%s", dead ? "(never) " : "", words);
		if (is_known(out))
			return;
	}
	if (!is_known(out) && forgets_at_branch(p))
		snprintf(out, size, "we know more after: a branch");
}

static void stricter_class(const struct gen_program *p, char *out, size_t size)
{
	struct pb_bpf_text log = { .buf = ours_log, .size = sizeof ours_log };
	struct pb_bpf_verify v = to_verify(p);

	ours_log[0] = 0;
	v.log = &log;
	v.log_level = 1;
	pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	name_class(ours_log, out, size);
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct subject {
	const struct gen_program *p;
	struct pb_bpf_verify v;
	struct pb_bpf_resolved r;
	struct pb_bpf_prog *prog;
	uint64_t words[MOST_WORDS];
	int nr_words, fd;
	uint64_t seed;
};

struct result {
	uint64_t r0, sum, kernel_sum;
	bool vague, endless;
};

static enum finding find(enum finding what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
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
	if (beliefs_check(&states, m, insn, text)) {
		if (beliefs_check(&bases, m, insn, text))
			return true;
		looked = BASE;
	} else {
		looked = BELIEF;
	}
	snprintf(w->why, sizeof w->why, "insn %u: %.180s", insn, text);
	return false;
}

static void stand_in(struct pb_bpf_resolved *r)
{
	pb_bpf_fn **calls = (pb_bpf_fn **)r->spec.calls;

	for (uint32_t i = 0; i < r->spec.nr_calls; i++)
		calls[i] = world_stand_in(calls[i]);
}

static struct pb_bpf_run new_run(const struct subject *s, uint64_t input, uint8_t noise)
{
	world_set_noise(noise);
	world_reset(s->v.type, input);
	all->executions++;
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
		return w.endless ? NOTHING : find(looked, "%s", w.why);
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
		stand_in(&other.r);
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
		return find(ENGINES, "%s: a fault", name);
	sum = world_sum();
	if (a->vague || (a->r0 == r0 && a->sum == sum) || depends_on_addresses(s, input, a))
		return NOTHING;
	return find(ENGINES, "%s: r0 %#lx and %#lx, memory %#lx and %#lx", name, a->r0, r0,
		    a->sum, sum);
}

/* Returns whether the helper's result differs in the kernel: a time, a random number, or the name
 * of an object. */
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
 * atomics, Linux 6.18 removes branches that are taken. In our runs a packet has no room to grow, so
 * skb_change_tail may fail. */
static bool kernel_differs(const struct pb_bpf_verify *v)
{
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct bpf_insn *in = &v->insns[i];

		if (BPF_CLASS(in->code) == BPF_STX && BPF_MODE(in->code) == BPF_ATOMIC &&
		    ((in->imm & BPF_FETCH && in->dst_reg == 10) ||
		     (in->imm == BPF_CMPXCHG && BPF_SIZE(in->code) == BPF_W)))
			return true;
		/* for a load of any part of a bit field, Linux loads the same byte and doesn't
		 * shift it */
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
 * instructions that its verifier didn't reach. The cause is a flaw of Linux 6.18: after a load from
 * the stack with sign extension, its verifier still assumes the stored number. */
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
	all->kernel_runs++;
	if ((k.r0 == (uint32_t)a->r0 && k.sum == a->kernel_sum) ||
	    depends_on_addresses(s, input, a))
		return NOTHING;
	if (kernel_left_out(s, input)) {
		all->kernel_bugs++;
		return NOTHING;
	}
	return find(KERNEL, "r0 %#x and the kernel's %#x, maps and packet %#lx and %#lx",
		    (unsigned)a->r0, k.r0, a->kernel_sum, k.sum);
}

static enum finding run_once(struct subject *s, int n)
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
		       find(ADDRESSES, "r0 %#lx and %#lx, memory %#lx and %#lx", a.r0, b.r0,
			    a.sum, b.sum);
	all->compared += !a.vague;
	f = run_real(s, input, false, &a);
	if (!f && s->prog->jited)
		f = run_real(s, input, true, &a);
	return f || opt.first || !(n & 1) ? f : run_kernel(s, input, &a);
}

/* ---- one program ----------------------------------------------------------------------------- */

/* Adds the verifier's bounds to s->words, the numbers that inputs contain. */
static void add_words(struct subject *s)
{
	uint32_t step = states.nr / 40 + 1;

	for (uint32_t i = 0; i < states.nr && !states.full; i += step) {
		const struct reg *r = &states.regs[i].reg;

		if (r->type != SCALAR || s->nr_words + 4 > MOST_WORDS)
			continue;
		s->words[s->nr_words++] = r->wide.umax;
		s->words[s->nr_words++] = (uint64_t)r->wide.smin;
		s->words[s->nr_words++] = (uint64_t)r->low.smax;
		s->words[s->nr_words++] = r->wide.umin;
	}
}

static int make(struct subject *s)
{
	int err = pb_bpf_resolve(&s->v, &s->r);

	if (err)
		return err;
	stand_in(&s->r);
	s->r.spec.name = "fuzz";
	err = pb_bpf_prog_make(&s->r.spec, &s->prog);
	if (err)
		pb_bpf_resolved_free(&s->r);
	return err;
}

/* Returns whether the program has callbacks. To make iterations of a callback equal, the verifier
 * forgets numbers. The stored states decide which numbers it forgets. So the second verification
 * may have another verdict. */
static bool calls_back(const struct pb_bpf_verify *v)
{
	for (uint32_t i = 0; i < v->nr; i++)
		if (v->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    v->insns[i].src_reg == BPF_PSEUDO_FUNC)
			return true;
	return false;
}

static const char *whole_words(struct pb_bpf_verify *v)
{
	static char words[160];
	struct pb_bpf_text log = { .buf = ours_log, .size = sizeof ours_log };

	v->log = &log;
	v->log_level = opt.again ? 2 : 1;
	v->visit = NULL;
	pb_bpf_verify(v);
	if (opt.again)
		printf("---- ours, without pruning\n%s\n", ours_log);
	name_class(ours_log, words, sizeof words);
	return words;
}

/* Returns whether the log ends on a mispredicted path. The verifier walks a mispredicted path only
 * from a branch whose outcome is known. An earlier state may contain the current state, and yet
 * leave the outcome unknown. Then the verifier hasn't walked the mispredicted path from the earlier
 * state. Even so, it prunes the current state. Linux does the same. */
static bool ends_mispredicted(const char *log)
{
	const char *last = NULL;

	for (const char *p = log; (p = strstr(p, "\nfrom ")); p++)
		last = p;
	return last && memmem(last + 1, strcspn(last + 1, "\n"), "(speculative",
			      strlen("(speculative"));
}

/* Verifies the program again. Prunes a path only if an earlier state contains the whole current
 * state. The verdict must be the same. Records the deductions for the runs. */
static enum finding verify_whole(struct subject *s)
{
	struct pb_bpf_verify v = s->v;
	int err;

	v.facts = NULL;
	v.whole = true;
	beliefs_listen(&states, &v);
	err = pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	all->unheard += states.full || err;
	states.full |= err != 0;
	/* chance decides whether an impossible path is refused or pruned */
	if (!err || err == -E2BIG || err == -ENOMEM || err == -EFAULT || states.contradiction ||
	    calls_back(&v))
		return NOTHING;
	find(HIDDEN, "without pruning the verdict is %d: %s", err, whole_words(&v));
	/* Privileged programs may read any byte of the stack, with one exception. If one byte of a
	 * spilled number was overwritten, its other bytes aren't readable. Pruning treats these
	 * other bytes as readable, too. */
	return strstr(why, "invalid read from stack") || strstr(ours_log, "INVARIANTS VIOLATION") ||
	       ends_mispredicted(ours_log) ? NOTHING : HIDDEN;
}

static enum finding run_accepted(struct subject *s, const struct gen_program *p)
{
	enum finding f = verify_whole(s);

	if (f || make(s))
		return f;
	s->nr_words = weave_words(p, s->words, MOST_WORDS / 2);
	add_words(s);
	world_use_words(s->words, (unsigned)s->nr_words);
	for (int n = 0; n < opt.inputs && !f; n++)
		f = run_once(s, n);
	pb_bpf_prog_free(s->prog);
	pb_bpf_resolved_free(&s->r);
	return f;
}

/* Tests one program. *accepted gets whether we accept the program. *kernel gets the kernel's
 * verdict, or 0 if the kernel isn't asked. */
static enum finding judge(const struct gen_program *p, uint64_t seed, bool ask, bool *accepted,
			  int *kernel)
{
	struct subject s = { .p = p, .v = to_verify(p), .seed = seed, .fd = -1 };
	enum finding f = NOTHING;

	world_place(seed);
	beliefs_listen(&bases, &s.v);
	bases.bases_only = true;
	*accepted = !pb_bpf_verify(&s.v);
	s.v.visit = NULL;
	*kernel = 0;
	/* the kernel may need a minute to walk long loops, so it isn't asked about programs with
	 * many visits */
	if (ask && bases.visits < BELIEFS_VISITS / 10) {
		s.fd = ask_load(p, 0);
		*kernel = s.fd < 0 ? s.fd : 0;
	}
	if (*accepted)
		f = run_accepted(&s, p);
	if (s.fd >= 0)
		close(s.fd);
	pb_bpf_facts_free(&pb_bpf_heap, s.v.facts);
	return f;
}

struct sought {
	uint64_t seed;
	enum finding what;
	char class[160];
};

static bool shows(const struct gen_program *p, void *arg)
{
	const struct sought *s = arg;
	char class[160];
	bool accepted;
	int kernel;
	enum finding f;

	if (s->what != LAXER) {
		f = judge(p, s->seed, s->what == KERNEL, &accepted, &kernel);
		return f == s->what;
	}
	return ask_answer(ask_verdict(p, 0)) == ASK_REFUSES &&
	       ask_bounds(p, 0, (struct weave_bounds[10]){ { 0 } }) &&
	       laxer_words(p, class, sizeof class) && !strcmp(class, s->class);
}

static FILE *to;

static void print_line(const char *text)
{
	fprintf(to, "%s\n", text);
}

/* Prints a finding. p is the program, q is the reduced program. */
static void report(const struct gen_program *p, const struct gen_program *q, const struct sought *s,
		   int change, const char *first)
{
	for (int i = 0; i < 2; i++) {
		to = i ? opt.file ? fopen(opt.file, "a") : NULL : stdout;
		if (!to)
			continue;
		fprintf(to, "FOUND %s: seed %lu, change %d, type %s: %s\n", finding_names[s->what],
			s->seed, change, pb_bpf_type_of(p->type)->name,
			s->what == LAXER ? s->class : first);
		if (s->what != LAXER)
			fprintf(to, "  reduced: %s\n", why);
		reduce_print(q, print_line);
		if (i)
			fclose(to);
	}
}

/* Counts a program that only the kernel refuses. Reduces the program to find the class of the
 * difference. Reports the first program of each unknown class. */
static void count_laxer(const struct gen_program *p, uint64_t seed, int change)
{
	struct sought s = { .seed = seed, .what = LAXER };
	struct gen_program q = *p;

	if (!laxer_words(p, s.class, sizeof s.class)) {
		all->gave_up++;
		return;
	}
	reduce(&q, shows, &s);
	laxer_class(&q, s.class, sizeof s.class);
	all->laxer++;
	all->known += is_known(s.class);
	if (!count_class(0, s.class, seed, change) || is_known(s.class))
		return;
	all->found[LAXER]++;
	report(p, &q, &s, change, "");
}

static void compare(const struct gen_program *p, uint64_t seed, int change, bool accepted,
		    int kernel)
{
	enum ask_answer said = ask_answer(kernel);
	char class[160];

	all->verdicts++;
	all->both += accepted && !kernel;
	all->neither += !accepted && kernel;
	if (accepted == !kernel || bases.visits >= BELIEFS_VISITS / 10)
		return;
	if (!accepted) {
		all->stricter++;
		stricter_class(p, class, 160);
		count_class(1, class, seed, change);
		return;
	}
	all->kernel_bugs += said == ASK_HAS_BUG;
	all->gave_up += said == ASK_GIVES_UP;
	if (said == ASK_REFUSES)
		count_laxer(p, seed, change);
}

static void reduce_and_report(const struct gen_program *p, struct sought *s, int change)
{
	struct gen_program q = *p;
	char first[sizeof why];

	snprintf(first, sizeof first, "%s", why);
	reduce(&q, shows, s);
	shows(&q, s);
	report(p, &q, s, change, first);
}

static bool try(const struct gen_program *p, uint64_t seed, int change)
{
	struct sought s = { .seed = seed };
	bool accepted;
	int kernel;

	all->programs++;
	s.what = judge(p, seed, opt.kernel && caps == PB_BPF_CAP_ALL, &accepted, &kernel);
	all->accepted += accepted;
	if (s.what) {
		if (all->found[s.what]++ < 3)
			reduce_and_report(p, &s, change);
		return accepted;
	}
	if (opt.kernel && caps == PB_BPF_CAP_ALL)
		compare(p, seed, change, accepted, kernel);
	return accepted;
}

static void try_seed(uint64_t seed)
{
	struct gen_program p, q;

	all->at = seed;
	alarm(600);
	choose_caps(seed);
	if (opt.first)
		generate(&p, seed);
	else
		weave(&p, seed, ask_bounds);
	if (opt.loud > 1) {
		to = stdout;
		reduce_print(&p, print_line);
	}
	if (!try(&p, seed, 0) || opt.first)
		return;
	for (int i = 1; i <= opt.changes; i++) {
		q = p;
		weave_change(&q, seed * 64 + (uint64_t)i);
		if (i % 3 == 0)
			weave_change(&q, seed * 64 + 32 + (uint64_t)i);
		try(&q, seed, i);
	}
}

/* ---- a reported program ---------------------------------------------------------------------- */

/* Reads a report. Its first line has "FOUND", "seed N" and "type NAME". A line "function:" comes
 * before each function. In the line of an instruction, its bytes follow ";" as one or two
 * hexadecimal numbers. */
static bool read_program(FILE *f, struct gen_program *p)
{
	char line[400];
	uint64_t raw;

	memset(p, 0, sizeof *p);
	while (fgets(line, sizeof line, f)) {
		bool first = !strncmp(line, "FOUND ", 6);
		char *type = strstr(line, "type "), *semicolon = strchr(line, ';'),
		     *seed = strstr(line, "seed ");

		if (type && first) {
			if (seed && !opt.seeded)
				opt.seed = strtoull(seed + 5, NULL, 10);
			type[5 + strcspn(type + 5, ":\n")] = 0;
			p->type = pb_bpf_type_named(type + 5) ?
				  pb_bpf_type_named(type + 5)->type : 0;
		} else if (strstr(line, "function:") && p->nr_funcs < GEN_MOST_FUNCS) {
			p->funcs[p->nr_funcs++] = (struct pb_bpf_func){ .insn = (uint32_t)p->nr,
									.name = "f" };
		} else if (semicolon && strspn(line, " 0123456789") &&
			   line[strspn(line, " 0123456789")] == ':' && p->nr < GEN_MOST - 1) {
			raw = strtoull(semicolon + 1, NULL, 16);
			memcpy(&p->insns[p->nr++], &raw, sizeof raw);
			if (strchr(semicolon, '+')) {
				raw = strtoull(strchr(semicolon, '+') + 1, NULL, 16);
				memcpy(&p->insns[p->nr++], &raw, sizeof raw);
			}
		}
	}
	return p->type && p->nr;
}

static int again(void)
{
	struct pb_bpf_text log = { .buf = ours_log, .size = sizeof ours_log };
	struct pb_bpf_verify v;
	struct gen_program p;
	bool accepted;
	int kernel;
	enum finding f;

	if (!read_program(stdin, &p))
		return 2;
	choose_caps(opt.seed);
	v = to_verify(&p);
	v.log = &log;
	v.log_level = 2;
	pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	printf("---- ours\n%s\n", ours_log);
	if (opt.kernel && ask_verdict(&p, 2) != -EPERM)
		printf("---- the kernel's\n%s\n", ask_log);
	guarded_begin();
	f = judge(&p, opt.seed, opt.kernel && caps == PB_BPF_CAP_ALL, &accepted, &kernel);
	printf("---- ours %s, the kernel %d; %s: %s\n", accepted ? "accepts" : "refuses", kernel,
	       finding_names[f], f ? why : "");
	if (!accepted || ask_answer(kernel) != ASK_REFUSES)
		return f != NOTHING;
	laxer_class(&p, ours_log, 160);
	printf("---- %s\n", ours_log);
	return f != NOTHING || !is_known(ours_log);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void work(uint64_t from, uint64_t end, double until)
{
	const struct rlimit memory = { 1ul << 30, 1ul << 30 };

	setrlimit(RLIMIT_AS, &memory);
	guarded_begin();
	for (uint64_t s = from; s < end && now() < until; s++)
		try_seed(s);
	all->at = end;
	fflush(stdout);
	_exit(0);
}

static int crashes;

static int status_of_child(uint64_t from, uint64_t end, double until)
{
	pid_t child = fork();
	int status;

	if (!child)
		work(from, end, until);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static bool work_in_child(uint64_t from, uint64_t end, double until)
{
	int status = status_of_child(from, end, until), alone;
	uint64_t at = all->at;

	if (!status)
		return true;
	/* Linux 6.18 may follow a bad pointer in propagate_precision(); the fault kills the
	 * process */
	if (opt.kernel && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		opt.kernel = false;
		alone = status_of_child(at, at + 1, until);
		opt.kernel = true;
		if (!alone) {
			printf("the kernel crashes: seed %lu\n", at);
			all->kernel_bugs++;
			all->at = at;
			return false;
		}
	}
	printf("FOUND the process ends with %#x: seed %lu\n", status, at);
	crashes++;
	return false;
}

static void print_classes(int which, const char *name)
{
	for (int i = 0; i < all->nr_classes[which]; i++) {
		const struct class *c = &all->classes[which][i];

		if (opt.loud || (!which && !is_known(c->text)))
			printf("%s %lu times (seed %lu, change %d): %s\n", name, c->count, c->seed,
			       c->change, c->text);
	}
}

static void options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:n:t:i:c:o:gkvx")) != -1)
		switch (c) {
		case 's':
			opt.seed = strtoull(optarg, NULL, 0);
			opt.seeded = true;
			break;
		case 'n':
			opt.programs = strtoull(optarg, NULL, 0);
			break;
		case 't':
			opt.seconds = atof(optarg);
			opt.programs = ~0ull >> 8;
			break;
		case 'i':
			opt.inputs = atoi(optarg);
			break;
		case 'c':
			opt.changes = atoi(optarg);
			break;
		case 'o':
			opt.file = optarg;
			break;
		case 'g':
			opt.first = true;
			break;
		case 'k':
			opt.kernel = false;
			break;
		case 'x':
			opt.again = true;
			break;
		case 'v':
			opt.loud++;
			break;
		default:
			exit(2);
		}
}

int main(int argc, char **argv)
{
	double start = now(), until;
	uint64_t found = 0, seed;
	int err;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options(argc, argv);
	until = opt.seconds ? start + opt.seconds : 1e18;
	all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	world_make();
	pb_bpf_settings.jit_enable = 1;
	err = opt.kernel ? ask_open() : 0;
	if (err) {
		printf("the kernel can't be asked: %s\n", strerror(-err));
		return 77;
	}
	if (opt.again)
		return again();
	for (seed = opt.seed; seed < opt.seed + opt.programs && now() < until && crashes < 20; ) {
		uint64_t end = seed + CHUNK < opt.seed + opt.programs ? seed + CHUNK :
			       opt.seed + opt.programs;

		seed = work_in_child(seed, end, until) ? end : all->at + 1;
	}
	print_classes(0, "laxer");
	print_classes(1, "stricter");
	for (int i = 1; i < NR_FINDINGS; i++)
		found += all->found[i];
	if (opt.kernel)
		printf("verdicts: %lu asked, %lu accepted by both, %lu refused by both, "
		       "stricter %lu, laxer %lu (%lu of a known class), "
		       "the kernel gives up %lu, has a bug %lu; %lu runs in the kernel\n",
		       all->verdicts, all->both, all->neither, all->stricter, all->laxer,
		       all->known, all->gave_up, all->kernel_bugs, all->kernel_runs);
	printf("%lu programs (seeds from %lu), %lu accepted, %lu executions, %lu inputs compared, "
	       "%lu without what was deduced, %.0f s: %lu found\n", all->programs, opt.seed,
	       all->accepted, all->executions, all->compared, all->unheard, now() - start,
	       found + (unsigned)crashes);
	return found || crashes;
}
