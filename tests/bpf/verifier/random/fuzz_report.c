/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reports findings of the fuzzer, and reads reports again. Before the report, the program is
 * reduced to the instructions that are necessary for the finding.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ask.h"
#include "fuzz.h"
#include "reduce.h"

const char *const fuzz_finding_names[NR_FINDINGS] = {
	"nothing", "an access outside", "a wrong deduction", "a wrong deduction (states pruned)",
	"engines differ", "the kernel's result differs", "pruning hides a refusal",
	"result depends on addresses", "laxer than the kernel",
};

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
		f = fuzz_judge(p, s->seed, s->what == KERNEL, &accepted, &kernel);
		return f == s->what;
	}
	return ask_answer(ask_verdict(p, 0)) == ASK_REFUSES &&
	       fuzz_ask_bounds(p, 0, (struct weave_bounds[10]){ { 0 } }) &&
	       fuzz_laxer_words(p, class, sizeof class) && !strcmp(class, s->class);
}

static FILE *to;

static void print_line(const char *text)
{
	fprintf(to, "%s\n", text);
}

void fuzz_print(const struct gen_program *p)
{
	to = stdout;
	reduce_print(p, print_line);
}

/* Prints a finding. p is the program, q is the reduced program. */
static void report(const struct gen_program *p, const struct gen_program *q, const struct sought *s,
		   int change, const char *first)
{
	for (int i = 0; i < 2; i++) {
		to = i ? fuzz_opt.file ? fopen(fuzz_opt.file, "a") : NULL : stdout;
		if (!to)
			continue;
		fprintf(to, "FOUND %s: seed %lu, change %d, type %s: %s\n",
			fuzz_finding_names[s->what], s->seed, change, pb_bpf_type_of(p->type)->name,
			s->what == LAXER ? s->class : first);
		if (s->what != LAXER)
			fprintf(to, "  reduced: %s\n", fuzz_why);
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

	if (!fuzz_laxer_words(p, s.class, sizeof s.class)) {
		fuzz_all->gave_up++;
		return;
	}
	reduce(&q, shows, &s);
	fuzz_laxer_class(&q, s.class, sizeof s.class);
	fuzz_all->laxer++;
	fuzz_all->known += fuzz_is_known(s.class);
	if (!fuzz_count_class(0, s.class, seed, change) || fuzz_is_known(s.class))
		return;
	fuzz_all->found[LAXER]++;
	report(p, &q, &s, change, "");
}

void fuzz_compare(const struct gen_program *p, uint64_t seed, int change, bool accepted,
		  int kernel)
{
	enum ask_answer said = ask_answer(kernel);
	char class[160];

	fuzz_all->verdicts++;
	fuzz_all->both += accepted && !kernel;
	fuzz_all->neither += !accepted && kernel;
	if (accepted == !kernel || fuzz_bases.visits >= BELIEFS_VISITS / 10)
		return;
	if (!accepted) {
		fuzz_all->stricter++;
		fuzz_stricter_class(p, class, 160);
		fuzz_count_class(1, class, seed, change);
		return;
	}
	fuzz_all->kernel_bugs += said == ASK_HAS_BUG;
	fuzz_all->gave_up += said == ASK_GIVES_UP;
	if (said == ASK_REFUSES)
		count_laxer(p, seed, change);
}

void fuzz_report(const struct gen_program *p, uint64_t seed, enum finding what, int change)
{
	struct sought s = { .seed = seed, .what = what };
	struct gen_program q = *p;
	char first[sizeof fuzz_why];

	snprintf(first, sizeof first, "%s", fuzz_why);
	reduce(&q, shows, &s);
	shows(&q, &s);
	report(p, &q, &s, change, first);
}

/* Reads a report. Its first line has "FOUND", "seed N" and "type NAME". A line "function:" comes
 * before each function. In the line of an instruction, the instruction's bytes follow ";" as one or
 * two hexadecimal numbers. */
bool fuzz_read(FILE *f, struct gen_program *p)
{
	char line[400];
	uint64_t raw;

	memset(p, 0, sizeof *p);
	while (fgets(line, sizeof line, f)) {
		bool first = !strncmp(line, "FOUND ", 6);
		char *type = strstr(line, "type "), *semicolon = strchr(line, ';'),
		     *seed = strstr(line, "seed ");

		if (type && first) {
			if (seed && !fuzz_opt.seeded)
				fuzz_opt.seed = strtoull(seed + 5, NULL, 10);
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
