/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests which exits the analysis finds in small functions in assembly, how each exit is hooked, and
 * which functions are entry-only. For whole modules, tests that windows, exits and recipes are
 * consistent. A window is the bytes that a patch may overwrite. A recipe describes the relocated
 * copy of a window's instructions.
 */
#include "exits_expect.h"

static void check_written(struct pb_an *an, void *arg);

static void check(const char *name, const struct expected *x)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	visit(path, compare, (void *)x);
	visit(path, check_written, NULL);
}

static const char *const windows_s = MACROS
	".text\nfar\n"
	"F other\n body\n ret\nE other\nfar\n"
	/* add $1,%eax; pop; ret */
	"F plain\n body\n push_rbx\n call other\n add $1,%eax\n pop_rbx\n ret\nE plain\nfar\n"
	/* a window may begin at the return address of a call, but not before it */
	"F padded\n sub $8,%rsp\n .cfi_adjust_cfa_offset 8\n body\n call other\n pop %rcx\n"
	" .cfi_adjust_cfa_offset -8\n ret\nE padded\n nopl 0(%rax)\nfar\n"
	"F zeros\n sub $8,%rsp\n .cfi_adjust_cfa_offset 8\n body\n call other\n pop %rcx\n"
	" .cfi_adjust_cfa_offset -8\n ret\nE zeros\n .byte 0,0,0\nfar\n"
	"F inside\n mov %rdi,%rax\n ret\nE inside\n nop\nfar\n"
	"F longer\n mov $1,%eax\n ret\nE longer\nfar\n"
	/* 25 bytes, but a window has at most 24, so the exit isn't in the entry's window */
	"F too_long\n movabs $1,%rax\n 1: movabs $2,%rcx\n dec %rcx\n nop\n ret\nE too_long\n"
	".cfi_startproc\n jmp 1b\n.cfi_endproc\nfar\n"
	/* a jump leads to the return, so hooking only the return's copy in the entry's stub isn't
	 * enough */
	"F led_to\n mov $1,%eax\n1: ret\n jmp 1b\nE led_to\n nopl 0(%rax)\n nopl 0(%rax)\nfar\n"
	/* the return is followed by one byte of padding; the slot is in the padding after the
	 * function */
	"F padded_slot\n body\n call other\n1: ret\n nop\n jmp 1b\nE padded_slot\n"
	" .fill 6,1,0x90\nfar\n"
	/* there is no padding, so the slot is a code slot at the function's start */
	"F code_slot\n body\n imul $1000,%rax,%rax\n imul $1000,%rax,%rax\n push_rbx\n call other\n"
	" pop_rbx\n ret\nE code_slot\nfar\n"
	"F carried\n push_rbx\n call other\n pop_rbx\n ret\nE carried\nfar\n"
	/* the exit has the first of two shared jumps; the second jump displaces the code after the
	 * exit */
	"F shared\n body\n test %eax,%eax\n je 1f\n call other\n1: ret\n2: mov $1,%eax\n"
	" mov $2,%ecx\n jmp 1b\n jne 2b\nE shared\nfar\n"
	/* The first exit has the first of two shared jumps. The second jump is the jump of the
	 * second exit's window. In `on_exit`, this window begins right after the first exit anyway.
	 * In `earlier`, the window is extended so that it begins there. */
	"F on_exit\n body\n test %eax,%eax\n je 2f\n call other\n1: ret\n2: mov %rdi,%rax\n"
	" neg %rax\n ret\n jmp 1b\nE on_exit\nfar\n"
	"F earlier\n body\n test %eax,%eax\n je 2f\n call other\n1: ret\n2: mov %rdi,%rax\n"
	" mov $1,%ecx\n ret\n jmp 1b\nE earlier\nfar\n"
	/* the second jump belongs to the next function's entry */
	"F crowded\n body\n call other\n ret\nE crowded\n"
	"F next\n body\n ret\nE next\nfar\n"
	"F joins\n body\n call other\n test %eax,%eax\n je other\n ret\nE joins\nfar\n"
	/* `ret` bytes that are never executed are no exits */
	"F data\n body\n add $1,%eax\n ret\n .byte 0xc3,0xc3,0x48,0xc3\nE data\nfar\n"
	END;

