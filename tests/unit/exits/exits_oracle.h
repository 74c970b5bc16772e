/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the instructions that a program executes with the exits that the analysis lists. These
 * claims must hold:
 *
 *   - If all exits of a function are hooked, each call of the function ends at one of its listed
 *     exits. At this exit the stack pointer is at the return slot, as at the entry.
 *   - When a listed return is executed, the top of the stack is the return slot of an open call.
 *   - Control enters a window or a code slot only at its start, and never enters a slot in padding.
 *     (doc/glossary.md explains windows and slots.)
 *   - A jump that is listed as an exit leads out of its own function, or to an entry.
 *
 * The file that includes this header executes the program. For each instruction it calls drop() and
 * before(), executes the instruction, and calls after(). The file also defines find_other(), which
 * loads the module of an address.
 */
#ifndef PB_TEST_EXITS_ORACLE_H
#define PB_TEST_EXITS_ORACLE_H
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "module/analysis/exit_types.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"

#define MAX_UNITS	4096
#define MAX_MODULES	256
#define MAX_DEPTH	(1u << 20)
#define MAX_SHOWN	20

struct function {
	uint64_t addr, unit_start, unit_end;	/* unit: the code of one FDE */
	uint32_t first, n;	/* the range of the function's exits in module.exits[] */
	char name[48];
};

/* The results of the analysis for a byte of a module's code. */
struct at {
	uint32_t window;	/* 1 + the index in starts[] of the window or slot that covers the
				 * byte */
	uint32_t function;	/* 1 + the index of the function that starts at this byte, if its
				 * exits are all hooked */
	uint8_t exit;		/* 1 + the kind of the hooked exit at this byte */
	uint8_t len;		/* length of the exit */
	uint8_t byte[6];	/* the code from this byte on */
};

struct module {
	char path[256];
	uint64_t from, to;	/* the addresses of the executable mapping */
	uint64_t bias, low, size;
	struct at *at;
	struct function *fn;
	size_t nr_fn;
	uint64_t *exits;
	size_t nr_exits;
	uint64_t *starts;	/* three addresses for each window, to which code may jump: of the
				 * window, of its code slot and of its second jump. 0: there is
				 * none */
};

static struct module modules[MAX_MODULES];
static size_t nr_modules;

struct open_call {
	struct module *m;
	struct function *f;
	uint64_t slot;
};
static struct open_call *calls;
static size_t nr_calls;
static uint64_t *slots;		/* return slots of all open calls, also of calls that aren't in
				 * calls[] */
static size_t nr_slots;

static struct {
	uint64_t entered, returned, tail, again, lost, wrong, landed, listed;
} count;
static bool quiet, leave_out;
static uint64_t may_be_lost = UINT64_MAX;

static void bad(uint64_t *what, const char *text, const struct module *m, uint64_t ip,
		const struct function *f)
{
	(*what)++;
	if (quiet || *what > MAX_SHOWN)
		return;
	printf("%s: %lx in %s%s%s\n", text, m ? (long)(ip - m->bias) : (long)ip, m ? m->path : "?",
	       f ? " of " : "", f ? f->name : "");
}

static void name_of(const struct pb_an *an, const struct pb_fn *f, char *to, size_t size)
{
	if (f->nr_cands)
		snprintf(to, size, "%.*s", (int)an->cands.v[f->cand].len,
			 an->cands.v[f->cand].name);
	else
		snprintf(to, size, "sub_%lx", (long)f->addr);
}

static void cover(struct module *m, uint64_t start, uint64_t len, uint32_t window)
{
	for (uint64_t a = start; a < start + len; a++)
		if (a - m->low < m->size)
			m->at[a - m->low].window = window;
}

static void take_window(struct module *m, uint32_t i, uint64_t start, uint8_t len, int16_t via,
			uint8_t code_slot)
{
	uint64_t slot = start + (uint64_t)(int64_t)via;

	cover(m, start, len, 3 * i + 1);
	m->starts[3 * i] = start;
	if (!via)
		return;
	/* no code may jump to a slot in padding; code may jump to the start of a code slot */
	cover(m, code_slot ? slot - PB_JUMP_LEN : slot, code_slot ? code_slot : PB_JUMP_LEN,
	      3 * i + 2);
	m->starts[3 * i + 1] = code_slot ? slot - PB_JUMP_LEN : 0;
}

