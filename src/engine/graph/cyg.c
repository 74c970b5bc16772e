/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hooks of -finstrument-functions: __cyg_profile_func_enter() and __cyg_profile_func_exit(). A
 * hook finds the site of its function by address, and then does what the site's handler would do.
 * The program's own hook is called afterwards.
 */
#include "engine/graph/cyg.h"
#include "engine/graph/calls.h"
#include "engine/graph/enter.h"
#include "engine/text/ftrace.h"
#include "abi/analysis_access.h"

typedef void hook_fn(void *function, void *call_site);

/* These functions have default visibility, because the loader binds instrumented modules to
 * them. */
void __cyg_profile_func_enter(void *function, void *call_site)
	__attribute__((visibility("default")));
void __cyg_profile_func_exit(void *function, void *call_site)
	__attribute__((visibility("default")));

static hook_fn *own_enter, *own_exit;

static struct pb_site *site_of(uint64_t function)
{
	struct pb_module *m = pb_module_at(function);
	const struct pb_func *f;
	struct pb_site *s;

	if (!m || !m->first_site || !m->sites)
		return 0;
	f = pb_analysis_at(m->analysis, function - m->bias);
	if (!f || f->kind != PB_SITE_CYG)
		return 0;
	s = &m->sites[f - pb_analysis_funcs(m->analysis)];
	return __atomic_load_n(&s->handler, __ATOMIC_ACQUIRE) ? s : 0;
}

static void enter(void *function, void *call_site, uint64_t at)
{
	struct pb_site *s = site_of((uint64_t)function);
	unsigned mode;

	if (!s)
		return;
	if (s->handler == (uint64_t)pb_function) {
		if (pb_thread_get(at))
			pb_record_function(s, (uint64_t)call_site);
		return;
	}
	mode = pb_graph_mode(s, s->handler, (uint64_t)call_site);
	if (mode != PB_ENTER_LIST)
		pb_hook_enter(s, at, mode);
}

static void leave(void *function, uint64_t at)
{
	struct pb_site *s = site_of((uint64_t)function);

	if (s && s->handler != (uint64_t)pb_function)
		pb_hook_exit(s, at);
}

/* The return slot of the call to the hook. It is the same for all hooks that one frame calls. */
#define HOOK_SLOT ((uint64_t)__builtin_frame_address(0) + 8)

void __cyg_profile_func_enter(void *function, void *call_site)
{
	enter(function, call_site, HOOK_SLOT);
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
	leave(function, HOOK_SLOT);
}

static void replaced_enter(void *function, void *call_site)
{
	enter(function, call_site, HOOK_SLOT);
	own_enter(function, call_site);
}

static void replaced_exit(void *function, void *call_site)
{
	leave(function, HOOK_SLOT);
	own_exit(function, call_site);
}

/* libc's two hooks are one empty function with two names. They aren't replaced. */
void pb_cyg_hook(struct pb_module *m)
{
	uint64_t enter_at = pb_function_named(m, "__cyg_profile_func_enter");
	uint64_t exit_at = pb_function_named(m, "__cyg_profile_func_exit");

	if (!enter_at || !exit_at || enter_at == exit_at || own_enter)
		return;
	own_exit = (hook_fn *)pb_ftrace_replace_at(m, exit_at, replaced_exit, 0);
	if (own_exit)
		own_enter = (hook_fn *)pb_ftrace_replace_at(m, enter_at, replaced_enter, 0);
}