static const struct expected windows[] = {
	{ "plain", "NOT ret+20:WINDOW" },
	{ "padded", "NOT ret+20:PADDED" },
	{ "zeros", "NO_SLOT" },
	{ "inside", "NOT ret+3:ENTRY" },
	{ "longer", "NOT ret+5:ENTRY" },
	{ "too_long", "NOT ret+24:WINDOW" },
	{ "led_to", "SHORT" },
	{ "padded_slot", "NOT ret+15:PADDING_SLOT" },
	{ "code_slot", "NOT ret+31:CODE_SLOT" },
	{ "carried", "NOT ret+7:SHARED" },
	{ "shared", "NOT ret+19:SHARED" },
	{ "on_exit", "NOT ret+19:NEXT ret+26:WINDOW" },
	{ "earlier", "NOT ret+19:NEXT ret+28:WINDOW" },
	{ "crowded", "NOT ret+15:NEXT" },
	{ "next", "NOT ret+10:ENTRY" },
	{ "joins", "NOT jcc+17:WINDOW ret+23:JOINED" },
	{ "data", "NOT ret+13:ENTRY" },
	{ NULL, NULL }
};

static void test_windows(void **unused)
{
	write_file("windows.s", windows_s);
	build("gcc -shared -nostdlib windows.s -o windows.so");
	check("windows.so", windows);
}

