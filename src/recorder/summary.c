/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ends a recording: writes the last meta records and prints the closing lines. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/datadir.h"
#include "abi/messages.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "reader/counts.h"
#include "reader/datadir_writer.h"
#include "reader/drain.h"
#include "reader/kept_calls.h"
#include "reader/last_calls.h"
#include "reader/say.h"
#include "recorder/bpf_hooks.h"
#include "recorder/connection.h"
#include "recorder/hints.h"
#include "recorder/modules.h"
#include "recorder/recording.h"
#include "recorder/ring_memory.h"
#include "recorder/server.h"
#include "recorder/session_dir.h"
#include "recorder/settings.h"
#include "recorder/summary.h"
#include "recorder/texts.h"
#include "recorder/thread_names.h"

/* Returns the number of the thread's calls that the drain thread discarded. */
static uint64_t discarded_of(const struct record_server *s, const struct pb_drain *d,
			     uint32_t serial)
{
	return serial <= s->ring->geometry.nr_threads ? d->discarded[serial - 1] : 0;
}

/* Writes the meta records of threads. Calls that the drain thread discarded count as lost. If their
 * thread has no row in the ring's table, they count only in `end`. Open calls without a record
 * count as lost in `end`, but not in the threads' records: a coroutine's
 * call may be late in one thread and be regained in another. */
static void write_threads(struct record_server *s, struct pb_drain *d, struct record_threads *t,
			  struct pb_meta_end *end)
{
	const volatile struct pb_ring *ring = s->ring->map;
	uint64_t late = ring->calls_late, regained = ring->calls_regained;
	uint64_t discarded = d->discarded_calls, named = 0;
	uint32_t nr = record_ring_nr_threads(s->ring);

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_ring_thread copy;
		const struct record_image *im;
		const char *comm;

		memcpy(&copy, record_ring_thread(s->ring, i), sizeof(copy));
		pb_barrier();	/* check and use the copy, because the ring may change */
		im = record_server_image(s, copy.image);
		/* if a thread ended before its name was read, it gets the name of its image */
		comm = t->comm && t->comm[i][0] ? t->comm[i] : im ? im->comm : "";
		if (!copy.serial)
			continue;
		struct pb_meta_discarded gone = {
			.serial = copy.serial, .error = (uint32_t)-d->error,
			.calls = discarded_of(s, d, copy.serial),
		};
		named += gone.calls;
		copy.lost += gone.calls;
		end->lost += copy.lost;
		late += copy.late;
		regained += copy.regained;
		end->no_return += copy.no_return;
		end->threads++;
		pb_datadir_meta(s->datadir, PB_META_THREAD, &copy, sizeof(copy), comm,
				strlen(comm) + 1);
		if (gone.calls)
			pb_datadir_meta(s->datadir, PB_META_DISCARDED, &gone, sizeof(gone), NULL,
					0);
	}
	end->lost += discarded > named ? discarded - named : 0;
	end->lost += pb_ring_open_late(late, regained);
}

/* Returns the number of agents that gave up for this reason before they had the ring. Each of them
 * wrote one byte, the reason, to PB_MISSED_FILE. */
static uint64_t missed_in_file(const struct record_session *s, char reason)
{
	char path[sizeof(s->dir) + sizeof(PB_MISSED_FILE) + 1], bytes[4096];
	uint64_t nr = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", s->dir, PB_MISSED_FILE);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < n; i++)
			nr += bytes[i] == reason;
	if (fd >= 0)
		close(fd);
	return nr;
}

static void note_untraced(struct record_server *s, uint64_t nr, const char *what, const char *why)
{
	char text[800], number[32];

	if (!nr)
		return;
	record_format_number(nr, number, sizeof(number));
	snprintf(text, sizeof(text), "%s %s%s %s not traced: %s", number, what, pb_plural(nr),
		 nr == 1 ? "is" : "are", why);
	pb_datadir_note(s->datadir, text);
	record_error("%s", text);
}

/* Reports programs into which the agent can't be loaded, because of their files. Names one file of
 * each kind. Returns the number of programs. */
