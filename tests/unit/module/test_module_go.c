/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the reader of Go's table of functions (.gopclntab). A table is assembled in the format of
 * each version of Go, in shared libraries, where relocations write the table's addresses, and in
 * programs at a fixed address. */
#include "module_files.h"
#include "module/elf/runtimes.h"

/* What is different in a table. The reader must cope with NO_TEXT and
 * LONG, and refuse the others. */
enum fault { NONE, NO_TEXT, COUNT, ORDER, CODE, NO_EXIT, NAMES, ARRAY, LAYOUT, NR_FAULTS,
	     LONG = NR_FAULTS };

/* V: the version of Go. FAULT: enum fault. FDE: whether there is a C function. The preprocessor
 * defines PLACE, the table's section. All functions are named by the table only. */
static const char go_s[] =
	".text\n.p2align 5\n"
	/* the text of C comes first */
	".skip 64, 0x90\n"
	"text:\n"
	"a: mov $1,%eax\n mov $2,%ecx\n ret\n.p2align 5, 0xcc\n"
	/* the last byte of the jump looks like padding */
	"b: mov $1,%eax\n .skip 45, 0x90\n .byte 0xeb, 0xcc\n.p2align 5, 0xcc\n"
	"c: mov $1,%eax\n mov $2,%ecx\n ret\n.p2align 5, 0xcc\n"
	"x:\n.if FAULT == 4\n.byte 0x66\n.endif\n nop\n call y\n nop\n.p2align 5, 0xcc\n"
	"y: mov $1,%eax\n mov $2,%ecx\n ret\n.p2align 5, 0xcc\n"
	"blank: mov $1,%eax\n ret\n.p2align 5, 0xcc\n"
	/* according to the table, this function includes the next one, which has an FDE */
	"z: mov $1,%eax\n mov $2,%ecx\n ret\n.p2align 5, 0xcc\n"
	".if FDE\n"
	".cfi_startproc\n mov $1,%eax\n push %rbx\n.cfi_def_cfa_offset 16\n"
	"inner: mov $2,%ecx\n pop %rbx\n.cfi_def_cfa_offset 8\n ret\n.cfi_endproc\n"
	".else\ninner:\n.endif\n.p2align 5, 0xcc\n"
	"end:\n"
	".section .go.buildinfo, \"aw\"\n .quad 0\n"
	/* looks like a table at first */
	".section .data.rel.ro, \"aw\"\n .quad 0x08010000fffffff1, -1, 0, 0\n"
	".section PLACE, \"aw\"\n.p2align 5\n"
	".macro start f, i\n"
	".if FAULT == 9\n .long \\f - text + 0x8000000, \\i - infos\n"
	".elseif V >= 118\n .long \\f - text, \\i - infos\n.else\n .quad \\f, \\i - infos\n.endif\n"
	".endm\n"
	".macro info f, name, list=lists\n"
	".if V >= 118\n .long \\f - text\n.else\n .quad \\f\n.endif\n"
	" .long \\name - names, 0, 0, \\list - lists\n"
	".endm\n"
	"table:\n"
	".if V == 102\n .long 0xfffffffb\n.elseif V == 116\n .long 0xfffffffa\n"
	".elseif V == 118\n .long 0xfffffff0\n.else\n .long 0xfffffff1\n.endif\n"
	" .byte 0, 0, 1\n"
	".if FAULT == 8\n .byte 4\n.else\n .byte 8\n.endif\n"
	".if FAULT == 2\n .quad 0x7fffffffffffffff\n.elseif FAULT == 9\n .quad 9008\n"
	".else\n .quad 8\n.endif\n"
	".if V >= 116\n"
	" .quad 1\n"
	".if V >= 118\n.if FAULT == 1\n .quad 0\n.elseif FAULT == 9\n .quad text - 0x8000000\n"
	".else\n .quad text\n.endif\n.endif\n"
	".if FAULT == 6\n .quad 1 << 40\n.else\n .quad names - table\n.endif\n"
	" .quad names - table, names - table, lists - table\n"
	".if FAULT == 7\n .quad -8\n.else\n .quad funcs - table\n.endif\n"
	".set names, n0\n.set lists, l0\n.set infos, funcs\n"
	".else\n"
	".set names, table\n.set lists, table\n.set infos, table\n"
	".endif\n"
	"funcs:\n"
	/* many functions that aren't in the file share a long list of depths */
	".if FAULT == 9\n.set n, 0\n.rept 9000\n .long n, il - infos\n.set n, n + 8200\n.endr\n"
	".endif\n"
	".if FAULT == 3\n start c, ia\n.else\n start a, ia\n.endif\n"
	" start b, ib\n start c, ic\n start x, ix\n start y, iy\n start blank, iblank\n"
	" start z, iz\n start inner, ii\n"
	".if FAULT == 9\n .long end - text + 0x8000000\n.elseif V >= 118\n .long end - text\n"
	".else\n .quad end\n.endif\n"
	"ia: info a, na\nib: info b, nb, lb\nic: info c, nc\nix: info x, nx\niy: info y, ny\n"
	"iblank: info blank, nblank\niz: info z, nz\nii: info inner, ni\n"
	"il: info a, n0, ll\n"
	"n0: .byte 0\n"
	"na: .asciz \"main.a\"\nnb: .asciz \"main.b[...]\"\nnc: .asciz \"main.(*T).c\"\n"
	"nx:\n.if FAULT == 5\n .asciz \"exit\"\n.else\n .asciz \"runtime.goexit\"\n.endif\n"
	"ny: .asciz \"runtime.goexit1\"\nnblank: .asciz \"type..eq.struct { x int }\"\n"
	"nz: .asciz \"main.z\"\nni: .asciz \"main.inner\"\n"
	"l0: .byte 0\n"
	/* b has three parts with 5, 1 and 46 bytes: its length is 52 */
	"lb: .byte 2, 5, 0x80, 1, 1, 1, 46, 0\n"
	".if FAULT == 9\nll: .fill 8190, 2, 0x0102\n .byte 0\n.else\n.set ll, lb\n.endif\n";

