/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Follows the dynamic loader. Adds the modules that are loaded at the start, and later those that
 * dlopen loads. Removes the modules that dlclose unloads. Reports each change to the recorder. The
 * loader calls a function for debuggers before and after each change. The agent replaces this
 * function. The replacement compares the loader's list with the agent's own list. A new module is
 * patched before any thread can run its code. The text's lock is held from the start of a removal
 * to its end, so nothing writes to text that is being unmapped.
 */
#include <asm/errno.h>
#include <fcntl.h>
#include <link.h>
#include "engine/process/loader.h"
#include "engine/process/aside.h"
#include "engine/process/clone.h"
#include "engine/process/creds.h"
#include "engine/graph/cyg.h"
#include "engine/process/exec.h"
#include "engine/text/ftrace.h"
#include "engine/latch.h"
#include "engine/process/limits.h"
#include "engine/process/memlock.h"
#include "engine/prog/prog.h"
#include "engine/process/prctl.h"
#include "engine/process/replace.h"
#include "engine/process/sigaction.h"
#include "engine/process/sigmask.h"
#include "engine/graph/thread.h"
#include "engine/uaccess.h"
#include "base/mem.h"
#include "base/sys.h"
#include "base/task.h"

#define MAX_SEEN	4096
#define AT_ONCE		64
#define BUSY_NS		5000000000ull	/* how long an attach waits for a dlopen or dlclose that is
					 * under way */
#define BUSY_NAP_NS	1000000

/* A namespace (dlmopen), as glibc has it since 2.35. */
struct namespace {
	struct r_debug base;
	const struct namespace *next;	/* exists if the first namespace's r_version is at least
					 * 2 */
};

static const char *session_path;
static uint64_t own_dynamic;
static void (*original_hook)(void);
static bool hooked;
static bool attaching;		/* the attach itself adds the modules: debug_state() adds and
				 * removes none */
static uint32_t filters;	/* result of seccomp_filters() at the start */
/* The link maps that were found at the start or in earlier calls of debug_state(). If one of them
 * belongs to a module that isn't traced, the module stays untraced. Its code may be running, so the
 * module can't be patched without a stop. */
static uint64_t seen[MAX_SEEN];
static uint32_t nr_seen;

static const struct namespace *next_namespace(const struct namespace *n)
{
	return _r_debug.r_version >= 2 ? n->next : NULL;
}

#define each_namespace(n) \
	(const struct namespace *n = (const void *)&_r_debug; n; n = next_namespace(n))
#define each_module(l, n) \
	(const struct link_map *l = n->base.r_map; l; l = l->l_next)

static bool is_listed(uint64_t map)
{
	for each_namespace(n)
		for each_module(l, n)
			if ((uint64_t)l == map)
				return true;
	return false;
}

/* Returns the state of the namespace that is being changed; at any time there is at most one. If
 * there is none, returns RT_CONSISTENT. */
static int loader_state(void)
{
	for each_namespace(n)
		if (n->base.r_state != RT_CONSISTENT)
			return n->base.r_state;
	return RT_CONSISTENT;
}

static bool is_file(const struct link_map *l)
{
	for (const char *p = l->l_name; p && *p; p++)
		if (*p == '/')
			return true;
	return false;
}

/* Returns whether l is a further link map of an object that is already known. For example, the
 * loader itself has a link map in each namespace. */
static bool is_another_map(const struct link_map *l)
{
	for (uint32_t i = 0; i < nr_seen; i++)
		if (((const struct link_map *)seen[i])->l_ld == l->l_ld)
			return true;
	return false;
}

static bool is_seen(const struct link_map *l)
{
	for (uint32_t i = 0; i < nr_seen; i++)
		if (seen[i] == (uint64_t)l)
			return true;
	return false;
}

/* Notes l as seen. True: l wasn't seen before, and is a module to add. */
static bool is_new(const struct link_map *l)
{
	bool another = is_another_map(l);

	if (is_seen(l))
		return false;
	if (nr_seen == MAX_SEEN) {
		/* l isn't added, so its code isn't checked for system calls */
		pb_sigaction_stand_down();
		return false;
	}
	seen[nr_seen++] = (uint64_t)l;
	return !another && is_file(l) && (uint64_t)l->l_ld != own_dynamic;
}

/* A module that makes system calls itself may change signal dispositions or masks unseen. If there
 * is such a module, reads that may fault are turned off. Two modules are exceptions if they are
 * present at the start: libc, because its functions that change dispositions or masks are replaced,
 * and the loader, which changes none. A libc that is loaded later, into another namespace, is no
 * exception, because its functions aren't replaced. */
