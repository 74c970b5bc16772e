/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the file of a module's stubs (abi/stubs.h). Its code must be equal to the code that an
 * agent emits at the same address. Its sections must be at the offsets that its header gives.
 * Damage must be noticed. */
#include "module_files.h"
#include <elf.h>
#include "arch/arch.h"
#include "module/stubs/stub_image.h"

static const char *const code_s =
	".macro F name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".text\n"
	"F moves\n mov %rdi,%rax\n add %rsi,%rax\n imul %rdx,%rax\n imul %rdx,%rax\n"
	" lea moves(%rip),%rcx\n imul %rdx,%rax\n ret\nE moves\n .fill 8,1,0xcc\n"
	"F tail\n mov %rdi,%rax\n imul %rdx,%rax\n imul %rdx,%rax\n imul %rdx,%rax\n jmp moves\n"
	"E tail\n .fill 8,1,0xcc\n"
	"F calls\n push %rbx\n .cfi_adjust_cfa_offset 8\n call moves\n imul %rdx,%rax\n"
	" imul %rdx,%rax\n pop %rbx\n .cfi_adjust_cfa_offset -8\n ret\nE calls\n .fill 8,1,0xcc\n"
	"F short\n ret\nE short\n"
	".section .note.GNU-stack,\"\",@progbits\n";

#define BIAS 0x7f1200000000ul

static struct {
	struct view v;
	uint8_t *file;
	size_t size;
	const struct pb_stubs *head;
} t;

static int set_up(void **state)
{
	if (make_dir(state))
		return -1;
	write_file("image.s", code_s);
	build("gcc -shared -nostdlib -Wl,-Bsymbolic image.s -o image.so");
	t.v = analyse("image.so", PB_MODULE_RETURNS);
	if (pb_stub_image(t.v.a, NULL, &t.file, &t.size))
		return -1;
	t.head = (const struct pb_stubs *)(t.file + PB_STUBS_AT);
	return 0;
}

static bool absolute(const struct pb_place *p)
{
	for (unsigned i = 0; i < p->recipe->nr_fixups; i++)
		if (pb_recipe_fixups(p->recipe)[i].kind != PB_FIX_REL32)
			return true;
	return false;
}

static uint64_t front(void)
{
	return BIAS + t.head->place - t.head->front;
}

static const struct pb_returns *words(void)
{
	return (const void *)(front() + t.v.a->nr_funcs * sizeof(struct pb_site));
}

/* The stubs in the file are compared with the stubs that an agent emits for a module at BIAS. Only
 * stubs with absolute addresses differ, because the file has link-time addresses. */
static void code_is_right_in_its_place(void **state)
{
	uint64_t text = BIAS + t.head->place + t.head->text;
	unsigned same = 0, differ = 0;

	for (uint32_t i = 0; i < t.v.a->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(t.v.a) + i;
		uint32_t at = pb_stubs_funcs(t.head)[i];
		const struct pb_site *site = (const void *)(front() + i * sizeof(*site));
		uint8_t want[PB_STUB_MAX];
		struct pb_place p;
		bool is;

		if (f->refused) {
			assert_int_equal(at, 0);
			continue;
		}
		p = pb_func_place(t.v.a, f);
		assert_true(at >= PB_STUBS_HEAD && at % 16 == 0);
		assert_int_equal(pb_stub_emit(want, text + at, site, &p, words(), BIAS), 0);
		is = !memcmp(t.file + t.head->text + at, want, PB_STUB_COPY + pb_body_size(&p));
		assert_int_equal(is, !absolute(&p));
		same += is;
		differ += !is;
	}
	assert_true(same && differ);
}

static void code_of_exits_is_right(void **state)
{
	uint64_t text = BIAS + t.head->place + t.head->text;
	unsigned nr = 0;
	uint32_t last = 0;

	for (uint32_t i = 0; i < t.v.a->nr_windows; i++) {
		const struct pb_exit_window *w = pb_analysis_windows(t.v.a) + i;
		uint32_t at = pb_stubs_windows(t.head)[i];
		struct pb_place p = pb_window_place(t.v.a, w);
		uint8_t want[PB_STUB_MAX];

		assert_true(at >= last);
		last = at;
		if (w->how == PB_EXIT_ENTRY)
			continue;
		assert_int_equal(pb_body_emit(want, text + at, &p, words(), BIAS), 0);
		assert_memory_equal(t.file + t.head->text + at, want, pb_body_size(&p));
		nr++;
	}
	assert_true(nr >= 2);
}