static const unsigned versions[] = { 102, 116, 118, 120 };
static const char *const places[] = { ".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro" };

static struct view table(unsigned version, unsigned fault, bool fde, const char *place, bool fixed)
{
	char line[512];

	write_file("go.S", go_s);
	snprintf(line, sizeof(line), "gcc %s -nostdlib -s -DPLACE=%s -Wa,--defsym,V=%u "
		 "-Wa,--defsym,FAULT=%u -Wa,--defsym,FDE=%u -Wl,-e0 go.S -o go.so",
		 fixed ? "-no-pie -static" : "-shared", place, version, fault, fde);
	build(line);
	return analyse("go.so", PB_MODULE_RETURNS);
}

static void check_func(struct view v, const char *name, uint64_t offset, uint32_t size)
{
	const struct pb_func *text = func(v, "main.a"), *f = func(v, name);

	assert_non_null(text);
	assert_non_null(f);
	assert_int_equal(f->addr - text->addr, offset);
	assert_int_equal(f->size, size);
}

static void check_all(struct view v)
{
	check_func(v, "main.a", 0, 11);
	check_func(v, "main.b[...]", 32, 52);
	check_func(v, "main.(*T).c", 96, 11);
	check_func(v, "runtime.goexit", 128, 7);
	check_func(v, "runtime.goexit1", 160, 11);
	check_func(v, "main.z", 224, 11);
	assert_site(v, "main.a", PB_SITE_SYMBOL);
	assert_site(v, "main.b[...]", PB_SITE_SYMBOL);
	/* its address after the nop is the bottom of stacks */
	assert_refused(v, "runtime.goexit", START);
	/* symbols with such names don't make functions, either */
	assert_null(func(v, "type..eq.struct { x int }"));
	assert_true(v.a->flags & PB_AN_SMALL_STACKS);
	assert_string_equal(pb_runtime_name((unsigned)__builtin_ctz(v.a->runtimes)), "Go");
}

static void test_versions(void **unused)
{
	for (size_t i = 0; i < pb_array_size(versions); i++)
		for (size_t k = 0; k < pb_array_size(places); k++)
			for (int fixed = 0; fixed < 2; fixed++) {
				struct view v = table(versions[i], NONE, false, places[k], fixed);

				check_all(v);
				drop(v);
			}
}

/* Without section headers, the file is recognised by the table. */
static void test_no_sections(void **unused)
{
	struct view v = table(120, NONE, false, ".gopclntab", false);

	drop(v);
	/* e_shoff, e_shnum, e_shstrndx */
	build("for at in 40 60; do "
	      "dd if=/dev/zero of=go.so bs=1 seek=$at count=4 conv=notrunc || exit; done");
	v = analyse("go.so", 0);
	check_all(v);
	drop(v);
}

/* A header that has no text's start: the code of runtime.goexit shows it. */
static void test_no_text(void **unused)
{
	for (int fixed = 0; fixed < 2; fixed++) {
		struct view v = table(120, NO_TEXT, false, ".gopclntab", fixed);

		check_all(v);
		drop(v);
	}
}

/* The lists of depths are too long together. Then the lists of later functions aren't read, and
 * padding is taken for the end of a jump. */
static void test_long(void **unused)
{
	struct view v = table(120, LONG, false, ".gopclntab", false);

	check_func(v, "main.a", 0, 11);
	check_func(v, "main.b[...]", 32, 51);
	assert_int_equal(v.a->nr_funcs, 6);
	drop(v);
}

