/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names and counts the reasons why our verdict differs from the kernel's verdict. A class is the
 * last line of a log without its numbers, or the instruction after which we know more than the
 * kernel (sharper.h). `known` lists the classes whose programs are proven safe.
 */
#include <stdio.h>
#include <string.h>
#include "ask.h"
#include "bpf/run/heap.h"
#include "fuzz.h"
#include "sharper.h"

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

void fuzz_name_class(const char *log, char *out, size_t size)
{
	const char *end = strstr(log, "\nprocessed "), *line;

	end = end ? end : log + strlen(log);
	while (end > log && end[-1] == '\n')
		end--;
	for (line = end; line > log && line[-1] != '\n'; line--)
		;
	sharper_plain(line, out, size);
}

bool fuzz_count_class(int which, const char *text, uint64_t seed, int change)
{
	struct class *c;

	for (int i = 0; i < fuzz_all->nr_classes[which]; i++) {
		if (!strcmp(fuzz_all->classes[which][i].text, text)) {
			fuzz_all->classes[which][i].count++;
			return false;
		}
	}
	if (fuzz_all->nr_classes[which] == MOST_CLASSES)
		return false;
	c = &fuzz_all->classes[which][fuzz_all->nr_classes[which]];
	*c = (struct class){ .count = 1, .seed = seed, .change = change };
	snprintf(c->text, sizeof c->text, "%s", text);
	fuzz_all->nr_classes[which]++;
	return true;
}

bool fuzz_is_known(const char *text)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i], text))
			return true;
	return false;
}

bool fuzz_laxer_words(const struct gen_program *p, char *out, size_t size)
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
 * instruction. At such a branch, a verifier can only gain knowledge. So if the kernel accepts the
 * program without the branch, the kernel has forgotten something at the branch.
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

void fuzz_laxer_class(const struct gen_program *p, char *out, size_t size)
{
	char insn[100], words[140];
	bool dead;

	fuzz_laxer_words(p, words, sizeof words);
	/* first compare all visits of an instruction together; if this doesn't give a known class,
	 * compare each visit separately */
	for (int visits = 0; visits < 2; visits++) {
		sharper_at(fuzz_to_verify(p), ask_log, visits, insn, sizeof insn, &dead);
		if (insn[0])
			snprintf(out, size, "we know more after: %s", insn);
		else
			snprintf(out, size, "%s%s", dead ? "(never) " : "", words);
		if (fuzz_is_known(out))
			return;
	}
	if (!fuzz_is_known(out) && forgets_at_branch(p))
		snprintf(out, size, "we know more after: a branch");
}

void fuzz_stricter_class(const struct gen_program *p, char *out, size_t size)
{
	struct pb_bpf_text log = { .buf = fuzz_log, .size = sizeof fuzz_log };
	struct pb_bpf_verify v = fuzz_to_verify(p);

	fuzz_log[0] = 0;
	v.log = &log;
	v.log_level = 1;
	pb_bpf_verify(&v);
	pb_bpf_facts_free(&pb_bpf_heap, v.facts);
	fuzz_name_class(fuzz_log, out, size);
}