static void check_syscalls(struct pb_module *m)
{
	m->libc = pb_module_at(_r_debug.r_brk) == m || pb_function_named(m, "gnu_get_libc_version");
	if (m->analysis->flags & PB_AN_SYSCALLS && (!m->libc || (hooked && !attaching)))
		pb_sigaction_stand_down();
}

/* True if m is libc or the loader, or libpthread of a glibc before 2.34. Other modules may define
 * functions of the same names, which call those of libc. Such a function isn't replaced. Its module
 * may find libc's function by dlsym(), and call it from other places, too. All of these calls must
 * see the same handlers and masks, so only libc's function is replaced. */
static bool has_libc_functions(const struct pb_module *m)
{
	return m->libc || pb_function_named(m, "__pthread_register_cancel");
}

/* Each function is replaced whether or not the others can be. The masks are known only if all
 * functions that may change them are replaced. */
void pb_hook_module(struct pb_module *m)
{
	bool prctl;

	check_syscalls(m);
	pb_cyg_hook(m);
	if (!has_libc_functions(m))
		return;
	prctl = pb_prctl_hook(m);
	if (pb_sigaction_hook(m) && prctl && pb_sigmask_hook(m))
		pb_sigaction_masks_known();
	pb_exec_hook(m);
	pb_creds_hook(m);
	pb_memlock_hook(m);
	pb_limits_hook(m);
	pb_clone_hook(m);
}

/* The modules that the recorder was asked for, and whose answers haven't been taken yet. The
 * requests are sent ahead of the answers. Otherwise the agent and the recorder would wait for each
 * other at each module, and on a busy machine each time also for a processor. */
struct requests {
	struct { const struct link_map *map; const char *path; } list[PB_SESSION_AHEAD];
	unsigned first, nr;
	bool lasting;		/* the modules are never unloaded */
};

static int take(struct pb_session *s, struct requests *q)
{
	unsigned i = q->first++ % PB_SESSION_AHEAD;
	const struct link_map *l = q->list[i].map;
	struct pb_module *m;
	int err = pb_session_take(s, q->list[i].path, l->l_addr, (uint64_t)l, &m);

	q->nr--;
	if (m)
		m->lasting = q->lasting;
	else
		pb_sigaction_stand_down();
	return err;
}

static int ask_stubs(struct pb_session *s, struct pb_module *m)
{
	const char *path = ((const struct link_map *)m->link_map)->l_name;

	return pb_session_ask_stubs(s, m, *path ? path : "the executable");
}

static int take_all(struct pb_session *s, struct requests *q)
{
	int err = 0;

	while (q->nr && !err)
		err = take(s, q);
	for (uint32_t i = 0; i < pb_nr_modules && !err; i++)
		if (pb_modules[i].present)
			err = ask_stubs(s, &pb_modules[i]);
	return err;
}

static int ask(struct pb_session *s, struct requests *q, const struct link_map *l,
	       const char *path, uint32_t flags)
{
	unsigned i = (q->first + q->nr) % PB_SESSION_AHEAD;
	int err = q->nr == PB_SESSION_AHEAD ? take(s, q) : 0;

	if (!err)
		err = pb_session_ask(s, path, l->l_addr, flags);
	if (err)
		return err;
	q->list[i].map = l;
	q->list[i].path = path;
	q->nr++;
	return 0;
}

/* Returns a number that changes when this thread gets another seccomp filter. The function makes
 * only system calls that dlopen makes, too: open, read and close. */
static uint32_t seccomp_filters(void)
{
	struct pb_task_status s;

	if (!pb_task_read_own_status(&s))
		return 0;
	return pb_task_status_number(&s, "Seccomp:") +
	       16 * pb_task_status_number(&s, "Seccomp_filters:");
}

static bool is_loader(const struct link_map *l)
{
	return l->l_addr == _r_debug.r_ldbase;
}

/* Adds the modules of the first namespace. up_to_loader: only those from the list's start up to the
 * loader itself, which were loaded when the program started. */
static int add_first(struct pb_session *s, const char *exe, bool up_to_loader)
{
	struct requests q = { .lasting = true };
	const struct link_map *l = _r_debug.r_map;
	int err = ask(s, &q, l, exe, PB_MODULE_EXE);

	is_new(l);
	for (l = l->l_next; l && !err; l = l->l_next) {
		if (is_new(l))
			err = ask(s, &q, l, l->l_name, is_loader(l) ? PB_MODULE_LDSO : 0);
		if (up_to_loader && is_loader(l))
			break;
	}
	return err ? err : take_all(s, &q);
}

static void begin(uint64_t self_dynamic)
{
	own_dynamic = self_dynamic;
	filters = seccomp_filters();
	pb_filtered = filters;
}

int pb_loader_start(struct pb_session *s, const char *exe, uint64_t self_dynamic)
{
	begin(self_dynamic);
	return add_first(s, exe, false);
}

