/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's constructor. If the agent was preloaded for a recording, the constructor runs in the
 * program's main thread, before any constructor of the program, while no other thread runs. Tracing
 * starts here. If the agent was brought into a running program, the constructor runs in the thread
 * that the injector has made, and nothing starts here: see attach.c.
 */
#include <elf.h>
#include <link.h>
#include "engine/attach.h"
#include "engine/files.h"
#include "engine/start.h"
#include "engine/process/session.h"
#include "base/first_library.h"
#include "base/mem.h"
#include "base/sys.h"

static char **find_var(char **envp, const char *prefix)
{
	for (; *envp; envp++)
		if (pb_has_prefix(*envp, prefix))
			return envp;
	return NULL;
}

static void remove_var(char **envp, size_t i)
{
	memset(envp[i], 0, strlen(envp[i]));
	do
		envp[i] = envp[i + 1];
	while (envp[i++]);
}

static const char session_var[] = "PATCHBAY_SESSION=", preload_var[] = "LD_PRELOAD=";

static size_t first_length(const char *list)
{
	size_t n = 0;

	while (list[n] && list[n] != ':' && list[n] != ' ')
		n++;
	return n;
}

/* Returns the part of LD_PRELOAD that begins with our library. If another library must be first,
 * our library is the second in the list. Otherwise our library is the first. */
static const char *own_part(const char *list)
{
	size_t n = first_length(list);

	return pb_is_first_library(list, n) && list[n] ? list + n + 1 : list;
}

static bool read_variables(char **envp, const char **path, const char **preload)
{
	char **session = find_var(envp, session_var), **var = find_var(envp, preload_var);
	const char *list;

	if (!session || !var)
		return false;
	*path = pb_arena_copy(*session + sizeof(session_var) - 1,
			      strlen(*session) - (sizeof(session_var) - 1));
	list = own_part(*var + sizeof(preload_var) - 1);
	*preload = pb_arena_copy(list, first_length(list));
	return *path && *preload;
}

/* Removes our variables, so that the program doesn't see them. Called after connect(): until then
 * the variables show the observer that this program is about to connect. */
static void remove_variables(char **envp)
{
	char **var = find_var(envp, preload_var), *list = *var + sizeof(preload_var) - 1;
	const char *own = own_part(list);
	size_t n = (size_t)(own - list) + first_length(own), rest;

	if (list[n] && list[n + 1]) {
		rest = strlen(list + n + 1);
		memmove(list, list + n + 1, rest + 1);
		memset(list + rest + 1, 0, n);
	} else {
		remove_var(envp, (size_t)(var - envp));
	}
	while ((var = find_var(envp, session_var)))
		remove_var(envp, (size_t)(var - envp));
}

/* Returns the upper end of the main thread's stack. The kernel puts the program's file name, to
 * which AT_EXECFN points, just below this end. */
static uint64_t stack_top(char **envp)
{
	const ElfW(auxv_t) *aux;
	uint64_t top = 0;

	while (*envp)
		envp++;
	for (aux = (const void *)(envp + 1); aux->a_type != AT_NULL; aux++)
		if (aux->a_type == AT_EXECFN)
			top = aux->a_un.a_val + strlen((const char *)aux->a_un.a_val);
	if (!top)
		top = (uint64_t)envp;
	return (top + 4096) & ~4095ul;
}

/* A preloaded agent that traces takes the claim (engine/attach.h) and never gives it back. So a
 * later attach to this process fails. */
static void start(char **envp, const char *path, const char *preload)
{
	struct pb_start s = { .session = path, .preload = preload };
	struct pb_known_thread first = {
		.stack_top = stack_top(envp), .tcb = pb_cpu_thread_pointer(),
		.tid = (uint32_t)pb_sys(SYS_gettid), .is_main = true,
	};
	int err;

	/* A stub that has displaced a call pushes the return address, and jumps to the function.
	 * The shadow stack doesn't get this address, so the function's return would be fatal. */
	if (pb_shadow_stack_is_on()) {
		remove_variables(envp);
		pb_session_shadow_stack(path);
		return;
	}
	if (!pb_attach_claim())
		return;
	err = pb_start_memory(&first);
	if (!err)
		err = pb_start_connect(&s);
	remove_variables(envp);
	if (err)
		pb_start_missed(&s, err);
	else if (!pb_start_trace(&s))
		pb_start_thread(&s);
}

__attribute__((constructor)) static void agent_main(int argc, char **argv, char **envp)
{
	const char *path, *preload;

	if (read_variables(envp, &path, &preload))
		start(envp, path, preload);
}
