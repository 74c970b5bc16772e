/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads' names while they live; what is written and said at the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/record.h"
#include "cli/record_server.h"

#define RENEW_MAX 256		/* names read again in one round */

static const struct pb_ring_thread *ring_thread(const struct record_ring *r, uint32_t i)
{
	return (const void *)((const char *)r->map + r->geometry.threads_offset +
			      i * sizeof(struct pb_ring_thread));
}

static uint32_t ring_nr_threads(const struct record_ring *r)
{
	uint32_t n = __atomic_load_n(&r->map->next_serial, __ATOMIC_ACQUIRE);

	return n < r->geometry.nr_threads ? n : r->geometry.nr_threads;
}

void record_read_comm(pid_t pid, pid_t tid, char *comm)
{
	char path[64], buf[RECORD_COMM + 1];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, buf, RECORD_COMM);
	close(fd);
	if (n <= 1)
		return;
	buf[n - 1] = 0;		/* its newline */
	memcpy(comm, buf, (size_t)n);
}

/* A thread that went on to another program by exec has that one's name now;
 * the kernel changes the executable before the name. */
static bool still_runs(const struct record_server *s, const struct pb_ring_thread *t)
{
	const struct record_image *im = record_server_image(s, t->image);
	char link[40], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/%u/exe", t->pid);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	return im && !strcmp(path, im->path);
}

void record_threads_poll(struct record_threads *t, const struct record_server *s, bool renew)
{
	const struct record_ring *r = s->ring;
	uint32_t nr = ring_nr_threads(r), from = t->seen;

	if (!t->comm)
		t->comm = calloc(RECORD_NR_THREADS, sizeof(*t->comm));
	if (!t->comm)
		return;
	if (renew)
		from = nr > RENEW_MAX ? nr - RENEW_MAX : 0;
	if (from > t->seen)
		from = t->seen;
	for (uint32_t i = from; i < nr; i++) {
		const struct pb_ring_thread *thread = ring_thread(r, i);
		char comm[RECORD_COMM] = "";

		if (!thread->serial)
			continue;
		record_read_comm((pid_t)thread->pid, (pid_t)thread->tid, comm);
		if (*comm && still_runs(s, thread))
			memcpy(t->comm[i], comm, sizeof(comm));
	}
	t->seen = nr;
}

uint64_t record_threads_lost(const struct record_ring *r)
{
	uint64_t lost = 0;

	for (uint32_t i = 0, n = ring_nr_threads(r); i < n; i++)
		lost += __atomic_load_n(&ring_thread(r, i)->lost, __ATOMIC_RELAXED);
	return lost;
}

