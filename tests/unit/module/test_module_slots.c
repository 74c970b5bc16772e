/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A function without room for the long jump gets a trampoline slot, or shares its jump with the
 * next function. A slot is five bytes with a long jump. A short jump at the function leads to the
 * slot. Tests which slots the functions get, in padding or in code, and which functions share a
 * jump. Also tests which damaged analyses pb_analysis_check() refuses.
 */
#include "module_files.h"

/* Mostly pairs: a function that needs a slot, and bytes within reach of the function's short jump.
 * "far" separates the pairs. */
static const char *const slots_s =
	".macro F name\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .fill 300,1,0x90\n1: ret\n.cfi_endproc\n.endm\n"
	".macro user name\nF \\name\n xor %eax,%eax\n1: dec %edi\n jne 1b\n ret\nE \\name\n.endm\n"
	".macro five\n .byte 0x0f,0x1f,0x44,0,0\n.endm\n"
	".text\nfar\n"
	"user good\n five\nfar\n"
	"user small\n nopl 0(%rax)\nfar\n"
	"user zeros\n .fill 8\nfar\n"
	"user entered\nwithin: five\nfar\n .cfi_startproc\n jmp within\n .cfi_endproc\nfar\n"
	"user named\n.globl name\nname: five\nfar\n"
	"user taken\n five\n.cfi_startproc\n lea .-5(%rip),%rax\n ret\n.cfi_endproc\nfar\n"
	"user read\n five\n.cfi_startproc\n mov .-4(%rip),%eax\n ret\n.cfi_endproc\nfar\n"
	"F falls\n xor %eax,%eax\n1: dec %edi\n jne 1b\n call good\nE falls\n five\nfar\n"
	/* two functions need slots: 9 bytes hold only one slot, 10 bytes hold two */
	"user first\nuser second\n five\n .fill 4,1,0x90\nfar\n"
	"user third\nuser fourth\n five\n .fill 5,1,0x90\nfar\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void test_slots(void **unused)
{
	write_file("slots.s", slots_s);
	build("gcc -shared -nostdlib slots.s -o slots.so");
	struct view v = analyse("slots.so", 0);

	assert_site(v, "good", PB_SITE_SYMBOL);
	assert_int_equal(func(v, "good")->via, func(v, "good")->size);
	assert_refused(v, "small", BRANCH);
	assert_refused(v, "zeros", BRANCH);
	assert_refused(v, "entered", BRANCH);
	assert_refused(v, "named", BRANCH);
	assert_refused(v, "taken", BRANCH);
	assert_refused(v, "read", BRANCH);
	assert_refused(v, "falls", BRANCH);
	assert_site(v, "first", PB_SITE_SYMBOL);
	assert_refused(v, "second", BRANCH);
	assert_site(v, "third", PB_SITE_SYMBOL);
	assert_site(v, "fourth", PB_SITE_SYMBOL);
	assert_int_equal(pb_func_slot(func(v, "fourth")), pb_func_slot(func(v, "third")) + 5);
	drop(v);
}

static bool via_is_refused(struct view v, const char *name, int via)
{
	uint8_t *copy = aligned_alloc(8, pb_align_up(v.size, (size_t)8));
	struct pb_func *f;
	bool refused;

	memcpy(copy, v.a, v.size);
	f = (struct pb_func *)(copy + ((const uint8_t *)func(v, name) - (const uint8_t *)v.a));
	f->via = (int16_t)via;
	refused = pb_analysis_check(copy, v.size);
	free(copy);
	return refused;
}

static void test_check_slots(void **unused)
{
	struct view v = analyse("slots.so", 0);
	const struct pb_func *third = func(v, "third"), *fourth = func(v, "fourth");
	int distance = (int)(fourth->addr - third->addr);

	assert_false(via_is_refused(v, "good", func(v, "good")->via));
	/* 0: no slot. The window is too short for a long jump */
	assert_true(via_is_refused(v, "good", 0));
	assert_true(via_is_refused(v, "good", 1));	/* in the window */
	assert_false(via_is_refused(v, "good", 2));
	assert_false(via_is_refused(v, "good", -126));
	assert_true(via_is_refused(v, "good", -127));
	assert_false(via_is_refused(v, "good", 129));
	assert_true(via_is_refused(v, "good", 130));
	assert_true(via_is_refused(v, "small", 20));	/* the function isn't patched */
	assert_true(via_is_refused(v, "third", fourth->via + distance));
	assert_true(via_is_refused(v, "fourth", third->via - distance + 1));
	assert_true(via_is_refused(v, "third", distance)); /* the slot would be in the window of
							    * `fourth` */
	drop(v);
}

