/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <link.h>
#include "engine/loader.h"
#include "engine/creds.h"
#include "engine/cyg.h"
#include "engine/exec.h"
#include "engine/ftrace.h"
#include "engine/latch.h"
#include "engine/sigaction.h"
#include "engine/thread.h"
#include "base/mem.h"
#include "base/sys.h"

static const char *session_path;
static uint64_t own_dynamic;
static void (*original_hook)(void);
static bool hooked;

static bool is_file(const struct link_map *l)
{
	for (const char *p = l->l_name; p && *p; p++)
		if (*p == '/')
			return true;
	return false;
}

static bool known(const struct link_map *l)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		if (pb_modules[i].present && pb_modules[i].link_map == (uint64_t)l)
			return true;
	return false;
}

void pb_hook_module(struct pb_module *m)
{
	if (!m->sites)
		return;
	pb_sigaction_hook(m);
	pb_exec_hook(m);
	pb_creds_hook(m);
	pb_cyg_hook(m);
}

static int add(struct pb_session *s, const struct link_map *l, const char *path, uint32_t flags)
{
	struct pb_module *m;
	int err = pb_session_module(s, path, l->l_addr, (uint64_t)l, flags, &m);

	return err;
}

int pb_loader_start(struct pb_session *s, const char *exe, uint64_t self_dynamic)
{
	const struct link_map *l = _r_debug.r_map;
	int err = add(s, l, exe, PB_MODULE_EXE);

	own_dynamic = self_dynamic;
	for (l = l->l_next; l && !err; l = l->l_next)
		if (is_file(l) && (uint64_t)l->l_ld != own_dynamic)
			err = add(s, l, l->l_name,
				  l->l_addr == _r_debug.r_ldbase ? PB_MODULE_LDSO : 0);
	return err;
}

/* Compiled-in calls out, hooks in, sites as the tracer wants them. */
static void patch_arrivals(uint32_t nr, struct pb_module *const *list)
{
	pb_text_begin();
	for (uint32_t i = 0; i < nr; i++)
		pb_text_change_nops(list[i], true);
	pb_text_commit(false);
	pb_text_begin();
	for (uint32_t i = 0; i < nr; i++)
		pb_hook_module(list[i]);
	pb_text_commit(false);
	/* nobody runs the new text yet; the old text is left as it is */
	for (uint32_t i = 0; i < nr; i++)
		pb_ftrace_update_module(list[i], false);
}

static void arrivals(void)
{
	struct pb_session s;
	struct pb_module *list[64];
	uint32_t nr = 0;
	bool open = false;

	for (const struct link_map *l = _r_debug.r_map; l && nr < 64; l = l->l_next) {
		struct pb_module *m;

		if (!is_file(l) || (uint64_t)l->l_ld == own_dynamic || l == _r_debug.r_map ||
		    known(l))
			continue;
		if (!open && pb_session_open(&s, session_path, false, NULL, NULL))
			return;
		open = true;
		if (pb_session_module(&s, l->l_name, l->l_addr, (uint64_t)l, 0, &m))
			break;
		if (m)
			list[nr++] = m;
	}
	if (nr)
		patch_arrivals(nr, list);
	for (uint32_t i = 0; i < nr; i++)
		pb_session_refused(&s, list[i]);
	if (open)
		pb_session_close(&s);
}

static void departures(void)
{
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		const struct link_map *l = _r_debug.r_map;

		if (!pb_modules[i].present)
			continue;
		while (l && (uint64_t)l != pb_modules[i].link_map)
			l = l->l_next;
		if (!l)
			pb_text_remove(&pb_modules[i]);
	}
}

/* In place of _dl_debug_state(). Context: inside dlopen or dlclose, with the
 * loader's lock. Text may not be changed while a module is unmapped: from
 * RT_DELETE to RT_CONSISTENT. */
static void debug_state(void)
{
	static bool deleting;

	if (pb_process->pid && _r_debug.r_state == RT_DELETE && !deleting) {
		pb_text_lock();
		deleting = hooked;
		if (!hooked)
			pb_text_unlock();	/* it won't come here again */
	} else if (pb_process->pid && _r_debug.r_state == RT_CONSISTENT) {
		if (!deleting)
			pb_text_lock();
		deleting = false;
		departures();
		if (!pb_latched && !pb_detached)
			arrivals();
		pb_text_unlock();
	}
	if (original_hook)
		original_hook();
}

void pb_loader_hook(const char *path)
{
	struct pb_module *m = pb_module_at(_r_debug.r_brk);

	session_path = path;
	if (m)
		original_hook = (void (*)(void))pb_ftrace_replace_at(m, _r_debug.r_brk, debug_state);
	hooked = original_hook;
}

void pb_loader_unhooked(void)
{
	hooked = false;
}
