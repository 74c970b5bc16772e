/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chooses the chunks that are decoded (sample.h).
 *
 * The chunks that wait form one list, thread by thread, in the order of time. A chunk's size is the
 * mean of two shares: its share of the time of all chunks, and its share of their bytes. The list
 * is a line on which each chunk has a piece as long as its size. Points at equal distances are put
 * on the line, the first at random. A chunk with a point in its piece is chosen. So each thread and
 * each stretch of time gets points according to its size. A chunk that lasts long matters for the
 * sums of times, although it has no more bytes than others. A chunk that is filled fast matters for
 * the numbers of calls.
 */
#include "reader/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "reader/follow_priv.h"

/* The account holds at most `share` * processors * SAVE_NS, and at least the negative of `share` *
 * processors * DEBT_NS. */
#define SAVE_NS		1e9
#define DEBT_NS		5e8
#define IDLE_SHARE	0.1	/* this share of the time of idle processors may be used, too */
#define PIDS_MAX	64	/* the time of at most this many processes counts */
#define CHUNKS_MIN	16	/* about this many points are put on the line even if the account is
				 * empty */
#define RATE_FIRST	3.0	/* ns for each byte, until the first measurement */
#define MEASURE_MIN	4096	/* a round with fewer bytes isn't measured */
#define SLOW_BYTES	8192	/* A thread is slow if its open chunk grows by at most this many
				 * bytes in a round. The records of a slow thread are decoded before
				 * its chunk is full */

/* --- the account ------------------------------------------------------------- */