static const char *const exits_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	"F pops\n body\n body\n ret $16\nE pops\n.p2align 4\n"
	"F repz\n body\n body\n rep ret\nE repz\n.p2align 4\n"
	"F bnd\n body\n body\n bnd ret\nE bnd\n.p2align 4\n"
	/* tail jumps, and jumps that only look like them */
	"F tail\n body\n jmp other\nE tail\n.p2align 4\n"
	"F tail_plt\n body\n jmp outside@PLT\nE tail_plt\n.p2align 4\n"
	"F tail_got\n body\n jmp *outside@GOTPCREL(%rip)\nE tail_got\n.p2align 4\n"
	"F tail_jcc\n body\n test %eax,%eax\n jne other\n body\n ret\nE tail_jcc\n.p2align 4\n"
	"F tail_reg\n body\n mov 8(%rdi),%rcx\n body\n jmp *%rcx\nE tail_reg\n.p2align 4\n"
	"F tail_mem\n body\n nopl 0(%rax)\n jmp *16(%rdi)\nE tail_mem\n.p2align 4\n"
	"F tail_ops\n body\n lea ops(%rip),%rdx\n jmp *(%rdx,%rax,8)\nE tail_ops\n.p2align 4\n"
	"F itself\n body\n test %eax,%eax\n jne itself\n body\n ret\nE itself\n.p2align 4\n"
	"F after_endbr\n endbr64\n6: body\n test %eax,%eax\n jne 6b\n body\n ret\n"
	"E after_endbr\n.p2align 4\n"
	"F not_itself\n body\n6: test %eax,%eax\n jne 6b\n body\n ret\nE not_itself\n.p2align 4\n"
	/* two functions in one unit, that is, under one FDE */
	"F one_of_two\n body\n.globl two_of_two\n.type two_of_two,@function\ntwo_of_two: body\n"
	" body\n ret\nE one_of_two\n.size two_of_two,.-two_of_two\n.p2align 4\n"
	"F switch\n body\n lea table(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n"
	" notrack jmp *%rax\n1: body\n body\n ret\n2: body\n body\n ret\n.p2align 4\nE switch\n"
	"F swsum\n body\n lea table2(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n"
	" lea (%rax,%rdx),%rcx\n jmp *%rcx\n3: body\n body\n ret\nE swsum\n.p2align 4\n"
	/* a switch as compilers emit it without optimisation */
	"F plain_switch\n body\n lea 0(,%rdi,4),%rdx\n lea table3(%rip),%rax\n"
	" mov (%rdx,%rax),%eax\n cltq\n lea table3(%rip),%rdx\n add %rdx,%rax\n jmp *%rax\n"
	"29: body\n body\n ret\nE plain_switch\n.p2align 4\n"
	"F gotos\n body\n lea labels(%rip),%rdx\n jmp *(%rdx,%rdi,8)\n4: body\n body\n ret\n"
	"E gotos\n.p2align 4\n"
	/* a table of offsets from a label. The code to which only the table leads must count as
	 * reachable. No window may cover a jump target that the table names */
	"F label\n body\n lea 6f(%rip),%rdx\n lea bases(%rip),%rcx\n movslq (%rcx,%rdi,4),%rax\n"
	" add %rdx,%rax\n jmp *%rax\n6: body\n body\n ret\n7: body\n mov %ecx,%eax\n"
	" mov %eax,%edx\n8: nopl (%rax)\n ret\nE label\n.p2align 4\n"
	/* the target is computed first, and then a jump leads to the indirect jump */
	"F label_apart\n body\n push_rbx\n test %eax,%eax\n lea 9f(%rip),%rdx\n je 11f\n"
	" lea apart(%rip),%rcx\n"
	" movslq (%rcx,%rdi,4),%rax\n add %rdx,%rax\n jmp 12f\n9: body\n pop_rbx\n body\n ret\n"
	" .cfi_adjust_cfa_offset 8\n11: mov %rdx,%rax\n12: jmp *%rax\n10: body\n pop_rbx\n body\n"
	" ret\nE label_apart\n.p2align 4\n"
	/* one register first has the table's address, and later the label's address */
	"F label_again\n body\n lea again(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n"
	" lea 13f(%rip),%rdx\n add %rdx,%rax\n jmp *%rax\n13: body\n body\n ret\n14: body\n body\n"
	" ret\nE label_again\n.p2align 4\n"
	/* the cold part and another function jump to label 5 */
	"F hot\n body\n push_rbx\n test %eax,%eax\n je hot.cold\n5: body\n pop_rbx\n body\n ret\n"
	"E hot\n.p2align 4\n"
	"F shares\n body\n push_rbx\n jmp 5b\nE shares\n.p2align 4\n"
	".section .text.unlikely,\"ax\"\n .type hot.cold,@function\nhot.cold: .cfi_startproc\n"
	" .cfi_adjust_cfa_offset 8\n test %esi,%esi\n jne 5b\n body\n pop_rbx\n body\n ret\n"
	" .cfi_endproc\n .size hot.cold,.-hot.cold\n"
	".text\n"
	/* `runs_on` runs on through padding into the next function */
	"F runs_on\n body\n test %eax,%eax\n jne other\nE runs_on\n.p2align 4\n"
	"F next\n body\n body\n ret\nE next\n.p2align 4\n"
	/* functions without exits */
	"F never\n body\n call other\nE never\n.p2align 4\n"
	"F traps\n body\n ud2\nE traps\n.p2align 4\n"
	/* gcc saves and restores rsp around arguments on the stack */
	"F saves\n body\n push_rbx\n mov %rsp,%rbx\n sub $64,%rsp\n .cfi_adjust_cfa_offset 64\n"
	" call other\n"
	" mov %rbx,%rsp\n .cfi_adjust_cfa_offset -64\n pop_rbx\n body\n ret\nE saves\n.p2align 4\n"
	/* `reads` reads its return address, which hooking doesn't change */
	"F reads\n mov (%rsp),%rax\n body\n body\n ret\nE reads\n.p2align 4\n"
	".section .rodata\n.p2align 2\ntable: .long 1b-table,2b-table\n"
	"table2: .long 3b-table2,3b-table2\n"
	"table3: .long 29b-table3,29b-table3\n"
	"bases: .long 6b-6b,7b-6b,8b-6b,-1\n"
	"apart: .long 9b-9b,10b-9b,-1\nagain: .long 13b-13b,14b-13b,-1\n"
	".data\n.p2align 3\nops: .quad other,tail\nlabels: .quad 4b,4b\n"
	END;