static void take_functions(struct pb_an *an, struct module *m)
{
	static uint32_t units[MAX_UNITS];
	size_t cap = 0;

	m->fn = calloc(an->fns.n + 1, sizeof(*m->fn));
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];
		struct function *to = &m->fn[m->nr_fn];
		size_t n = pb_exits_units(an, f, units, MAX_UNITS);

		if (f->inexit != PB_INEXIT_NOT || !n || n > MAX_UNITS)
			continue;
		to->addr = f->addr;
		to->first = (uint32_t)m->nr_exits;
		to->unit_start = an->cfi.fdes.v[units[0]].start;
		to->unit_end = an->cfi.fdes.v[units[0]].end;
		name_of(an, f, to->name, sizeof(to->name));
		for (size_t u = 0; u < n; u++)
			for (size_t k = pb_exits_lower(an, units[u]);
			     k < an->exits.n && an->exits.v[k].unit == units[u]; k++) {
				if (!an->exits.v[k].exit)
					continue;
				if (m->nr_exits == cap)
					m->exits = realloc(m->exits,
							   (cap = cap ? 2 * cap : 1024) * 8);
				m->exits[m->nr_exits++] = an->exits.v[k].addr;
			}
		if (leave_out && m->nr_exits > to->first)
			m->nr_exits--;
		to->n = (uint32_t)m->nr_exits - to->first;
		m->at[f->addr - m->low].function = (uint32_t)++m->nr_fn;
	}
}

static void take(struct pb_an *an, void *arg)
{
	struct module *m = arg;
	const struct pb_range *last = &an->ranges.v[an->ranges.n - 1];

	m->low = an->ranges.v[0].addr;
	m->size = last->addr + last->size - m->low;
	m->at = calloc(m->size, sizeof(*m->at));
	m->starts = calloc(3 * (an->exit_windows.n + an->fns.n) + 3, 8);
	if (!m->at || !m->starts)
		abort();
	for (size_t i = 0; i < an->ranges.n; i++) {
		const struct pb_range *r = &an->ranges.v[i];

		for (uint64_t k = 0; k < r->size; k++)
			memcpy(m->at[r->addr + k - m->low].byte, r->bytes + k,
			       r->size - k < 6 ? r->size - k : 6);
	}
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *f = &an->fns.v[i];

		if (!f->refused)
			take_window(m, (uint32_t)(an->exit_windows.n + i), f->addr + f->window,
				    f->window_len, f->via, f->second_len);
	}
	for (size_t i = 0; i < an->exit_windows.n; i++) {
		const struct pb_an_window *w = &an->exit_windows.v[i];

		take_window(m, (uint32_t)i, w->start, w->len, w->via, w->second_len);
		if (w->how == PB_EXIT_SHARED) {
			cover(m, w->start + 1, w->second_len, 3 * (uint32_t)i + 3);
			m->starts[3 * i + 2] = w->start + 1;
		}
	}
	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];

		if (e->how) {
			m->at[e->addr - m->low].exit = (uint8_t)(e->kind + 1);
			m->at[e->addr - m->low].len = e->len;
		}
	}
	take_functions(an, m);
}

static struct module *load(const char *path, uint64_t from, uint64_t to, uint64_t offset)
{
	struct module *m = &modules[nr_modules];
	const char *why;
	Elf64_Ehdr eh;
	Elf64_Phdr ph[32];
	int fd = open(path, O_RDONLY);

	if (fd < 0 || nr_modules == MAX_MODULES)
		return NULL;
	memset(m, 0, sizeof(*m));
	snprintf(m->path, sizeof(m->path), "%s", path);
	m->from = from;
	m->to = to;
	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || eh.e_phnum > 32 ||
	    pread(fd, ph, eh.e_phnum * sizeof(ph[0]), (off_t)eh.e_phoff) < 0)
		return NULL;
	for (unsigned i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X &&
		    offset - (ph[i].p_offset & ~0xfffull) < ph[i].p_filesz + 0x1000)
			m->bias = from - offset + ph[i].p_offset - ph[i].p_vaddr;
	if (pb_analyse_visit(fd, path, PB_MODULE_RETURNS, take, m, &why))
		m->size = 0;
	close(fd);
	nr_modules++;
	return m;
}

static struct module *find_other(uint64_t ip);

static struct module *find(uint64_t ip)
{
	static struct module *last;

	if (last && ip - last->from < last->to - last->from)
		return last;
	for (size_t i = 0; i < nr_modules; i++)
		if (ip - modules[i].from < modules[i].to - modules[i].from)
			return last = &modules[i];
	return find_other(ip);
}

static struct at *at(struct module *m, uint64_t ip)
{
	return m && ip - m->bias - m->low < m->size ? &m->at[ip - m->bias - m->low] : NULL;
}

