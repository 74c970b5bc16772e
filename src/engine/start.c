/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps from the first message to the recorder until the first traced call. In a program that
 * is just starting, no other thread runs yet. In a live program (one that runs already), the
 * agent's thread does all of this, and the program's threads run on. The lock of the text is held
 * from the first look at the loader's list to the end, so a thread that loads or unloads a module
 * meanwhile waits for the lock. See doc/design/attach.md.
 */
#include <asm/errno.h>
#include <link.h>
#include "engine/start.h"
#include "engine/snapshot_on.h"
#include "arch/arch.h"
#include "engine/process/aside.h"
#include "engine/graph/chains.h"
#include "engine/process/creds.h"
#include "engine/detach.h"
#include "engine/process/exec.h"
#include "engine/graph/calls.h"
#include "engine/clock.h"
#include "engine/files.h"
#include "engine/fork.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/process/loader.h"
#include "engine/prog/prog.h"
#include "engine/process/session.h"
#include "engine/process/sigaction.h"
#include "engine/process/sigmask.h"
#include "engine/tracer.h"
#include "ring/supply.h"
#include "abi/messages.h"
#include "base/mem.h"
#include "base/pages.h"
#include "base/sys.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static struct pb_session session;
/* The writes to control files that the message WELCOME lists: PATH\0OP\0VALUE\0 each. */
static const char *writes;
static uint32_t nr_writes;
static bool other_credentials;	/* the agent's thread doesn't have those of the main thread */