/* There is no padding. So a function gets a slot in code, or no slot. */
static const char *const code_slots_s =
	".macro F name\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .fill 300,1,0x90\n1: ret\n.cfi_endproc\n.endm\n"
	/* Ten bytes after the function's first two bytes: room for a code slot, which is two jumps
	 * of five bytes. The second jump is the trampoline slot. It begins at the sixth byte, so no
	 * displaced instruction may begin there. */
	".macro loop\n add $3,%eax\n mov $5,%ecx\n dec %edi\n.endm\n"
	".macro user name\nF \\name\n xor %eax,%eax\n1: loop\n jne 1b\n ret\nE \\name\n.endm\n"
	".macro tiny name\nF \\name\n rep ret\nE \\name\n.endm\n"
	/* a window of six bytes, and then eleven bytes for a code slot */
	".macro beside name\nF \\name\n lea 1(%rdi),%eax\n imul $7,%eax,%eax\n add %edi,%eax\n"
	" add $1000,%eax\n sub %edi,%eax\n neg %eax\n ret\nE \\name\n.endm\n"
	".text\nfar\n"
	"user good\nfar\n"
	"tiny small\nbeside neighbour\nfar\n"
	"beside before\ntiny after\nfar\n"
	/* two functions need a code slot, but there is room for only one */
	"tiny one\ntiny two\nbeside both\nfar\n"
	/* a slot at the largest distance, 129 bytes, and a slot at 130 bytes */
	"tiny near\n.cfi_startproc\n jmp 1f\n"
	" .fill 113,1,0x90\n1: ret\n.cfi_endproc\nbeside last\nfar\n"
	"tiny out\n.cfi_startproc\n jmp 1f\n"
	" .fill 114,1,0x90\n1: ret\n.cfi_endproc\nbeside beyond\nfar\n"
	"tiny alone\nfar\n"
	"F entered\n xor %eax,%eax\n1: loop\n jne 1b\n ret\nE entered\n"
	".cfi_startproc\n jmp entered+5\n.cfi_endproc\nfar\n"
	"F taken\n xor %eax,%eax\n1: loop\n jne 1b\n2: ret\nE taken\n"
	".cfi_startproc\n lea 2b(%rip),%rax\n jmp *%rax\n.cfi_endproc\nfar\n"
	"F computed\n xor %eax,%eax\n1: loop\n jne 1b\n jmp *%rax\nE computed\nfar\n"
	"F fixed\n xor %eax,%eax\n1: loop\n jne 1b\n jmp *good@GOTPCREL(%rip)\nE fixed\nfar\n"
	"F boundary\n xor %eax,%eax\n1: add $3,%eax\n dec %edi\n add $3,%eax\n dec %edi\n jne 1b\n"
	" ret\nE boundary\nfar\n"
	/* a code slot may reach up to the function's end, but not into bytes that may be padding */
	"F ends\n xor %eax,%eax\n1: add $3,%eax\n dec %edi\n mov $5,%ecx\n jne 1b\n ret\n"
	"E ends\nfar\n"
	"F short_of\n xor %eax,%eax\n1: add $3,%eax\n dec %edi\n add $5,%ecx\n jne 1b\n ret\n nop\n"
	" nop\nE short_of\nfar\n"
	"F calls\n xor %eax,%eax\n1: add $3,%eax\n call good\n dec %edi\n jne 1b\n ret\n"
	"E calls\nfar\n"
	"F data\n xor %eax,%eax\n1: loop\n jne 1b\n ret\n .byte 6,6,6\nE data\nfar\n"
	".globl bare\n.type bare,@function\nbare: xor %eax,%eax\n1: loop\n jne 1b\n"
	" ret\n.size bare,.-bare\nfar\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void assert_code_slot(struct view v, const char *name, const char *host, unsigned at,
			     unsigned len)
{
	const struct pb_func *f = func(v, name);

	assert_site(v, name, PB_SITE_SYMBOL);
	assert_true(f->flags & PB_FUNC_CODE_SLOT);
	assert_int_equal(f->window_len, 2);
	assert_int_equal(pb_func_code_slot(f) - func(v, host)->addr, at);
	assert_int_equal(pb_func_code_recipe(v.a, f)->window_len, len);
}

