/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Analyses whole files, which the test compiles. Tests which functions are found, how the analysis
 * uses the instrumentation that compilers add (-pg, XRay and others), each reason to refuse a
 * function, and the cache.
 */
#include "module_files.h"

/* ------------------------------------------------------------ hand-written */

/* FILL is the value of the bytes between functions. */
static const char *const reasons_s =
	".macro F name\n .p2align 4, FILL\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".text\n"
	"F plain\n push %rbp\n .cfi_def_cfa_offset 16\n mov %rsp,%rbp\n pop %rbp\n"
	" .cfi_def_cfa_offset 8\n ret\nE plain\n"
	"F padded\n ret\nE padded\n .fill 4,1,0xcc\n"
	"F shorter\n rep ret\nE shorter\n"
	".globl follows\n.type follows,@function\nfollows: .cfi_startproc\n"
	" mov $1,%eax\n ret\n .cfi_endproc\n.size follows,.-follows\n"
	"F shortest\n ret\nE shortest\n.globl odd\n.type odd,@function\nodd: .cfi_startproc\n"
	" endbr64\n mov $1,%eax\n ret\n .cfi_endproc\n.size odd,.-odd\n"
	"F falls\n nop\nE falls\n"
	".globl into\n.type into,@function\ninto: .cfi_startproc\n"
	" mov $1,%eax\n ret\n .cfi_endproc\n.size into,.-into\n"
	"F looped\n push %rbx\n1: dec %edi\n test %edi,%edi\n jne 1b\n pop %rbx\n ret\nE looped\n"
	"F outside\n xor %eax,%eax\n nopl (%rax)\n ret\nE outside\n"
	"F jumper\n test %edi,%edi\n je outside+2\n je after+7\n xor %eax,%eax\n ret\nE jumper\n"
	/* `jumper` jumps into the window of `after`, to a byte after the five bytes that the patch
	 * overwrites */
	"F after\n xor %eax,%eax\n movl $0,4(%rdi)\n ret\nE after\n"
	"F taken\n xor %eax,%eax\n nopl (%rax)\n ret\nE taken\n"
	"F taker\n lea taken+2(%rip),%rax\n ret\nE taker\n"
	"F switched\n xor %eax,%eax\n nopl (%rax)\n ret\nE switched\n"
	"F switcher\n lea table(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n"
	" jmp *%rax\n"
	"E switcher\n.section .rodata\n.p2align 2\ntable: .long switched+2-table\n.text\n"
	/* the landing pad of the call in `landed` is two bytes after the start of `landed` */
	"F landed\n .cfi_personality 0x1b,plain\n .cfi_lsda 0x1b,lsda\n xor %eax,%eax\n"
	" nopl (%rax)\n call plain\n ret\nE landed\n"
	".section .gcc_except_table,\"a\"\nlsda: .byte 0xff,0xff,1,4, 5,5,2,0\n.text\n"
	"F returned\n call *%rax\n xor %eax,%eax\n ret\nE returned\n"
	"F undecodable\n .byte 6,6,6,6,6,6\n ret\nE undecodable\n"
	"F fixed\n xor %eax,%eax\n syscall\n ret\nE fixed\n"
	"F textrel\n movabs $plain,%rax\n ret\nE textrel\n"
	".type resolved,@gnu_indirect_function\n.globl resolved\n"
	"F resolver\n lea plain(%rip),%rax\n ret\nE resolver\n.set resolved,resolver\n"
	"F _start\n .cfi_undefined rip\n xor %ebp,%ebp\n mov %rsp,%rdi\n call plain\n hlt\n"
	"E _start\n"
	"F bottom\n nop\n call plain\n nop\nE bottom\n"
	"F plt_stub\n jmp *slot(%rip)\n .long 47\nE plt_stub\n"
	"F thunk\n jmp *slot(%rip)\nE thunk\n.data\nslot: .quad plain\n.text\n"
	"F reader\n mov (%rsp),%rax\n ret\nE reader\n"
	"F barrier\n lock orq $0,(%rsp)\n ret\nE barrier\n"
	"F locked\n lock orq $1,(%rsp)\n ret\nE locked\n"
	"F framed\n push %rbp\n .cfi_def_cfa_offset 16\n mov %rsp,%rbp\n"
	" .cfi_def_cfa_register %rbp\n"
	" mov 8(%rbp),%rax\n pop %rbp\n .cfi_def_cfa %rsp,8\n ret\nE framed\n"
	"F argument\n mov 8(%rsp),%rax\n ret\nE argument\n"
	"F popper\n pop %rax\n jmp *%rax\nE popper\n"
	"F endbr\n endbr64\n mov $1,%eax\n ret\nE endbr\n"
	"F setjmp\n mov $1,%eax\n ret\nE setjmp\n"
	/* a cold part that begins with the frame that its function has made */
	".p2align 4\n.type plain.cold,@function\nplain.cold: .cfi_startproc\n"
	" .cfi_def_cfa_offset 32\n ud2\n nop\n nop\n nop\n"
	" .cfi_endproc\n.size plain.cold,.-plain.cold\n"
	/* cold parts without a frame, which begin like functions. Only the part that a call
	 * instruction calls counts as a function */
	".p2align 4\n.type noframe.cold,@function\nnoframe.cold: .cfi_startproc\n"
	" mov $1,%eax\n ret\n .cfi_endproc\n.size noframe.cold,.-noframe.cold\n"
	".p2align 4\n.type noframe.cold.3,@function\nnoframe.cold.3: .cfi_startproc\n"
	" mov $1,%eax\n ret\n .cfi_endproc\n.size noframe.cold.3,.-noframe.cold.3\n"
	".p2align 4\n.type noframe.cold.1,@function\nnoframe.cold.1: .cfi_startproc\n"
	" mov $1,%eax\n ret\n .cfi_endproc\n.size noframe.cold.1,.-noframe.cold.1\n"
	"F noframe\n test %edi,%edi\n je noframe.cold\n js noframe.cold.3\n call noframe.cold.1\n"
	" ret\nE noframe\n"
	/* cold parts that read their function's return address. A part is assigned to its function
	 * by a jump from the function, by a jump from another cold part, or by the part's name */
	".p2align 4\n.type asker.cold,@function\nasker.cold: .cfi_startproc\n"
	" .cfi_def_cfa_offset 16\n mov 8(%rsp),%rax\n add $8,%rsp\n ret\n .cfi_endproc\n"
	".size asker.cold,.-asker.cold\n"
	".type between.cold,@function\nbetween.cold: .cfi_startproc\n"
	" .cfi_def_cfa_offset 16\n jmp asker.cold\n"
	" .cfi_endproc\n.size between.cold,.-between.cold\n"
	".type named.cold,@function\nnamed.cold: .cfi_startproc\n"
	" .cfi_def_cfa_offset 16\n mov 8(%rsp),%rax\n add $8,%rsp\n ret\n .cfi_endproc\n"
	".size named.cold,.-named.cold\n"
	"F asker\n sub $8,%rsp\n .cfi_def_cfa_offset 16\n test %edi,%edi\n je asker.cold\n"
	" add $8,%rsp\n .cfi_def_cfa_offset 8\n ret\nE asker\n"
	"F between\n sub $8,%rsp\n .cfi_def_cfa_offset 16\n test %edi,%edi\n je between.cold\n"
	" add $8,%rsp\n .cfi_def_cfa_offset 8\n ret\nE between\n"
	"F named\n sub $8,%rsp\n add $8,%rsp\n ret\nE named\n"
	/* Go calls the function cold of the package main main.cold */
	".p2align 4\n.type main.cold,@function\nmain.cold: .cfi_startproc\n"
	" mov $1,%eax\n ret\n .cfi_endproc\n.size main.cold,.-main.cold\n"
	"F main.main\n call main.cold\n ret\nE main.main\n"
	/* data after a short function. Its first bytes are zeros, as padding might be */
	"F zero\n xor %eax,%eax\n ret\nE zero\n"
	".globl object\n.type object,@object\nobject: .long 0,7,0,9\n.size object,.-object\n"
	"F zeros\n xor %eax,%eax\n ret\nE zeros\n .long 0,7\n"
	/* signal restorer */
	".p2align 4\n.type restorer,@function\nrestorer: .cfi_startproc\n .cfi_signal_frame\n"
	" mov $15,%rax\n syscall\n .cfi_endproc\n.size restorer,.-restorer\n"
	/* aliases */
	".globl __best, a_best\n.set __best, plain_local\n.set a_best, plain_local\n"
	".p2align 4\n.type plain_local,@function\n.type a_best,@function\n.type __best,@function\n"
	"plain_local: .cfi_startproc\n mov $2,%eax\n ret\n .cfi_endproc\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void test_reasons(void **unused)
{
	write_file("reasons.s", reasons_s);
	/* bytes of value 6 aren't padding, so there are no slots */
	build("gcc -shared -nostdlib -Wa,--defsym,FILL=6 -Wl,-z,notext,-Bsymbolic -Wl,--build-id "
	      "reasons.s -o reasons.so");
	struct view v = analyse("reasons.so", 0);

	assert_site(v, "plain", PB_SITE_SYMBOL);
	assert_site(v, "padded", PB_SITE_SYMBOL);
	assert_site(v, "follows", PB_SITE_SYMBOL);
	assert_site(v, "jumper", PB_SITE_SYMBOL);
	assert_site(v, "after", PB_SITE_SYMBOL);
	assert_int_equal(func(v, "after")->window_len, 9);
	assert_refused(v, "shorter", SHORT);
	assert_refused(v, "falls", CROSSES);
	assert_refused(v, "looped", BRANCH);
	assert_refused(v, "outside", BRANCH);
	assert_refused(v, "taken", BRANCH);
	assert_refused(v, "switched", BRANCH);
	assert_refused(v, "landed", BRANCH);
	assert_refused(v, "returned", CALL);
	assert_refused(v, "undecodable", DECODE);
	assert_refused(v, "fixed", RELOCATE);
	assert_refused(v, "textrel", TEXTREL);
	assert_refused(v, "resolved", IFUNC);
	assert_refused(v, "_start", START);
	assert_refused(v, "bottom", START);
	assert_null(func(v, "plt_stub"));
	assert_site(v, "thunk", PB_SITE_SYMBOL);
	assert_null(func(v, "plain.cold"));
	assert_null(func(v, "noframe.cold"));
	assert_null(func(v, "noframe.cold.3"));
	assert_site(v, "noframe.cold.1", PB_SITE_SYMBOL);
	assert_site(v, "main.cold", PB_SITE_SYMBOL);
	assert_true(func(v, "zero")->window_len <= 3);
	assert_true(func(v, "zeros")->window_len <= 3);
	assert_null(func(v, "restorer"));
	assert_true(v.a->flags & PB_AN_TEXTREL);
	assert_true(v.a->flags & PB_AN_HAS_SYMTAB);
	assert_int_equal(v.a->build_id_len, 20);
	drop(v);
}

