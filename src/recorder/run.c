/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts the program or attaches to a process, serves agents and waits for the end. The main thread
 * polls, while the drain thread moves data.
 *
 * Signals: the terminal sends ^C and ^\ to the program as well, so the recorder doesn't pass them
 * on. The recorder continues until the program has ended, and writes the data. A signal that
 * another process sends to the recorder is passed on to the program. If the program has ended and
 * only its children still run, or if the process was attached, ^C ends the recording. A signal that
 * the recorder was started to ignore, for example SIGHUP by nohup, ends no recording.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clean_text.h"
#include "base/sys.h"
#include "reader/open_chunks.h"
#include "reader/say.h"
#include "recorder/flight.h"
#include "recorder/held.h"
#include "recorder/inherited.h"
#include "recorder/listen.h"
#include "recorder/modules.h"
#include "recorder/proc.h"
#include "recorder/processes.h"
#include "recorder/ring_memory.h"
#include "recorder/run.h"
#include "recorder/recording.h"
#include "recorder/running.h"
#include "recorder/serve_control.h"
#include "recorder/server.h"
#include "recorder/session_dir.h"
#include "recorder/session_meta.h"
#include "recorder/settings.h"
#include "recorder/start_program.h"
#include "recorder/summary.h"
#include "recorder/target.h"
#include "recorder/tasks.h"
#include "recorder/terminal.h"
#include "recorder/texts.h"
#include "recorder/thread_names.h"

#define TICK_MS		50
#define AGENT_NS	(PB_ATTACH_NS + 2000000000u)	/* how long the recorder waits for an agent
							 * that was brought into a process */
#define END_MS		1000	/* how long a process may take to end after its agent's connection
				 * has ended */
#define DYING_NS	30000000000ull	/* the same, while the kernel is ending its threads */
#define SLOW_NS		2000000000u	/* a detach that takes longer is reported */
#define EXEC_NS		2000000000u	/* how long the recorder waits for an agent's start after an
					 * exec */

struct run {
	struct record_options *o;
	struct record_server server;
	struct pb_datadir datadir;
	struct pb_drain drain;
	struct pb_open_chunks open;
	struct record_threads threads;
	struct record_outcome out;
	const struct record_signals *signals;
	struct sigaction old_pipe;
	uint64_t next_second;
	unsigned ticks, seconds;
	bool reported_full, reported_error, reported_others, progress;
	bool stop;		/* ^C came after the program's end */
	pid_t other;		/* a traced process that runs on after the program's end; 0:
				 * unknown */
	const struct record_target *target;
	uint64_t begun;		/* when the attach began */
	uint64_t injected;	/* when the injection had started the agent's thread; on a busy
				 * machine, many seconds after `begun` */
	uint64_t ready;		/* when the first functions were patched; 0: not yet */
	bool leave;		/* all agents must detach; then the recording ends */
	uint64_t asked;		/* when all agents were asked to detach; 0: not yet */
	bool reported_wait;
	uint64_t gone_since;	/* no process maps the ring or is connected since then; or 0 */
};

/* --- before the start --------------------------------------------------- */

static bool threads_alive(void *arg, struct pb_drain_thread *threads, unsigned nr,
			  const _Atomic bool *stop)
{
	return record_tasks_alive(arg, threads, nr, stop);
}

static int start_program(struct run *r, const struct record_target *t, char **env)
{
	const struct record_start start = {
		.path = t->path, .argv = r->o->argv, .env = env, .signals = r->signals,
		.pipe = &r->old_pipe,
	};

	return record_start_program(&start, &r->out.pid);
}

/* Brings the agent into a process that runs already. */
static int attach(struct run *r)
{
	int err;

	r->begun = pb_now_ns();
	r->out.pid = r->o->pid;
	memcpy(r->out.name, r->target->name, sizeof(r->out.name));
	err = r->o->attach(r->o, r->server.session->agent, r->server.session->sock,
			   &r->server.injector_stop_ns);
	r->injected = pb_now_ns();
	return err;
}

/* --- the loop ----------------------------------------------------------- */

/* Handles a signal that the recorder gets while it records an attached process. If the recording is
 * already ending, the signal ends the wait for the agent, which then detaches by itself. */