static void test_code_slots_more(void **unused)
{
	/* add $3,%eax; mov $5,%ecx; dec %edi */
	static const uint8_t code_slot[] = { 0x83, 0xc0, 3, 0xb9, 5, 0, 0, 0, 0xff, 0xcf };
	const struct pb_recipe *recipe;

	write_file("code_slots.s", code_slots_s);
	build("gcc -shared -nostdlib code_slots.s -o code_slots.so");
	struct view v = analyse("code_slots.so", 0);

	assert_code_slot(v, "good", "good", 2, 10);
	recipe = pb_func_code_recipe(v.a, func(v, "good"));
	assert_memory_equal(pb_recipe_orig(recipe), code_slot, 10);
	assert_memory_equal(pb_recipe_rest(recipe), code_slot, 10);
	assert_memory_equal(pb_recipe_code(recipe), code_slot, 10);
	assert_code_slot(v, "small", "neighbour", 6, 11);
	assert_code_slot(v, "after", "before", 6, 11);
	assert_code_slot(v, "one", "both", 6, 11);
	assert_refused(v, "two", SHORT);
	assert_code_slot(v, "near", "last", 6, 11);
	assert_refused(v, "out", SHORT);
	assert_refused(v, "alone", SHORT);
	assert_refused(v, "entered", BRANCH);
	assert_refused(v, "taken", BRANCH);
	assert_refused(v, "computed", BRANCH);
	assert_code_slot(v, "fixed", "fixed", 2, 10);
	assert_refused(v, "boundary", BRANCH);
	assert_code_slot(v, "ends", "ends", 5, 10);
	assert_refused(v, "short_of", BRANCH);
	assert_refused(v, "calls", BRANCH);
	assert_refused(v, "data", BRANCH);
	assert_refused(v, "bare", BRANCH);
	drop(v);
}

/* Checks an analysis after one field was changed. */
static void test_check_code_slots(void **unused)
{
	struct view v = analyse("code_slots.so", 0);
	const struct pb_func *good = func(v, "good");
	const struct pb_recipe *recipe = pb_func_code_recipe(v.a, good);
	size_t at = (size_t)((const uint8_t *)recipe - (const uint8_t *)v.a);
	size_t pairs = (size_t)((const uint8_t *)pb_recipe_pairs(recipe) - (const uint8_t *)v.a);
	size_t flags = (size_t)((const uint8_t *)&good->flags - (const uint8_t *)v.a);
	uint8_t *copy = aligned_alloc(8, pb_align_up(v.size, (size_t)8));
	struct pb_pair *pair = (struct pb_pair *)(copy + pairs);
	struct pb_recipe *code_slot = (struct pb_recipe *)(copy + at);

	assert_false(via_is_refused(v, "good", good->via));
	/* the code slot begins five bytes before the trampoline slot, and so would begin in the
	 * window */
	assert_true(via_is_refused(v, "good", good->via - 1));
	assert_false(via_is_refused(v, "good", good->via + 1));
	assert_true(via_is_refused(v, "good", 0));
	memcpy(copy, v.a, v.size);
	assert_int_equal(pair[1].orig, 3);
	pair[1].orig = 5;	/* an instruction begins at the slot */
	assert_true(pb_analysis_check(copy, v.size));
	pair[1].orig = 4;
	assert_false(pb_analysis_check(copy, v.size));
	code_slot->window_len = 9;	/* the code slot has no room for two jumps */
	assert_true(pb_analysis_check(copy, v.size));
	memcpy(copy, v.a, v.size);
	code_slot->len = PB_RECIPE_MAX + 1;
	assert_true(pb_analysis_check(copy, v.size));
	memcpy(copy, v.a, v.size);
	copy[flags] &= (uint8_t)~PB_FUNC_CODE_SLOT; /* now the slot counts as padding, which is
						     * valid */
	assert_false(pb_analysis_check(copy, v.size));
	free(copy);
	drop(v);
}