static uint64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t clock_of(uint32_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns the processor time of the traced processes that still run. */
static uint64_t process_time(const struct pb_follow *f)
{
	uint32_t pids[PIDS_MAX];
	uint64_t sum = 0;
	size_t nr = 0;

	for (size_t i = f->stream.nr; i-- && nr < PIDS_MAX;) {
		uint32_t pid = f->followers[i].thread->pid;
		size_t n = nr;

		while (n && pids[n - 1] != pid)
			n--;
		if (n)
			continue;
		pids[nr++] = pid;
		sum += clock_of(pid);
	}
	return sum;
}

/* Returns the sum of the idle times of all processors, in ns. If this process may not run on all
 * processors, it can't use their idle time, so the result is 0. */
static double idle_time(const struct pb_sample *s)
{
	char text[64];
	int fd;
	ssize_t n;
	cpu_set_t set;
	const char *idle;

	if (sched_getaffinity(0, sizeof(set), &set) ||
	    (unsigned)CPU_COUNT(&set) < s->processors)
		return 0;
	fd = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	idle = strchr(text, ' ');
	return idle ? strtod(idle, NULL) * 1e9 : 0;
}

static void start(struct pb_sample *s)
{
	s->started = true;
	s->processors = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	s->account = s->limit = s->share * s->processors * SAVE_NS;
	s->rate = RATE_FIRST;
	s->random = s->random ? s->random : pb_cpu_counter() | 1;
	s->cpu_ns = cpu_time();
	s->idle_ns = idle_time(s);
}

/* Updates the account. The last round of a recording may run in another thread than the rounds
 * before, so that round subtracts no time. */
static void update_account(struct pb_sample *s, const struct pb_follow *f)
{
	uint64_t cpu = cpu_time(), process = process_time(f);
	double idle = idle_time(s), debt = -s->limit * (DEBT_NS / SAVE_NS);

	if (process > s->process_ns)
		s->account += s->share * (double)(process - s->process_ns);
	if (idle > s->idle_ns)
		s->account += IDLE_SHARE * (idle - s->idle_ns);
	if (!f->ended)
		s->account -= (double)(cpu - s->cpu_ns);
	s->account = s->account > s->limit ? s->limit : s->account < debt ? debt : s->account;
	s->process_ns = process;
	s->idle_ns = idle;
	s->cpu_ns = cpu;
}

void pb_sample_done(struct pb_sample *s)
{
	uint64_t cpu = cpu_time();

	if (s->round_bytes >= MEASURE_MIN && cpu > s->round_ns)
		s->rate = (3 * s->rate + (double)(cpu - s->round_ns) / (double)s->round_bytes) / 4;
}

/* Returns a random number of [0, 1). */
static double random_fraction(struct pb_sample *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (double)(s->random >> 11) / (double)(1ull << 53);
}

/* --- waiting chunks ---------------------------------------------------------- */

/* The chunks of a thread that its cursor hasn't begun. */
struct waiting {
	struct follower *w;
	struct pb_cursor *c;
	size_t first, end;	/* indices in `refs` */
	size_t nr;		/* number of chunks, from `first` on, that are full and whose end is
				 * known */
	bool open;		/* the last chunk is open */
};

/* True if this round has found the thread's last ready chunk open. Otherwise that chunk has become
 * full since it was copied, and the drain will write it. */
static bool is_there(const struct pb_follow *f, const struct follower *w)
{
	return w->round == f->round && w->open.head.seq == w->refs[w->ready - 1].seq;
}

static struct waiting waiting_of(struct pb_follow *f, size_t i)
{
	struct waiting x = { .w = &f->followers[i], .c = &f->stream.cursors[i] };

	x.first = x.c->next_chunk;
	x.end = x.w->ready;
	if (x.end <= x.first)
		return x;
	x.open = x.w->refs[x.end - 1].offset & PB_CHUNK_REF_OPEN;
	if (x.open && !f->ended && !is_there(f, x.w)) {
		x.open = false;
		x.end--;
	}
	x.nr = x.end - x.first;
	if (x.nr && (x.open || f->ended || x.end == x.w->nr))
		x.nr--;
	return x;
}

/* True if the thread's full chunks may be skipped. A chunk lists the open calls of one stack. So if
 * a thread has several stacks, its calls aren't known after a skipped chunk. */
static bool may_skip(const struct waiting *x)
{
	return x->nr && !x->c->switches;
}

static uint64_t bytes_of(const struct waiting *x, size_t from, size_t to)
{
	uint64_t bytes = 0;

	for (size_t i = from; i < to; i++)
		bytes += x->w->refs[i].used;
	return bytes;
}

/* Returns the number of bytes of the cursor's current chunk that weren't decoded yet. */
static uint64_t rest_of(const struct pb_cursor *c)
{
	return c->in_chunk ? (c->end - c->pos) * 8ull + c->file_left : 0;
}

static uint64_t all_bytes(struct pb_follow *f)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->stream.nr; i++) {
		struct waiting x = waiting_of(f, i);

		bytes += rest_of(x.c) + bytes_of(&x, x.first, x.end);
	}
	return bytes;
}

/* --- parts ------------------------------------------------------------------- */

static struct pb_part *add_part(struct pb_sample *s, enum pb_part_kind kind, size_t thread,
				uint64_t from)
{
	if (s->nr == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct pb_part *parts = realloc(s->parts, room * sizeof(*parts));

		if (!parts)
			return NULL;
		s->parts = parts;
		s->room = room;
	}
	s->parts[s->nr] = (struct pb_part){ .kind = kind, .thread = thread, .from = from,
					    .weight = PB_SAMPLE_UNIT,
					    .time_weight = PB_SAMPLE_UNIT };
	return &s->parts[s->nr++];
}

/* Lets the cursor decode all of the thread's chunks from the chunk at `first` on. */
static int resume(struct pb_sample *s, struct pb_follow *f, size_t i, size_t first)
{
	struct waiting x = waiting_of(f, i);
	struct pb_part *p;

	s->round_bytes += bytes_of(&x, first, x.end);
	if (!x.w->paused) {
		x.c->nr_refs = x.end;
		x.c->more = !f->ended;
		return 0;
	}
	p = add_part(s, PB_PART_RESUME, i, x.w->refs[first].start);
	if (!p)
		return -ENOMEM;
	x.c->more = true;
	p->nr = (uint32_t)(x.end - first);
	p->skipped = x.w->skipped;
	x.w->skipped = 0;
	x.w->paused = false;
	return 0;
}