static void on_end(struct run *r, int sig)
{
	if (!record_signals_end(r->signals, sig))
		return;
	r->stop = r->leave;
	r->leave = true;
}

/* The recorder has other children, too: helpers, and the loader that lists libraries. */
static void reap(struct run *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != r->out.pid)
			continue;
		r->out.status = status;
		r->out.exited = true;
	}
}

static void on_signal(struct run *r)
{
	struct signalfd_siginfo si;

	while (read(r->signals->fd, &si, sizeof(si)) == sizeof(si)) {
		int sig = (int)si.ssi_signo;

		if (sig == SIGCHLD) {
			reap(r);
		} else if (sig == r->o->snapshot_signal) {
			if (r->server.flight)
				record_flight_ask(r->server.flight, "a signal asked for it");
		} else if (r->o->pid) {
			on_end(r, sig);
		} else if (r->out.exited) {
			r->stop |= record_signals_end(r->signals, sig);
		} else if (si.ssi_code <= 0 && (pid_t)si.ssi_pid != r->out.pid) {
			kill(r->out.pid, sig);
		}
	}
}

/* True if progress may be shown. Progress must not disturb the program's output. So no descriptor
 * of the program except standard input may lead to the terminal. The terminal must be in line mode,
 * and the recorder must be in the foreground. */
static bool may_show_progress(const struct run *r)
{
	const char *term = getenv("TERM");
	struct termios tio;

	return isatty(2) && term && strcmp(term, "dumb") && !tcgetattr(2, &tio) &&
	       tio.c_lflag & ICANON && tcgetpgrp(2) == getpgrp() &&
	       !record_procs_have_terminal(r->out.exited ? r->other : r->out.pid, 2);
}

static void clear_progress(struct run *r)
{
	if (r->progress)
		fputs("\r\033[K", stderr);
	r->progress = false;
}

static void show_progress(struct run *r)
{
	char bytes[32], lost[32];

	if (r->o->quiet || !may_show_progress(r)) {
		clear_progress(r);
		return;
	}
	record_format_bytes(r->drain.bytes, bytes, sizeof(bytes));
	record_format_number(record_ring_lost(r->server.ring) + r->drain.discarded_calls, lost,
			     sizeof(lost));
	fprintf(stderr, "\r\033[Kpatchbay: %s, %s lost ", bytes, lost);
	r->progress = true;
}

/* Reports a limit as soon as it is reached. */
static void report_limits(struct run *r)
{
	bool full = r->drain.full && !r->reported_full;
	bool failed = r->drain.error && !r->reported_error;
	char text[200], bytes[32];

	/* The program's last calls may have reached the limit. Then the program had ended before,
	 * but its SIGCHLD may not have been handled yet. */
	if (full || failed)
		reap(r);
	/* with --overwrite, data is written only at the end: the closing line reports what
	 * --max-size dropped */
	if (full && r->o->mode != PB_RING_OVERWRITE) {
		r->reported_full = true;
		record_format_bytes(r->o->max_size, bytes, sizeof(bytes));
		snprintf(text, sizeof(text), r->o->pid ? "%s recorded (--max-size)" :
			 "%s recorded (--max-size); %sfurther calls are only counted", bytes,
			 r->out.exited ? "" : "the program continues, and ");
		clear_progress(r);
		record_error("%s", text);
		pb_datadir_note(&r->datadir, text);
	}
	if (failed) {
		r->reported_error = true;
		clear_progress(r);
		record_error("%s/chunks: %s; the written data is kept%s. With -F, -t or "
			     "--overwrite, less is recorded", r->datadir.dir,
			     strerror(-r->drain.error),
			     r->out.exited ? "" : ", and the program continues");
	}
}

static void each_tick(struct run *r)
{
	uint64_t now = pb_now_ns();
	bool second = now >= r->next_second;

	record_threads_poll(&r->threads, &r->server, second);
	report_limits(r);
	if (r->ticks++ == 1)
		pb_datadir_clock(&r->datadir);
	if (!second)
		return;
	r->next_second = now + 1000000000;
	show_progress(r);
	/* The reading after one second is there in case the recorder is killed soon. Later readings
	 * make the conversion of times more exact. */
	if (++r->seconds == 1 || r->seconds % 10 == 0)
		pb_datadir_clock(&r->datadir);
}