static bool listed(const struct open_call *c, const struct module *m, uint64_t ip)
{
	if (c->m != m)
		return false;
	for (uint32_t i = 0; i < c->f->n; i++)
		if (m->exits[c->f->first + i] == ip - m->bias)
			return true;
	return false;
}

static bool is_ret(const struct at *a)
{
	const uint8_t *b = a->byte;

	return b[0] == 0xc3 || b[0] == 0xc2 || ((b[0] == 0xf3 || b[0] == 0xf2) && b[1] == 0xc3);
}

static bool is_call(const struct at *a)
{
	const uint8_t *b = a->byte;

	while (b < a->byte + 4 &&
	       (*b == 0x66 || *b == 0x67 || *b == 0xf2 || *b == 0x3e || (*b & 0xf0) == 0x40))
		b++;
	return *b == 0xe8 || (*b == 0xff && (b[1] >> 3 & 7) == 2);
}

/* Forgets the calls whose return slots are at lower addresses than the stack pointer: these calls
 * are over. */
static void drop(uint64_t sp, uint64_t ip)
{
	while (nr_slots && slots[nr_slots - 1] < sp)
		nr_slots--;
	while (nr_calls && calls[nr_calls - 1].slot < sp) {
		/* the call ended by longjmp, by an exception, or at an exit that the analysis
		 * doesn't know */
		count.lost++;
		nr_calls--;
	}
}

/* Is called before the instruction at ip is executed. Checks the instruction, and notes the
 * beginning or the end of a call. from: the address of the instruction that was executed before; 0:
 * it isn't known. */
static void before(struct module *m, struct at *a, uint64_t ip, uint64_t sp, uint64_t from)
{
	struct open_call *c;

	if (a->window) {
		uint64_t start = m->starts[a->window - 1];
		struct at *f = from ? at(find(from), from) : NULL;

		if (from && ip - m->bias != start && (!f || f->window != a->window))
			bad(&count.landed, "jumped into a window", m, ip, NULL);
	}
	if (a->function) {
		if (nr_calls && calls[nr_calls - 1].slot == sp) {
			count.again++;
			nr_calls--;
		}
		if (nr_calls < MAX_DEPTH)
			calls[nr_calls++] = (struct open_call){ m, &m->fn[a->function - 1], sp };
		count.entered++;
	}
	if (!is_ret(a))
		return;
	if (a->exit) {
		count.listed++;
		if (nr_slots && slots[nr_slots - 1] != sp && sp < slots[0])
			bad(&count.wrong,
			    "at an exit, the return address isn't on top of the stack",
			    m, ip, NULL);
	}
	c = nr_calls ? &calls[nr_calls - 1] : NULL;
	if (!c || c->slot != sp)
		return;
	if (listed(c, m, ip))
		count.returned++;
	else
		bad(&count.wrong, "returns, but not from an exit", m, ip, c->f);
	nr_calls--;
}

/* Is called after the instruction at ip was executed. Notes a call, or a jump that leaves its
 * function. sp: the stack pointer before the instruction. to, to_sp: the address of the next
 * instruction, and the stack pointer there. */
static void after(struct module *m, struct at *a, uint64_t ip, uint64_t sp, uint64_t to,
		  uint64_t to_sp)
{
	struct open_call *c = nr_calls ? &calls[nr_calls - 1] : NULL;

	if (is_call(a) && to_sp == sp - 8 && nr_slots < MAX_DEPTH)
		slots[nr_slots++] = to_sp;
	/* a conditional jump that wasn't taken doesn't leave the function */
	if (!a->exit || is_ret(a) || (a->exit == PB_EXIT_JCC + 1 && to == ip + a->len) || !c ||
	    !listed(c, m, ip))
		return;
	if (c->slot != sp) {
		/* the exit belongs to an inner call, or to another function that shares the exit */
		return;
	}
	if (to - m->bias - c->f->unit_start < c->f->unit_end - c->f->unit_start &&
	    to - m->bias != c->f->unit_start && !at(m, to)->function)
		bad(&count.wrong, "an exit jumps to an address inside its function", m, ip, c->f);
	count.tail++;
	nr_calls--;
}

static int result(uint64_t steps)
{
	printf("%lu steps, %lu calls of functions whose exits are all hooked: %lu returned, "
	       "%lu tail jumps, %lu entered again, %lu left otherwise; %lu returns at exits\n"
	       "%lu wrong, %lu jumps into windows\n",
	       (long)steps, (long)count.entered, (long)count.returned, (long)count.tail,
	       (long)count.again, (long)count.lost, (long)count.listed, (long)count.wrong,
	       (long)count.landed);
	return count.wrong || count.landed || count.lost > may_be_lost;
}
#endif
