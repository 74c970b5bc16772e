/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the translation of program counters (engine/text/text_pc.c). PCs in stubs and trampoline
 * slots become PCs of the original code. PCs in displaced code become PCs in the code's copy. The
 * modules have sites of each kind. A window is the bytes that a patch may overwrite. */
#include "../module/module_files.h"

#include "abi/stubs.h"
#include "arch/arch.h"
#include "engine/text/text_priv.h"

/* The macro "far" puts 300 bytes between functions, so that a short jump can't reach the padding or
 * code of another function. */
static const char *const code_s =
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .fill 300,1,0x90\n1: ret\n.cfi_endproc\n.endm\n"
	".text\nfar\n"
	/* push has 1 byte, mov 3, sub 4 */
	"F plain\n push %rbx\n mov %rdi,%rbx\n sub $16,%rsp\n ret\nE plain\nfar\n"
	"F padded\n xor %eax,%eax\n1: dec %edi\n jne 1b\n ret\nE padded\n .fill 5,1,0xcc\nfar\n"
	/* xor has 2 bytes, add 3, mov 5, dec 2 */
	"F code_slot\n xor %eax,%eax\n1: add $3,%eax\n mov $5,%ecx\n dec %edi\n jne 1b\n ret\n"
	"E code_slot\nfar\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* Code that has windows with each kind of exit. The macro "body" has 10 bytes. */
static const char *const exits_s =
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n"
	" .endr\n1: ret\n.cfi_endproc\n.endm\n"
	".macro push_rbx\n push %rbx\n .cfi_adjust_cfa_offset 8\n.endm\n"
	".macro pop_rbx\n pop %rbx\n .cfi_adjust_cfa_offset -8\n.endm\n"
	".macro body\n mov %rdi,%rax\n add %rsi,%rax\n imul %rdx,%rax\n.endm\n"
	".text\nfar\n"
	"F other\n body\n body\n ret $8\nE other\n"
	"F tail\n body\n body\n jmp other\nE tail\nfar\n"
	"F returns\n body\n push_rbx\n call other\n add $1,%eax\n pop_rbx\n ret\nE returns\nfar\n"
	"F joins\n body\n call other\n test %eax,%eax\n je other\n ret\nE joins\nfar\n"
	"F inside\n mov %rdi,%rax\n ret\nE inside\n nop\nfar\n"
	"F padded_slot\n body\n call other\n1: ret\n nop\n jmp 1b\nE padded_slot\n"
	" .fill 6,1,0x90\nfar\n"
	"F code_slot\n body\n imul $1000,%rax,%rax\n imul $1000,%rax,%rax\n push_rbx\n call other\n"
	" pop_rbx\n ret\nE code_slot\nfar\n"
	"F shared\n body\n test %eax,%eax\n je 1f\n call other\n1: ret\n2: mov $1,%eax\n"
	" mov $2,%ecx\n jmp 1b\n jne 2b\nE shared\nfar\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* Replacements for the parts of text.c that text_pc.c uses. */
struct pb_module pb_modules[PB_MAX_MODULES];
uint32_t pb_nr_modules;

struct pb_module *pb_module_at(uint64_t address)
{
	const struct pb_analysis *a = pb_modules[0].analysis;

	address -= pb_modules[0].bias;
	return address >= a->image_start && address < a->image_end ? &pb_modules[0] : NULL;
}

/* A replacement for the part of text_shared.c that text_pc.c uses. */
static uint64_t target;

uint64_t pb_shared_at(uint64_t pc)
{
	struct view v = { pb_modules[0].analysis, 0 };

	return pc == target ? pb_modules[0].bias + func(v, "plain")->addr : 0;
}

#define IMAGE	0x10000000ul
#define REGION	0x20000000ul	/* sites and stubs */
#define STUBS_SIZE (PB_STUBS_HEAD + 8192)

/* The file of stubs. Only its table of windows is used. */
static struct {
	uint8_t before[PB_STUBS_AT];
	struct pb_stubs head;
	uint32_t windows[64];
} stub_file;