/* True if any process is still traced after the program's end. A traced process either maps the
 * ring or is starting. It is starting if it has called exec, and its new agent has not mapped the
 * ring yet. A process may change from one state to the other between two checks, so there are three
 * checks. The recorder waits at most EXEC_NS for a process whose agent never starts. */
static bool others_live(struct run *r)
{
	uint64_t now = pb_now_ns();

	if (record_procs_alive(r->server.ring)) {
		r->gone_since = 0;
		return true;
	}
	r->gone_since = r->gone_since ? r->gone_since : now;
	if (now - r->gone_since < EXEC_NS &&
	    record_procs_starting(r->server.session, r->server.ring))
		return true;
	return record_procs_alive(r->server.ring);
}

static void report_others(struct run *r, uint64_t since)
{
	struct record_procs p;
	char comm[RECORD_COMM] = "?";

	/* if a process is only starting, it isn't reported, because it has no name yet */
	if (r->reported_others || r->o->quiet || pb_now_ns() - since < 500000000 ||
	    !record_procs_alive(r->server.ring))
		return;
	record_procs_scan(r->server.ring, &p);
	pid_t pid = p.nr ? p.first : p.first_hidden;
	record_read_comm(pid, pid, comm);
	if (!record_procs_alive(r->server.ring))
		return;
	r->reported_others = true;
	r->other = pid;
	clear_progress(r);
	if (!pid)
		record_error("the program ended, but another process continues and is recorded; "
			     "its name is hidden (another user's process, or not dumpable); ^C "
			     "ends the recording");
	else if (p.nr + p.hidden > 1)
		record_error("the program ended, but %s (%d) and %u more process%s continue and "
			     "are recorded; ^C ends the recording", comm, (int)pid,
			     p.nr + p.hidden - 1, p.nr + p.hidden == 2 ? "" : "es");
	else
		record_error("the program ended, but %s (%d) continues and is recorded; ^C ends "
			     "the recording", comm, (int)pid);
}

static unsigned poll_once(struct run *r, int timeout)
{
	struct pollfd fds[RECORD_MAX_CONNS + 3];
	unsigned nr = record_server_poll(&r->server, fds + 1);
	int events;

	fds[0] = (struct pollfd){ r->signals->fd, POLLIN, 0 };
	events = poll(fds, nr + 1, timeout);
	if (events <= 0)
		return 0;
	if (fds[0].revents)
		on_signal(r);
	record_server_handle(&r->server, fds + 1, nr);
	return (unsigned)events;
}

/* --- a process that outlives its recording -------------------------------- */

static void on_ready(struct run *r)
{
	r->ready = pb_now_ns();
	/* from now on, the former recording isn't put back after an error */
	pb_datadir_commit(&r->datadir);
	if (r->o->on_ready)
		r->o->on_ready(r->o, r->out.name, r->server.sites, r->ready - r->begun);
	record_flight_begin(r->server.flight);
}

/* True if the recording is over, although its process may run on. If no agent has connected yet, it
 * is over when the process has ended, or AGENT_NS after the injection. Later, it is over when all
 * agents have detached or died. With --children it goes on while any process is traced, unless the
 * agents were asked to detach. */
static bool is_over(struct run *r)
{
	if (r->o->pid && !r->ready && r->server.ready)
		on_ready(r);
	uint64_t now = pb_now_ns();
	r->leave |= r->server.leave || r->o->leave || r->drain.full ||
		    (r->o->for_ns && r->ready && now - r->ready >= r->o->for_ns);
	if (r->leave) {
		r->asked = r->asked ? r->asked : now;
		record_server_detach(&r->server);
	}
	if (record_server_has_agent(&r->server)) {
		r->gone_since = 0;
		return false;
	}
	if (!r->server.nr_images)
		return record_running_state(r->target) == RECORD_ENDED ||
		       now - r->injected > AGENT_NS;
	return r->leave || !r->o->children || !others_live(r);
}

/* Reports a detach that takes long, for example because a thread doesn't leave a traced call. Also
 * reports that a second ^C has ended the wait. */
