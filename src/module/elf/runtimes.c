/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of runtimes (runtimes.h) with the signs that identify each runtime, and the search for
 * these signs in a file's symbols and sections. A new runtime needs one new row. Row N stands for
 * bit N in the result of pb_runtimes_find().
 */
#include "module/elf/runtimes.h"
#include <string.h>
#include "base/base.h"

/* A runtime is identified by a symbol that the file defines, by a symbol that the file needs, or by
 * a section. A star at the end of a name matches any rest. */
enum sign { DEFINES, NEEDS, SECTION };

#define COPIES "the runtime saves a part of a stack elsewhere and copies it back later: " \
	       "meanwhile other calls may use this part of the stack, and then the saved calls " \
	       "appear to end"

static const struct runtime {
	const char *name, *policy;
	struct { enum sign by; const char *what; } signs[4];
	bool own_stacks;	/* the runtime has code without unwind tables, and this code does
				 * not use the stack as C does */
	bool small_stacks;	/* the runtime's functions run on stacks with little room
				 * (PB_AN_SMALL_STACKS) */
	const char *copied;	/* the runtime may copy the functions whose names begin like this
				 * to another address, and run the copy. A jump to a stub would
				 * lead to a wrong address in the copy */
	const char *preempts;	/* the runtime may stop any function (pb_runtime_preempts()), except
				 * those whose names begin like this */
} runtimes[] = {
	{ "V8",
	  "compiled JavaScript isn't traced; V8's builtins aren't either, because V8 may run a "
	  "copy of them",
	  { { DEFINES, "_ZN2v87Isolate3New*" }, { DEFINES, "v8_Default_embedded_blob_*" } }, true,
	  false, "Builtins_" },
	{ "HotSpot", "compiled Java isn't traced; the virtual machine's own code is",
	  { { DEFINES, "gHotSpotVMStructs" } } },
	{ "Go",
	  "Go's functions are traced by their entries only: their stacks move, and a function "
	  "restarts when its stack has grown; C code has durations",
	  { { SECTION, ".gopclntab" }, { SECTION, ".go.buildinfo" },
	    { DEFINES, "runtime.goexit*" } }, true, true, NULL, "runtime." },
	{ "OCaml",
	  "calls that end by an exception are shown without a return; the collector may walk the "
	  "stack, since tracing doesn't change it",
	  { { DEFINES, "caml_frametable" }, { DEFINES, "caml_startup*" } } },
	{ "Mono",
	  "compiled methods aren't traced; images that were compiled ahead of time are traced by "
	  "their entries only, because they have no unwind tables",
	  { { DEFINES, "mono_jit_init" }, { DEFINES, "mono_aot_file_info" } }, true },
	{ ".NET",
	  "compiled methods aren't traced; methods that were compiled ahead of time have durations "
	  "if they have unwind tables",
	  { { DEFINES, "coreclr_initialize" }, { DEFINES, "DotNetRuntimeDebugHeader" } } },
	{ "LuaJIT", "compiled Lua isn't traced; errors leave functions without a return",
	  { { DEFINES, "luaJIT_setmode" }, { DEFINES, "luaJIT_version_*" } } },
	{ "GHC",
	  "Haskell's functions end by jumps and have a stack of their own: they are traced by "
	  "their entries only; C code has durations",
	  { { DEFINES, "stg_ap_v_info" }, { DEFINES, "hs_init_ghc" } }, true },
	{ "SBCL", "compiled Lisp isn't traced; the runtime's C code is",
	  { { DEFINES, "call_into_lisp" } } },
	{ "Chez Scheme", "compiled Scheme isn't traced; the C code of Chez Scheme's runtime is",
	  { { DEFINES, "Sscheme_init" } } },
	{ "Erlang", "compiled Erlang isn't traced; the emulator's C code is",
	  { { DEFINES, "erts_alloc_init" }, { DEFINES, "erl_start" },
	    { DEFINES, "enif_make_atom" } } },
	{ "CHICKEN", "its functions never return: their calls end where a jump empties the stack",
	  { { DEFINES, "CHICKEN_main" }, { NEEDS, "CHICKEN_main" } } },
	{ "greenlet", COPIES, { { DEFINES, "PyInit__greenlet" } } },
	{ "Guile", COPIES, { { DEFINES, "scm_call_with_current_continuation" } } },
	{ "Ruby's callcc", COPIES, { { DEFINES, "Init_continuation" } } },
	{ "AddressSanitizer",
	  "its runtime must be loaded before all other libraries, so a program that Patchbay "
	  "starts loads it before the agent; functions that it replaces are traced as functions of "
	  "the program",
	  { { DEFINES, "__asan_init" }, { NEEDS, "__asan_init" } } },
};
_Static_assert(sizeof(runtimes) / sizeof(*runtimes) <= 32, "struct pb_analysis: runtimes");