static void *map_at(uint64_t address, size_t size)
{
	void *p = mmap((void *)address, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(p, (void *)address);
	return p;
}

/* Writes the slot: the bytes of the module's file or, if `patched`, a jump. */
static void write_slot(const struct pb_func *f, bool patched)
{
	const struct pb_module *m = &pb_modules[0];
	const struct pb_recipe *moved = pb_func_code_recipe(m->analysis, f);
	uint8_t *slot = (uint8_t *)(m->bias + pb_func_slot(f));

	if (moved)
		memcpy(slot - PB_JUMP_LEN, pb_recipe_rest(moved), PB_CODE_SLOT_LEN);
	else
		memcpy(slot, pb_recipe_slot(pb_func_recipe(m->analysis, f)), PB_JUMP_LEN);
	if (patched)
		*slot = 0xe9;
}

/* The same for the window of a function without a slot. */
static void write_window(const struct pb_func *f, bool patched)
{
	const struct pb_module *m = &pb_modules[0];
	uint8_t *window = (uint8_t *)(m->bias + pb_func_window(f));

	memcpy(window, pb_recipe_rest(pb_func_recipe(m->analysis, f)), PB_JUMP_LEN);
	if (patched)
		*window = 0xe9;
}

static void add_module(void)
{
	struct pb_module *m = &pb_modules[0];
	const struct pb_func *f;
	struct view v;

	write_file("pc.s", code_s);
	build("gcc -shared -nostdlib pc.s -o pc.so");
	v = analyse("pc.so", 0);
	f = pb_analysis_funcs(v.a);
	stub_file.head.windows = offsetof(__typeof__(stub_file), windows);
	*m = (struct pb_module){ .analysis = v.a, .bias = IMAGE, .stub_file = &stub_file.head,
				 .stubs_size = PB_STUBS_HEAD };
	map_at(IMAGE, v.a->image_end);
	m->sites = map_at(REGION, 4096 + STUBS_SIZE);
	m->stubs = (uint8_t *)REGION + 4096;
	for (uint32_t i = 0; i < v.a->nr_funcs; i++) {
		struct pb_place p;

		if (f[i].refused)
			continue;
		p = pb_func_place(v.a, &f[i]);
		if (f[i].via)
			write_slot(&f[i], false);
		m->sites[i].stub = (uint32_t)m->stubs_size;
		assert_int_equal(pb_stub_emit(m->stubs + m->stubs_size,
					      (uint64_t)m->stubs + m->stubs_size,
					      &m->sites[i], &p, m->returns, m->bias), 0);
		m->stubs_size += pb_stub_size(&p);
	}
	pb_nr_modules = 1;
}

static const struct pb_func *function(const char *name)
{
	return func((struct view){ pb_modules[0].analysis, 0 }, name);
}

static uint64_t stub_of(const struct pb_func *f)
{
	const struct pb_module *m = &pb_modules[0];

	return (uint64_t)m->stubs + m->sites[f - pb_analysis_funcs(m->analysis)].stub;
}

/* Returns the original PC of pc. Checks the result's `own`, and that the code at pc has done
 * nothing of the original instruction's work. */
static uint64_t original(uint64_t pc, bool own)
{
	struct pb_original o = pb_text_original_pc(pc);

	assert_int_equal(o.own, own);
	assert_int_equal(o.next, o.pc);
	assert_int_equal(o.pushed, 0);
	return o.pc;
}

static void test_plain(void **unused)
{
	const struct pb_func *f = function("plain");
	uint64_t stub = stub_of(f), copy = stub + PB_STUB_COPY;

	assert_int_equal(f->via, 0);
	for (unsigned i = 0; i < PB_STUB_COPY; i++)
		assert_int_equal(original(stub + i, true), IMAGE + f->addr);
	assert_int_equal(original(copy, false), IMAGE + f->addr);
	assert_int_equal(original(copy + 1, false), IMAGE + f->addr + 1);
	assert_int_equal(original(copy + 4, false), IMAGE + f->addr + 4);
	assert_int_equal(original(copy + 8, false), IMAGE + f->addr + 8);	/* the jump back */
	assert_int_equal(original(IMAGE + f->addr + 1, false), 0);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr), 0);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 1), copy + 1);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 2), 0);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 4), copy + 4);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 8), 0);
	assert_true(pb_text_is_window(IMAGE + f->addr));
	assert_false(pb_text_is_window(IMAGE + f->addr + 1));
	write_window(f, false);
	assert_int_equal(pb_text_moved_fault(IMAGE + f->addr), copy);
	assert_int_equal(pb_text_moved_fault(IMAGE + f->addr + 1), 0);
	assert_int_equal(pb_text_displaced_pc(IMAGE + f->addr + 1), 0);
	write_window(f, true);
	assert_int_equal(pb_text_moved_fault(IMAGE + f->addr), 0);
	assert_int_equal(pb_text_displaced_pc(IMAGE + f->addr + 1), copy + 1);
}

