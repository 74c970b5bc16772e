/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Program counters in stubs, holes and displaced code, to and fro
 * (engine/text_pc.c), of a module with every kind of site. */
#include "module_files.h"

#include "arch/x86_64/stub.h"
#include "engine/text_priv.h"

static const char *const code_s =
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .fill 300,1,0x90\n1: ret\n.cfi_endproc\n.endm\n"
	".text\nfar\n"
	/* push 1; mov 3; sub 4 */
	"F plain\n push %rbx\n mov %rdi,%rbx\n sub $16,%rsp\n ret\nE plain\nfar\n"
	"F padded\n xor %eax,%eax\n1: dec %edi\n jne 1b\n ret\nE padded\n .fill 5,1,0xcc\nfar\n"
	/* behind the first two bytes: add 3; mov 5; dec 2 */
	"F dug\n xor %eax,%eax\n1: add $3,%eax\n mov $5,%ecx\n dec %edi\n jne 1b\n ret\nE dug\nfar\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* What text_pc.c asks of text.c. */
struct pb_module pb_modules[PB_MAX_MODULES];
uint32_t pb_nr_modules;

struct pb_module *pb_module_at(uint64_t address)
{
	const struct pb_analysis *a = pb_modules[0].analysis;

	address -= pb_modules[0].bias;
	return address >= a->image_start && address < a->image_end ? &pb_modules[0] : NULL;
}

/* And of text_ride.c. */
static uint64_t landing;

const struct pb_func *pb_ride_at(uint64_t pc, const struct pb_module **m)
{
	*m = &pb_modules[0];
	return pc == landing ? func((struct view){ pb_modules[0].analysis, 0 }, "plain") : NULL;
}

#define IMAGE	0x10000000ul
#define REGION	0x20000000ul	/* sites and stubs */

static void *map_at(uint64_t address, size_t size)
{
	void *p = mmap((void *)address, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(p, (void *)address);
	return p;
}

/* The hole's bytes as in the file, or a jump. */
static void write_hole(const struct pb_func *f, bool patched)
{
	const struct pb_module *m = &pb_modules[0];
	const struct pb_recipe *dug = pb_func_dug(m->analysis, f);
	uint8_t *hole = (uint8_t *)(m->bias + pb_func_hole(f));

	if (dug)
		memcpy(hole - PB_JUMP_LEN, pb_recipe_rest(dug), PB_DIG_LEN);
	else
		memcpy(hole, pb_recipe_hole(pb_func_recipe(m->analysis, f)), PB_JUMP_LEN);
	if (patched)
		*hole = 0xe9;
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
	*m = (struct pb_module){ .analysis = v.a, .bias = IMAGE, .stubs_used = 16 };
	map_at(IMAGE, v.a->image_end);
	m->sites = map_at(REGION, 8192);
	m->stubs = (uint8_t *)REGION + 4096;
	for (uint32_t i = 0; i < v.a->nr_funcs; i++) {
		struct pb_place p;

		if (f[i].refused)
			continue;
		p = pb_func_place(v.a, &f[i]);
		if (f[i].via)
			write_hole(&f[i], false);
		m->sites[i].stub = (uint32_t)m->stubs_used;
		assert_int_equal(pb_stub_emit(m->stubs + m->stubs_used, (uint64_t)m->stubs + m->stubs_used,
					      &m->sites[i], &p, m->returns, m->bias), 0);
		m->stubs_used += pb_stub_size(&p);
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

/* original PC of pc; what else is said of it is in *own. */
static uint64_t original(uint64_t pc, bool own)
{
	bool is_own = !own;
	uint64_t ret = pb_text_original_pc(pc, &is_own);

	assert_int_equal(is_own, own);
	return ret;
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
}

static void test_padded(void **unused)
{
	const struct pb_func *f = function("padded");
	uint64_t stub = stub_of(f), hole = IMAGE + pb_func_hole(f);

	assert_int_equal(f->flags & PB_FUNC_DUG, 0);
	write_hole(f, true);
	assert_int_equal(original(hole, false), IMAGE + f->addr);
	assert_int_equal(pb_text_moved_pc(hole), stub);
	assert_int_equal(pb_text_moved_pc(hole + 1), 0);
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 2), 0);	/* behind the short jump */
	write_hole(f, false);
	assert_int_equal(original(hole, false), 0);
	assert_int_equal(pb_text_moved_pc(hole), 0);
}

static void test_dug(void **unused)
{
	const struct pb_func *f = function("dug");
	uint64_t stub = stub_of(f), dig = IMAGE + f->addr + 2;
	/* xor %eax,%eax; jmp; then what is dug away */
	uint64_t copy = stub + PB_STUB_COPY, dug = copy + 2 + 5;

	assert_true(f->flags & PB_FUNC_DUG);
	assert_int_equal(IMAGE + pb_func_dig(f), dig);
	assert_int_equal(original(copy, false), IMAGE + f->addr);
	assert_int_equal(original(copy + 2, false), IMAGE + f->addr + 2);
	assert_int_equal(original(dug, false), dig);
	assert_int_equal(original(dug + 3, false), dig + 3);
	assert_int_equal(original(dug + 8, false), dig + 8);
	assert_int_equal(original(dug + 10, false), dig + 10);
	for (int patched = 0; patched < 2; patched++) {
		write_hole(f, patched);
		assert_int_equal(pb_text_moved_pc(dig), 0);
		assert_int_equal(pb_text_moved_pc(dig + 3), dug + 3);
		assert_int_equal(pb_text_moved_pc(dig + 4), 0);
		assert_int_equal(pb_text_moved_pc(dig + 5), patched ? stub : 0);
		assert_int_equal(pb_text_moved_pc(dig + 8), dug + 8);
		assert_int_equal(pb_text_moved_pc(dig + 9), 0);
		assert_int_equal(pb_text_moved_pc(dig + 10), 0);
		assert_int_equal(original(dig + 3, false), 0);
		assert_int_equal(original(dig + 5, false), patched ? IMAGE + f->addr : 0);
	}
}

static void test_landing(void **unused)
{
	landing = 0x12345678;
	assert_int_equal(original(landing, false), IMAGE + function("plain")->addr);
	assert_int_equal(original(landing + 1, false), 0);
	assert_int_equal(pb_text_moved_pc(landing), 0);
	landing = 0;
}

/* Nothing is known of a site that was never wanted. */
static void test_without_a_stub(void **unused)
{
	const struct pb_func *f = function("dug");
	struct pb_site *s = &pb_modules[0].sites[f - pb_analysis_funcs(pb_modules[0].analysis)];
	uint32_t stub = s->stub;

	write_hole(f, false);
	s->stub = 0;
	assert_int_equal(pb_text_moved_pc(IMAGE + f->addr + 5), 0);
	s->stub = stub;
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
		cmocka_unit_test(test_dug),
		cmocka_unit_test(test_landing),
		cmocka_unit_test(test_without_a_stub),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
