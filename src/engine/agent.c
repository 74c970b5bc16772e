/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts the agent. This happens in the program's main thread, before any constructor of the
 * program, while no other thread runs.
 */
#include <asm/errno.h>
#include <elf.h>
#include <link.h>
#include "arch/arch.h"
#include "engine/process/aside.h"
#include "engine/graph/chains.h"
#include "engine/process/creds.h"
#include "engine/detach.h"
#include "engine/process/exec.h"
#include "engine/graph/calls.h"
#include "engine/clock.h"
#include "engine/files.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/process/loader.h"
#include "engine/prog/prog.h"
#include "engine/process/session.h"
#include "engine/process/sigaction.h"
#include "engine/process/sigmask.h"
#include "engine/graph/thread.h"
#include "engine/tracer.h"
#include "ring/supply.h"
#include "base/first_library.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern char **environ __attribute__((weak));

static struct pb_session session;

static char *copy_string(const char *s, size_t n)
{
	char *copy = pb_arena_alloc(n + 1);

	if (copy) {
		memcpy(copy, s, n);
		copy[n] = 0;
	}
	return copy;
}

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

	return pb_is_first_library(list) && list[n] ? list + n + 1 : list;
}

static bool read_variables(char **envp, const char **path, const char **preload)
{
	char **session = find_var(envp, session_var), **var = find_var(envp, preload_var);
	const char *list;

	if (!session || !var)
		return false;
	*path = copy_string(*session + sizeof(session_var) - 1,
			    strlen(*session) - (sizeof(session_var) - 1));
	list = own_part(*var + sizeof(preload_var) - 1);
	*preload = copy_string(list, first_length(list));
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
	var = find_var(envp, session_var);
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
			top = aux->a_un.a_val;
	if (!top)
		top = (uint64_t)envp;
	return (top + 4096) & ~4095ul;
}

static const char *own_path(void)
{
	static char path[4096];
	long n = pb_sys(SYS_readlink, "/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = 0;
	return path;
}

/* Makes the writes to control files that the message WELCOME lists. Each write is
 * PATH\0OP\0VALUE\0. */
static void apply_writes(struct pb_session *s, const char *w, uint32_t nr)
{
	while (nr--) {
		const char *path = w, *op = path + strlen(path) + 1;
		const char *text = op + strlen(op) + 1;
		char *copy = copy_string(text, strlen(text));
		int err = copy ? pb_file_write(path, copy, pb_streq(op, ">>"), false) : -ENOMEM;

		if (err)
			pb_session_error(s, err, path, pb_file_error);
		w = text + strlen(text) + 1;
	}
}

static int agent_thread(void *arg)
{
	pb_session_serve(&session);
	pb_detach();
	return 0;
}

/* Attaches the eBPF programs. They are attached before the first tracer starts, so that text is
 * written only once for programs and tracer. */
static bool start_progs(struct pb_session *s)
{
	const char *why = "the recorder sent no eBPF programs";
	const void *file;
	uint64_t size;
	int err = pb_session_progs(s, &file, &size);

	if (!err)
		err = pb_prog_start(file, size, &why);
	if (err)
		pb_session_progs_error(s, err, why);
	return !err;
}

/* Starts the agent's thread. The thread takes the connection into a descriptor table of its own, so
 * that the program's table has no descriptor of ours. If the thread can't be started, control files
 * can't be written or read while the program runs. */
static void start_thread(void)
{
	long tid = pb_aside_stay(agent_thread, NULL, session.wire.fd);

	/* closes the descriptor in this thread's table only: the session goes on */
	pb_sys(SYS_close, session.wire.fd);
	if (pb_sys_failed(tid))
		return;
	pb_agent_tid = (uint32_t)tid;
	pb_creds_start();
}

/* Turns the compiler's calls of mcount and __fentry__ into nops. Then patches the functions that
 * the engine replaces. */
static void prepare_text(const char *path)
{
	pb_text_begin();
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		pb_text_change_nops(&pb_modules[i], true);
	pb_text_commit(false);
	pb_text_begin();
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		pb_hook_module(&pb_modules[i]);
	pb_loader_hook(path);
	if (pb_text_commit(false))
		pb_latch("the text could not be written");
	else if (pb_sigaction_start())
		pb_sigmask_ask();
}

static int connect(const char *path, uint64_t top, const char **writes, uint32_t *nr_writes)
{
	int err = pb_threads_start(top);

	if (err)
		return err;
	pb_chains_start();
	pb_text_pid = &pb_process->pid;
	pb_ring_clock = pb_clock;
	pb_supply_ticks = pb_clock_ticks;
	pb_ring_open_calls = pb_calls_open;
	return pb_session_open(&session, path, true, writes, nr_writes);
}

static void start(char **envp, const char *path, const char *preload, uint64_t top)
{
	uint64_t t0 = pb_now_ns();
	const char *writes = NULL;
	uint32_t nr_writes = 0;
	bool progs = false;
	int err;

	pb_pages_add_image(__ehdr_start, (uint64_t)_end);
	err = connect(path, top, &writes, &nr_writes);
	remove_variables(envp);
	if (err) {
		pb_session_missed(&session, path);
		return;
	}
	if (session.flags & PB_WELCOME_NO_FORK)
		pb_follow_fork = false;
	pb_exec_start(preload, path, !(session.flags & PB_WELCOME_NO_EXEC));
	pb_creds_wanted = session.serve;
	pb_ftrace_register_files();
	pb_tracer_register_files();
	pb_prog_register_files();
	pb_hot_link_tls();	/* before modules are added, because copies of the hit path may be
				 * made for a module */
	if (pb_loader_start(&session, own_path(), (uint64_t)_DYNAMIC)) {
		pb_session_close(&session);
		pb_session_missed(&session, path);
		return;
	}
	__atomic_fetch_add(&pb_ring_map.ring->processes, 1, __ATOMIC_RELAXED);
	prepare_text(path);
	if (session.flags & PB_WELCOME_PROGS)
		progs = start_progs(&session);
	pb_tracer_programs();
	apply_writes(&session, writes, nr_writes);
	if (progs)
		pb_ftrace_update(false);
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		pb_session_refused(&session, &pb_modules[i]);
	pb_session_ready(&session, pb_now_ns() - t0);
	if (session.serve && !session.wire.gave_up)
		start_thread();
	else
		pb_session_close(&session);
}

__attribute__((constructor)) static void agent_main(int argc, char **argv, char **envp)
{
	uint64_t top = stack_top(envp);
	const char *path, *preload;

	if (read_variables(envp, &path, &preload))
		start(envp, path, preload, top);
}
