/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests which windows of exits get into a batch (engine/text/text_returns.c). The parts of the text
 * that the file uses are replaced: they only count. */
#include "../module/module_files.h"

#include "engine/text/text_priv.h"

/* A window has 5 bytes. "returns" has an exit with a window of its own; the exit of "inside" is in
 * the window of its entry. */
static const char *const exits_s =
	".text\n .globl inside\n .type inside,@function\ninside:\n .cfi_startproc\n"
	" mov %rdi,%rax\n ret\n nop\n .cfi_endproc\n .size inside, .-inside\n"
	" .fill 16,1,0xcc\n .globl returns\n .type returns,@function\nreturns:\n .cfi_startproc\n"
	" mov %rdi,%rax\n add %rsi,%rax\n imul %rdx,%rax\n imul $1000,%rax,%rax\n"
	" push %rbx\n .cfi_adjust_cfa_offset 8\n imul $1000,%rax,%rax\n add $1,%rax\n"
	" pop %rbx\n .cfi_adjust_cfa_offset -8\n ret\n"
	" .cfi_endproc\n .size returns, .-returns\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static unsigned written, restored;
bool pb_text_only_restores;

int pb_batch_on(struct pb_module *m, const struct pb_place *p, uint64_t stub, uint64_t body,
		unsigned *has)
{
	written++;
	*has |= PB_HAS_WINDOW;
	return 0;
}

void pb_batch_off(struct pb_module *m, const struct pb_place *p, unsigned *has)
{
	restored++;
	*has = 0;
}

bool pb_exit_make_stub(struct pb_module *m, uint32_t window, const struct pb_place *p)
{
	m->exits[window].stub = 16;
	return true;
}

unsigned pb_place_look(const struct pb_module *m, const struct pb_place *p)
{
	return 0;
}

bool pb_shared_make(const struct pb_module *m, uint64_t first, uint64_t to, uint64_t second_to)
{
	return false;
}

uint64_t pb_shared_target(uint64_t second)
{
	return 0;
}

void pb_text_change(struct pb_module *m, struct pb_site *s, bool on)
{
}

static struct pb_site sites[4];
static struct pb_exit_site exits[8];
static struct pb_module module;

static int set_up(void **state)
{
	struct view v;

	if (make_dir(state))
		return -1;
	write_file("returns.s", exits_s);
	build("gcc -shared -nostdlib returns.s -o returns.so");
	v = analyse("returns.so", PB_MODULE_RETURNS);
	assert_in_range(v.a->nr_funcs, 1, sizeof(sites) / sizeof(*sites));
	assert_in_range(v.a->nr_windows, 1, sizeof(exits) / sizeof(*exits));
	module = (struct pb_module){ .analysis = v.a, .sites = sites, .exits = exits };
	return 0;
}

static struct pb_site *site(const char *name)
{
	struct view v = { module.analysis, 0 };

	return &sites[func(v, name) - pb_analysis_funcs(v.a)];
}

static void want(void)
{
	pb_text_want_returns(&module, site("returns"));
}

static void change(bool keep)
{
	uint32_t window = 0;

	written = restored = 0;
	pb_text_change_returns(&module, &window, UINT64_MAX, keep);
}

/* A window is written while it is wanted, or while it is kept. */
static void wanted(void **state)
{
	want();
	change(false);
	assert_int_equal(written, 1);
	change(true);
	assert_int_equal(written + restored, 0);
	change(false);
	assert_int_equal(restored, 1);
	change(true);
	assert_int_equal(written, 1);
	change(false);
	assert_int_equal(restored, 1);
}

/* A detach writes no jump, whatever is wanted. */
static void only_restores(void **state)
{
	want();
	pb_text_only_restores = true;
	change(false);
	assert_int_equal(written + restored, 0);
	change(true);
	assert_int_equal(written + restored, 0);
	pb_text_only_restores = false;
	change(false);
	assert_int_equal(written + restored, 0);
}

/* A child that was forked between want() and change() looks at its text before it is detached. Its
 * stubs may not be executable yet. So it must neither write the jumps that its parent wanted, nor
 * keep those of entries because of them. */
static void forked_in_between(void **state)
{
	want();
	pb_text_want_returns(&module, site("inside"));
	assert_true(pb_text_hosts_returns(&module, site("inside")));
	pb_text_look_returns(&module);
	assert_false(pb_text_hosts_returns(&module, site("inside")));
	change(false);
	assert_int_equal(written + restored, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wanted),
		cmocka_unit_test(only_restores),
		cmocka_unit_test(forked_in_between),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