static void report_wait(struct run *r)
{
	bool agent = record_server_has_agent(&r->server);
	char held[120];

	if (r->stop && agent) {
		clear_progress(r);
		record_error("stopped waiting for %s (%d); its agent completes the detach by "
			     "itself", r->out.name, (int)r->out.pid);
	} else if (!r->reported_wait && r->asked && pb_now_ns() - r->asked > SLOW_NS && agent) {
		r->reported_wait = true;
		clear_progress(r);
		if (!record_held(r->out.pid, held, sizeof(held)))
			snprintf(held, sizeof(held), "%s", r->ready ?
				 "its threads must leave traced code" :
				 "its agent is still starting");
		record_error("%s (%d) isn't detached yet: %s; press ^C to stop waiting",
			     r->out.name, (int)r->out.pid, held);
	}
}

static void serve_attached(struct run *r)
{
	static const char *const ends[] = {
		[RECORD_RUNS] = "runs on",
		[RECORD_RUNS_OTHER] = "runs another program, untraced",
		[RECORD_ENDED] = "has ended",
	};
	uint64_t end;

	while (!r->stop && !is_over(r)) {
		poll_once(r, TICK_MS);
		each_tick(r);
		report_wait(r);
	}
	clear_progress(r);
	if (r->leave && r->o->let_go) {
		record_inherited_leave(r->o, &r->server, r->out.pid, r->signals, r->stop);
		reap(r);
	}
	if (r->o->pid && !r->leave) {
		/* if the process is ending, its connection ends a little earlier */
		record_running_wait(r->target, END_MS);
		end = pb_now_ns() + DYING_NS;
		while (!r->leave && !r->server.leave && !r->o->leave &&
		       record_running_dies(r->target) && pb_now_ns() < end)
			poll_once(r, TICK_MS);
	}
	if (r->o->pid)
		r->out.left = ends[record_running_state(r->target)];
	else if (!r->out.exited)
		r->out.left = "runs on";
}

/* Finds the name of a program that the recorder has started. If the program has ended, its PID may
 * be that of another process. */
static void name_program(struct run *r)
{
	snprintf(r->out.name, sizeof(r->out.name), "%.15s", record_base_name(r->target->path));
	if (!r->out.exited)
		record_read_comm(r->out.pid, r->out.pid, r->out.name);
	pb_text_clean(r->out.name, '?', 0);
}

static void serve(struct run *r)
{
	uint64_t ended = 0;

	r->next_second = pb_now_ns() + 1000000000;
	if (r->o->pid) {
		serve_attached(r);
		return;
	}
	while (!r->stop) {
		if (r->server.leave || r->o->leave) {
			name_program(r);
			serve_attached(r);
			return;
		}
		poll_once(r, ended ? TICK_MS / 2 : TICK_MS);
		each_tick(r);
		if (!r->out.exited)
			continue;
		/* handle the messages that were sent before the program's end */
		for (int i = 0; i < 1000 && poll_once(r, 0); i++)
			;
		ended = ended ? ended : pb_now_ns();
		if (!others_live(r))
			break;
		report_others(r, ended);
	}
	clear_progress(r);
}

/* --- the whole run ------------------------------------------------------ */

static int start_recording(struct run *r, const struct record_target *t,
			   struct record_modules *m)
{
	char err[PATH_MAX + 200];

	if (pb_datadir_open(&r->datadir, r->o->dir, err, sizeof(err)))
		return record_error("%s", err);
	int ret = record_modules_write(m, &r->datadir);
	if (!ret)
		ret = record_session_meta(r->o, t, &r->datadir);
	if (!ret)
		ret = pb_datadir_clock(&r->datadir);
	if (!ret)
		ret = pb_drain_start(&r->drain);
	if (!ret && (ret = pb_open_chunks_start(&r->open)))
		pb_drain_finish(&r->drain);
	if (ret) {
		pb_datadir_undo(&r->datadir);
		return record_error("%s: can't start the recording: %s%s", r->o->dir,
				    strerror(-ret), pb_say_limit(ret));
	}
	return 0;
}

