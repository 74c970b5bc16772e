/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lays out a program in one mapping. After a fault in the native code of a program, finds the
 * address at which to continue. */
#include <errno.h>
#include <sys/mman.h>
#include "base/base.h"
#include "base/mem.h"
#include "base/sys.h"
#include "bpf/core/probe.h"
#include "bpf/jit/jit.h"
#include "bpf/jit/unwind.h"
#include "bpf/run/image.h"

#define PAGE	4096u

/* bytes of stack: for the frames of native code and one helper; the largest part of them that the
 * frames have, if callbacks don't make them more; for a helper that calls a callback; for a call of
 * the interpreter */
#define HELPER_ROOM		5120
#define FRAMES_ROOM		(PB_BPF_WHOLE_STACK + PB_BPF_MAX_FRAMES * PB_BPF_FRAME_REGS)
#define CALLBACK_ROOM		1024
#define INTERPRETER_ROOM	1536

/* The header at the start of a program's mapping. */
struct image {
	struct image *next;
	uint64_t code, len, size;	/* code, len: address and length of the native code; size:
					 * bytes of the mapping */
	const struct pb_bpf_jit_fault *faults;
	uint32_t nr_faults, unwind_len;
	bool debugged;			/* gdb has been notified of the program */
	struct pb_bpf_prog_stats stats;
	_Alignas(64) uint8_t debug[PB_BPF_DEBUG_SIZE];
};

/* The list of images. A thread changes the list under the lock. pb_bpf_fault(), which runs in
 * signal handlers, reads the list without the lock. `readers` is the number of its calls that are
 * reading the list. */
static struct image *images;
static uint32_t lock, readers;

static void take_lock(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		pb_sys(SYS_sched_yield);
}

static void give_lock(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void add_image(struct image *m, const struct pb_bpf_prog *p)
{
	take_lock();
	m->debugged = p->jited && pb_bpf_settings.debugger;
	if (m->debugged)
		pb_bpf_debugger_add(m->debug, p->name, m->code, m->len, p->unwind, m->unwind_len);
	m->next = images;
	__atomic_store_n(&images, m, __ATOMIC_RELEASE);
	give_lock();
}

/* Removes an image from the list. When the function returns, no handler uses the image any more. */
static void remove_image(struct image *m)
{
	struct image **at = &images;

	take_lock();
	if (m->debugged)
		pb_bpf_debugger_remove(m->debug);
	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		__atomic_store_n(at, m->next, __ATOMIC_SEQ_CST);
	give_lock();
	while (__atomic_load_n(&readers, __ATOMIC_SEQ_CST))
		pb_sys(SYS_sched_yield);
}

static uint64_t fault_in(const struct image *m, uint64_t ip)
{
	uint64_t off = ip - m->code;
	size_t n;

	if (off >= m->len)
		return 0;
	n = pb_bisect(k, 0, m->nr_faults, m->faults[k].at < off);
	return n < m->nr_faults && m->faults[n].at == off ? m->code + m->faults[n].to : 0;
}

uint64_t pb_bpf_fault(uint64_t ip)
{
	uint64_t to = pb_bpf_probe_fault(ip);

	__atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
	for (struct image *m = __atomic_load_n(&images, __ATOMIC_SEQ_CST); m && !to;
	     m = __atomic_load_n(&m->next, __ATOMIC_ACQUIRE))
		to = fault_in(m, ip);
	__atomic_sub_fetch(&readers, 1, __ATOMIC_RELEASE);
	return to;
}

/* ---- pages ---------------------------------------------------------------- */

/* Maps memory a short distance below Patchbay's own code, so that native code can call helpers by
 * relative calls. If there is no room, maps memory anywhere. */
static void *map_near(size_t size)
{
	static uint64_t below = 1ull << 28;
	uint64_t at = (uint64_t)pb_bpf_fault - __atomic_add_fetch(&below, size, __ATOMIC_RELAXED);
	long p = pb_sys(SYS_mmap, at & ~(uint64_t)(PAGE - 1), size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pb_sys_failed(p) ? NULL : (void *)p;
}

static int protect(void *p, size_t size, int prot)
{
	return (int)pb_sys(SYS_mprotect, p, size, prot);
}

static void unmap(void *p, size_t size)
{
	pb_sys(SYS_munmap, p, size);
}

static const struct pb_bpf_pages own_pages = { map_near, protect, unmap };
const struct pb_bpf_pages *pb_bpf_pages = &own_pages;

/* ---- programs --------------------------------------------------------------- */

static bool subs_are_sound(const struct pb_bpf_prog_spec *s)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < s->nr_subs; i++) {
		if (i ? s->subs[i].start <= last : s->subs[i].start)
			return false;
		last = s->subs[i].start;
	}
	return last < s->nr && s->nr_subs <= PB_BPF_MAX_SUBPROGS;
}

