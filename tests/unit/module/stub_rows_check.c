/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares the unwind rows of stubs with those of the code that the stubs replace.
 *
 *   stub_rows_check [-v] FILE...
 *
 * A row says where the CFA, the return address and the callee-saved registers are found. At the
 * copy of each displaced instruction, the stub's row must equal the row that the module's own table
 * has for the original instruction. At a stub's entry, and at the code that replaces an exit, the
 * row must be the row of a function's first instruction: the return address is on top of the stack,
 * and no register is saved. Prints a line for each file, and with -v also each row that differs.
 * The exit status is 1 if any row differs, and 2 after an error.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <err.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "abi/analysis_place.h"
#include "abi/stubs.h"
#include "arch/arch.h"
#include "module/module.h"

static int verbose;
static const int kept[] = { 3, 6, 12, 13, 14, 15, 16 };	/* DWARF numbers of rbx, rbp, r12 to r15,
							 * and the return address */
#define NR_KEPT (sizeof(kept) / sizeof(kept[0]))

struct rule {
	size_t nops;
	Dwarf_Op ops[16];
};
struct frame {
	int found;
	struct rule cfa, regs[NR_KEPT];
};

struct file {
	Elf *elf, *stubs;
	Dwarf_CFI *cfi, *debug_cfi, *stub_cfi;
	const struct pb_analysis *a;
	const struct pb_stubs *head;
	unsigned long same, differ, none;
};

static void copy_rule(struct rule *r, const Dwarf_Op *ops, size_t n)
{
	r->nops = n;
	for (size_t i = 0; i < n && i < 16; i++) {
		/* copies neither padding nor the offset from which the operation was read */
		r->ops[i].atom = ops[i].atom;
		r->ops[i].number = ops[i].number;
		r->ops[i].number2 = ops[i].number2;
	}
}

static struct frame frame_at(Dwarf_CFI *cfi, uint64_t addr)
{
	struct frame f;
	Dwarf_Frame *d;
	Dwarf_Op *ops, mem[3];
	size_t n;

	memset(&f, 0, sizeof(f));
	if (!cfi || dwarf_cfi_addrframe(cfi, addr, &d))
		return f;
	f.found = 1;
	if (!dwarf_frame_cfa(d, &ops, &n))
		copy_rule(&f.cfa, ops, n);
	for (unsigned i = 0; i < NR_KEPT; i++) {
		if (dwarf_frame_register(d, kept[i], mem, &ops, &n))
			continue;
		/* neither a register without a rule nor a register that keeps its value has
		 * operations */
		copy_rule(&f.regs[i], ops, n);
	}
	free(d);
	return f;
}

static int same_frame(const struct frame *a, const struct frame *b)
{
	return !memcmp(&a->cfa, &b->cfa, sizeof(a->cfa)) &&
	       !memcmp(a->regs, b->regs, sizeof(a->regs));
}

static void print_frame(const char *what, const struct frame *f)
{
	printf("    %s: ", what);
	for (size_t i = 0; i < f->cfa.nops; i++)
		printf("%x,%lld ", f->cfa.ops[i].atom,
		       (long long)f->cfa.ops[i].number2 ? (long long)f->cfa.ops[i].number2 :
							  (long long)f->cfa.ops[i].number);
	for (unsigned i = 0; i < NR_KEPT; i++)
		if (f->regs[i].nops)
			printf(" r%d@%lld", kept[i],
			       (long long)f->regs[i].ops[f->regs[i].nops > 1].number);
	printf("%s\n", f->found ? "" : "none");
}

static void compare(struct file *t, const char *what, uint64_t addr, uint64_t copy)
{
	struct frame want = frame_at(t->cfi, addr), is;

	if (!want.found)
		want = frame_at(t->debug_cfi, addr);
	if (!want.found) {
		t->none++;
		return;
	}
	is = frame_at(t->stub_cfi, copy);
	if (is.found && same_frame(&want, &is)) {
		t->same++;
		return;
	}
	t->differ++;
	if (verbose) {
		int64_t i = pb_analysis_lower(t->a, addr);

		printf("  %s %llx %s+%llx, copy at %llx\n", what, (unsigned long long)addr,
		       i < 0 ? "" : pb_func_name(t->a, pb_analysis_funcs(t->a) + i),
		       i < 0 ? 0ull : (unsigned long long)(addr - pb_analysis_funcs(t->a)[i].addr),
		       (unsigned long long)copy);
		print_frame("program", &want);
		print_frame("stub", &is);
	}
}

static int none_saved(const struct frame *f)
{
	for (unsigned i = 0; i + 1 < NR_KEPT; i++)
		if (f->regs[i].nops)
			return 0;
	return 1;
}

/* Checks that the row is that of a function's first instruction: CFA = rsp + 8, no register is
 * saved. */