static const char *own_path(void)
{
	static char path[4096];
	long n = pb_sys(SYS_readlink, "/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = 0;
	return path;
}

int pb_start_memory(const struct pb_known_thread *thread)
{
	int err;

	pb_pages_add_image(__ehdr_start, (uint64_t)_end);
	err = pb_threads_start(thread);
	if (!err)
		pb_chains_start();
	return err;
}

int pb_start_connect(struct pb_start *s)
{
	int err;

	s->begun = pb_now_ns();
	pb_text_lock_word = &pb_process->text_lock;
	pb_ring_clock = pb_clock;
	pb_supply_ticks = pb_clock_ticks;
	pb_ring_open_calls = pb_calls_open;
	session.wire.patience_ns = s->live ? PB_ATTACH_NS : 0;
	err = pb_session_open(&session, s->session, true, &writes, &nr_writes);
	session.wire.patience_ns = 0;
	session.wire.starved_ns = s->live ? PB_ATTACH_NS : 0;
	return err;
}

void pb_start_missed(const struct pb_start *s, int error)
{
	pb_session_missed(&session, s->session, error);
}

static void apply_writes(bool live)
{
	const char *w = writes;

	pb_file_options = true;
	for (uint32_t i = 0; i < nr_writes; i++) {
		const char *path = w, *op = path + strlen(path) + 1;
		const char *text = op + strlen(op) + 1;
		char *copy = pb_arena_copy(text, strlen(text));
		int err = copy ? pb_file_write(path, copy, pb_streq(op, ">>"), live) : -ENOMEM;

		if (err)
			pb_session_error(&session, err, path, pb_file_error);
		w = text + strlen(text) + 1;
	}
	pb_file_options = false;
}

/* Attaches the eBPF programs. They are attached before the first tracer starts, so that text is
 * written only once for programs and tracer. */
static bool start_progs(void)
{
	const char *why = "the recorder sent no eBPF programs";
	const void *file;
	uint64_t size;
	int err = pb_session_progs(&session, &file, &size);

	if (!err)
		err = pb_prog_start(file, size, &why);
	if (err)
		pb_session_progs_error(&session, err, why);
	return !err;
}

/* Turns the compiler's calls of mcount and __fentry__ into nops. */
static int change_nops(bool live)
{
	pb_text_begin();
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		if (pb_modules[i].present)
			pb_text_change_nops(&pb_modules[i], true);
	return pb_text_commit(live);
}

/* Patches the functions that the engine replaces. */
static int hook_modules(const struct pb_start *s)
{
	bool reads = false;
	int err = change_nops(s->live);

	if (err && s->live)
		return err;
	pb_text_begin();
	for (uint32_t i = 0; i < pb_nr_modules; i++) {
		if (!pb_modules[i].present)
			continue;
		pb_hook_module(&pb_modules[i]);
		pb_fork_hook(&pb_modules[i], session.flags & PB_WELCOME_PROGS);
	}
	if (!s->live)
		pb_loader_hook(s->session);
	err = pb_text_commit(s->live);
	if (!err && s->live)
		err = pb_sigaction_adopt(&reads);
	else if (!err)
		reads = pb_sigaction_start();
	if (err && !s->live)
		pb_latch("the text could not be written");
	else if (reads)
		pb_sigmask_ask();
	return s->live ? err : 0;
}

static int add_modules(const struct pb_start *s)
{
	return s->live ? pb_loader_attach(&session, own_path(), (uint64_t)_DYNAMIC, s->session) :
			 pb_loader_start(&session, own_path(), (uint64_t)_DYNAMIC);
}

static void begin_tracing(const struct pb_start *s)
{
	bool progs = session.flags & PB_WELCOME_PROGS && start_progs();
	int err = 0;

	pb_tracer_returns();
	apply_writes(s->live);
	if (progs)
		err = pb_ftrace_update(s->live);
	if (err)
		pb_session_progs_error(&session, err, err == -EAGAIN && pb_stop_why ? pb_stop_why :
				       pb_text_why(err));
	for (uint32_t i = 0; i < pb_nr_modules; i++)
		pb_session_refused(&session, &pb_modules[i]);
	pb_session_ready(&session, pb_now_ns() - s->begun);
}

static int trace(const struct pb_start *s)
{
	int err = add_modules(s);

	if (err && !s->live)
		return err;
	/* in a live program the loader's hook may be in place already: after an error from here on,
	 * the caller must undo this by pb_detach() */
	__atomic_fetch_add(&pb_ring_map.ring->processes, 1, __ATOMIC_RELAXED);
	if (!err)
		err = hook_modules(s);
	pb_loader_attached();
	other_credentials = !err && s->live && !pb_creds_are_those_of_main();
	if (other_credentials)
		err = -EACCES;
	if (!err)
		begin_tracing(s);
	return err;
}

/* Reports why a live program isn't traced. */
static void report(int err)
{
	const char *why = other_credentials ? "a thread has another user, other groups or other "
					      "capabilities than the main thread; try again" :
			  err == -EAGAIN && pb_stop_why ? pb_stop_why :
			  err == -EBUSY ? "the dynamic loader is busy" : pb_text_why(err);

	pb_session_error(&session, err, "attach", why);
}

int pb_start_trace(const struct pb_start *s)
{
	int err;

	if (session.flags & PB_WELCOME_NO_FORK)
		pb_follow_fork = false;
	pb_exec_start(s->preload, s->session, !(session.flags & PB_WELCOME_NO_EXEC));
	pb_creds_wanted = session.serve;
	pb_ftrace_register_files();
	pb_tracer_register_files();
	pb_prog_register_files();
	pb_snapshot_on_register_files();
	pb_hot_link_tls();	/* before modules are added, because copies of the hit path may be
				 * made for a module */
	pb_text_lock();
	err = trace(s);
	pb_text_unlock();
	session.wire.starved_ns = 0;
	if (err && s->live)
		report(err);
	if (err)
		pb_session_close(&session);
	if (err && !s->live)
		pb_start_missed(s, err);
	return err;
}

bool pb_start_serve(void)
{
	bool asked;

	asked = pb_session_serve(&session);
	return pb_detach(asked ? &session : NULL);
}

static int agent_thread(void *arg)
{
	/* pb_start_thread() stores the TID, too, but perhaps only after the first stop */
	pb_agent_tid = (uint32_t)pb_sys(SYS_gettid);
	pb_stop_keep_dirs();
	pb_start_serve();
	return 0;
}

/* The thread takes the connection into a descriptor table of its own, so that the program's table
 * has no descriptor of the agent. If the thread can't be started, control files can't be written or
 * read while the program runs. */
void pb_start_thread(const struct pb_start *s)
{
	long tid;

	if (!session.serve || session.wire.gave_up) {
		pb_session_close(&session);
		return;
	}
	tid = pb_aside_stay(agent_thread, NULL, session.wire.fd);
	/* closes the descriptor in this thread's table only: the session goes on */
	pb_sys(SYS_close, session.wire.fd);
	if (pb_sys_failed(tid))
		return;
	pb_agent_tid = (uint32_t)tid;
	pb_creds_start();
}