static const struct expected exits[] = {
	{ "other", "NOT ret+20:ENTRY" },
	{ "pops", "NOT ret+20:ENTRY" },
	{ "repz", "NOT ret+20:ENTRY" },
	{ "bnd", "NOT ret+20:ENTRY" },
	{ "tail", "NOT jmp+10:ENTRY" },
	{ "tail_plt", "NOT jmp+10:ENTRY" },
	{ "tail_got", "NOT indirect+10:ENTRY" },
	{ "tail_jcc", "NOT jcc+12:ENTRY ret+28:WINDOW" },
	{ "tail_reg", "NOT indirect+24:WINDOW" },
	{ "tail_mem", "NOT indirect+13:ENTRY" },
	{ "tail_ops", "NOT indirect+17:ENTRY" },
	{ "itself", "goes on, NOT ret+24:WINDOW" },
	{ "after_endbr", "goes on, NOT ret+28:WINDOW" },
	{ "not_itself", "NOT ret+24:WINDOW" },
	{ "one_of_two", "goes on, NOT ret+30:ENTRY" },
	{ "two_of_two", "goes on, NOT ret+20:ENTRY" },
	{ "switch", "NOT ret+47:WINDOW ret+68:WINDOW" },
	{ "swsum", "NOT ret+47:WINDOW" },
	{ "plain_switch", "NOT ret+62:WINDOW" },
	{ "gotos", "NOT ret+40:WINDOW" },
	{ "label", "NOT ret+53:WINDOW ret+71:PADDED" },
	{ "label_apart", "NOT ret+59:WINDOW ret+86:WINDOW" },
	{ "label_again", "NOT ret+53:WINDOW ret+74:WINDOW" },
	{ "runs_on", "goes on, NOT jcc+12:ENTRY ret+52:ENTRY" },
	{ "next", "NOT ret+20:ENTRY" },
	{ "never", "NOT" },
	{ "traps", "NOT" },
	{ "saves", "NOT ret+37:WINDOW" },
	{ "reads", "NOT ret+24:WINDOW" },
	{ NULL, NULL }
};

static void count_units(struct pb_an *an, void *arg)
{
	uint32_t units[MAX_UNITS];

	assert_int_equal(pb_exits_units(an, named(an, "hot"), units, MAX_UNITS), 2);
	assert_int_equal(pb_exits_units(an, named(an, "shares"), units, MAX_UNITS), 3);
	assert_int_equal(named(an, "hot")->inexit, PB_INEXIT_NOT);
	assert_int_equal(named(an, "shares")->inexit, PB_INEXIT_NOT);
	(void)arg;
}

static void test_exits(void **unused)
{
	char path[256];

	write_file("exits.s", exits_s);
	build("gcc -shared -nostdlib exits.s -o exits.so");
	check("exits.so", exits);
	snprintf(path, sizeof(path), "%s/exits.so", dir);
	visit(path, count_units, NULL);
}