static void test_padded(void **unused)
{
	const struct pb_func *f = function("padded");
	uint64_t stub = stub_of(f), slot = IMAGE + pb_func_slot(f);

	assert_int_equal(f->flags & PB_FUNC_CODE_SLOT, 0);
	write_slot(f, true);
	assert_int_equal(original(slot, false), IMAGE + f->addr);
	assert_int_equal(pb_text_moved_pc(slot), stub);
	assert_int_equal(pb_text_moved_pc(slot + 1), 0);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 2), 0);	/* after the short jump */
	write_slot(f, false);
	assert_int_equal(original(slot, false), 0);
	assert_int_equal(pb_text_moved_pc(slot), 0);
}

static void test_code_slots(void **unused)
{
	const struct pb_func *f = function("code_slot");
	uint64_t stub = stub_of(f), code = IMAGE + f->addr + 2;
	/* xor %eax,%eax; jmp; then the copy of the code that the slot displaces */
	uint64_t copy = stub + PB_STUB_COPY, moved = copy + 2 + 5;

	assert_true(f->flags & PB_FUNC_CODE_SLOT);
	assert_int_equal(IMAGE + pb_func_code_slot(f), code);
	assert_int_equal(original(copy, false), IMAGE + f->addr);
	assert_int_equal(original(copy + 2, false), IMAGE + f->addr + 2);
	assert_int_equal(original(moved, false), code);
	assert_int_equal(original(moved + 3, false), code + 3);
	assert_int_equal(original(moved + 8, false), code + 8);
	assert_int_equal(original(moved + 10, false), code + 10);
	for (int patched = 0; patched < 2; patched++) {
		write_slot(f, patched);
		assert_int_equal(pb_text_moved_pc(code), 0);
		assert_int_equal(pb_text_moved_pc(code + 3), moved + 3);
		assert_int_equal(pb_text_moved_pc(code + 4), 0);
		assert_int_equal(pb_text_moved_pc(code + 5), patched ? stub : 0);
		assert_int_equal(pb_text_moved_pc(code + 8), moved + 8);
		assert_int_equal(pb_text_moved_pc(code + 9), 0);
		assert_int_equal(pb_text_moved_pc(code + 10), 0);
		assert_int_equal(original(code + 3, false), 0);
		assert_int_equal(original(code + 5, false), patched ? IMAGE + f->addr : 0);
	}
}

static void test_landing(void **unused)
{
	target = 0x12345678;
	assert_int_equal(original(target, false), IMAGE + function("plain")->addr);
	assert_int_equal(original(target + 1, false), 0);
	assert_int_equal(pb_text_moved_pc(target), 0);
	target = 0;
}

/* A site that was never traced has no stub. So PCs in its code aren't translated. */
static void test_without_a_stub(void **unused)
{
	const struct pb_func *f = function("code_slot");
	struct pb_site *s = &pb_modules[0].sites[f - pb_analysis_funcs(pb_modules[0].analysis)];
	uint32_t stub = s->stub;

	write_slot(f, false);
	s->stub = 0;
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 5), 0);
	s->stub = stub;
}

static struct pb_exit_site exit_sites[64];

/* Replaces the module by exits.so. Copies the bytes of its windows and emits all its stubs. */
static void use_exits(void)
{
	struct pb_module *m = &pb_modules[0];
	const struct pb_exit_window *w;
	struct view v;

	write_file("exits.s", exits_s);
	build("gcc -shared -nostdlib exits.s -o exits.so");
	v = analyse("exits.so", PB_MODULE_RETURNS);
	w = pb_analysis_windows(v.a);
	assert_true(v.a->nr_windows && v.a->nr_windows <= 64);
	*m = (struct pb_module){ .analysis = v.a, .bias = IMAGE, .stubs_size = PB_STUBS_HEAD,
				 .sites = m->sites, .stubs = m->stubs,
				 .returns = (struct pb_returns *)(REGION + 4000),
				 .exits = exit_sites, .stub_file = &stub_file.head };
	memset(m->sites, 0, 4096);
	for (uint32_t i = 0; i < v.a->nr_windows; i++) {
		struct pb_place p = pb_window_place(v.a, &w[i]);
		const struct pb_func *f = pb_window_func(v.a, &w[i]);
		struct pb_site *s = f ? &m->sites[f - pb_analysis_funcs(v.a)] : NULL;
		size_t at = pb_align_up(m->stubs_size, f ? (size_t)16 : 4);
		size_t size = f ? pb_stub_size(&p) : pb_body_size(&p);

		memcpy((void *)(IMAGE + p.window), pb_recipe_rest(p.recipe), p.recipe->window_len);
		if (f)
			s->stub = (uint32_t)at;
		else
			exit_sites[i].stub = (uint32_t)at;
		stub_file.windows[i] = (uint32_t)(f ? at + size : at);
		assert_int_equal(f ? pb_stub_emit(m->stubs + at, (uint64_t)m->stubs + at, s, &p,
						  m->returns, IMAGE) :
				 pb_body_emit(m->stubs + at, (uint64_t)m->stubs + at, &p,
					      m->returns, IMAGE), 0);
		m->stubs_size = at + size;
	}
	assert_true(m->stubs_size < STUBS_SIZE);
}