void record_format_number(uint64_t n, char *buf, size_t len)
{
	char digits[24], out[32], *p = out;
	int nr = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);

	for (int i = 0; i < nr; i++) {
		if (i && (nr - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = 0;
	snprintf(buf, len, "%s", out);
}

void record_format_bytes(uint64_t n, char *buf, size_t len)
{
	static const char *const units[] = { "bytes", "kB", "MB", "GB", "TB", "PB", "EB" };
	double v = (double)n;
	unsigned u = 0;

	while (v >= 999.95 && u + 1 < pb_array_size(units)) {
		v /= 1000;
		u++;
	}
	snprintf(buf, len, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* Discarded records are lost ones to every view. */
static void write_threads(struct record_server *s, struct pb_drain *d, struct record_threads *t,
			  struct pb_meta_end *end)
{
	uint32_t nr = ring_nr_threads(s->ring);

	for (uint32_t i = 0; i < nr; i++) {
		struct pb_ring_thread copy;
		const struct record_image *im;
		const char *comm;

		memcpy(&copy, ring_thread(s->ring, i), sizeof(copy));
		pb_barrier();	/* what is checked is what is used */
		im = record_server_image(s, copy.image);
		/* one that was gone too soon had its program's name, if it took no other */
		comm = t->comm && t->comm[i][0] ? t->comm[i] : im ? im->comm : "";
		if (!copy.serial)
			continue;
		if (copy.serial <= s->ring->geometry.nr_threads)
			copy.lost += d->discarded[copy.serial - 1];
		end->lost += copy.lost;
		end->no_return += copy.no_return;
		end->threads++;
		pb_datadir_meta(s->datadir, PB_META_THREAD, &copy, sizeof(copy), comm,
				strlen(comm) + 1);
	}
}

/* What the ring's header says went wrong in an engine. */
static void engine_notes(struct record_server *s, struct pb_meta_end *end)
{
	struct pb_ring ring;
	char reason[sizeof(ring.latch_reason)], text[200];

	memcpy(&ring, s->ring->map, sizeof(ring));
	pb_barrier();
	if (ring.latched) {
		memcpy(reason, ring.latch_reason, sizeof(reason));
		reason[sizeof(reason) - 1] = 0;
		for (char *p = reason; *p; p++)
			if ((unsigned char)*p < ' ' || *p == 127)
				*p = ' ';
		snprintf(text, sizeof(text), "tracing turned itself off: %s", reason);
		pb_datadir_note(s->datadir, text);
		record_error("%s", text);
		end->flags |= PB_END_LATCHED;
	}
	end->max_stop_ns = ring.max_stop_ns;
	end->processes = ring.processes > s->nr_images ? ring.processes : s->nr_images;
	if (ring.threads_lost) {
		snprintf(text, sizeof(text), "%u threads have no name, and losses that aren't told: the ring has room "
			 "for %u",
			 ring.threads_lost, s->ring->geometry.nr_threads);
		pb_datadir_note(s->datadir, text);
		record_error("%s", text);
	}
}

static int exit_status(const struct record_outcome *out)
{
	if (!out->exited)
		return 0;
	return WIFSIGNALED(out->status) ? 128 + WTERMSIG(out->status) : WEXITSTATUS(out->status);
}

static void closing_line(struct record_server *s, struct pb_drain *d,
			 const struct record_outcome *out, const struct pb_meta_end *end)
{
	char calls[32], lost[32], bytes[32], killed[64] = "", more[128] = "";
	bool all = !end->lost && !d->counts.chunks_missing;

	if (s->options->quiet)
		return;
	record_format_number(pb_counts_calls(&d->counts, all), calls, sizeof(calls));
	record_format_number(end->lost, lost, sizeof(lost));
	record_format_bytes(end->bytes, bytes, sizeof(bytes));
	if (out->exited && WIFSIGNALED(out->status))
		snprintf(killed, sizeof(killed), "killed by SIG%s%s; ",
			 sigabbrev_np(WTERMSIG(out->status)) ?: "?",
			 WCOREDUMP(out->status) ? " (core dumped)" : "");
	if (end->no_return) {
		char n[32];

		record_format_number(end->no_return, n, sizeof(n));
		snprintf(more, sizeof(more), ", %s without their return", n);
	}
	if (d->counts.chunks_missing)
		strcat(more, s->options->mode == PB_RING_OVERWRITE ? ", older ones overwritten" :
		       ", some missing");
	fprintf(stderr, "patchbay: %s%s%s calls, %s lost%s, %s in %s; next: patchbay report",
		killed, all ? "" : "about ", calls, lost, more, bytes, s->datadir->dir);
	if (strcmp(s->datadir->dir, PB_DEFAULT_DIR)) {
		fputs(" -d ", stderr);
		record_print_quoted(stderr, s->datadir->dir);
	}
	putc('\n', stderr);
}

int record_end(struct record_server *s, struct pb_drain *d, struct record_threads *t,
	       const struct record_outcome *out)
{
	struct pb_meta_end end = { 0 };
	int status = exit_status(out), error = d->error;

	write_threads(s, d, t, &end);
	engine_notes(s, &end);
	if (out->exited) {
		struct pb_meta_exit e = {
			.pid = (uint32_t)out->pid, .status = out->status, .clock = pb_rdtsc(),
		};
		pb_datadir_meta(s->datadir, PB_META_EXIT, &e, sizeof(e), NULL, 0);
	}
	pb_datadir_clock(s->datadir);
	end.records = d->counts.records;
	end.bytes = s->datadir->chunks_size;
	end.flags |= (d->full ? PB_END_MAX_SIZE : 0) | (error ? PB_END_DISK_FULL : 0);
	int ret = pb_datadir_meta(s->datadir, PB_META_END, &end, sizeof(end), NULL, 0);
	if (!s->nr_images) {
		record_error("the program ran without the agent (did its loader ignore LD_PRELOAD?); "
			     "nothing was recorded");
		return status ? status : 1;
	}
	closing_line(s, d, out, &end);
	return status ? status : error || ret || s->agent_error;
}