/* Checks that the function has a short jump to a slot in padding, and a window of `len` bytes. */
static void assert_short(struct view v, const char *name, unsigned len)
{
	const struct pb_func *f = func(v, name);

	assert_site(v, name, PB_SITE_SYMBOL);
	assert_int_not_equal(f->via, 0);
	assert_int_equal(f->window_len, len);
	assert_ptr_equal(pb_analysis_slot_at(v.a, pb_func_slot(f)), f);
	for (unsigned k = 0; k < PB_JUMP_LEN; k++)
		assert_int_equal(pb_recipe_slot(pb_func_recipe(v.a, f))[k], 0xcc);
}

/* Tests the functions of test_reasons(), with padding between them. */
static void test_short(void **unused)
{
	build("gcc -shared -nostdlib -Wa,--defsym,FILL=0xcc -Wl,-z,notext,-Bsymbolic reasons.s "
	      "-o short.so");
	struct view v = analyse("short.so", 0);

	assert_int_equal(func(v, "plain")->via, 0);
	assert_short(v, "outside", 2);
	assert_short(v, "taken", 2);
	assert_short(v, "switched", 2);
	assert_short(v, "returned", 2);
	assert_short(v, "fixed", 2);
	assert_short(v, "shorter", 2);
	/* `shortest` has one byte, which is too short even for a short jump. The next four
	 * functions are refused for reasons that padding doesn't change */
	assert_refused(v, "shortest", SHORT);
	assert_refused(v, "falls", CROSSES);
	assert_refused(v, "looped", BRANCH);
	assert_refused(v, "undecodable", DECODE);
	assert_refused(v, "textrel", TEXTREL);
	drop(v);
}