/* Checks that each PC in a stub's body is translated to the address of the right original
 * instruction. */
static void check_stub(const struct pb_place *p, uint64_t body)
{
	for (unsigned off = 0; off < pb_body_size(p); off++) {
		struct pb_original want = pb_body_original(p, off);
		struct pb_original is = pb_text_original_pc(body + off);

		assert_int_equal(is.pc, IMAGE + want.pc);
		assert_int_equal(is.next, IMAGE + want.next);
		assert_int_equal(is.pushed, want.pushed);
		assert_int_equal(is.own, want.own);
	}
}

/* Checks each PC in a window. If a thread is inside the bytes of the jump, it goes on in the
 * copy. */
static void check_window(const struct pb_place *p, uint64_t body)
{
	for (uint64_t at = p->window; at < p->window + p->recipe->window_len; at++) {
		bool in = at > p->window && at < p->window + pb_place_patch_len(p);
		int copy = pb_recipe_copy_offset(p->recipe, (uint8_t)(at - p->window));

		assert_int_equal(pb_text_moved_pc(IMAGE + at),
				 in && copy >= 0 ? body + (uint64_t)copy : 0);
	}
}

static void check_slot(const struct pb_place *p, uint64_t stub)
{
	uint64_t slot = IMAGE + pb_place_slot(p), code = IMAGE + pb_place_second(p);

	for (int patched = 0; patched < 2; patched++) {
		if (p->second)
			memcpy((void *)code, pb_recipe_rest(p->second), PB_CODE_SLOT_LEN);
		else
			memcpy((void *)slot, pb_recipe_slot(p->recipe), PB_JUMP_LEN);
		if (patched)
			*(uint8_t *)slot = 0xe9;
		assert_int_equal(pb_text_moved_pc(slot), patched ? stub : 0);
		assert_int_equal(original(slot, false), patched ? IMAGE + p->window : 0);
		for (unsigned k = 1; p->second && k < PB_CODE_SLOT_LEN; k++) {
			int copy = pb_recipe_copy_offset(p->second, (uint8_t)k);

			if (k != PB_JUMP_LEN)
				assert_int_equal(pb_text_moved_pc(code + k),
						 copy < 0 ? 0 : stub + pb_body_second(p) +
								(unsigned)copy);
		}
	}
}

static void check_second(const struct pb_place *p, uint64_t stub)
{
	for (unsigned k = 0; k < p->second->window_len; k++) {
		int copy = k < PB_JUMP_LEN ? pb_recipe_copy_offset(p->second, (uint8_t)k) : -1;

		assert_int_equal(pb_text_moved_pc(IMAGE + p->window + 1 + k),
				 copy < 0 ? 0 : stub + pb_body_second(p) + (unsigned)copy);
	}
}

static void test_exits(void **unused)
{
	struct pb_module *m = &pb_modules[0];
	unsigned how[PB_NR_EXIT_HOW] = { 0 };

	use_exits();
	for (uint32_t i = 0; i < m->analysis->nr_windows; i++) {
		const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + i;
		struct pb_place p = pb_window_place(m->analysis, w);
		const struct pb_func *f = pb_window_func(m->analysis, w);
		uint64_t stub = f ? stub_of(f) : (uint64_t)m->stubs + exit_sites[i].stub;
		uint64_t body = f ? stub + PB_STUB_COPY : stub;

		how[w->how]++;
		for (uint64_t at = stub; at < body; at++)
			assert_int_equal(original(at, true), IMAGE + p.window);
		check_stub(&p, body);
		check_window(&p, body);
		if (p.via)
			check_slot(&p, stub);
		if (w->how == PB_EXIT_SHARED)
			check_second(&p, stub);
	}
	assert_true(how[PB_EXIT_WINDOW] >= 2 && how[PB_EXIT_ENTRY] && how[PB_EXIT_PADDING_SLOT] &&
		    how[PB_EXIT_CODE_SLOT] && how[PB_EXIT_SHARED]);
}

static int set_up(void **unused)
{
	if (make_dir(unused))
		return -1;
	add_module();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_padded),
		cmocka_unit_test(test_code_slots),
		cmocka_unit_test(test_landing),
		cmocka_unit_test(test_without_a_stub),
		cmocka_unit_test(test_exits),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