static const char *const refused_s = MACROS
	".text\n.p2align 4\n"
	"F other\n body\n body\n ret\nE other\n.p2align 4\n"
	"F unproven\n body\n push_rbx\n body\n ret\nE unproven\n.p2align 4\n"
	"F ra_elsewhere\n body\n .cfi_offset %rip,-16\n body\n ret\nE ra_elsewhere\n.p2align 4\n"
	"F silent\n push %rax\n body\n ret\nE silent\n.p2align 4\n"
	"F late\n push %rbx\n call other\n .cfi_adjust_cfa_offset 8\n pop_rbx\n body\n ret\n"
	"E late\n.p2align 4\n"
	"F switches\n body\n mov 8(%rdi),%rsp\n body\n ret\nE switches\n.p2align 4\n"
	"F far_ret\n body\n lretq\nE far_ret\n.p2align 4\n"
	"F iret\n body\n iretq\nE iret\n.p2align 4\n"
	"F computed\n body\n lea 1f(%rip),%rdx\n lea (%rdx,%rax,4),%rdx\n jmp *%rdx\n1: body\n"
	" body\n ret\nE computed\n.p2align 4\n"
	/* the second offset in the table leads to another function */
	"F other_base\n body\n lea 4f(%rip),%rdx\n lea table(%rip),%rcx\n"
	" movslq (%rcx,%rdi,4),%rax\n add %rdx,%rax\n"
	" jmp *%rax\n4: body\n body\n ret\nE other_base\n.p2align 4\n"
	/* the offset is loaded from one table and added to the address of another */
	"F two_tables\n body\n lea 0(,%rdi,4),%rdx\n lea table(%rip),%rax\n mov (%rdx,%rax),%eax\n"
	" cltq\n lea labels(%rip),%rdx\n add %rdx,%rax\n jmp *%rax\n body\n ret\n"
	"E two_tables\n.p2align 4\n"
	"F where_table\n body\n lea 3f(%rip),%rdx\n mov 8(%rdi),%rcx\n movslq (%rcx,%rdi,4),%rax\n"
	" add %rdx,%rax\n jmp *%rax\n3: body\n body\n ret\nE where_table\n.p2align 4\n"
	"F no_table\n body\n mov 8(%rdi),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n"
	" jmp *%rax\n body\n ret\nE no_table\n.p2align 4\n"
	"F goto_or_tail\n body\n mov labels(%rip),%rax\n cmp %rdi,%rax\n je 1f\n mov 8(%rdi),%rax\n"
	"1: jmp *%rax\n2: body\n ret\nE goto_or_tail\n.p2align 4\n"
	"F framed_jump\n body\n push_rbx\n mov 8(%rdi),%rax\n jmp *%rax\n"
	"E framed_jump\n.p2align 4\n"
	"F writes\n body\n mov %rax,(%rsp)\n body\n ret\nE writes\n.p2align 4\n"
	"F pops_ra\n pop %rdx\n .cfi_adjust_cfa_offset -8\n body\n push %rdx\n"
	" .cfi_adjust_cfa_offset 8\n body\n ret\nE pops_ra\n.p2align 4\n"
	"F takes_ra\n lea (%rsp),%rdi\n body\n ret\nE takes_ra\n.p2align 4\n"
	"F framed\n body\n push_rbx\n jmp other\nE framed\n.p2align 4\n"
	"F reenters\n body\n push_rbx\n test %eax,%eax\n jne reenters\n pop_rbx\n body\n ret\n"
	"E reenters\n.p2align 4\n"
	"F lost\n body\n jmp .+0x100000\nE lost\n.p2align 4\n"
	"F broken\n body\n .byte 6\n body\n ret\nE broken\n.p2align 4\n"
	"F out_of_step\n body\n 1: mov $0x90909090,%eax\n jne 1b+1\n body\n ret\n"
	"E out_of_step\n.p2align 4\n"
	"F locks\n body\n je 1f\n lock\n1: cmpxchg %ecx,(%rdi)\n body\n ret\nE locks\n.p2align 4\n"
	".globl no_cfi\n.type no_cfi,@function\nno_cfi: body\n body\n"
	" ret\n.size no_cfi,.-no_cfi\n.p2align 4\n"
	"F falls\n body\n test %eax,%eax\nE falls\n .byte 6,6,6,6,6\n.p2align 4\n"
	/* if one part of a function is bad, the function is entry-only */
	"F uses_bad\n body\n push_rbx\n je 3f\n body\n pop_rbx\n ret\nE uses_bad\n.p2align 4\n"
	".cfi_startproc\n .cfi_adjust_cfa_offset 8\n nop\n3: body\n ret\n.cfi_endproc\n"
	".section .rodata\n.p2align 2\ntable: .long 4b-4b,other-4b\n"
	".data\n.p2align 3\nlabels: .quad 2b\n"
	END;

static const struct expected refused[] = {
	{ "unproven", "UNPROVEN" },
	{ "ra_elsewhere", "UNPROVEN" },
	{ "silent", "CFI" },
	{ "late", "CFI" },
	{ "switches", "CFI" },
	{ "far_ret", "FAR" },
	{ "iret", "FAR" },
	{ "computed", "COMPUTED" },
	{ "other_base", "COMPUTED" },
	{ "two_tables", "COMPUTED" },
	{ "where_table", "COMPUTED" },
	{ "no_table", "COMPUTED" },
	{ "goto_or_tail", "COMPUTED" },
	{ "framed_jump", "COMPUTED" },
	{ "writes", "WRITES" },
	{ "pops_ra", "WRITES" },
	{ "takes_ra", "WRITES" },
	{ "framed", "FRAME" },
	{ "reenters", "FRAME" },
	{ "lost", "LOST" },
	{ "broken", "DECODE" },
	{ "out_of_step", "DECODE" },
	{ "locks", "NOT ret+26:WINDOW" },
	{ "no_cfi", "NOT ret+20:ENTRY" },
	{ "falls", "FALLS" },
	{ "uses_bad", "UNPROVEN" },
	{ NULL, NULL }
};