/* Returns whether a subprogram begins at the target of instruction i. */
static bool names_sub(const struct pb_bpf_prog_spec *s, uint32_t i, bool callback)
{
	int64_t target = (int64_t)i + 1 + s->insns[i].imm;
	size_t n;

	if (target < 0 || target >= s->nr)
		return false;
	n = pb_bisect(k, 0, s->nr_subs, s->subs[k].start < target);
	return n < s->nr_subs && s->subs[n].start == target && (!callback || s->subs[n].callback);
}

/* Returns whether control stays inside the program after instruction i. */
static bool stays_inside(const struct pb_bpf_prog_spec *s, uint32_t i)
{
	uint8_t form = s->ops[i] < PB_BPF_NR_OPS ? pb_bpf_ops[s->ops[i]].form : PB_BPF_NO_INSN;
	int64_t to = (int64_t)i + 1;

	if (form == PB_BPF_RETURN)
		return true;
	if (form != PB_BPF_GOTO && form != PB_BPF_GOTOL && to == s->nr)
		return false;

	if (form == PB_BPF_GOTOL)
		to += s->insns[i].imm;
	else if (form == PB_BPF_GOTO || form == PB_BPF_IF_K || form == PB_BPF_IF_X)
		to += s->insns[i].off;
	return to >= 0 && to < s->nr;
}

static bool is_sound(const struct pb_bpf_prog_spec *s)
{
	if (!s->nr || s->nr > INT32_MAX / PB_BPF_JIT_MOST || !subs_are_sound(s))
		return false;
	for (uint32_t i = 0; i < s->nr; i++) {
		uint8_t op = s->ops[i];

		if (op == PB_BPF_OP_LD_IMM64) {
			if (i + 2 >= s->nr ||	/* no instruction follows its second half */
			    (s->insns[i].src_reg == BPF_PSEUDO_FUNC ? !names_sub(s, i, true) :
			     s->ops[i + 1] != PB_BPF_OP_NONE))
				return false;
			i++;
		} else if (op == PB_BPF_OP_NONE || op >= PB_BPF_NR_ALL_OPS) {
			return false;
		} else if (!stays_inside(s, i) ||
			   (op == PB_BPF_OP_CALL && (uint32_t)s->insns[i].imm >= s->nr_calls) ||
			   (op == PB_BPF_OP_CALL_PC && !names_sub(s, i, false))) {
			return false;
		}
	}
	return true;
}

/* Offsets in the mapping. Each part is aligned to 8. */
struct layout {
	uint32_t prog, insns, decoded, subs, calls, maps, faults, unwind, ops, code;
	uint64_t size;
};

static uint32_t part(uint64_t *at, uint64_t bytes)
{
	uint32_t off = (uint32_t)*at;

	*at = pb_align_up(*at + bytes, (uint64_t)8);
	return off;
}

