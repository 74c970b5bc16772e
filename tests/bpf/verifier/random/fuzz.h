/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations for the files of bpf_fuzz_verifier. fuzz_verifier.c makes programs in child
 * processes. fuzz_judge.c tests a program, and fuzz_run.c runs it. fuzz_class.c names the reason
 * why our verdict differs from the kernel's. fuzz_report.c reports findings.
 */
#ifndef PB_TEST_FUZZ_H
#define PB_TEST_FUZZ_H
#include <stdio.h>
#include "beliefs.h"
#include "bpf/run/fixup.h"
#include "weave.h"

#define MOST_CLASSES	200
#define MOST_WORDS	160

/* What is wrong with a program. fuzz_finding_names has the text for each finding. */
enum finding {
	NOTHING, ACCESS, BELIEF, BASE, ENGINES, KERNEL, HIDDEN, ADDRESSES, LAXER, NR_FINDINGS
};
extern const char *const fuzz_finding_names[NR_FINDINGS];

struct fuzz_options {
	uint64_t seed, programs;
	double seconds;
	int inputs, changes, loud;
	bool kernel, again, seeded, first;
	const char *file;
};
extern struct fuzz_options fuzz_opt;

/* Progress and counts, in memory that all processes share. both: programs that Patchbay and the
 * kernel both accept; neither: programs that both refuse; unheard: programs whose deductions could
 * not all be recorded. */
struct fuzz_counts {
	uint64_t at, programs, verdicts, accepted, executions, kernel_runs, both, neither, stricter,
		 laxer, known, gave_up, kernel_bugs, unheard, compared, found[NR_FINDINGS];
	struct class {
		char text[160];
		uint64_t count, seed;
		int change;
	} classes[2][MOST_CLASSES];	/* laxer, stricter */
	int nr_classes[2];
};
extern struct fuzz_counts *fuzz_all;

/* Deductions about the program that fuzz_judge() tested last. fuzz_states is from the verification
 * with whole states (verify_whole() in fuzz_judge.c). fuzz_bases is from the usual verification,
 * and has only pointers through which memory is accessed. */
extern struct beliefs fuzz_states, fuzz_bases;
extern char fuzz_why[400];		/* the details of the last finding */
extern char fuzz_log[1 << 20];		/* the last log of our verifier */

/* The privileges for verification. Some programs are verified without the right to learn addresses.
 * The kernel isn't asked about these programs. */
extern uint32_t fuzz_caps;
void fuzz_choose_caps(uint64_t seed);
struct pb_bpf_verify fuzz_to_verify(const struct gen_program *p);
/* Asks our verifier for the bounds that the generator needs. */
weave_ask fuzz_ask_bounds;

/* Tests one program. *accepted gets whether we accept the program. *kernel gets the kernel's
 * verdict, or 0 if the kernel isn't asked. */
enum finding fuzz_judge(const struct gen_program *p, uint64_t seed, bool ask, bool *accepted,
			int *kernel);
/* Returns `what`. Stores the formatted text in fuzz_why. */
enum finding fuzz_find(enum finding what, const char *format, ...);

/* An accepted program. */
struct subject {
	const struct gen_program *p;
	struct pb_bpf_verify v;
	struct pb_bpf_resolved r;
	struct pb_bpf_prog *prog;
	uint64_t words[MOST_WORDS];	/* numbers that inputs contain */
	int nr_words, fd;		/* fd: the program in the kernel, or -1 */
	uint64_t seed;
};
/* Replaces helpers with the world's helpers (world_stand_in()). */
void fuzz_stand_in(struct pb_bpf_resolved *r);
/* Runs the program with input number n in all ways that fuzz_run.c describes, and compares the
 * results. */
enum finding fuzz_run(struct subject *s, int n);

/* Finds the last line of a log before the statistics. Stores the line without its numbers in
 * `out`. */
void fuzz_name_class(const char *log, char *out, size_t size);
/* Counts a class of laxer (which = 0) or stricter (which = 1) verdicts. Returns whether the class
 * is new. */
bool fuzz_count_class(int which, const char *text, uint64_t seed, int change);
/* Returns whether the class is a known reason to accept programs that the kernel refuses. */
bool fuzz_is_known(const char *text);
/* Stores the kernel's reason to refuse the program in `out`. Returns false if the kernel accepts
 * the program this time, or gives up. */
bool fuzz_laxer_words(const struct gen_program *p, char *out, size_t size);
/* Classifies a reduced program. The class names the instruction after which we know more than the
 * kernel. */
void fuzz_laxer_class(const struct gen_program *p, char *out, size_t size);
/* Stores our verifier's reason to refuse the program, without its numbers, in `out`. */
void fuzz_stricter_class(const struct gen_program *p, char *out, size_t size);

/* Reduces a program with a finding, and reports it. */
void fuzz_report(const struct gen_program *p, uint64_t seed, enum finding what, int change);
/* Compares our verdict with the kernel's verdict. Counts and reports a difference. */
void fuzz_compare(const struct gen_program *p, uint64_t seed, int change, bool accepted,
		  int kernel);
void fuzz_print(const struct gen_program *p);
/* Reads a report. If the user gave no seed, takes the seed from the report. */
bool fuzz_read(FILE *f, struct gen_program *p);
#endif