/* True if the open chunk grows slowly. Notes its size for the next round. */
static bool is_slow(struct waiting *x)
{
	const struct pb_chunk_ref *r = &x->w->refs[x->end - 1];
	uint32_t before = x->w->open_seq == r->seq ? x->w->open_used : 0;

	x->w->open_seq = r->seq;
	x->w->open_used = r->used;
	return r->used - before <= SLOW_BYTES;
}

/* Decides which of a thread's waiting chunks are decoded in this round. Without `hold`, all of them
 * are. With `hold`, they wait for a later round, except in two cases: the thread uses several
 * stacks; or it has no full chunk whose end is known, and its open chunk, if any, grows slowly. */
static int begin_thread(struct pb_sample *s, struct pb_follow *f, size_t i, bool hold)
{
	struct waiting x = waiting_of(f, i);

	x.c->nr_refs = x.first;
	if (x.end == x.first)
		return 0;
	if (!hold || x.c->switches || (!x.nr && (!x.open || is_slow(&x))))
		return resume(s, f, i, x.first);
	x.c->more = true;
	return 0;
}

/* --- the choice -------------------------------------------------------------- */

struct choice {
	struct pb_sample *s;
	struct pb_follow *f;
	/* over all chunks that may be skipped: the sums of their times and bytes, their number */
	double span, bytes;
	size_t nr;
	double step, at, end;	/* step: the distance of two points. at: the next point. end: the
				 * end of the pieces so far */
};

static double length(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) : 1;
}

static double span_of(const struct waiting *x, size_t n)
{
	const struct pb_chunk_ref *r = &x->w->refs[n];

	return length(r->start, r[1].start);
}

/* True if the chunk is chosen, because there is a point in its piece. Sets *chance to the
 * probability of a point there. A piece that is longer than the distance of two points always has a
 * point. */
static bool is_chosen(struct choice *h, const struct waiting *x, size_t n, double *chance)
{
	double size = (span_of(x, n) / h->span + x->w->refs[n].used / h->bytes) / 2;
	bool chosen = false;

	h->end += size;
	for (; h->at < h->end; h->at += h->step)
		chosen = true;
	*chance = size < h->step ? size / h->step : 1;
	return chosen;
}

/* Chooses some of a thread's full chunks, and removes the other full chunks from its list. */
static int choose_of(struct choice *h, size_t i)
{
	struct waiting x = waiting_of(h->f, i);
	size_t to = x.first;
	struct pb_part *p;

	if (!may_skip(&x))
		return 0;
	if (!add_part(h->s, PB_PART_PAUSE, i, x.w->refs[x.first].start))
		return -ENOMEM;
	x.w->paused = true;
	for (size_t n = x.first; n < x.first + x.nr; n++) {
		struct pb_chunk_ref r = x.w->refs[n];
		double chance;

		if (!is_chosen(h, &x, n, &chance)) {
			x.w->skipped++;
			h->s->skipped += r.used;
			continue;
		}
		p = add_part(h->s, PB_PART_READ, i, r.start);
		if (!p)
			return -ENOMEM;
		p->nr = 1;
		p->to = x.w->refs[n + 1].start;
		p->times = 1 / chance;
		p->bytes = r.used;
		p->skipped = x.w->skipped;
		x.w->skipped = 0;
		h->s->round_bytes += r.used;
		x.w->refs[to++] = r;
	}
	memmove(x.w->refs + to, x.w->refs + x.first + x.nr,
		(x.w->nr - x.first - x.nr) * sizeof(*x.w->refs));
	x.w->nr -= x.first + x.nr - to;
	x.w->ready -= x.first + x.nr - to;
	/* if a full chunk is left, its end isn't known, so it can't be sampled: decode it */
	return x.first + x.nr < x.end && !x.open ? resume(h->s, h->f, i, to) : 0;
}

/* Computes the weights of the chosen chunks. With these weights, the sums of the chosen chunks'
 * bytes and times are equal to the sums over all chunks that may be skipped. */