static void compare_entry(struct file *t, const char *what, uint64_t addr, uint64_t copy)
{
	struct frame is = frame_at(t->stub_cfi, copy);
	const Dwarf_Op *op = is.cfa.ops;

	if (is.found && is.cfa.nops == 1 && op->atom == DW_OP_bregx && op->number == 7 &&
	    op->number2 == 8 && none_saved(&is)) {
		t->same++;
		return;
	}
	t->differ++;
	if (verbose) {
		printf("  %s %llx, copy at %llx\n", what, (unsigned long long)addr,
		       (unsigned long long)copy);
		print_frame("stub", &is);
	}
}

static void check_recipe(struct file *t, const char *what, uint64_t window, uint64_t body,
			 const struct pb_recipe *r)
{
	const struct pb_pair *p = pb_recipe_pairs(r);

	for (unsigned i = 0; i < r->nr_pairs; i++)
		if (p[i].orig < r->window_len &&
		    (i + 1 == r->nr_pairs || p[i].copy < p[i + 1].copy))
			compare(t, what, window + p[i].orig, body + p[i].copy);
}

static void check_body(struct file *t, const char *what, const struct pb_place *p, uint64_t body)
{
	const struct pb_recipe *r = p->recipe;

	/* at the code that replaces an exit, the row must be that of a function's first
	 * instruction */
	for (unsigned i = 0; i < r->nr_pairs; i++) {
		const struct pb_pair *pair = pb_recipe_pairs(r) + i;
		int exit = 0;

		for (unsigned k = 0; k < p->nr_exits; k++)
			exit |= p->exits[k].off == pair->orig && p->exits[k].kind != PB_EXIT_JCC;
		if (pair->orig >= r->window_len ||
		    (i + 1 < r->nr_pairs && pair[1].copy == pair->copy))
			continue;
		if (exit)
			compare_entry(t, "exit", p->window + pair->orig, body + pair->copy);
		else
			compare(t, what, p->window + pair->orig, body + pair->copy);
	}
	for (unsigned at = pb_body_exits(p); at < pb_body_second(p); at++)
		compare_entry(t, "jcc", p->window, body + at);
	if (p->second)
		check_recipe(t, p->shares ? "second jump" : "code slot", pb_place_second(p),
			     body + pb_body_second(p), p->second);
}

static void check_all(struct file *t)
{
	for (uint32_t i = 0; i < t->a->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(t->a) + i;
		uint64_t at = t->head->text + pb_stubs_funcs(t->head)[i];
		struct pb_place p;

		if (f->refused)
			continue;
		p = pb_func_place(t->a, f);
		for (unsigned k = 0; k < PB_STUB_COPY; k++)
			compare_entry(t, "stub", f->addr, at + k);
		check_body(t, "entry", &p, at + PB_STUB_COPY);
	}
	for (uint32_t i = 0; i < t->a->nr_windows; i++) {
		const struct pb_exit_window *w = pb_analysis_windows(t->a) + i;
		struct pb_place p = pb_window_place(t->a, w);

		if (w->how != PB_EXIT_ENTRY)
			check_body(t, "window", &p, t->head->text + pb_stubs_windows(t->head)[i]);
	}
}

static int check_file(const char *path)
{
	int fd = open(path, O_RDONLY), an, st_fd;
	struct pb_module_options o = { PB_MODULE_RETURNS, NULL };
	struct file t = { 0 };
	char text[256] = "";
	uint8_t *file;
	struct stat st;
	Dwarf *dw;

	if (fd < 0)
		err(2, "%s", path);
	an = pb_module_open(fd, path, &o, text, sizeof(text));
	if (an < 0 || fstat(an, &st))
		errx(2, "%s: %s", path, text);
	t.a = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, an, 0);
	o.flags |= PB_MODULE_NO_CACHE;
	st_fd = pb_module_stubs(fd, path, &o, t.a);
	if (st_fd < 0 || fstat(st_fd, &st))
		errx(2, "%s: no stubs", path);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, st_fd, 0);
	t.head = (const struct pb_stubs *)(file + PB_STUBS_AT);
	t.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	t.cfi = t.elf ? dwarf_getcfi_elf(t.elf) : NULL;
	dw = t.elf ? dwarf_begin_elf(t.elf, DWARF_C_READ, NULL) : NULL;
	t.debug_cfi = dw ? dwarf_getcfi(dw) : NULL;
	t.stubs = elf_begin(st_fd, ELF_C_READ_MMAP, NULL);
	t.stub_cfi = t.stubs ? dwarf_getcfi_elf(t.stubs) : NULL;
	if (!t.cfi || !t.stub_cfi)
		errx(2, "%s: no table: %s", path, dwarf_errmsg(-1));
	check_all(&t);
	printf("%s: %lu rows, %lu differ, %lu have none in the program\n", path, t.same + t.differ,
	       t.differ, t.none);
	dwarf_cfi_end(t.cfi);
	dwarf_cfi_end(t.stub_cfi);
	dwarf_end(dw);
	elf_end(t.elf);
	elf_end(t.stubs);
	return t.differ != 0;
}

int main(int argc, char **argv)
{
	int bad = 0;

	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-v"))
			verbose = 1;
		else
			bad |= check_file(argv[i]);
	return bad;
}