/* Data after a jump hides the instructions at label 2 from linear decoding. One of them is a branch
 * that leads into the bytes of a jump at the entry. */
static void test_hidden(void **unused)
{
	struct view v;

	write_file("hidden.s", ".text\n.globl f\n.type f,@function\nf: .cfi_startproc\n"
		   " xor %eax,%eax\n1: inc %eax\n jmp 2f\n .byte 0xe8\n2: cmp %edi,%eax\n jne 1b\n"
		   " ret\n .cfi_endproc\n.size f,.-f\n.section .note.GNU-stack,\"\",@progbits\n");
	build("gcc -shared -nostdlib hidden.s -o hidden.so");
	for (unsigned flags = 0; flags <= PB_MODULE_RETURNS; flags += PB_MODULE_RETURNS) {
		v = analyse("hidden.so", flags);
		assert_refused(v, "f", BRANCH);
		drop(v);
	}
}

static void test_flags(void **unused)
{
	struct view v = analyse("reasons.so", 0);
	const struct pb_func *best = func(v, "a_best");

	assert_true(func(v, "endbr")->flags & PB_FUNC_ENDBR);
	assert_int_equal(func(v, "endbr")->window, 4);
	assert_non_null(best);
	assert_true(best->flags & PB_FUNC_GLOBAL);
	assert_string_equal(pb_analysis_string(v.a, best->aliases), "__best\nplain_local\n");
	assert_ptr_equal(pb_analysis_find(v.a, best->addr + 1), best);
	assert_ptr_equal(pb_analysis_at(v.a, best->addr), best);
	assert_null(pb_analysis_at(v.a, best->addr + 1));
	drop(v);
}