static void finish_drain(struct run *r)
{
	pb_open_chunks_stop(&r->open);
	pb_drain_finish(&r->drain);
	pb_open_chunks_remove(&r->open);
}

static int listen_to_agents(struct run *r)
{
	int ret = record_listen_start(&r->server);

	return ret ? record_error("can't wait for the program's connection: %s%s", strerror(-ret),
				  pb_say_limit(ret)) : 0;
}

/* Ends the recording: writes the rest of its data, and prints the closing lines. Returns the exit
 * status. */
static int finish(struct run *r)
{
	int ret;

	/* read the pending signals: a ^C that came before the end must not stop the output of the
	 * rest, as a later one does (cli/give_up.h) */
	on_signal(r);
	if (r->o->on_end)
		r->o->on_end(r->o->round_arg);
	record_listen_stop(&r->server);
	record_flight_stop(r->server.flight);
	r->server.flight = NULL;
	finish_drain(r);
	record_threads_poll(&r->threads, &r->server, false);
	report_limits(r);
	if (r->o->pid && !r->ready) {
		pb_datadir_undo(&r->datadir);
		return record_nothing(&r->server, &r->out);
	}
	r->o->recorded = r->server.nr_images > 0;
	r->o->write_error = r->drain.error;
	ret = record_end(&r->server, &r->drain, &r->threads, &r->out);
	pb_datadir_commit(&r->datadir);	/* try again, because the first call may have found no free
					 * descriptor */
	pb_datadir_close(&r->datadir);
	return ret;
}

/* Finds a thread's name for a snapshot (record_name_fn). */
static void thread_name(void *threads, uint32_t index, const struct pb_ring_thread *t, char *comm)
{
	record_threads_name(threads, index, comm);
}

static int run(struct run *r, const struct record_target *t, struct record_modules *m, char **env)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int ret;

	sigaction(SIGPIPE, &ignore, &r->old_pipe);
	ret = start_recording(r, t, m);
	if (ret)
		return ret;
	ret = listen_to_agents(r);
	if (!ret)
		ret = r->o->pid ? attach(r) : start_program(r, t, env);
	if (ret) {
		finish_drain(r);
		pb_datadir_undo(&r->datadir);
		return ret;
	}
	if (!r->o->pid)
		pb_datadir_commit(&r->datadir);
	/* read the clocks a second time: from two readings on, readers can convert ticks to
	 * nanoseconds */
	pb_datadir_clock(&r->datadir);
	record_listen_raise_limit();
	/* no snapshots beside a temporary directory, which is removed at the end */
	if (r->o->mode == PB_RING_OVERWRITE && !r->o->temporary) {
		r->server.flight = record_flight_start(&r->server, thread_name, &r->threads);
		if (!r->server.flight)
			record_error("no snapshots are taken: %s%s; patchbay snapshot still takes "
				     "one", strerror(errno), pb_say_limit(errno));
	}
	if (!r->o->pid)
		record_flight_begin(r->server.flight);
	serve(r);
	ret = finish(r);
	record_serve_left(&r->server, &r->out);
	return ret;
}

int record_run(struct record_options *o, const struct record_target *t,
	       struct record_session *s, struct record_ring *ring, struct record_modules *m,
	       const struct record_signals *signals)
{
	char **env = record_session_environ(s, t->exe);
	struct run *r = calloc(1, sizeof(*r));
	int ret;

	if (!r || !env)
		return record_error("out of memory");
	r->o = o;
	r->signals = signals;
	r->target = t;
	r->server = (struct record_server){
		.options = o, .target = t, .session = s, .ring = ring, .datadir = &r->datadir,
		.modules = m, .drain = &r->drain, .since = (uint64_t)time(NULL),
	};
	r->drain = (struct pb_drain){
		.ring = ring->map, .ring_fd = ring->fd, .geometry = ring->geometry,
		.datadir = &r->datadir, .max_size = o->max_size, .followed = o->round,
		.threads_alive = threads_alive, .arg = ring,
	};
	r->open = (struct pb_open_chunks){ &r->drain, o->round, o->round_arg };
	ret = run(r, t, m, env);
	record_server_close(&r->server);
	free(r->drain.discarded);
	free(r->threads.comm);
	free(r);
	free(env);
	return ret;
}