/* Each stub has a symbol with the function's name, in .text. */
static void symbols(void **state)
{
	const Elf64_Shdr *s = (const Elf64_Shdr *)(t.file + t.head->sections);
	const Elf64_Sym *sym = (const Elf64_Sym *)(t.file + s[PB_STUBS_SYMTAB].sh_offset);
	size_t nr = s[PB_STUBS_SYMTAB].sh_size / sizeof(*sym);
	unsigned stubs = 0;

	assert_int_equal(s[PB_STUBS_TEXT].sh_offset, t.head->text);
	for (size_t i = 1; i < nr; i++) {
		const char *name = (const char *)t.file + s[PB_STUBS_STRTAB].sh_offset +
				   sym[i].st_name;
		const struct pb_func *f;

		assert_true(sym[i].st_value >= t.head->text &&
			    sym[i].st_value < t.head->text + t.head->text_size);
		if (!strcmp(name, "patchbay_handlers")) {
			assert_int_equal(sym[i].st_value, t.head->text);
			assert_int_equal(sym[i].st_size, PB_STUBS_HEAD);
			continue;
		}
		if (strncmp(name, "patchbay_stub_", 14)) {
			assert_true(!strncmp(name, "patchbay_exit_", 14));
			continue;
		}
		f = func(t.v, name + 14);
		assert_int_equal(sym[i].st_value - t.head->text,
				 pb_stubs_funcs(t.head)[f - pb_analysis_funcs(t.v.a)]);
		stubs++;
	}
	assert_true(stubs >= 3);
}

static void damage(void **state)
{
	uint8_t *copy = malloc(t.size);
	struct pb_stubs *head = (struct pb_stubs *)(copy + PB_STUBS_AT);
	struct pb_analysis other = *t.v.a;

	memcpy(copy, t.file, t.size);
	assert_true(pb_stubs_fit(head, t.size) && pb_stubs_sum(head) == head->sum &&
		    pb_stubs_are_of(head, t.v.a));
	for (size_t i = 0; i < t.size; i += 37) {
		copy[i] ^= 4;
		assert_true(!pb_stubs_fit(head, t.size) || pb_stubs_sum(head) != head->sum);
		copy[i] ^= 4;
	}
	assert_false(pb_stubs_fit(head, t.size - 8));
	other.build_id[0] ^= 1;
	assert_false(pb_stubs_are_of(head, &other));
	free(copy);
}

/* The CFA is a long expression. It isn't copied into the rows of each stub. */
static void long_expressions(void **state)
{
	const struct pb_stubs *head;
	const Elf64_Shdr *s;
	struct pb_cfi cfi;
	struct pb_elf e;
	const char *why;
	uint8_t *file;
	char path[256];
	size_t size;
	int fd;

	write_file("long.s", ".text\n.macro f\n.p2align 4\n.type f\\@,@function\n"
		   "f\\@: .cfi_startproc\n push %rbx\n"
		   " .cfi_escape 0x0f,0x80,0x08\n .rept 1024\n .cfi_escape 0x96\n .endr\n"
		   " mov %rdi,%rax\n pop %rbx\n .cfi_def_cfa %rsp,8\n ret\n .cfi_endproc\n"
		   " .size f\\@,.-f\\@\n.endm\n.rept 16\n f\n.endr\n"
		   ".section .note.GNU-stack,\"\",@progbits\n");
	build("gcc -shared -nostdlib long.s -o long.so");
	struct view v = analyse("long.so", 0);

	snprintf(path, sizeof(path), "%s/long.so", dir);
	fd = open(path, O_RDONLY);
	assert_int_equal(pb_elf_open(&e, fd, false, &why), 0);
	assert_true(pb_cfi_read(&cfi, &e));
	assert_int_equal(pb_stub_image(v.a, &cfi, &file, &size), 0);
	head = (const struct pb_stubs *)(file + PB_STUBS_AT);
	s = (const Elf64_Shdr *)(file + head->sections);
	assert_true(v.a->nr_funcs >= 16);
	assert_true(s[PB_STUBS_EH_FRAME].sh_size < 2048);
	free(file);
	pb_cfi_free(&cfi);
	pb_elf_close(&e);
	close(fd);
	drop(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_right_in_its_place),
		cmocka_unit_test(code_of_exits_is_right),
		cmocka_unit_test(symbols),
		cmocka_unit_test(damage),
		cmocka_unit_test(long_expressions),
	};

	return cmocka_run_group_tests(tests, set_up, remove_dir);
}