/* If a file has no symbols, the analysis finds functions by their FDEs. It doesn't take cold parts
 * for functions. */
static void test_stripped(void **unused)
{
	write_file("hide", "{ local: *; };\n");
	build("gcc -shared -nostdlib -Wa,--defsym,FILL=6 "
	      "-Wl,-z,notext,-Bsymbolic,--version-script=hide -s reasons.s "
	      "-o stripped.so");
	struct view v = analyse("stripped.so", 0);
	const struct pb_func *f = pb_analysis_funcs(v.a);

	assert_false(v.a->flags & PB_AN_HAS_SYMTAB);
	assert_true(v.a->nr_funcs > 10);
	for (uint32_t i = 0; i < v.a->nr_funcs; i++) {
		assert_true(f[i].flags & PB_FUNC_UNNAMED);
		assert_memory_equal(pb_func_name(v.a, &f[i]), "sub_", 4);
	}
	drop(v);
}

static void test_ours_and_the_loader(void **unused)
{
	write_file("ld.s", ".text\n.globl _dl_fixup, other\n.type _dl_fixup,@function\n"
		   ".type other,@function\n_dl_fixup: mov $1,%eax\n ret\n"
		   "other: mov $1,%eax\n ret\n");
	build("gcc -shared -nostdlib -Wl,-soname,libpatchbay.so.0 ld.s -o ours.so");
	build("gcc -shared -nostdlib -Wl,-soname,ld-linux-x86-64.so.2 ld.s -o loader.so");
	struct view v = analyse("ours.so", 0);

	assert_refused(v, "other", AGENT);
	drop(v);
	v = analyse("loader.so", 0);
	assert_refused(v, "_dl_fixup", LOADER);
	assert_site(v, "other", PB_SITE_SYMBOL);
	drop(v);
}

