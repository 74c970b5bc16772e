/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replaces instructions with no-ops. Keeps a replacement only if the program still shows the
 * finding. Then removes no-ops in the same way (reduce.h). */
#include <stdio.h>
#include <string.h>
#include "bpf/core/disasm.h"
#include "bpf/core/opcodes.h"
#include "reduce.h"

static const struct bpf_insn nop = { .code = BPF_JMP | BPF_JA };

static bool is_nop(const struct bpf_insn *i)
{
	return !memcmp(i, &nop, sizeof nop);
}

static bool is_wide(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* Returns the target of a jump, of a call, or of a load of a function's address. Returns -1 if the
 * instruction has no target. */
static int target(const struct gen_program *p, int at)
{
	const struct bpf_insn *i = &p->insns[at];
	unsigned class = BPF_CLASS(i->code), op = BPF_OP(i->code);

	if ((is_wide(i) && i->src_reg == BPF_PSEUDO_FUNC) ||
	    (i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL) ||
	    i->code == (BPF_JMP32 | BPF_JA))
		return at + 1 + i->imm;
	if ((class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT)
		return at + 1 + i->off;
	return -1;
}

/* Removes the no-op at `only`, or all no-ops if `only` is -1. */
static void close_up(struct gen_program *p, int only)
{
	int places[GEN_MOST + 1], nr = 0;	/* places[i]: new index of instruction i */
	struct gen_program q = *p;

	for (int i = 0; i < p->nr; i++) {
		places[i] = nr;
		nr += !is_nop(&p->insns[i]) || (i && is_wide(&p->insns[i - 1])) ||
		      (only >= 0 && i != only);
	}
	places[p->nr] = nr;
	for (int i = 0; i < p->nr; i++) {
		struct bpf_insn insn = p->insns[i];
		int to = target(p, i);

		if (places[i + 1] == places[i])
			continue;
		if (to >= 0 && to <= p->nr) {
			int by = places[to] - places[i] - 1;

			if (is_wide(&insn) || insn.code == (BPF_JMP | BPF_CALL) ||
			    insn.code == (BPF_JMP32 | BPF_JA))
				insn.imm = by;
			else
				insn.off = (int16_t)by;
		}
		q.insns[places[i]] = insn;
		if (is_wide(&insn) && i + 1 < p->nr) {
			q.insns[places[i] + 1] = p->insns[i + 1];
			i++;
		}
	}
	for (uint32_t i = 0; i < q.nr_funcs; i++)
		q.funcs[i].insn = (uint32_t)places[q.funcs[i].insn];
	q.nr = nr;
	*p = q;
}

static bool leave_out(struct gen_program *p, reduce_shows *shows, void *arg)
{
	bool some = false;

	for (int i = p->nr - 1; i >= 0; i--) {
		struct bpf_insn was[2] = { p->insns[i], p->insns[i + 1] };

		if (is_nop(&was[0]) || (i && is_wide(&p->insns[i - 1])))
			continue;
		p->insns[i] = nop;
		if (is_wide(&was[0]))
			p->insns[i + 1] = nop;
		if (shows(p, arg)) {
			some = true;
			continue;
		}
		p->insns[i] = was[0];
		p->insns[i + 1] = was[1];
		/* if the branch is needed, try an unconditional jump */
		if (target(p, i) >= 0 && BPF_OP(was[0].code) != BPF_CALL &&
		    BPF_OP(was[0].code) != BPF_JA && !is_wide(&was[0])) {
			p->insns[i] = (struct bpf_insn){ .code = BPF_JMP | BPF_JA,
							 .off = was[0].off };
			if (shows(p, arg)) {
				some = true;
				continue;
			}
			p->insns[i] = was[0];
		}
	}
	return some;
}

/* Removes no-ops one by one. The number of no-ops decides where the verifier keeps states, so the
 * finding may need some no-ops. */
static void close_some(struct gen_program *p, reduce_shows *shows, void *arg)
{
	for (int i = p->nr - 1; i >= 0; i--) {
		struct gen_program q = *p;

		if (!is_nop(&p->insns[i]) || (i && is_wide(&p->insns[i - 1])))
			continue;
		close_up(&q, i);
		if (shows(&q, arg))
			*p = q;
	}
}

/* Removes the list of functions, if the program shows the finding without the list. */
static void drop_funcs(struct gen_program *p, reduce_shows *shows, void *arg)
{
	struct gen_program q = *p;

	q.nr_funcs = 0;
	if (p->nr_funcs && shows(&q, arg))
		*p = q;
}

/* Cuts off the program's end. Keeps the shortest beginning of the program that shows the
 * finding. */
static void cut_end(struct gen_program *p, reduce_shows *shows, void *arg)
{
	struct gen_program q = *p;

	for (int nr = 2; nr < p->nr; nr++) {
		q.nr = nr;
		while (q.nr_funcs && q.funcs[q.nr_funcs - 1].insn >= (uint32_t)nr)
			q.nr_funcs--;
		if (shows(&q, arg)) {
			*p = q;
			return;
		}
		q.nr_funcs = p->nr_funcs;
	}
}

void reduce(struct gen_program *p, reduce_shows *shows, void *arg)
{
	struct gen_program q;

	for (int round = 0; round < 5; round++) {
		bool again = leave_out(p, shows, arg);

		q = *p;
		close_up(&q, -1);
		if (shows(&q, arg))
			*p = q;
		cut_end(p, shows, arg);
		if (!again)
			break;
	}
	close_some(p, shows, arg);
	drop_funcs(p, shows, arg);
}

void reduce_print(const struct gen_program *p, void (*line)(const char *text))
{
	char text[200];

	for (int i = 0; i < p->nr; i++) {
		struct pb_bpf_text t = { .buf = text, .size = sizeof text };
		const uint64_t *raw = (const void *)&p->insns[i];
		char *end;

		if (i && is_wide(&p->insns[i - 1]))
			continue;
		for (uint32_t n = 0; n < p->nr_funcs; n++)
			if (p->funcs[n].insn == (uint32_t)i)
				line("  function:");
		pb_bpf_printf(&t, "%4d: ", i);
		pb_bpf_disasm(&t, &p->insns[i], NULL);
		end = text + strlen(text);
		end += snprintf(end, sizeof text - (size_t)(end - text), "%*s; %016lx",
				end - text < 50 ? (int)(50 - (end - text)) : 1,
				"", (unsigned long)raw[0]);
		if (is_wide(&p->insns[i]))
			snprintf(end, sizeof text - (size_t)(end - text), "+%016lx",
				 (unsigned long)raw[1]);
		line(text);
	}
}