static void test_refused(void **unused)
{
	write_file("refused.s", refused_s);
	build("gcc -shared -nostdlib refused.s -o refused.so");
	check("refused.so", refused);
}

/* For a whole module: checks that each hooked exit is an instruction in the recipe of its
 * window. */
static void check_module(struct pb_an *an, void *arg)
{
	size_t hooked = 0;

	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];
		const struct pb_an_window *w;
		const struct pb_recipe *r;
		const struct pb_range *range = pb_range_find(an, e->addr);
		bool found = false;

		assert_true(i == 0 || an->exits.v[i - 1].addr <= e->addr);
		if (!e->how)
			continue;
		assert_true(e->exit && e->live && e->window < an->exit_windows.n);
		w = &an->exit_windows.v[e->window];
		assert_true(e->addr >= w->start && e->addr + e->len <= w->start + w->len);
		r = (const struct pb_recipe *)(an->recipes.v + w->recipe);
		assert_int_equal(r->window_len, w->len);
		for (unsigned k = 0; k < r->nr_pairs; k++)
			found |= pb_recipe_pairs(r)[k].orig == e->addr - w->start;
		assert_true(found);
		assert_memory_equal(pb_recipe_orig(r), range->bytes + (w->start - range->addr),
				    w->len);
		/* no jump leads to a byte after the window's start, up to the exit */
		for (uint64_t at = w->start + 1; at <= e->addr; at++)
			assert_false(pb_bit_test(range->reached, at - range->addr));
		hooked++;
	}
	assert_true(hooked > *(size_t *)arg);
}

/* Checks that no byte is part of two windows, slots or code slots. */
static void check_apart(struct pb_an *an, void *arg)
{
	const struct pb_range *last = &an->ranges.v[an->ranges.n - 1];
	uint64_t low = an->ranges.v[0].addr, size = last->addr + last->size - low;
	uint8_t *used = calloc(1, size);
	bool *joined = calloc(an->fns.n + 1, sizeof(*joined));

	(void)arg;
	for (size_t i = 0; i < an->exit_windows.n; i++) {
		const struct pb_an_window *w = &an->exit_windows.v[i];
		uint64_t slot = w->start + (uint64_t)(int64_t)w->via - low;
		uint64_t from = w->second_len ? slot - PB_JUMP_LEN : slot;
		uint64_t to = w->second_len ? from + w->second_len : slot + PB_JUMP_LEN;

		for (uint64_t at = w->start - low; at < w->start - low + w->len; at++)
			assert_false(used[at]++);
		if (w->how == PB_EXIT_SHARED)
			from = w->start + 1 - low, to = from + w->second_len;
		for (uint64_t at = from; (w->via || w->how == PB_EXIT_SHARED) && at < to; at++)
			assert_false(used[at]++);
	}
	/* if an entry's window contains exits, it is also in exit_windows */
	for (size_t i = 0; i < an->exit_windows.n; i++)
		if (an->exit_windows.v[i].fn >= 0)
			joined[an->exit_windows.v[i].fn] = true;
	for (size_t i = 0; i < an->fns.n; i++) {
		uint64_t at = an->fns.v[i].addr + an->fns.v[i].window - low;

		for (unsigned k = 0; k < an->fns.v[i].window_len && !an->fns.v[i].refused; k++)
			assert_int_equal(used[at + k]++, joined[i]);
	}
	free(used);
	free(joined);
}