/* --------------------------------------------------------- compilers' records */

static const char *const code_c =
	"#include <stdio.h>\n"
	"__attribute__((noinline)) int leaf(int x) { return x * 3 + 1; }\n"
	"__attribute__((noinline)) int deep(int n) { return n ? deep(n - 1) + leaf(n) : 0; }\n"
	"__attribute__((noinline, no_instrument_function)) int left_out(int x) { return x ^ 5; }\n"
	"int main(int c, char **v) { printf(\"%d\\n\", deep(c) + left_out(c)); return 0; }\n";

static void check_nops(struct view v, unsigned at_least)
{
	const struct pb_nop *n = pb_analysis_nops(v.a);

	assert_true(v.a->nr_nops >= at_least);
	for (uint32_t i = 0; i < v.a->nr_nops; i++)
		assert_int_equal(n[i].orig[0], n[i].len == 5 ? 0xe8 : 0xff);
}

static void one_record(const char *command, unsigned kind, unsigned nops)
{
	char line[512];

	write_file("code.c", code_c);
	snprintf(line, sizeof(line), "%s code.c -o code", command);
	build(line);
	struct view v = analyse("code", 0);

	assert_site(v, "leaf", kind);
	assert_site(v, "deep", kind);
	assert_site(v, "main", kind);
	if (kind != PB_SITE_XRAY)
		assert_refused(v, "left_out", UNINSTRUMENTED);
	check_nops(v, nops);
	drop(v);
	v = analyse("code", PB_MODULE_ALL_SITES);
	assert_int_equal(func(v, "left_out")->refused, PB_REFUSED_NOT);
	drop(v);
}

static void test_records(void **unused)
{
	one_record("gcc -O1 -pg -mfentry -fno-pie -no-pie", PB_SITE_FENTRY, 3);
	one_record("gcc -O1 -pg -mfentry -fpie -pie", PB_SITE_FENTRY, 3);
	one_record("gcc -O1 -pg -mfentry -mrecord-mcount -fno-pie -no-pie", PB_SITE_FENTRY, 3);
	one_record("gcc -O1 -pg -mfentry -mrecord-mcount -mnop-mcount -fno-pie -no-pie",
		   PB_SITE_NOP, 0);
	one_record("gcc -O1 -pg -fcf-protection=full -mfentry -fpie -pie", PB_SITE_FENTRY, 3);
	one_record("gcc -O0 -pg -fpie -pie", PB_SITE_MCOUNT, 3);
	one_record("gcc -O2 -pg -fno-pie -no-pie", PB_SITE_MCOUNT, 3);
	one_record("gcc -O1 -finstrument-functions", PB_SITE_CYG, 0);
}

/* Tests the tables that recordmcount adds, also for comdat sections. If recordmcount runs on a file
 * a second time, it changes nothing. */
static void test_recordmcount(void **unused)
{
	write_file("comdat.cc",
		   "template<class T> __attribute__((noinline)) T next(T x) { return x + 1; }\n"
		   "int main(int c, char **) { return next(c) + (int)next(1.5); }\n");
	write_file("other.cc",
		   "template<class T> __attribute__((noinline)) T next(T x) { return x + 1; }\n"
		   "int other(int c) { return next(c); }\n");
	build("g++ -pg -c comdat.cc && g++ -pg -c other.cc && " RECORDMCOUNT " comdat.o other.o && "
	      RECORDMCOUNT " comdat.o && g++ -pg comdat.o other.o -o comdat && "
	      "readelf -SW comdat | grep -q __mcount_loc && "
	      "! readelf -dW comdat | grep -q TEXTREL");
	struct view v = analyse("comdat", 0);

	assert_site(v, "main", PB_SITE_MCOUNT);
	assert_site(v, "_Z4nextIiET_S0_", PB_SITE_MCOUNT);
	assert_int_equal(v.a->nr_nops, 4);
	drop(v);
}