static bool lay_out(struct layout *l, const struct pb_bpf_prog_spec *s,
		    const struct pb_bpf_jit *job)
{
	uint64_t at = PAGE;

	l->prog = part(&at, sizeof(struct pb_bpf_prog));
	l->insns = part(&at, (uint64_t)s->nr * sizeof(*s->insns));
	l->decoded = part(&at, (uint64_t)s->nr * sizeof(struct pb_bpf_code));
	l->subs = part(&at, (s->nr_subs ? (uint64_t)s->nr_subs : 1) * sizeof(*s->subs));
	l->calls = part(&at, (uint64_t)s->nr_calls * sizeof(*s->calls));
	l->maps = part(&at, (uint64_t)s->nr_maps * sizeof(*s->maps));
	l->faults = part(&at, (uint64_t)job->nr_faults * sizeof(*job->faults));
	l->unwind = part(&at, job->len ? pb_bpf_unwind_size(2 * s->nr_subs) : 0);
	l->ops = part(&at, s->nr);
	at = pb_align_up(at, (uint64_t)PAGE);
	l->code = (uint32_t)at;
	l->size = pb_align_up(at + job->len, (uint64_t)PAGE);
	return l->size <= UINT32_MAX;
}

static void fill(struct pb_bpf_prog *p, const struct pb_bpf_prog_spec *s)
{
	*p = (struct pb_bpf_prog){
		.nr = s->nr, .stack = s->stack, .insns = s->insns, .ops = s->ops, .subs = s->subs,
		.nr_subs = s->nr_subs, .nr_calls = s->nr_calls, .calls = s->calls, .type = s->type,
		.maps = s->maps, .nr_maps = s->nr_maps, .id = s->id, .ctx_needed = s->ctx_needed,
		.perfmon = s->perfmon,
		.enter = pb_bpf_enter_interpreted,
	};
	for (uint32_t i = 0; s->name && s->name[i] && i < sizeof(p->name) - 1; i++)
		p->name[i] = s->name[i];
}

/* If n is 0, `from` may be NULL */
static const void *put(char *to, const void *from, size_t n)
{
	return n ? memcpy(to, from, n) : to;
}

static void copy(char *block, const struct layout *l, const struct pb_bpf_prog_spec *s)
{
	struct pb_bpf_prog *p = (struct pb_bpf_prog *)(block + l->prog);

	fill(p, s);
	p->insns = put(block + l->insns, s->insns, s->nr * sizeof(*s->insns));
	p->ops = put(block + l->ops, s->ops, s->nr);
	p->code = (const struct pb_bpf_code *)(block + l->decoded);
	pb_bpf_encode(s->insns, s->ops, s->nr, (struct pb_bpf_code *)(block + l->decoded));
	p->subs = put(block + l->subs, s->subs, s->nr_subs * sizeof(*s->subs));
	p->calls = put(block + l->calls, s->calls, s->nr_calls * sizeof(*s->calls));
	p->maps = put(block + l->maps, s->maps, s->nr_maps * sizeof(*s->maps));
	p->stats = s->stats ? s->stats : &((struct image *)block)->stats;
}

/* Returns whether the program gets native code. If it does, sets the code's length. */
static bool prepare_jit(struct pb_bpf_jit *job, struct pb_bpf_prog *draft,
			const struct pb_bpf_prog_spec *s)
{
	uint32_t harden = pb_bpf_settings.jit_harden;

	if (s->interpret || !pb_bpf_settings.jit_enable || !job->addr)
		return false;
	fill(draft, s);
	job->prog = draft;
	job->bmi2 = !pb_bpf_settings.jit_baseline && pb_bpf_jit_has_bmi2();
	job->blind = harden > 1 || (harden && !s->privileged);
	if (job->blind &&
	    pb_sys(SYS_getrandom, &job->seed, sizeof(job->seed), 0) != sizeof(job->seed))
		return false;
	return !pb_bpf_jit(job);
}

/* Returns how many bytes of stack a run may need. The constants are more than what programs with
 * the deepest helpers were seen to use. */
static uint32_t room_of(const struct pb_bpf_prog *p, const struct pb_bpf_prog_spec *s)
{
	uint32_t more = s->deepest > FRAMES_ROOM ? s->deepest - FRAMES_ROOM : 0, levels = 0;

	/* Without recursion, each callback is at most once on the stack. s->nested also counts
	 * recursive callbacks. */
	for (uint32_t i = 0; i < p->nr_subs && levels < PB_BPF_MAX_FRAMES - 1; i++)
		levels += p->subs[i].callback;
	if (levels < s->nested)
		levels = s->nested;
	return HELPER_ROOM + levels * CALLBACK_ROOM +
	       (p->jited ? more : (levels + 1) * INTERPRETER_ROOM);
}