/* Waits for the end of each dlopen and dlclose that had begun before the hook was in place. */
static int wait_for_loader(void)
{
	const struct { long sec, nsec; } nap = { 0, BUSY_NAP_NS };
	uint64_t end = pb_now_ns() + BUSY_NS;

	while (loader_state() != RT_CONSISTENT) {
		if (pb_now_ns() > end)
			return -EBUSY;
		/* release the lock meanwhile: the thread in dlopen or dlclose may be waiting for it
		 * in debug_state() */
		pb_text_unlock();
		pb_sys(SYS_nanosleep, &nap, NULL);
		pb_text_lock();
	}
	return 0;
}

static int hook_live(const char *session_path)
{
	int err;

	pb_text_begin();
	pb_loader_hook(session_path);
	err = pb_text_commit(true);
	return err ? err : hooked ? 0 : -EOPNOTSUPP;
}

/*
 * While this function runs, other threads may load and unload modules, and this thread can't take
 * the loader's own lock. The list up to the loader itself never changes. This part of the list is
 * enough to place the hook. From then on, a thread that unloads a module waits in the hook for the
 * lock of the text, before it unmaps anything. A thread that loads a module appends a finished link
 * map to the list, and waits in the hook before it relocates the module.
 */
int pb_loader_attach(struct pb_session *s, const char *exe, uint64_t self_dynamic,
		     const char *session_path)
{
	struct requests q = { .lasting = false };
	int err;

	begin(self_dynamic);
	attaching = true;
	err = add_first(s, exe, true);
	if (!err)
		err = hook_live(session_path);
	if (!err)
		err = wait_for_loader();
	if (err)
		return err;
	for each_namespace(n)
		for each_module(l, n)
			if (!err && is_new(l))
				err = ask(s, &q, l, l->l_name, 0);
	return err ? err : take_all(s, &q);
}

void pb_loader_attached(void)
{
	attaching = false;
}

/* Patches new modules: writes nops in place of the calls of mcount and __fentry__, replaces
 * functions, and patches the sites that the tracer selects. errors[i] gets 0 or the error of
 * list[i]. A module with an error runs untraced, or some of its functions do. */
static void patch_arrivals(uint32_t nr, struct pb_module *const *list, int *errors)
{
	int err, before;

	pb_text_begin();
	for (uint32_t i = 0; i < nr; i++)
		pb_text_change_nops(list[i], true);
	before = pb_text_commit(false);
	pb_text_begin();
	for (uint32_t i = 0; i < nr; i++)
		pb_hook_module(list[i]);
	err = pb_text_commit(false);
	before = before ? before : err;
	/* the threads needn't be stopped: no thread runs the text of the new modules yet, and the
	 * text of other modules isn't written */
	for (uint32_t i = 0; i < nr; i++) {
		pb_prog_module(list[i]);
		err = pb_ftrace_update_module(list[i], false);
		errors[i] = before ? before : err;
	}
}

/* The connection to the recorder during one call of look_for_changes(). It is opened when the first
 * message is sent. */
struct talk {
	struct pb_session s;
	bool open, failed;
	bool hidden;		/* the process can't reach the recorder's socket */
};

/* Returns whether no message may be sent: the agent is latched or detaches, doesn't know the PID of
 * this process, or the program has set a seccomp filter since the start. Such a filter may kill the
 * program for using a socket. If the program has set the filter through libc, the kernel isn't
 * asked for filters: dlclose() opens no file, so the filter may kill the program for this. Or the
 * program's handler of SIGSYS lets another process open the file, which then tells of that process.
 * Context: the thread that loads, because filters belong to threads. */
static bool must_be_silent(void)
{
	return pb_latched || pb_detached || !pb_process->pid || pb_sandboxed ||
	       seccomp_filters() != filters;
}

static bool may_talk(struct talk *t)
{
	if (!t->open && !t->failed) {
		int err = pb_session_open(&t->s, session_path, false, NULL, NULL);

		t->failed = err;
		t->open = !err;
		/* when the recording ends, the socket is removed */
		t->hidden = pb_wire_hides(err) && !pb_recording_ended();
	}
	return t->open && !t->failed;
}

/* Counts a module for which the recorder gave no answer, or couldn't be asked. */
static void count_missed(const struct talk *t)
{
	struct pb_ring *ring = pb_ring_map.ring;

	if (t->hidden || pb_wire_missed(&t->s.wire))
		__atomic_fetch_add(t->hidden ? &ring->remote_modules : &ring->missed_modules, 1,
				   __ATOMIC_RELAXED);
}