/* The code has neither a symbol nor an FDE, so it is decoded from each byte. Before each call of
 * mcount is an instruction whose last byte looks like a prefix of the call. Only the call becomes a
 * nop. */
static void test_hook_after_prefix(void **unused)
{
	static const uint8_t want[][2] = { { 5, 0xe8 }, { 5, 0xe8 }, { 6, 0xff } };

	write_file("bare.s", ".text\n sub $0x48,%rsp\n call mcount@PLT\n add $0x48,%rsp\n ret\n"
		   " sub $0x67,%rsp\n call mcount@PLT\n add $0x67,%rsp\n ret\n"
		   " sub $0x48,%rsp\n call *mcount@GOTPCREL(%rip)\n add $0x48,%rsp\n ret\n"
		   ".section .note.GNU-stack,\"\",@progbits\n");
	build("gcc -shared -nostdlib -s bare.s -o bare.so");
	struct view v = analyse("bare.so", 0);
	const struct pb_nop *n = pb_analysis_nops(v.a);

	assert_int_equal(v.a->nr_nops, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(n[i].len, want[i][0]);
		assert_int_equal(n[i].orig[0], want[i][1]);
	}
	drop(v);
}

/* A program may have a function of its own with the name mcount. The function may be local, be
 * called by way of a linker's stub, or be in another library. Calls of it stay. In the last case,
 * only the place of a call shows that the compiler hasn't put it there. */
static void test_own_mcount(void **unused)
{
	static const char *const names[] = { "local", "exported.so", "imports.so" };

	write_file("mcount.c", "LINKAGE __attribute__((noipa)) int mcount(int x) BODY\n"
		   "__attribute__((noipa)) int leaf(int x) { return x * 3 + 1; }\n"
		   "int first(int x) { return leaf(x) + mcount(x) + 5; }\n"
		   "int second(int x) { if (x < 5) return leaf(x); return mcount(x + 1) * 2; }\n"
		   "int main(int c, char **v) { return first(c) + second(c); }\n");
	build("gcc -O1 -DLINKAGE=static '-DBODY={ return x + 9; }' mcount.c -o local && "
	      "gcc -O1 -fPIC -shared -DLINKAGE= '-DBODY={ return x + 9; }' mcount.c "
	      "-o exported.so && "
	      "gcc -O1 -fPIC -shared -DLINKAGE= '-DBODY=;' mcount.c -o imports.so");
	for (unsigned i = 0; i < 3; i++) {
		struct view v = analyse(names[i], 0);

		assert_int_equal(v.a->nr_nops, 0);
		assert_site(v, "first", PB_SITE_SYMBOL);
		assert_site(v, "second", PB_SITE_SYMBOL);
		drop(v);
	}
}

/* Before the call of mcount, the prologue of a function with variable arguments saves registers
 * conditionally (clang), and the prologue of a large frame may touch its pages in a loop. */
static void test_long_prologues(void **unused)
{
	write_file("prologue.c", "#include <stdarg.h>\nvoid use(char *);\n"
		   "int va(int n, ...) { va_list l; va_start(l, n); int i = va_arg(l, int);"
		   " va_end(l); return i; }\n"
		   "void large(void) { char a[1 << 20]; use(a); }\n");
	build("gcc -O1 -pg -fPIC -fstack-clash-protection -shared prologue.c -o prologue.so");
	struct view v = analyse("prologue.so", 0);

	assert_site(v, "va", PB_SITE_MCOUNT);
	assert_site(v, "large", PB_SITE_MCOUNT);
	assert_int_equal(v.a->nr_nops, 2);
	drop(v);
	build("clang -O1 -pg -fPIC -fstack-clash-protection -shared prologue.c -o prologue.so");
	v = analyse("prologue.so", 0);
	assert_site(v, "va", PB_SITE_MCOUNT);
	assert_site(v, "large", PB_SITE_MCOUNT);
	assert_int_equal(v.a->nr_nops, 2);
	drop(v);
}