static void add_code(char *block, const struct layout *l, struct pb_bpf_jit *job)
{
	struct pb_bpf_prog *p = (struct pb_bpf_prog *)(block + l->prog);
	struct image *m = (struct image *)block;

	job->prog = p;
	job->out = (uint8_t *)block + l->code;
	job->base = (uint64_t)job->out;
	job->size = (uint32_t)l->size - l->code;
	job->faults = (struct pb_bpf_jit_fault *)(block + l->faults);
	if (pb_bpf_jit(job))
		return;
	/* fill the rest with int3, so that nothing runs past the code */
	memset(job->out + job->len, 0xcc, job->size - job->len);
	p->jited = (uint64_t (*)(const void *, struct pb_bpf_run *))job->out;
	p->enter = p->jited;
	p->jited_len = job->len;
	m->code = job->base;
	m->len = job->len;
	m->faults = job->faults;
	m->nr_faults = job->nr_faults;
	p->unwind = block + l->unwind;
	m->unwind_len = pb_bpf_unwind_write((uint8_t *)block + l->unwind, m->code, job->frames,
					    job->nr_frames);
}

static int make(const struct pb_bpf_prog_spec *s, struct pb_bpf_jit *job, struct pb_bpf_prog **prog)
{
	struct pb_bpf_prog draft, *p;
	struct layout l;
	struct image *m;
	char *block;
	int err;

	if (!prepare_jit(job, &draft, s))
		job->len = job->nr_faults = 0;
	if (!lay_out(&l, s, job))
		return -E2BIG;
	block = pb_bpf_pages->map(l.size);
	if (!block)
		return -ENOMEM;
	m = (struct image *)block;
	m->size = l.size;
	copy(block, &l, s);
	if (job->len)
		add_code(block, &l, job);
	p = (struct pb_bpf_prog *)(block + l.prog);
	p->room = room_of(p, s);
	err = pb_bpf_pages->protect(block + PAGE, l.code - PAGE, PROT_READ);
	if (!err && job->len)
		err = pb_bpf_pages->protect(block + l.code, l.size - l.code, PROT_READ | PROT_EXEC);
	if (err) {
		pb_bpf_pages->unmap(block, l.size);
		return err;
	}
	*prog = p;
	add_image(m, p);
	if ((*prog)->jited && pb_bpf_settings.jit_enable > 1 && pb_bpf_settings.show)
		pb_bpf_settings.show(*prog, job->passes);
	return 0;
}

int pb_bpf_prog_make(const struct pb_bpf_prog_spec *spec, struct pb_bpf_prog **prog)
{
	size_t notes = ((size_t)spec->nr + 1) * (sizeof(uint32_t) + 1),
		room = pb_align_up(notes, (size_t)8) + 2 * (spec->nr_subs ? spec->nr_subs : 1) *
		       sizeof(struct pb_bpf_jit_frame);
	struct pb_bpf_sub whole = { .stack = (uint16_t)spec->stack };
	struct pb_bpf_prog_spec s = *spec;
	struct pb_bpf_jit job = { 0 };
	int err;

	if (!s.nr_subs) {
		s.subs = &whole;
		s.nr_subs = 1;
	}
	if (!is_sound(&s))
		return -EINVAL;
	job.addr = pb_bpf_pages->map(room);
	job.notes = (uint8_t *)(job.addr + spec->nr + 1);
	job.frames = (struct pb_bpf_jit_frame *)((char *)job.addr + pb_align_up(notes, (size_t)8));
	err = make(&s, &job, prog);
	if (job.addr)
		pb_bpf_pages->unmap(job.addr, room);
	return err;
}

void pb_bpf_prog_free(struct pb_bpf_prog *prog)
{
	struct image *m;

	if (!prog)
		return;
	m = (struct image *)((char *)prog - PAGE);
	remove_image(m);
	pb_bpf_pages->unmap(m, m->size);
}