static uint64_t unfit_note(struct record_server *s, const struct pb_ring *ring)
{
	static const char *const kinds[PB_UNFIT_NR] = {
		[PB_UNFIT_STATIC] = "static", [PB_UNFIT_LOADER] = "static-pie or itself a loader",
		[PB_UNFIT_SETID] = "setuid or setgid", [PB_UNFIT_MACHINE] = "not for x86-64",
		[PB_UNFIT_LIBC] = "not linked with glibc", [PB_UNFIT_UNREADABLE] = "unreadable",
		[PB_UNFIT_FORMAT] = "neither ELF nor a script",
	};
	char why[700] = "the agent can't be loaded";
	uint64_t nr = 0;

	for (int i = 0; i < PB_UNFIT_NR; i++) {
		struct pb_ring_unfit u = ring->unfit[i];
		size_t len = strlen(why);
		char number[32];

		if (!u.images)
			continue;
		record_format_number(u.images, number, sizeof(number));
		len += (size_t)snprintf(why + len, sizeof(why) - len, "%s %s %s", nr ? "," : ":",
					number, kinds[i]);
		nr += u.images;
		u.name[sizeof(u.name) - 1] = 0;
		pb_text_clean(u.name, '?', 0);
		if (u.named == PB_UNFIT_NAMED && *u.name)
			snprintf(why + len, sizeof(why) - len, " (%s%s)",
				 u.images > 1 ? "such as " : "", u.name);
	}
	note_untraced(s, nr, "program", why);
	return nr;
}

/* Reports programs and libraries that ran untraced. Returns the number of programs. */
static uint64_t untraced_notes(struct record_server *s, const struct pb_ring *ring)
{
	static const char silent[] =
		"the recorder was stopped, or too slow to answer within 150 ms";
	uint64_t missed = ring->missed_images + missed_in_file(s->session, PB_MISSED_SILENT);
	uint64_t cramped = ring->cramped_images + missed_in_file(s->session, PB_MISSED_CRAMPED);
	uint64_t fileless = missed_in_file(s->session, PB_MISSED_FILES);
	uint64_t shadowed = missed_in_file(s->session, PB_MISSED_SHADOW);
	uint64_t unfit = unfit_note(s, ring);

	note_untraced(s, missed, "program", silent);
	note_untraced(s, s->nr_refused, "program or library load", "the recorder had no room for "
		      "the agent's connection, because too many processes were traced at once");
	note_untraced(s, cramped, "program", "no memory for the agent (the limits of address "
		      "space and data may be too low: RLIMIT_AS, RLIMIT_DATA), or no room for its "
		      "variables beside long arguments");
	note_untraced(s, ring->remote_images, "program",
		      "started as another user or in another root directory, from which the agent "
		      "or the recorder can't be reached");
	note_untraced(s, ring->nested_images, "program",
		      "started by another recorder, which records it itself");
	note_untraced(s, fileless, "program",
		      "no file descriptor is left for the agent (see ulimit -n)");
	note_untraced(s, shadowed, "program", "started with a shadow stack, with which functions "
		      "can't be patched; GLIBC_TUNABLES=glibc.cpu.x86_shstk=off turns it off");
	note_untraced(s, ring->missed_modules, "library load", silent);
	note_untraced(s, ring->remote_modules, "library load",
		      "the process has changed its user or its root directory, and can't reach the "
		      "recorder");
	note_untraced(s, ring->sandboxed_images, "program",
		      "started under a seccomp filter, which may forbid what tracing needs");
	return unfit + missed + cramped + fileless + shadowed + ring->remote_images +
	       ring->nested_images + ring->sandboxed_images + s->nr_refused;
}

/* Reports the errors and losses that engines noted in the ring's header. Returns the number of
 * programs that ran untraced. */