static void test_patchable(void **unused)
{
	write_file("patch.c", "__attribute__((patchable_function_entry(0,0))) int none(int x) "
		   "{ return x + 7; }\nint some(int x) { return x * 3; }\n"
		   "int main(void) { return some(1); }\n");
	build("gcc -O1 -fpie -pie -fpatchable-function-entry=5 patch.c -o patch");
	struct view v = analyse("patch", 0);

	assert_site(v, "some", PB_SITE_NOP);
	assert_int_equal(func(v, "some")->window_len, 5);
	assert_refused(v, "none", UNINSTRUMENTED);
	drop(v);
	/* there are 14 NOPs before the entry and two after it. Two NOPs have no room for the jump,
	 * so code is displaced */
	build("gcc -O1 -fpie -pie -fpatchable-function-entry=16,14 patch.c -o patch");
	v = analyse("patch", 0);
	assert_site(v, "some", PB_SITE_SYMBOL);
	assert_refused(v, "none", UNINSTRUMENTED);
	drop(v);
	build("gcc -O1 -fpie -pie -fcf-protection=full -fpatchable-function-entry=5 patch.c "
	      "-o patch");
	v = analyse("patch", 0);
	assert_site(v, "some", PB_SITE_NOP);
	assert_int_equal(func(v, "some")->window, 4);
	drop(v);
}

static void test_clang(void **unused)
{
	write_file("patch.c",
		   "int some(int x) { return x * 3; }\nint main(void) { return some(1); }\n");
	build("clang -O1 -fpatchable-function-entry=5 patch.c -o patch");
	struct view v = analyse("patch", 0);

	assert_site(v, "some", PB_SITE_NOP);
	drop(v);
	one_record("clang -O1 -pg -mfentry", PB_SITE_FENTRY, 3);
	one_record("clang -O1 -pg", PB_SITE_MCOUNT, 3);
}

/* Before each function lies a hash of its type, which callers read (-fsanitize=kcfi). The hash has
 * a symbol, but must stay as it is: it is no function, and it offers no room for a slot. */
static void test_type_hash(void **unused)
{
	write_file("hash.s",
		   ".macro F name\n .type __cfi_\\name,@function\n"
		   "__cfi_\\name: nop\n nop\n nop\n mov $0x50794,%eax\n"
		   " .size __cfi_\\name,.-__cfi_\\name\n .globl \\name\n"
		   " .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
		   ".macro E name\n .cfi_endproc\n .size \\name,.-\\name\n.endm\n"
		   ".text\n"
		   "F one\n lea 1(%rdi),%eax\n ret\nE one\n"
		   "F two\n mov %edi,%eax\n ret\nE two\n"
		   "F three\n lea (%rdi,%rdi),%eax\n call one\n ret\nE three\n"
		   ".type __cfi_check,@function\n__cfi_check: .cfi_startproc\n"
		   " mov $1,%eax\n ret\n .cfi_endproc\n.size __cfi_check,.-__cfi_check\n"
		   ".section .note.GNU-stack,\"\",@progbits\n");
	build("gcc -shared -nostdlib -Wl,-Bsymbolic hash.s -o hash.so");
	struct view v = analyse("hash.so", 0);
	static const char *const names[] = { "one", "two", "three" };

	for (unsigned i = 0; i < 3; i++) {
		const struct pb_func *f = func(v, names[i]);
		char name[16];

		assert_non_null(f);
		snprintf(name, sizeof(name), "__cfi_%s", names[i]);
		assert_null(func(v, name));
		for (uint64_t at = f->addr - PB_JUMP_LEN - 3; at < f->addr; at++)
			assert_null(pb_analysis_slot_at(v.a, at));
	}
	assert_site(v, "three", PB_SITE_SYMBOL);
	assert_site(v, "__cfi_check", PB_SITE_SYMBOL);
	drop(v);
}

