/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests how the analysis recognises language runtimes: only by the symbols and sections of a
 * file. */
#include "module_files.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"
#include "module/elf/runtimes.h"

static uint32_t found;

static void note(struct pb_an *an, void *arg)
{
	found = an->runtimes;
	(void)arg;
}

static uint32_t runtimes_of(const char *text)
{
	const char *why = "can't be opened";
	char path[256];
	int fd;

	write_file("r.s", text);
	build("gcc -shared -nostdlib r.s -o r.so");
	snprintf(path, sizeof(path), "%s/r.so", dir);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pb_analyse_visit(fd, path, PB_MODULE_RETURNS, note, NULL, &why), 0);
	close(fd);
	return found;
}

#define DEFINES(name) \
	".text\n.globl " name "\n.type " name ",@function\n" name ": ret\n.size " name ",1\n"
#define SECTION(name) ".section " name ",\"a\"\n .quad 1\n"

static void test_each(void **unused)
{
	static const struct { const char *text, *name; } cases[] = {
		{ DEFINES("_ZN2v87Isolate3NewERKNS0_12CreateParamsE"), "V8" },
		{ DEFINES("gHotSpotVMStructs"), "HotSpot" },
		{ SECTION(".gopclntab"), "Go" },
		{ SECTION(".go.buildinfo"), "Go" },
		{ DEFINES("caml_frametable"), "OCaml" },
		{ DEFINES("mono_jit_init"), "Mono" },
		{ DEFINES("DotNetRuntimeDebugHeader"), ".NET" },
		{ DEFINES("luaJIT_setmode"), "LuaJIT" },
		{ DEFINES("stg_ap_v_info"), "GHC" },
		{ DEFINES("call_into_lisp"), "SBCL" },
		{ DEFINES("Sscheme_init"), "Chez Scheme" },
		{ DEFINES("erts_alloc_init"), "Erlang" },
		{ DEFINES("CHICKEN_main"), "CHICKEN" },
		{ DEFINES("PyInit__greenlet"), "greenlet" },
		{ DEFINES("scm_call_with_current_continuation"), "Guile" },
		{ DEFINES("Init_continuation"), "Ruby's callcc" },
		/* an undefined symbol is enough to recognise AddressSanitizer */
		{ ".text\n call __asan_init@PLT\n", "AddressSanitizer" },
	};

	for (size_t i = 0; i < pb_array_size(cases); i++) {
		uint32_t bits = runtimes_of(cases[i].text);

		if (!bits || bits & (bits - 1))
			fail_msg("%s: bits %x", cases[i].name, bits);
		assert_string_equal(pb_runtime_name((unsigned)__builtin_ctz(bits)), cases[i].name);
		assert_true(strlen(pb_runtime_policy((unsigned)__builtin_ctz(bits))) > 20);
	}
	/* each runtime has a name and a policy */
	for (unsigned bit = 0; bit < 32; bit++)
		assert_int_equal(!pb_runtime_name(bit), !pb_runtime_policy(bit));
	assert_null(pb_runtime_name(32));
}

static void test_none(void **unused)
{
	assert_int_equal(runtimes_of(DEFINES("gHotSpotVMStruct") DEFINES("luaJIT")
				     SECTION(".gopclntab2")), 0);
	/* a program that uses Mono's library isn't the library */
	assert_int_equal(runtimes_of(".text\n call mono_jit_init@PLT\n"), 0);
}

/* V8 may run a copy of its builtins, so they aren't patched. Other programs may have functions with
 * such names. */
static void test_copied(void **unused)
{
	static const char builtin[] =
		".text\n.globl Builtins_Abort, plain\n.type Builtins_Abort,@function\n"
		".type plain,@function\nBuiltins_Abort: mov $1,%eax\n ret\n"
		".size Builtins_Abort,.-Builtins_Abort\nplain: mov $1,%eax\n ret\n"
		".size plain,.-plain\n";

	for (int v8 = 0; v8 < 2; v8++) {
		write_file("copied.s", builtin);
		write_file("v8.s", v8 ? DEFINES("_ZN2v87Isolate3NewERKNS0_12CreateParamsE") : "");
		build("gcc -shared -nostdlib copied.s v8.s -o copied.so");
		struct view v = analyse("copied.so", 0);

		assert_int_equal(func(v, "Builtins_Abort")->refused,
				 v8 ? PB_REFUSED_COPIED : PB_REFUSED_NOT);
		assert_int_equal(func(v, "plain")->refused, PB_REFUSED_NOT);
		drop(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_copied),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