static uint64_t engine_notes(struct record_server *s, struct pb_meta_end *end)
{
	struct pb_ring ring;
	char reason[sizeof(ring.latch_reason)], text[200];
	uint64_t untraced;

	memcpy(&ring, s->ring->map, sizeof(ring));
	pb_barrier();
	if (ring.latched) {
		memcpy(reason, ring.latch_reason, sizeof(reason));
		reason[sizeof(reason) - 1] = 0;
		snprintf(text, sizeof(text), "tracing turned itself off: %s", reason);
		pb_datadir_note(s->datadir, text);
		record_error("%s", text);
		end->flags |= PB_END_LATCHED;
	}
	end->lost += ring.calls_lost;
	end->no_return += ring.calls_no_return;
	end->chunks_overwritten = ring.chunks_overwritten;
	untraced = untraced_notes(s, &ring);
	if (ring.waits_in_vain) {
		snprintf(text, sizeof(text),
			 "calls are lost although --no-loss was given: %u time%s, the recorder was "
			 "stopped or got no processor for 150 ms", ring.waits_in_vain,
			 pb_plural(ring.waits_in_vain));
		pb_datadir_note(s->datadir, text);
		record_error("%s", text);
	}
	end->max_stop_ns = ring.max_stop_ns > s->injector_stop_ns ? ring.max_stop_ns :
			   s->injector_stop_ns;
	end->processes = ring.processes > s->nr_images ? ring.processes : s->nr_images;
	if (ring.threads_lost) {
		snprintf(text, sizeof(text),
			 "%u thread%s no name: the ring's table has room for %u",
			 ring.threads_lost, ring.threads_lost == 1 ? " has" : "s have",
			 s->ring->geometry.nr_threads);
		pb_datadir_note(s->datadir, text);
		record_error("%s", text);
	}
	return untraced;
}

static int exit_status(const struct record_outcome *out)
{
	if (!out->exited)
		return 0;
	return WIFSIGNALED(out->status) ? 128 + WTERMSIG(out->status) : WEXITSTATUS(out->status);
}

/* Returns "SIGINT", or "signal 34" if the signal has no name. */
static const char *signal_name(int sig)
{
	static char text[32];
	const char *name = sigabbrev_np(sig);

	if (name)
		snprintf(text, sizeof(text), "SIG%s", name);
	else
		snprintf(text, sizeof(text), "signal %d", sig);
	return text;
}

/* Writes to `text` the signal that killed the program, and the calls that were open. Returns
 * whether calls were open. */
static bool killed_text(const struct record_server *s, int status, char *text, size_t len)
{
	char calls[220];
	bool open = !pb_last_calls(s->datadir->dir, calls, sizeof(calls)) && *calls;

	snprintf(text, len, "killed by %s%s%s%s; ", signal_name(WTERMSIG(status)),
		 WCOREDUMP(status) ? " (core dumped)" : "", open ? " in " : "", open ? calls : "");
	return open;
}

static void closing_line(struct record_server *s, struct pb_drain *d,
			 const struct record_outcome *out, const struct pb_meta_end *end)
{
	char *next = NULL, calls[32], lost[32], bytes[32], killed[300] = "", more[256] = "";
	const char *view = "report";
	bool all = !d->counts.chunks_missing && !end->overwritten && !end->chunks_overwritten;
	uint64_t kept;
	bool exact;
	size_t len;

	if (s->options->quiet)
		return;
	kept = pb_counts_calls(&d->counts, all);
	/* If calls are missing with --overwrite, count the kept calls by reading the data again.
	 * This takes only a short time, because the data is no larger than the buffer. */
	exact = all || (s->options->mode == PB_RING_OVERWRITE &&
			!pb_kept_calls(s->datadir->dir, &kept));
	record_format_number(kept, calls, sizeof(calls));
	record_format_number(end->lost, lost, sizeof(lost));
	record_format_bytes(end->bytes, bytes, sizeof(bytes));
	if (out->exited && WIFSIGNALED(out->status) &&
	    killed_text(s, out->status, killed, sizeof(killed)))
		view = "info --open";
	if (out->left)
		snprintf(killed, sizeof(killed), "%s (%d) %s; ", out->name, (int)out->pid,
			 out->left);
	if (end->no_return) {
		char n[32];

		record_format_number(end->no_return, n, sizeof(n));
		snprintf(more, sizeof(more), ", %s without their return", n);
	}
	if (end->overwritten) {
		char n[32];

		record_format_number(end->overwritten, n, sizeof(n));
		snprintf(more + strlen(more), sizeof(more) - strlen(more),
			 ", older ones overwritten (%s of them by --max-size)", n);
	} else if (!all)
		strcat(more, s->options->mode == PB_RING_OVERWRITE ? ", older ones overwritten" :
		       ", some missing");
	FILE *f = open_memstream(&next, &len);
	if (f && strcmp(s->datadir->dir, PB_DEFAULT_DIR)) {
		fputs(" -d ", f);
		record_print_quoted(f, s->datadir->dir);
	}
	if (f)
		fclose(f);
	pb_say(NULL, "%s%s%s call%s, %s lost%s, %s in %s; next: patchbay %s%s",
	       killed, exact ? "" : "about ", calls, pb_plural(kept), lost, more, bytes,
	       s->datadir->dir, view, next ?: "");
	free(next);
}