/* The analysis finds the sleds of a file that isn't linked with XRay's runtime. */
static void test_xray(void **unused)
{
	write_file("patch.c",
		   "int some(int x) { return x * 3; }\nint other(void) { return some(1); }\n");
	build("clang -O1 -fPIC -fxray-instrument -fxray-instruction-threshold=1 -c patch.c && "
	      "gcc -shared -nostdlib patch.o -o xray.so");
	struct view v = analyse("xray.so", 0);

	assert_site(v, "some", PB_SITE_XRAY);
	assert_int_equal(func(v, "some")->window_len, 11);
	drop(v);
	/* if a function's address is odd, a nop precedes the sled */
	build("clang -Os -fPIC -fxray-instrument -fxray-instruction-threshold=1 -c patch.c && "
	      "gcc -shared -nostdlib patch.o -o xray.so");
	v = analyse("xray.so", 0);
	assert_true((func(v, "some")->addr | func(v, "other")->addr) % 2);
	assert_site(v, "some", PB_SITE_XRAY);
	assert_site(v, "other", PB_SITE_XRAY);
	drop(v);
}

/* ------------------------------------------------------------------- cache */

static unsigned count_files(const char *path)
{
	char line[512];
	unsigned n = 0;

	snprintf(line, sizeof(line), "ls -A %s | wc -l", path);
	FILE *p = popen(line, "r");

	assert_int_equal(fscanf(p, "%u", &n), 1);
	pclose(p);
	return n;
}

static void test_cache(void **unused)
{
	char cache[64], line[256];

	snprintf(cache, sizeof(cache), "%s/a/cache", dir);
	struct view v = map(open_module("reasons.so", 0, cache));
	uint32_t nr = v.a->nr_funcs;

	drop(v);
	assert_int_equal(count_files(cache), 1);
	/* a damaged file is replaced */
	snprintf(line, sizeof(line), "for f in %s/*; do printf XXXXXXXXXXXXXXXX | "
		 "dd of=$f bs=1 seek=64 conv=notrunc 2>/dev/null; done", cache);
	assert_int_equal(system(line), 0);
	v = map(open_module("reasons.so", 0, cache));
	assert_int_equal(v.a->nr_funcs, nr);
	drop(v);
	/* a file that other users can write is replaced */
	snprintf(line, sizeof(line), "chmod 666 %s/*", cache);
	assert_int_equal(system(line), 0);
	drop(map(open_module("reasons.so", 0, cache)));
	snprintf(line, sizeof(line), "test -z \"$(find %s -type f -perm /022)\"", cache);
	assert_int_equal(system(line), 0);
	/* other options use another file */
	drop(map(open_module("reasons.so", PB_MODULE_ALL_SITES, cache)));
	assert_int_equal(count_files(cache), 2);
	/* the directory can't be created, so the analysis stays in memory only */
	drop(map(open_module("reasons.so", 0, "/proc/nowhere")));
}

static void test_errors(void **unused)
{
	struct pb_module_options o = { PB_MODULE_NO_CACHE, NULL };
	char err[64] = "";
	int fd = open("/dev/null", O_RDONLY);

	assert_int_equal(pb_module_open(fd, "x", &o, err, sizeof(err)), -ENOEXEC);
	assert_string_equal(err, "not a regular file");
	close(fd);
	write_file("text",
		   "#!/bin/sh\nexit 0 # long enough to be no header of an ELF file at all\n");
	assert_int_equal(open_module("text", PB_MODULE_NO_CACHE, NULL), -ENOEXEC);
}

static void test_check(void **unused)
{
	check_damaged("reasons.so");
	check_damaged("short.so");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_ours_and_the_loader),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_recordmcount),
		cmocka_unit_test(test_hook_after_prefix),
		cmocka_unit_test(test_own_mcount),
		cmocka_unit_test(test_long_prologues),
		cmocka_unit_test(test_patchable),
		cmocka_unit_test(test_clang),
		cmocka_unit_test(test_type_hash),
		cmocka_unit_test(test_xray),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
