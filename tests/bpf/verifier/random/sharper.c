/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares what our verifier knows of each register with the registers in the kernel's log
 * (sharper.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "beliefs.h"
#include "bpf/core/disasm.h"
#include "bpf/verifier/state.h"
#include "sharper.h"

/* What our verifier knows of a register after an instruction. hulls[] joins all visits of the
 * instruction. An instruction has two hulls for each register: [0] for paths that continue at the
 * next instruction, [1] for paths that continue elsewhere. */
struct hull {
	bool any, number;
	struct range wide, low;
	struct tnum var;
};

static struct hull hulls[GEN_MOST][2][11];
static bool seen[GEN_MOST];

/* What our verifier knows of registers after each visit of an instruction, in the order of the
 * visits. Unlike hulls[], visits[] distinguishes the iterations of a loop. */
#define MOST_VISITS 2000
static struct visited {
	uint32_t insn;
	unsigned arm;		/* the path: 0 or 1, like the second index of hulls[] */
	struct hull h[11];
} visits[MOST_VISITS];
static uint32_t nr_visits;
static uint32_t lines_of[GEN_MOST][2];	/* number of lines of the log that were read for the
					 * instruction and path */

static void widen(struct range *r, const struct range *by)
{
	r->smin = r->smin < by->smin ? r->smin : by->smin;
	r->smax = r->smax > by->smax ? r->smax : by->smax;
	r->umin = r->umin < by->umin ? r->umin : by->umin;
	r->umax = r->umax > by->umax ? r->umax : by->umax;
}

static bool is_branch(const struct bpf_insn *i)
{
	unsigned class = BPF_CLASS(i->code), op = BPF_OP(i->code);

	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_JA && op != BPF_CALL &&
	       op != BPF_EXIT;
}

/* before[] has the registers before the last visit of each instruction. narrowed[] is about the two
 * paths of each branch. It marks registers that the branch doesn't compare, but whose bounds become
 * narrower on the path. For each call of a subprogram, returns[] marks those of r6 to r9 whose
 * bounds are narrower after the call. A branch in the subprogram can narrow them, because they
 * may be linked to a register that the branch compares. */
static struct reg before[GEN_MOST][11];
static bool narrowed[GEN_MOST][2][11], returns[GEN_MOST][11];

static bool narrower(const struct reg *r, const struct reg *than)
{
	return r->type == SCALAR && than->type == SCALAR &&
	       (than->var.mask & ~r->var.mask || !range_in(&than->wide, &r->wide) ||
		!range_in(&than->low, &r->low));
}

static void note_narrowed(const struct pb_bpf_verify *v, const struct env *env)
{
	const struct bpf_insn *last = &v->insns[env->prev_insn],
			      *call = env->insn ? &v->insns[env->insn - 1] : NULL;
	const struct reg *regs = cur_regs(env);

	for (unsigned i = 0; i < 10; i++)
		if (is_branch(last) && last->dst_reg != i &&
		    (BPF_SRC(last->code) == BPF_K || last->src_reg != i) &&
		    narrower(&regs[i], &before[env->prev_insn][i]))
			narrowed[env->prev_insn][(uint32_t)env->prev_insn + 1 != env->insn][i] =
				true;
	for (unsigned i = 6; i < 10; i++)
		if (last->code == (BPF_JMP | BPF_EXIT) && call &&
		    call->code == (BPF_JMP | BPF_CALL) && call->src_reg == BPF_PSEUDO_CALL &&
		    narrower(&regs[i], &before[env->insn - 1][i]))
			returns[env->insn - 1][i] = true;
}

static int visit(struct pb_bpf_verify *v, const struct env *env)
{
	struct visited *now = NULL;

	seen[env->insn % GEN_MOST] = true;
	if (env->insn < GEN_MOST) {
		if (env->prev_insn >= 0 && env->prev_insn < GEN_MOST)
			note_narrowed(v, env);
		memcpy(before[env->insn], cur_regs(env), sizeof before[0]);
	}
	if (env->prev_insn < 0 || env->prev_insn >= GEN_MOST)
		return 0;
	if (nr_visits < MOST_VISITS) {
		now = &visits[nr_visits++];
		now->insn = (uint32_t)env->prev_insn;
		now->arm = (uint32_t)env->prev_insn + 1 != env->insn;
	}
	for (int i = 0; i < 11; i++) {
		const struct reg *r = &cur_regs(env)[i];
		struct hull *h =
			&hulls[env->prev_insn][(uint32_t)env->prev_insn + 1 != env->insn][i];
		uint64_t unknown = h->var.mask | r->var.mask | (h->var.value ^ r->var.value);

		if (now)
			now->h[i] = (struct hull){ true, r->type == SCALAR, r->wide, r->low,
						   r->var };
		if (!h->any) {
			*h = (struct hull){ true, r->type == SCALAR, r->wide, r->low, r->var };
			continue;
		}
		h->number &= r->type == SCALAR;
		widen(&h->wide, &r->wide);
		widen(&h->low, &r->low);
		h->var = (struct tnum){ r->var.value & ~unknown, unknown };
	}
	return 0;
}

/* Finds the value of the key in a text like "a=b=0x12,c=3". Returns false if the text doesn't have
 * the key. */
static bool field(const char *text, size_t len, const char *key, uint64_t *v)
{
	size_t n = strlen(key);

	for (const char *p = text, *end = text + len; p < end; p++) {
		if (strncmp(p, key, n) || p[n] != '=' || (p > text && p[-1] != ',' && p[-1] != '='))
			continue;
		/* a value may have several names; the value follows the last name */
		for (const char *q = p; q < end && *q != ','; q++)
			p = *q == '=' ? q + 1 : p;
		*v = *p == '-' ? (uint64_t)strtoll(p, NULL, 0) : strtoull(p, NULL, 0);
		return true;
	}
	return false;
}

static void parse_range(const char *text, size_t len, int bits, struct range *r)
{
	const char *keys[] = { bits == 64 ? "smin" : "smin32", bits == 64 ? "smax" : "smax32",
			       bits == 64 ? "umin" : "umin32", bits == 64 ? "umax" : "umax32" };
	uint64_t v;

	*r = range_all(bits);
	if (field(text, len, keys[0], &v))
		r->smin = sign_extend(v, bits);
	if (field(text, len, keys[1], &v))
		r->smax = sign_extend(v, bits);
	if (field(text, len, keys[2], &v))
		r->umin = cut_to(v, bits);
	if (field(text, len, keys[3], &v))
		r->umax = cut_to(v, bits);
}

static bool is_constant(const char *text)
{
	return (*text >= '0' && *text <= '9') || (*text == '-' && text[1] >= '0' && text[1] <= '9');
}

/* Returns whether the kernel's constant is outside of our bounds. On an impossible path, Linux may
 * set a register to a constant that the register's bounds exclude. For example, the bounds are 5 to
 * 10, and the constant is 3. */
static bool is_outside(const char *text, const struct hull *h)
{
	uint64_t v;

	if (!h->any || !h->number || !is_constant(text))
		return false;
	v = *text == '-' ? (uint64_t)strtoll(text, NULL, 0) : strtoull(text, NULL, 0);

	return (int64_t)v < h->wide.smin || (int64_t)v > h->wide.smax || v < h->wide.umin ||
	       v > h->wide.umax;
}

/* Returns whether the kernel knows less of a scalar than h says. `text` is the log's text after
 * "R3=". */
static bool knows_less(const char *text, const struct hull *h)
{
	const char *open = text + strlen("scalar(");
	const char *end = strstr(open, "))"), *plain = strchr(open, ')'),
		   *off = strstr(open, "var_off=(");
	struct reg r = { .type = SCALAR, .var = TNUM_UNKNOWN };
	size_t len;

	if (!h->any || !h->number || strncmp(text, "scalar(", 7))
		return false;
	end = off && end && off < plain ? end : plain;
	if (!end)
		return false;
	len = (size_t)(end - open);
	parse_range(open, len, 64, &r.wide);
	parse_range(open, len, 32, &r.low);
	if (off && off < end)
		r.var = (struct tnum){ strtoull(off + 9, NULL, 0),
				       strtoull(strchr(off, ';') + 1, NULL, 0) };
	/* the kernel may write the log before it has deduced all bounds from each other */
	if (r.wide.smin >= INT32_MIN && r.wide.smax <= INT32_MAX) {
		r.low.smin = r.low.smin > r.wide.smin ? r.low.smin : r.wide.smin;
		r.low.smax = r.low.smax < r.wide.smax ? r.low.smax : r.wide.smax;
	}
	pbv_reg_sync(&r);
	return r.var.mask & ~h->var.mask || !range_in(&h->wide, &r.wide) ||
	       !range_in(&h->low, &r.low);
}

void sharper_plain(const char *text, char *out, size_t size)
{
	size_t n = 0;

	for (const char *p = text; *p && *p != '\n' && n + 2 < size; p++) {
		if ((*p >= '0' && *p <= '9') ||
		    ((*p == '-' || *p == '+') && p[1] >= '0' && p[1] <= '9')) {
			out[n++] = 'N';
			while ((p[1] >= '0' && p[1] <= '9') || p[1] == 'x' ||
			       (p[1] >= 'a' && p[1] <= 'f'))
				p++;
		} else {
			out[n++] = *p;
		}
	}
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = 0;
}

/* Returns whether nothing is known of the low half of a 32-bit operation's result. In that case, we
 * know more than the kernel only because we know that the upper half is 0. */
static bool only_upper(const struct pb_bpf_verify *v, uint32_t at)
{
	const struct hull *h = &hulls[at][0][v->insns[at].dst_reg];
	const struct range all = range_all(32);

	return BPF_CLASS(v->insns[at].code) == BPF_ALU && range_in(&h->low, &all) &&
	       (uint32_t)h->var.mask == UINT32_MAX;
}

static void name_insn(const struct pb_bpf_verify *v, uint32_t at, char *out, size_t size)
{
	char line[160];
	struct pb_bpf_text t = { .buf = line, .size = sizeof line };
	unsigned class = BPF_CLASS(v->insns[at].code);

	pb_bpf_disasm(&t, &v->insns[at], NULL);
	if (class == BPF_JMP || class == BPF_JMP32)
		snprintf(line, sizeof line, "a branch");
	else if (only_upper(v, at))
		snprintf(line, sizeof line, "a narrow operation");
	sharper_plain(line[0] == '(' ? line + 5 : line, out, size);
}

/* ---- registers in the log --------------------------------------------------------------- */

/*
 * Lines of the log are "7: (0f) r1 += r2   ; R1=... R2=...", "from 7 to 9: R1=..." or "8: R1=...".
 * shown_first() returns the start of the registers in a line. shown_next() finds the next register
 * from p on, and the register's text. It returns NULL if no register follows.
 */
static const char *shown_first(const char *line, const char *end)
{
	const char *semicolon = memchr(line, ';', (size_t)(end - line)),
		   *colon = memchr(line, ':', (size_t)(end - line));

	/* the var_off of a number also contains a semicolon */
	if (!semicolon || *line == 'f' || (colon && !strncmp(colon, ": R", 3)))
		return colon;
	return semicolon;
}

static const char *shown_next(const char *p, const char *end, unsigned *reg, const char **text)
{
	while (p && (p = strstr(p, " R")) && p < end) {
		char *rest;
		unsigned long n = strtoul(p + 2, &rest, 10);

		p += 2;
		while (*rest && *rest != '=' && *rest != ' ')
			rest++;
		if (n >= 11 || *rest != '=')
			continue;
		*reg = (unsigned)n;
		*text = rest + 1;
		return p;
	}
	return NULL;
}

/*
 * A branch also narrows registers that are linked to an operand of the branch. But the log shows
 * only the operands. It shows a linked register only when an instruction reads the register.
 * Therefore, links[] has two facts about each register. `id` is the register's last link in the
 * log. `compared` becomes true when a branch compares another register with this id. `compared`
 * becomes false when the log shows the register.
 */
static struct link {
	unsigned long id;
	bool compared;
} links[11], at_last[11];	/* at_last: the links before the last instruction of the log */

static unsigned long id_of(const char *text)
{
	const char *end = text + strcspn(text, ")\n"), *id = strstr(text, "(id=");

	return !strncmp(text, "scalar(", 7) && id && id < end ? strtoul(id + 4, NULL, 10) : 0;
}

static bool writes_dst(const struct bpf_insn *i)
{
	unsigned class = BPF_CLASS(i->code);

	return class == BPF_ALU || class == BPF_ALU64 || class == BPF_LD || class == BPF_LDX;
}

static void note_links(const struct bpf_insn *insn, const char *line, const char *end)
{
	struct link before[11];
	const char *text;
	unsigned reg;

	if (BPF_CLASS(insn->code) == BPF_JMP &&
	    (BPF_OP(insn->code) == BPF_CALL || BPF_OP(insn->code) == BPF_EXIT))
		memset(links, 0, sizeof links);
	memcpy(before, links, sizeof before);
	for (const char *p = shown_first(line, end); (p = shown_next(p, end, &reg, &text)); )
		links[reg] = (struct link){ id_of(text), false };
	if (*line == 'f' || !is_branch(insn))
		return;
	/* At a branch, the kernel may end the link of an operand. Then links[] gets the operand's
	 * old link back, so that the next loop finds the registers that were linked to it. */
	for (const char *p = shown_first(line, end); (p = shown_next(p, end, &reg, &text)); )
		if (!links[reg].id && (!strncmp(text, "scalar(", 7) || is_constant(text)))
			links[reg].id = before[reg].id;
	for (const char *p = shown_first(line, end); (p = shown_next(p, end, &reg, &text)); )
		for (unsigned i = 0; i < 11; i++)
			links[i].compared |= links[reg].id && links[i].id == links[reg].id;
	for (const char *p = shown_first(line, end); (p = shown_next(p, end, &reg, &text)); )
		links[reg].compared = false;
}

/* ---- the first difference --------------------------------------------------------------- */

enum less { NO, HERE, AT_BRANCH };

/* Returns whether the kernel knows less than we do after this line. AT_BRANCH: the kernel knows
 * less of a register that the instruction only reads. So the kernel has forgotten something at an
 * earlier branch. */
static enum less line_knows_less(const struct bpf_insn *insn, const char *line, const char *end,
				 const struct hull *h)
{
	enum less less = NO;
	const char *text;
	unsigned reg;

	for (const char *p = shown_first(line, end); (p = shown_next(p, end, &reg, &text)); ) {
		if (!knows_less(text, &h[reg]) &&
		    !((links[reg].compared || is_branch(insn)) && is_outside(text, &h[reg])))
			continue;
		if (*line != 'f' && !is_branch(insn) &&
		    !(writes_dst(insn) && insn->dst_reg == reg) && links[reg].compared)
			return AT_BRANCH;
		less = HERE;
	}
	return less;
}

/* Returns whether the instruction is a branch and `compared` is set for one of its operands. */
static bool compares_linked(const struct bpf_insn *insn)
{
	return is_branch(insn) && (links[insn->dst_reg].compared ||
				   (BPF_SRC(insn->code) == BPF_X && links[insn->src_reg].compared));
}

/* Like compares_linked(), but for the instruction that the kernel refuses. The log doesn't show the
 * registers after this instruction, so the links before it are used. */
static bool reads_linked(const struct bpf_insn *insn)
{
	unsigned class = BPF_CLASS(insn->code);
	bool moves = class == BPF_ALU64 && BPF_OP(insn->code) == BPF_MOV;
	bool reads_src = class == BPF_LDX || class == BPF_STX || BPF_SRC(insn->code) == BPF_X;
	bool reads_dst = class != BPF_LDX && class != BPF_LD && !moves;
	bool any = false;

	if (insn->code == (BPF_JMP | BPF_CALL)) {
		for (unsigned i = 1; i <= 5; i++)
			any |= at_last[i].compared;
		return any;
	}
	return (reads_dst && at_last[insn->dst_reg].compared) ||
	       (reads_src && at_last[insn->src_reg].compared);
}

/* Returns what we know after the n-th visit of an instruction. Counts only visits that continued on
 * path `arm`. Returns NULL if there are fewer visits. */
static const struct hull *nth_visit(unsigned long at, unsigned arm, uint32_t n)
{
	for (uint32_t i = 0; i < nr_visits; i++)
		if (visits[i].insn == at && visits[i].arm == arm && !n--)
			return visits[i].h;
	return NULL;
}

/* Like look_at(), but compares each iteration of a loop separately. */
static void look_at_iteration(const struct pb_bpf_verify *v, unsigned long at, unsigned long to,
			      const char *line, const char *end, char *out, size_t size)
{
	unsigned arm = at + 1 != to;
	const struct hull *h;

	if (out[0] || at >= v->nr || at >= GEN_MOST || nr_visits == MOST_VISITS)
		return;
	h = nth_visit(at, arm, lines_of[at][arm]++);
	if (h ? line_knows_less(&v->insns[at], line, end, h) != NO :
		hulls[at][arm][10].any && is_branch(&v->insns[at]))
		name_insn(v, (uint32_t)at, out, size);
}

/* Compares the registers in a line of the log with hulls[]. The line is about the path from
 * instruction `at` to instruction `to`. */
static void look_at(const struct pb_bpf_verify *v, unsigned long at, unsigned long to,
		    const char *line, const char *end, char *out, size_t size)
{
	unsigned arm = at + 1 != to;
	enum less less;

	if (out[0] || at >= v->nr || at >= GEN_MOST)
		return;
	/* if a jump is always taken, the log has no line "from ... to ..." */
	if (*line != 'f' && !hulls[at][arm][10].any)
		arm ^= 1;
	less = line_knows_less(&v->insns[at], line, end, hulls[at][arm]);
	if (!less && *line != 'f' && arm == 1 && compares_linked(&v->insns[at]))
		less = AT_BRANCH;
	if (less == AT_BRANCH)
		snprintf(out, size, "a branch");
	else if (less || (*line == 'f' && !hulls[at][arm][10].any))
		name_insn(v, (uint32_t)at, out, size);
	if (*line == 'f')
		memset(links, 0, sizeof links);
	memcpy(at_last, links, sizeof at_last);
	note_links(&v->insns[at], line, end);
	for (unsigned i = 0; i < 11; i++)
		links[i].compared |= narrowed[at][at + 1 != to][i] ||
				     (*line == 'f' && to && to <= v->nr && returns[to - 1][i]);
}

typedef void look_fn(const struct pb_bpf_verify *v, unsigned long at, unsigned long to,
		     const char *line, const char *end, char *out, size_t size);

/* Returns whether our verifier knows that the branch is always taken. The caller has found that the
 * branch falls through in the kernel's log. */
static bool goes_where_we_do_not(const struct pb_bpf_verify *v, unsigned long branch)
{
	return is_branch(&v->insns[branch]) && !hulls[branch][0][10].any &&
	       hulls[branch][1][10].any;
}

/* Passes each line of the log to `look`. Returns the last instruction of the log. */
static unsigned long read_log(const struct pb_bpf_verify *v, const char *log, look_fn *look,
			      char *out, size_t size)
{
	unsigned long last = 0;
	bool straight = false;	/* the previous line is about the previous instruction */

	for (const char *line = log, *end; *line; line = *end ? end + 1 : end) {
		char *rest;
		unsigned long at = strtoul(line, &rest, 10);

		end = line + strcspn(line, "\n");
		if (!strncmp(line, "from ", 5)) {
			straight = false;
			look(v, strtoul(line + 5, &rest, 10), strtoul(rest + 4, NULL, 10), line,
			     end, out, size);
			continue;
		}
		/* if the kernel writes other text after an instruction, the state after the
		 * instruction is on a separate line */
		if (rest != line && !strncmp(rest, ": R", 3) && at &&
		    (at == last + 1 || at == last) && look == look_at)
			look(v, at - 1, at, line, end, out, size);
		if (rest == line || strncmp(rest, ": (", 3) || at >= v->nr || at >= GEN_MOST)
			continue;
		if (straight && at == last + 1 && look == look_at && !out[0] &&
		    goes_where_we_do_not(v, last))
			snprintf(out, size, "a branch");
		straight = true;
		last = at;
		look(v, at, at + 1, line, end, out, size);
	}
	return last;
}

void sharper_at(struct pb_bpf_verify v, const char *kernel_log, bool visits_apart, char *out,
		size_t size, bool *dead)
{
	unsigned long last;

	memset(hulls, 0, sizeof hulls);
	memset(seen, 0, sizeof seen);
	memset(links, 0, sizeof links);
	memset(at_last, 0, sizeof at_last);
	memset(before, 0, sizeof before);
	memset(narrowed, 0, sizeof narrowed);
	memset(returns, 0, sizeof returns);
	memset(lines_of, 0, sizeof lines_of);
	nr_visits = 0;
	v.visit = visit;
	v.facts = NULL;
	if (!pb_bpf_verify(&v))
		pb_bpf_facts_free(v.mem, v.facts);
	out[0] = 0;
	if (!visits_apart)
		read_log(&v, kernel_log, look_at, out, size);
	last = read_log(&v, kernel_log, look_at_iteration, out, size);
	if (!out[0] && !visits_apart && last < v.nr && reads_linked(&v.insns[last]))
		snprintf(out, size, "a branch");
	*dead = !seen[last % GEN_MOST];
}