/* Reports that a new module isn't traced as it should be, and which of its functions aren't. */
static int report_arrival(struct talk *t, const struct pb_module *m, int error)
{
	static char why[160];
	size_t at = 0;
	int err = 0;

	pb_put_str(why, sizeof(why), &at, "not traced completely: ");
	pb_put_str(why, sizeof(why), &at, pb_text_why(error));
	if (error && m->first_site)
		err = pb_session_error(&t->s, error,
				       ((const struct link_map *)m->link_map)->l_name, why);
	return err ? err : pb_session_refused(&t->s, m);
}

/* Adds new modules. Returns whether there may be more. */
static bool arrivals(struct talk *t)
{
	struct pb_module *list[AT_ONCE], *m;
	int errors[AT_ONCE];
	uint64_t text_ns = pb_text_ns;
	uint32_t nr = 0;

	for each_namespace(n) {
		for each_module(l, n) {
			if (nr == AT_ONCE)
				break;
			if (!is_new(l))
				continue;
			m = NULL;
			if (may_talk(t))
				t->failed = pb_session_ask(&t->s, l->l_name, l->l_addr, 0) ||
					    pb_session_take(&t->s, l->l_name, l->l_addr,
							    (uint64_t)l, &m);
			if (m) {
				list[nr++] = m;
				continue;
			}
			count_missed(t);
			pb_sigaction_stand_down();
		}
	}
	if (nr)
		patch_arrivals(nr, list, errors);
	for (uint32_t i = 0; i < nr && !t->failed; i++)
		t->failed = report_arrival(t, list[i], errors[i]);
	if (nr && !t->failed)
		t->failed = pb_session_arrived(&t->s, list, nr, pb_text_ns - text_ns);
	return nr == AT_ONCE;
}

static void departures(struct talk *t)
{
	for (uint32_t i = 0; i < nr_seen;)
		if (is_listed(seen[i]))
			i++;
		else
			seen[i] = seen[--nr_seen];
	for (struct pb_module *m = pb_modules; m < pb_modules + pb_nr_modules; m++) {
		if (!m->present || is_listed(m->link_map))
			continue;
		pb_prog_module_gone(m);
		pb_text_remove(m, pb_looks_wait);
		if (may_talk(t))
			t->failed = pb_session_gone(&t->s, m->number);
	}
}

static bool has_news(void)
{
	for each_namespace(n)
		for each_module(l, n)
			if (!is_seen(l))
				return true;
	for (uint32_t i = 0; i < nr_seen; i++)
		if (!is_listed(seen[i]))
			return true;
	return false;
}

/* Context: the thread that loads or unloads, or a thread that runs in its place (aside.h). */
static void report_changes(void *arg)
{
	struct talk *t = arg;

	departures(t);
	while (arrivals(t))
		;
	if (t->open)
		pb_session_close(&t->s);
}

/* A conversation with the recorder takes as long as the recorder's analysis. Meanwhile other
 * threads of the program may close and open any descriptor. So the conversation runs in a thread
 * with its own descriptor table. If there were seccomp filters at the start, clone() may be fatal;
 * in this case the conversation runs in the calling thread. If a signal handler forks meanwhile,
 * the child doesn't have the thread that talks to the recorder. So the child only updates its own
 * tables, and doesn't trace the modules that were being loaded. */
static void look_for_changes(void)
{
	struct talk talk = { .open = false };
	int err;

	if (!has_news())
		return;
	talk.failed = must_be_silent();
	err = talk.failed || pb_filtered ? -ENOSYS : pb_aside(report_changes, &talk);
	if (err == -EINTR) {
		talk = (struct talk){ .failed = true };
		pb_sigaction_stand_down();	/* the child may not know the new modules, which may
						 * make system calls */
	}
	if (err)
		report_changes(&talk);
}

/* Runs in place of _dl_debug_state(). Context: inside dlopen or dlclose, with the loader's lock.
 * From RT_DELETE to RT_CONSISTENT a module is being unmapped, and no text may be changed. So this
 * function takes the lock of the text at RT_DELETE, and releases it at RT_CONSISTENT. */
static void debug_state(void)
{
	static bool deleting;
	int state = loader_state();

	if (state == RT_DELETE && !deleting) {
		pb_text_lock();
		deleting = hooked;
		if (!hooked)
			pb_text_unlock();	/* this hook has been removed meanwhile, so it won't
						 * be called for RT_CONSISTENT */
	} else if (state == RT_CONSISTENT) {
		pb_thread_get((uint64_t)__builtin_frame_address(0));	/* in a forked child, sets
									 * the child's PID */
		if (!deleting)
			pb_text_lock();
		deleting = false;
		if (!attaching)
			look_for_changes();
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
		original_hook = (void (*)(void))pb_replace_at(m, _r_debug.r_brk, debug_state);
	hooked = original_hook;
}

void pb_loader_unhooked(void)
{
	hooked = false;
}