static void weigh(struct choice *h)
{
	struct pb_sample *s = h->s;
	double bytes = 0, span = 0;

	for (size_t i = 0; i < s->nr; i++) {
		const struct pb_part *p = &s->parts[i];

		if (p->kind != PB_PART_READ)
			continue;
		bytes += p->times * p->bytes;
		span += p->times * length(p->from, p->to);
	}
	for (size_t i = 0; i < s->nr; i++) {
		struct pb_part *p = &s->parts[i];
		double unit = PB_SAMPLE_UNIT * p->times;

		if (p->kind != PB_PART_READ)
			continue;
		p->weight = (uint64_t)(unit * h->bytes / (bytes > 0 ? bytes : 1) + 0.5);
		p->time_weight = (uint64_t)(unit * h->span / span + 0.5);
	}
}

/* Sums up the chunks that may be skipped. */
static void measure(struct choice *h)
{
	for (size_t i = 0; i < h->f->stream.nr; i++) {
		struct waiting x = waiting_of(h->f, i);

		if (!may_skip(&x))
			continue;
		h->nr += x.nr;
		h->bytes += (double)bytes_of(&x, x.first, x.first + x.nr);
		for (size_t n = x.first; n < x.first + x.nr; n++)
			h->span += span_of(&x, n);
	}
	h->bytes = h->bytes > 0 ? h->bytes : 1;
}

static int choose(struct pb_sample *s, struct pb_follow *f)
{
	struct choice h = { .s = s, .f = f };
	double points;
	int ret = 0;

	measure(&h);
	if (h.nr <= CHUNKS_MIN) {
		/* there are few chunks: decode all of them */
		for (size_t i = 0; !ret && i < f->stream.nr; i++) {
			struct waiting x = waiting_of(f, i);

			ret = may_skip(&x) ? resume(s, f, i, x.first) : 0;
		}
		return ret;
	}
	points = (s->account / s->rate - (double)s->round_bytes) * (double)h.nr / h.bytes;
	h.step = 1 / (points < CHUNKS_MIN ? CHUNKS_MIN : points);
	h.at = random_fraction(s) * h.step;
	for (size_t i = 0; !ret && i < f->stream.nr; i++)
		ret = choose_of(&h, i);
	weigh(&h);
	return ret;
}

/* --- rounds ------------------------------------------------------------------ */

/* True if no chunk may be skipped. If threads share stacks, each thread's calls depend on the
 * chunks of the other threads. If a chunk is missing from the recording itself, calls are counted
 * by other rules (decode.h). These rules must not change while calls are open. */
static bool is_exact(const struct pb_sample *s, const struct pb_follow *f)
{
	return s->share >= 1 || f->stream.shared || f->stream.by_time || !f->data->whole;
}

int pb_sample_round(struct pb_sample *s, struct pb_follow *f, bool due)
{
	uint64_t bytes = all_bytes(f);
	int ret = 0;

	if (!s->started)
		start(s);
	update_account(s, f);
	s->nr = s->next = 0;
	s->round_ns = s->cpu_ns;
	s->round_bytes = 0;
	for (size_t i = 0; i < f->stream.nr; i++)
		s->round_bytes += rest_of(&f->stream.cursors[i]);
	s->holds = !is_exact(s, f) && (double)bytes * s->rate > s->account;
	for (size_t i = 0; !ret && i < f->stream.nr; i++)
		ret = begin_thread(s, f, i, s->holds);
	if (!ret && s->holds && due)
		ret = choose(s, f);
	s->decoded += s->round_bytes;
	if (!f->stream.by_time)
		pb_stream_restart(&f->stream, false, UINT64_MAX);
	return ret;
}

const struct pb_part *pb_sample_part(struct pb_sample *s, struct pb_follow *f)
{
	struct pb_part *p;
	struct pb_cursor *c;

	if (s->next == s->nr)
		return NULL;
	p = &s->parts[s->next++];
	c = &f->stream.cursors[p->thread];
	c->skipped += p->skipped;
	c->nr_refs += p->nr;
	if (p->kind == PB_PART_RESUME)
		c->more = !f->ended;
	pb_stream_only(&f->stream, c);
	return p;
}

void pb_sample_free(struct pb_sample *s)
{
	free(s->parts);
	s->parts = NULL;
}
