/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recognises functions by their names: functions of the loader, start code, compilers' hooks, cold
 * parts. Each kind has a short table of patterns.
 */
#include <string.h>
#include "base/base.h"
#include "module/analysis/stages.h"

/* A pattern matches the whole name. If the pattern ends with '*', it matches the name's
 * beginning. */
static bool in_table(const char *const *table, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++) {
		size_t plen = strlen(table[i]);
		bool open = table[i][plen - 1] == '*';

		plen -= open;
		if ((open ? len >= plen : len == plen) && !memcmp(table[i], name, plen))
			return true;
	}
	return false;
}
#define IN(table, name, len) in_table(table, pb_array_size(table), name, len)

/* Any lazily bound call and any TLS access may run these functions, even a call or an access of the
 * agent. So they are not traced. */
static const char *const loader[] = {
	"_dl_runtime_resolve*", "_dl_runtime_profile*", "_dl_fixup", "_dl_profile_fixup",
	"_dl_tlsdesc_*", "__tls_get_addr*", "___tls_get_addr*", "__tls_get_addr_slow",
	"tls_get_addr_tail*", "update_get_addr*", "_dl_update_slotinfo", "_dl_start*",
	"_dl_sysdep_start", "_dl_relocate_object*", "_dl_relocate_static_pie",
	"_dl_debug_initialize", "_dl_lookup_symbol_x", "do_lookup_x*", "check_match*",
	"_dl_call_pltexit", "_dl_audit_*", "_dl_mcount*", "_dl_reloc_bad_type", "_rtld_main_check",
	"_dl_catch_exception", "_dl_signal_*", "__rtld_*", "rtld_*",
};

static const char *const start[] = {
	"_start", "__start", "_start_c", "_dlstart", "_dlstart_c", "_dl_relocate_static_pie",
	"__restore_rt", "__restore",
};

/*
 * Functions of memory tests are not traced. Memory tests fill all writable memory of a process with
 * patterns, and then restore it. For example, Redis runs one for its crash report. While such a
 * test runs, the TLS word that leads to the thread's state may hold a pattern, so a traced call may
 * fault. This fault can't be caught: the thread's struct rseq may hold a pattern, too, and the
 * kernel then kills the process when it delivers a signal.
 */
static const char *const memtest[] = {
	"memtest_*",
};

/* Stubs that a compiler made: `jmp *slot(%rip)`. They must not be patched, because the runtime
 * reads a stub's bytes when it fills the slot (Mono's compiled assemblies, x.dll.so). */
static const char *const stubs[] = {
	"plt_*",
};

bool pb_name_loader(const char *name, size_t len)
{
	return IN(loader, name, len);
}

bool pb_name_start(const char *name, size_t len)
{
	return IN(start, name, len);
}

bool pb_name_memtest(const char *name, size_t len)
{
	return IN(memtest, name, len);
}

bool pb_name_stub(const char *name, size_t len)
{
	return IN(stubs, name, len);
}

/*
 * True if the name is that of a cold part: foo.cold of gcc and clang, and foo.cold.3 of older gccs.
 * Only jumps lead to a cold part, whatever its CFI says. But clang also outlines functions with
 * names such as foo.cold.1, and Go calls the function cold of the package foo foo.cold. If the
 * address is called, the name is that of a function.
 */
bool pb_name_cold(const char *name, size_t len)
{
	const char *dot = memmem(name, len, ".cold", 5);

	return dot && (dot + 5 == name + len || dot[5] == '.');
}

enum pb_hook pb_name_hook(const char *name, size_t len)
{
	static const struct {
		const char *name;
		enum pb_hook hook;
	} hooks[] = {
		{ "mcount", PB_HOOK_MCOUNT },
		{ "_mcount", PB_HOOK_MCOUNT },
		{ "__fentry__", PB_HOOK_FENTRY },
		{ "__cyg_profile_func_enter", PB_HOOK_CYG },
		{ "__cyg_profile_func_exit", PB_HOOK_CYG_EXIT },
	};

	for (size_t i = 0; i < pb_array_size(hooks); i++)
		if (len == strlen(hooks[i].name) && !memcmp(name, hooks[i].name, len))
			return hooks[i].hook;
	return PB_HOOK_NONE;
}
