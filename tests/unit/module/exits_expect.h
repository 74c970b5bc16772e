/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For tests of exits: macros for functions in assembly, and compare(), which compares the exits
 * that the analysis finds in each function with the expected exits. */
#ifndef PB_TEST_EXITS_EXPECT_H
#define PB_TEST_EXITS_EXPECT_H
#include "module_files.h"
#include "module/analysis/exit_types.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"

#define MAX_UNITS 64

static const char *const kinds[] = {
	"ret", "ret_pops", "jmp", "jcc", "indirect", "fall", "undecoded"
};
static const char *const hows[] = {
#define X(name, text) #name,
	PB_EXIT_HOW_LIST(X)
#undef X
};
static const char *const whys[] = {
#define X(name, text) #name,
	PB_INEXIT_LIST(X)
#undef X
};

struct expected {
	const char *name;
	const char *is;		/* If all exits are hooked: "NOT", and then " kind+offset:how" for
				 * each exit. Otherwise the name from PB_INEXIT_LIST that says why
				 * not all exits are hooked. If the function has PB_FUNC_GOES_ON,
				 * the text begins with "goes on, " */
};

static inline const struct pb_fn *named(const struct pb_an *an, const char *name)
{
	for (size_t i = 0; i < an->fns.n; i++)
		for (size_t k = 0; k < an->fns.v[i].nr_cands; k++) {
			const struct pb_cand *c = &an->cands.v[an->fns.v[i].cand + k];

			if (c->len == strlen(name) && !memcmp(c->name, name, c->len))
				return &an->fns.v[i];
		}
	return NULL;
}

/* Describes the exits of f in the form of struct expected's member `is`. All offsets are from the
 * function's start, even if an exit is in another unit of the function. A unit is the code of one
 * FDE. */
static inline void describe(const struct pb_an *an, const struct pb_fn *f, char *to, size_t size)
{
	uint32_t units[MAX_UNITS];
	size_t n = pb_exits_units(an, f, units, MAX_UNITS);
	int len = snprintf(to, size, "%s%s", f->flags & PB_FUNC_GOES_ON ? "goes on, " : "",
			   whys[f->inexit]);

	for (size_t u = 0; !f->inexit && u < n; u++)
		for (size_t k = pb_exits_lower(an, units[u]);
		     k < an->exits.n && an->exits.v[k].unit == units[u]; k++) {
			const struct pb_fn_exit *e = &an->exits.v[k];

			if (e->exit)
				len += snprintf(to + len, size - (size_t)len, " %s%+ld:%s",
						kinds[e->kind], (long)(e->addr - f->addr),
						hows[e->how]);
		}
}

static inline void compare(struct pb_an *an, void *arg)
{
	unsigned wrong = 0;

	for (const struct expected *x = arg; x->name; x++) {
		const struct pb_fn *f = named(an, x->name);
		char is[512] = "not a function";

		if (f)
			describe(an, f, is, sizeof(is));
		if (strcmp(is, x->is)) {
			print_message("%s: expected \"%s\", is \"%s\"\n", x->name, x->is, is);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

static inline void visit(const char *path, void (*how)(struct pb_an *, void *), void *arg)
{
	const char *why = "can't be opened";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pb_analyse_visit(fd, path, PB_MODULE_RETURNS, how, arg, &why), 0);
	close(fd);
}

#define MACROS \
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n" \
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n" \
	/* "far" separates functions: it has no padding and no room for a code slot */ \
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n" \
	" .endr\n1: ret\n.cfi_endproc\n.endm\n" \
	".macro push_rbx\n push %rbx\n .cfi_adjust_cfa_offset 8\n.endm\n" \
	".macro pop_rbx\n pop %rbx\n .cfi_adjust_cfa_offset -8\n.endm\n" \
	".macro body\n mov %rdi,%rax\n add %rsi,%rax\n imul %rdx,%rax\n.endm\n"
#define END ".section .note.GNU-stack,\"\",@progbits\n"
#endif