static bool is_it(const char *name, const char *what)
{
	size_t n = strlen(what);

	if (what[n - 1] == '*')
		return !strncmp(name, what, n - 1);
	return !strcmp(name, what);
}

/* Returns the runtimes that this name identifies, as bits. */
static uint32_t look_up(const char *name, enum sign by)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < pb_array_size(runtimes); i++)
		for (unsigned k = 0; k < 4 && runtimes[i].signs[k].what; k++)
			if (runtimes[i].signs[k].by == by && *name == *runtimes[i].signs[k].what &&
			    is_it(name, runtimes[i].signs[k].what))
				found |= 1u << i;
	return found;
}

static uint32_t by_symbols(struct pb_elf *e, unsigned type)
{
	struct pb_elf_symbols t;
	uint32_t found = 0;

	if (!pb_elf_symbols(e, type, &t))
		return 0;
	for (uint64_t i = 1; i < t.n; i++) {
		bool local = ELF64_ST_BIND(t.v[i].st_info) == STB_LOCAL && type == SHT_DYNSYM;
		const char *name = local ? NULL : pb_elf_string(&t.strings, t.v[i].st_name);

		if (name)
			found |= look_up(name, t.v[i].st_shndx == SHN_UNDEF ? NEEDS : DEFINES);
	}
	return found;
}

uint32_t pb_runtimes_find(struct pb_elf *e)
{
	uint32_t found = by_symbols(e, SHT_SYMTAB) | by_symbols(e, SHT_DYNSYM);

	for (unsigned i = 0; i < e->nr_sh; i++) {
		const char *name = pb_elf_section_name(e, &e->sh[i]);

		if (name)
			found |= look_up(name, SECTION);
	}
	return found;
}

uint32_t pb_runtimes_of_section(const char *name)
{
	return look_up(name, SECTION);
}

const char *pb_runtime_name(unsigned bit)
{
	return bit < pb_array_size(runtimes) ? runtimes[bit].name : NULL;
}

const char *pb_runtime_policy(unsigned bit)
{
	return bit < pb_array_size(runtimes) ? runtimes[bit].policy : NULL;
}

bool pb_runtime_has_own_stacks(uint32_t bits)
{
	for (unsigned i = 0; i < pb_array_size(runtimes); i++)
		if (bits >> i & 1 && runtimes[i].own_stacks)
			return true;
	return false;
}

bool pb_runtime_copies(uint32_t bits, const char *name, size_t len)
{
	for (unsigned i = 0; i < pb_array_size(runtimes); i++) {
		const char *copied = bits >> i & 1 ? runtimes[i].copied : NULL;
		size_t n = copied ? strlen(copied) : 0;

		if (n && len >= n && !memcmp(name, copied, n))
			return true;
	}
	return false;
}

bool pb_runtime_preempts(uint32_t bits, const char *name, size_t len)
{
	for (unsigned i = 0; i < pb_array_size(runtimes); i++) {
		const char *but = bits >> i & 1 ? runtimes[i].preempts : NULL;
		size_t n = but ? strlen(but) : 0;

		if (n && (len < n || memcmp(name, but, n)))
			return true;
	}
	return false;
}

bool pb_runtime_has_small_stacks(uint32_t bits)
{
	for (unsigned i = 0; i < pb_array_size(runtimes); i++)
		if (bits >> i & 1 && runtimes[i].small_stacks)
			return true;
	return false;
}