/* A function of C between those of Go: the function before it ends at its FDE, and the table shows
 * no function inside of it. */
static void test_union(void **unused)
{
	struct view v = table(120, NONE, true, ".gopclntab", false);
	const struct pb_func *f = pb_analysis_funcs(v.a);

	check_all(v);
	assert_null(func(v, "main.inner"));
	for (uint32_t i = 1; i < v.a->nr_funcs; i++)
		assert_true(f[i - 1].addr + f[i - 1].size <= f[i].addr);
	assert_int_equal(f[v.a->nr_funcs - 1].addr - func(v, "main.a")->addr, 256);
	assert_true(f[v.a->nr_funcs - 1].flags & PB_FUNC_UNNAMED);
	drop(v);
}

/* If a symbol names a function, the table adds nothing to it. */
static void test_symbols(void **unused)
{
	char text[sizeof(go_s) + 256];
	struct view v;
	const struct pb_func *f;

	snprintf(text, sizeof(text), "%s%s", go_s,
		 ".text\n.type full, @function\n.set full, b\n.size full, 50\n");
	write_file("go.S", text);
	build("gcc -shared -nostdlib -DPLACE=.gopclntab -Wa,--defsym,V=120 -Wa,--defsym,FAULT=0 "
	      "-Wa,--defsym,FDE=0 go.S -o go.so");
	v = analyse("go.so", 0);
	check_func(v, "full", 32, 50);
	check_func(v, "main.(*T).c", 96, 11);
	f = func(v, "full");
	assert_int_equal(f->aliases, 0);
	assert_null(func(v, "main.b[...]"));
	drop(v);
}

/* A table that the code doesn't agree with, or that is damaged, isn't used at all. */
static void test_faults(void **unused)
{
	for (size_t i = 0; i < pb_array_size(versions); i++)
		for (unsigned fault = COUNT; fault < NR_FAULTS; fault++) {
			struct view v;

			if (versions[i] == 102 && (fault == NAMES || fault == ARRAY))
				continue;
			for (size_t k = 0; k < pb_array_size(places); k += 2) {
				v = table(versions[i], fault, false, places[k], k > 0);
				assert_int_equal(v.a->nr_funcs, 0);
				drop(v);
			}
		}
}

#define GO_FUNC(name, code) \
	".p2align 5, 0xcc\n.type \"" name "\",@function\n\"" name "\": " code "\n" \
	".size \"" name "\", .-\"" name "\"\n"

/* Go may stop a function at any instruction but the check of its stack, and go on there later. So a
 * jump must not replace several other instructions. A short jump to a slot replaces one. Slots need
 * the agent's handlers, which only users of libc's sigaction() get. */
static void test_preempted(void **unused)
{
	static const char code[] =
		".section .go.buildinfo,\"a\"\n .quad 0\n.text\n"
		GO_FUNC("main.one", "mov $1,%eax\n ret")
		GO_FUNC("main.leaf", "mov 0x20(%rax),%rax\n ret")
		GO_FUNC("main.checks", "cmp 16(%r14),%rsp\n jbe 1f\n mov $1,%eax\n ret\n"
			"1: mov $2,%eax\n jmp \"main.checks\"")
		GO_FUNC("main.pushes", "push %rbp\n mov %rsp,%rbp\n mov $1,%eax\n pop %rbp\n ret")
		GO_FUNC("runtime.leaf", "mov 0x20(%rax),%rax\n ret")
		GO_FUNC("main.last", "jmp sigaction@PLT") ".p2align 5, 0xcc\n";

	for (int libc = 0; libc < 2; libc++) {
		struct view v;

		write_file("preempted.s", code);
		build(libc ? "gcc -shared -nostdlib preempted.s -o preempted.so" :
			     "sed -i s/sigaction/other/ preempted.s && "
			     "gcc -shared -nostdlib preempted.s -o preempted.so");
		v = analyse("preempted.so", PB_MODULE_RETURNS);
		assert_site(v, "main.one", PB_SITE_SYMBOL);
		assert_int_equal(func(v, "main.one")->via, 0);
		assert_site(v, "main.checks", PB_SITE_SYMBOL);
		assert_int_equal(func(v, "main.checks")->via, 0);
		assert_site(v, "runtime.leaf", PB_SITE_SYMBOL);
		assert_int_equal(func(v, "runtime.leaf")->via, 0);
		assert_refused(v, "main.pushes", PREEMPTED);
		if (libc) {
			assert_site(v, "main.leaf", PB_SITE_SYMBOL);
			assert_int_not_equal(func(v, "main.leaf")->via, 0);
			assert_int_equal(func(v, "main.leaf")->window_len, 4);
		} else {
			assert_refused(v, "main.leaf", PREEMPTED);
		}
		drop(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_no_sections),
		cmocka_unit_test(test_no_text),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_preempted),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