/* Writes the modules that could not be written before. Returns 1 after an error. If chunks could
 * not be written either, a line has named the cause, so the error is only noted in the data. */
static int write_modules(struct record_server *s, const struct pb_drain *d)
{
	int ret = record_modules_write(s->modules, s->datadir);
	char text[200];

	if (!ret)
		return 0;
	snprintf(text, sizeof(text), "functions have no names, because the analysis of their "
		 "module can't be written: %s%s", strerror(-ret), pb_say_limit(ret));
	pb_datadir_note(s->datadir, text);
	return d->error ? 1 : record_error("%s", text);
}

#define NOT_LOADED	127	/* exit status of a loader that refuses a program */

/* No agent has sent anything. A signal may have killed the program before its loader ran. Or the
 * loader has refused the program, for example because of a missing library. If `untraced` isn't 0,
 * the agent ran, but gave up, and untraced_notes() has printed the reason. */
static void never_traced(const struct record_outcome *out, uint64_t untraced)
{
	if (out->exited && WIFSIGNALED(out->status))
		record_error("%s killed the program before it was traced; nothing was recorded",
			     signal_name(WTERMSIG(out->status)));
	else if (untraced)
		record_error("nothing was recorded");
	else if (out->exited && WEXITSTATUS(out->status) == NOT_LOADED)
		record_error("the program ended with status 127 before it was traced, like a "
			     "program that its loader refuses (the loader's message says why); "
			     "nothing was recorded");
	else
		record_error("the program ran without the agent (did its loader ignore "
			     "LD_PRELOAD?); nothing was recorded");
}

int record_end(struct record_server *s, struct pb_drain *d, struct record_threads *t,
	       const struct record_outcome *out)
{
	struct pb_meta_end end = { 0 };
	uint64_t untraced;
	int status = exit_status(out), error = d->error, nameless = write_modules(s, d);

	write_threads(s, d, t, &end);
	untraced = engine_notes(s, &end);
	if (out->exited) {
		struct pb_meta_exit e = {
			.pid = (uint32_t)out->pid, .status = out->status, .clock = pb_cpu_counter(),
		};
		pb_datadir_meta(s->datadir, PB_META_EXIT, &e, sizeof(e), NULL, 0);
	}
	pb_datadir_clock(s->datadir);
	end.records = d->counts.records;
	end.overwritten = d->overwritten_calls;
	end.bytes = s->datadir->chunks_size;
	end.flags |= (d->full ? PB_END_MAX_SIZE : 0) | (error ? PB_END_DISK_FULL : 0);
	int ret = pb_datadir_meta(s->datadir, PB_META_END, &end, sizeof(end), NULL, 0);
	if (!s->nr_images) {
		never_traced(out, untraced);
		return status ? status : 1;
	}
	if (!((const struct pb_ring *)s->ring->map)->remote_modules)
		record_hint_modules(s);
	record_hint_runtimes(s);
	record_hint_unknown(s);
	record_hint_hooks(s);
	if (!s->options->quiet)
		record_hint_launcher(s, pb_counts_calls(&d->counts, true));
	closing_line(s, d, out, &end);
	return status ? status : error || nameless || ret || s->agent_error;
}

int record_nothing(const struct record_server *s, const struct record_outcome *out)
{
	const char *left = out->left;
	bool runs_on = !strcmp(left, "runs on");

	if (runs_on)
		left = !s->nr_images ?
		       "isn't traced, because its agent can't reach the recorder" :
		       __atomic_load_n(&s->ring->map->silent, __ATOMIC_RELAXED) ?
		       "isn't traced, because the recorder was too slow to answer its agent" :
		       "isn't traced";
	/* if the process has ended or runs another program, its connection broke for this reason,
	 * and the connection's error adds nothing to it */
	if (s->start_error && runs_on)
		return record_error("%s (%d) %s: the connection to its agent failed: %s; nothing "
				    "was recorded", out->name, (int)out->pid, left,
				    strerror(-s->start_error));
	return record_error("%s (%d) %s; nothing was recorded", out->name, (int)out->pid, left);
}