static size_t add_start(uint64_t start, uint64_t *to, size_t n, size_t max)
{
	size_t at = 0;

	while (at < n && to[at] < start)
		at++;
	if (at < n && to[at] == start)
		return n;
	assert_true(n < max);
	memmove(to + at + 1, to + at, (n - at) * sizeof(*to));
	to[at] = start;
	return n + 1;
}

/* Returns the number of windows that f's exits have. Writes the windows' starts to `to`, sorted and
 * each only once. */
static size_t starts_of(const struct pb_an *an, const struct pb_fn *f, uint64_t *to, size_t max)
{
	uint32_t units[4096];
	size_t nr = pb_exits_units(an, f, units, 4096), n = 0;

	assert_true(nr <= 4096);
	for (size_t u = 0; u < nr; u++)
		for (size_t k = pb_exits_lower(an, units[u]);
		     k < an->exits.n && an->exits.v[k].unit == units[u]; k++) {
			const struct pb_fn_exit *e = &an->exits.v[k];
			const struct pb_an_window *w = &an->exit_windows.v[e->window];

			if (!e->exit)
				continue;
			if (w->on >= 0)
				n = add_start(an->exit_windows.v[w->on].start, to, n, max);
			n = add_start(w->start, to, n, max);
		}
	return n;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static size_t starts_in_file(const struct pb_analysis *a, const struct pb_func *f, uint64_t *to,
			     size_t max)
{
	uint32_t nr;
	const uint32_t *left_by = pb_func_left_by(a, f, &nr);

	assert_true(nr <= max);
	for (uint32_t i = 0; i < nr; i++)
		to[i] = pb_analysis_windows(a)[left_by[i]].start;
	qsort(to, nr, sizeof(*to), by_value);
	return nr;
}

/* Checks that the written analysis has the exit, in the same window. */
static void check_exit(const struct pb_an *an, const struct pb_analysis *a,
		       const struct pb_fn_exit *e)
{
	const struct pb_an_window *is = &an->exit_windows.v[e->window];
	int64_t i = pb_window_lower(a, e->addr);
	const struct pb_exit_window *w = pb_analysis_windows(a) + i;
	const struct pb_range *r = pb_range_find(an, e->addr);
	bool found = false;

	assert_true(i >= 0 && w->start == is->start && w->len == is->len && w->how == is->how);
	assert_int_equal(w->via, w->how == PB_EXIT_ENTRY ? 0 : is->via);
	for (unsigned k = 0; k < w->nr; k++) {
		const struct pb_window_exit *x = pb_window_exits(a, w) + k;

		if (w->start + x->off != e->addr)
			continue;
		found = true;
		assert_int_equal(x->len, e->len);
		if (r->bytes[e->addr - r->addr] == 0xc2)
			assert_int_equal(x->kind, PB_EXIT_RET_POPS);
		else
			assert_int_equal(x->kind, e->kind);
	}
	assert_true(found);
	assert_memory_equal(pb_window_recipe(a, w), an->recipes.v + is->recipe,
			    pb_recipe_size((const struct pb_recipe *)(an->recipes.v + is->recipe)));
	if (is->second_len)
		assert_int_equal(w->how == PB_EXIT_ENTRY ?
				 pb_func_code_recipe(a, pb_window_func(a, w))->window_len :
				 pb_window_second(a, w)->window_len, is->second_len);
	if (w->how == PB_EXIT_ENTRY)
		assert_ptr_equal(pb_func_exits(a, pb_window_func(a, w)), w);
}

/* Checks that the written analysis contains the results of the analysis's stages. */
static void check_written(struct pb_an *an, void *arg)
{
	static uint64_t expected[8192], is[8192];
	bool *needed = calloc(an->exit_windows.n + 1, sizeof(*needed));
	uint32_t windows = 0, exits = 0;
	const struct pb_analysis *a;
	const char *why;
	uint8_t *blob;
	size_t size;

	(void)arg;
	assert_int_equal(pb_emit(an, &blob, &size, &why), 0);
	a = (const struct pb_analysis *)blob;
	assert_int_equal(pb_analysis_check(a, size), 0);
	assert_true(a->flags & PB_AN_RETURNS);
	for (size_t i = 0; i < an->fns.n; i++) {
		const struct pb_fn *fn = &an->fns.v[i];
		const struct pb_func *f = pb_analysis_funcs(a) + i;
		size_t n = fn->inexit ? 0 : starts_of(an, fn, expected, 8192);

		assert_int_equal(pb_func_inexit(a, f), fn->inexit);
		assert_int_equal(starts_in_file(a, f, is, 8192), n);
		assert_memory_equal(is, expected, n * sizeof(*is));
	}
	/* each window must be needed by a function that has all its exits hooked */
	for (uint32_t i = 0; i < a->nr_left_by; i++)
		needed[((const uint32_t *)(blob + a->left_by_offset))[i]] = true;
	for (uint32_t i = 0; i < a->nr_windows; i++)
		windows += needed[i];
	assert_int_equal(windows, a->nr_windows);
	for (size_t i = 0; i < an->exits.n; i++) {
		const struct pb_fn_exit *e = &an->exits.v[i];
		int64_t w = e->how ? pb_window_lower(a, e->addr) : -1;

		if (w < 0 || pb_analysis_windows(a)[w].start != an->exit_windows.v[e->window].start)
			continue;
		check_exit(an, a, e);
		exits++;
	}
	assert_int_equal(exits, a->nr_exits);
	free(blob);
	free(needed);
}

static void test_modules(void **unused)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/proc/self/exe" };
	size_t least[] = { 4000, 10 };

	for (size_t i = 0; i < 2; i++) {
		if (access(paths[i], R_OK))
			continue;
		visit(paths[i], check_module, &least[i]);
		visit(paths[i], check_apart, NULL);
		visit(paths[i], check_written, NULL);
	}
}