/* Functions of one byte, and the functions that follow them. */
static const char *const shared_s =
	".macro F name\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .fill 300,1,0x90\n1: ret\n.cfi_endproc\n.endm\n"
	".macro one name\nF \\name\n ret\nE \\name\n.endm\n"
	".macro five name\nF \\name\n mov $1,%eax\n ret\nE \\name\n.endm\n"
	".text\nfar\n"
	"one lone\nfive next\nfar\n"
	"one first\none second\nfive third\nfar\n"
	"one refused\nF syscall\n syscall\n ret\nE syscall\nfar\n"
	"one marked\nF endbr\n endbr64\n mov $1,%eax\n ret\nE endbr\nfar\n"
	"one before_slot\nF code_slot\n xor %eax,%eax\n1: add $3,%eax\n mov $5,%ecx\n dec %edi\n"
	" jne 1b\n ret\nE code_slot\nfar\n"
	"one apart\n ret\nfive far_after\nfar\n"
	"F falls\n nop\nE falls\nfive into\nfar\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void test_shared(void **unused)
{
	const struct pb_func *f;

	write_file("shared.s", shared_s);
	build("gcc -shared -nostdlib shared.s -o shared.so");
	struct view v = analyse("shared.so", 0);

	assert_site(v, "lone", PB_SITE_SYMBOL);
	f = func(v, "lone");
	assert_int_equal(f->flags & (PB_FUNC_SHARES | PB_FUNC_CODE_SLOT), PB_FUNC_SHARES);
	assert_int_equal(f->window_len, 1);
	assert_int_equal(pb_func_jump_len(f), 1);
	assert_int_equal(pb_func_recipe(v.a, f)->len, 1);
	assert_int_equal(*pb_recipe_code(pb_func_recipe(v.a, f)), 0xc3);
	assert_true(pb_func_is_second(v.a, func(v, "next")));
	assert_false(pb_func_is_second(v.a, f));
	assert_int_equal(pb_func_jump_len(func(v, "next")), 5);
	/* "second" has the first jump of a pair of shared jumps. So it can't have the second jump
	 * of another pair */
	assert_refused(v, "first", SHORT);
	assert_site(v, "second", PB_SITE_SYMBOL);
	assert_true(pb_func_is_second(v.a, func(v, "third")));
	assert_refused(v, "refused", SHORT);
	assert_refused(v, "marked", SHORT);
	assert_true(func(v, "code_slot")->flags & PB_FUNC_CODE_SLOT);
	assert_refused(v, "before_slot", SHORT);
	assert_refused(v, "apart", SHORT);
	assert_refused(v, "falls", CROSSES);
	drop(v);
}

/* Returns the result of pb_analysis_check() after the byte at `offset` in f was set to `value`. */
static int check_with(struct view v, const struct pb_func *f, size_t offset, uint8_t value)
{
	uint8_t *copy = aligned_alloc(8, pb_align_up(v.size, (size_t)8));
	int ret;

	memcpy(copy, v.a, v.size);
	copy[(size_t)((const uint8_t *)f - (const uint8_t *)v.a) + offset] = value;
	ret = pb_analysis_check(copy, v.size);
	free(copy);
	return ret;
}

static void test_check_shared(void **unused)
{
	struct view v = analyse("shared.so", 0);
	const struct pb_func *first = func(v, "lone"), *second = func(v, "next");
	size_t flags = offsetof(struct pb_func, flags), via = offsetof(struct pb_func, via);

	assert_int_equal(check_with(v, first, flags, first->flags), 0);
	assert_int_not_equal(check_with(v, first, flags, PB_FUNC_GLOBAL), 0);
	assert_int_not_equal(check_with(v, second, flags, PB_FUNC_SHARES), 0);
	assert_int_not_equal(check_with(v, first, via, 20), 0);
	assert_int_not_equal(check_with(v, second, via, 20), 0);
	assert_int_not_equal(check_with(v, first, offsetof(struct pb_func, window_len), 2), 0);
	assert_int_not_equal(check_with(v, first, offsetof(struct pb_func, window), 1), 0);
	assert_int_not_equal(check_with(v, second, offsetof(struct pb_func, window), 4), 0);
	assert_int_not_equal(check_with(v, second, offsetof(struct pb_func, kind), PB_SITE_CYG), 0);
	assert_int_not_equal(check_with(v, second, offsetof(struct pb_func, addr),
					(uint8_t)(second->addr + 1)), 0);
	drop(v);
}

static void test_damaged(void **unused)
{
	check_damaged("slots.so");
	check_damaged("code_slots.so");
	check_damaged("shared.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_check_slots),
		cmocka_unit_test(test_code_slots_more),
		cmocka_unit_test(test_check_code_slots),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_check_shared),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