/* Flips each bit of the header, and of the tables of exits. pb_analysis_check() must refuse many of
 * the results. */
static void test_damaged(void **unused)
{
	struct view v = analyse("windows.so", PB_MODULE_RETURNS);
	uint8_t *copy = aligned_alloc(8, pb_align_up(v.size, (size_t)8));
	uint64_t from = v.a->windows_offset, to = v.a->inexits_offset + v.a->nr_funcs;
	unsigned refused = 0, entries = 0, slots = 0;

	assert_true(v.a->nr_windows > 10);
	for (uint64_t at = 0; at < v.size; at++)
		for (unsigned bit = 0; bit < 8 && (at < sizeof(*v.a) || (at >= from && at < to));
		     bit++) {
			memcpy(copy, v.a, v.size);
			copy[at] ^= (uint8_t)(1u << bit);
			refused += pb_analysis_check(copy, v.size) != 0;
		}
	assert_true(refused > 1000);
	/* damages windows: makes a window overlap the last byte of its function's entry window, or
	 * a slot overlap its own window */
	for (uint32_t i = 0; i < v.a->nr_windows; i++) {
		struct pb_exit_window *w = (struct pb_exit_window *)(copy + from) + i;
		const struct pb_func *f = pb_analysis_find(v.a, pb_analysis_windows(v.a)[i].start);

		memcpy(copy, v.a, v.size);
		if (w->how == PB_EXIT_WINDOW && f && !f->refused &&
		    (!i || w[-1].start + w[-1].len <= pb_func_window_end(f) - 1)) {
			assert_int_equal(pb_analysis_check(copy, v.size), 0);
			w->start = pb_func_window_end(f) - 1;
			assert_int_equal(pb_analysis_check(copy, v.size), -EINVAL);
			entries++;
		} else if (w->how == PB_EXIT_PADDING_SLOT) {
			w->via = 1;
			assert_int_equal(pb_analysis_check(copy, v.size), -EINVAL);
			slots++;
		}
	}
	assert_true(entries >= 3 && slots);
	/* makes two windows overlap */
	for (uint32_t i = 0; i + 1 < v.a->nr_windows; i++) {
		struct pb_exit_window *w = (struct pb_exit_window *)(copy + from);

		memcpy(copy, v.a, v.size);
		w[i + 1].start = w[i].start + w[i].len - 1;
		assert_int_equal(pb_analysis_check(copy, v.size), -EINVAL);
	}
	free(copy);
	drop(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
