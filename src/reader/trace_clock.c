/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between two readings of the clocks, the trace clock is a linear function of the TSC: a line. If
 * the machine slept between the two readings, there are three lines. This file computes the lines,
 * and converts times with them (trace_clock.h). */
#include "reader/trace_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

typedef unsigned __int128 u128;

#define SLEEP_NS 1000000	/* if boottime is ahead by less, the machine didn't sleep */

/* Returns the value of a trace clock, from a reading of all clocks. In ftrace, the trace clocks
 * local, global and perf are the kernel's scheduler clock. Here, CLOCK_MONOTONIC stands for it. */
static uint64_t base_ns(const char *name, const struct pb_meta_clock *c)
{
	if (!strcmp(name, "mono_raw") || !strcmp(name, "x86-tsc"))
		return c->monotonic_raw;
	if (!strcmp(name, "boot"))
		return c->boottime;
	if (!strcmp(name, "tai") || !strcmp(name, "real"))
		return c->realtime;
	return c->monotonic;
}

static void line_set(struct pb_clock_line *l, uint64_t tsc, uint64_t ns, uint64_t ticks,
		     uint64_t span)
{
	l->tsc = tsc;
	l->ns = ns;
	l->whole = span / ticks;
	/* The fraction is rounded up. Otherwise a time that is a whole number of nanoseconds could
	 * come out one nanosecond too small. */
	l->fraction = (uint64_t)((((u128)(span % ticks) << 64) + ticks - 1) / ticks);
}

static uint64_t line_mul(const struct pb_clock_line *l, uint64_t ticks)
{
	return ticks * l->whole + (uint64_t)((u128)ticks * l->fraction >> 64);
}

static int by_tsc(const void *a, const void *b)
{
	const struct pb_meta_clock *x = a, *y = b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

/* Called if there are no two usable readings: one tick counts as 1 ns. */
static void clock_identity(struct pb_clock *c, const struct pb_meta_clock *first)
{
	c->uncalibrated = !c->none;
	c->lines[0] = (struct pb_clock_line){ .whole = 1 };
	if (first) {
		c->lines[0].tsc = first->tsc;
		c->lines[0].ns = strcmp(c->name, "x86-tsc") ? base_ns(c->name, first) : 0;
	}
	c->nr = 1;
	c->mean = c->lines[0];
}

/* True if the machine slept between the two readings. The TSC and boottime count on during a sleep,
 * but the monotonic clocks stop. */
static bool has_sleep(const struct pb_meta_clock *a, const struct pb_meta_clock *b)
{
	return (int64_t)(b->boottime - a->boottime - (b->monotonic - a->monotonic)) > SLEEP_NS;
}

/* Leaves out the readings that can't be used. A reading is used only if both clocks have gone
 * forward since the last reading that is used, and if the TSC's rate is at least 1 MHz. Returns the
 * number of readings that remain. */
static size_t keep_usable(const char *name, struct pb_meta_clock *p, size_t nr)
{
	size_t last = 0;

	for (size_t i = 1; i < nr; i++) {
		uint64_t n0 = base_ns(name, &p[last]), n1 = base_ns(name, &p[i]);

		if (p[i].tsc == p[last].tsc || n1 <= n0 ||
		    (n1 - n0) / (p[i].tsc - p[last].tsc) > 1000)
			continue;
		p[++last] = p[i];
	}
	return nr ? last + 1 : 0;
}

/* Sets the mean rate. Intervals with a sleep are left out, unless there are no others: most clocks
 * stop during a sleep, and the TSC doesn't. */
static void set_mean(struct pb_clock *c, const struct pb_meta_clock *p, size_t nr, uint64_t origin)
{
	uint64_t ticks = 0, ns = 0;

	for (size_t i = 1; i < nr; i++) {
		if (has_sleep(&p[i - 1], &p[i]))
			continue;
		ticks += p[i].tsc - p[i - 1].tsc;
		ns += base_ns(c->name, &p[i]) - base_ns(c->name, &p[i - 1]);
	}
	if (!ticks) {
		ticks = p[nr - 1].tsc - p[0].tsc;
		ns = base_ns(c->name, &p[nr - 1]) - base_ns(c->name, &p[0]);
	}
	line_set(&c->mean, p[0].tsc, base_ns(c->name, &p[0]) - origin, ticks, ns);
	c->khz = (uint64_t)((u128)ticks * 1000000 / ns);
}

/* Measures how far the readings are from a clock that goes at the mean rate, except during
 * sleeps. */
static void measure_deviation(struct pb_clock *c, const struct pb_meta_clock *p, size_t nr)
{
	uint64_t first = base_ns(c->name, &p[0]), ticks = 0, ns = 0;

	c->readings = nr;
	c->span_ns = base_ns(c->name, &p[nr - 1]) - first;
	for (size_t i = 1; i + 1 < nr; i++) {
		uint64_t is = base_ns(c->name, &p[i]), at, off;

		if (has_sleep(&p[i - 1], &p[i]))
			ns += is - base_ns(c->name, &p[i - 1]);
		else
			ticks += p[i].tsc - p[i - 1].tsc;
		at = line_mul(&c->mean, ticks) + ns;
		off = at > is - first ? at - (is - first) : is - first - at;
		c->off_ns = off > c->off_ns ? off : c->off_ns;
	}
}

/* Makes the lines of an interval in which the machine slept. `ns` is the time that it was awake. It
 * isn't known when in the interval the machine slept. So the clock goes at the mean rate for the
 * first half of this time, stops, and goes on for the second half. Then at least half of the times
 * in the interval are right. Returns false if the clock didn't stop, or if the TSC stopped, too. */
static bool add_sleep(struct pb_clock *c, uint64_t tsc, uint64_t end, uint64_t at, uint64_t ns)
{
	uint64_t half = (uint64_t)((u128)(ns / 2) * c->khz / 1000000);
	uint64_t half_ns = line_mul(&c->mean, half);
	struct pb_clock_line *l = &c->lines[c->nr];

	if (half >= (end - tsc) / 2 || half_ns > ns / 2)
		return false;
	l[0] = l[2] = c->mean;
	l[0].tsc = tsc;
	l[0].ns = at;
	l[1] = (struct pb_clock_line){ .tsc = tsc + half, .ns = at + half_ns };
	l[2].tsc = end - half;
	l[2].ns = at + ns - half_ns;
	c->nr += 3;
	c->sleeps[c->nr_sleeps++] = (struct pb_clock_sleep){ l[1].tsc, l[2].tsc };
	return true;
}

static void set_lines(struct pb_clock *c, const struct pb_meta_clock *p, size_t nr, uint64_t origin)
{
	for (size_t i = 1; i < nr; i++) {
		uint64_t at = base_ns(c->name, &p[i - 1]);
		uint64_t ns = base_ns(c->name, &p[i]) - at;

		if (!has_sleep(&p[i - 1], &p[i]) ||
		    !add_sleep(c, p[i - 1].tsc, p[i].tsc, at - origin, ns))
			line_set(&c->lines[c->nr++], p[i - 1].tsc, at - origin,
				 p[i].tsc - p[i - 1].tsc, ns);
	}
}

int pb_clock_init(struct pb_clock *c, const char *name, const struct pb_meta_clock *pairs,
		  size_t nr)
{
	struct pb_meta_clock *p = calloc(nr + 1, sizeof(*p));
	uint64_t origin;

	memset(c, 0, sizeof(*c));
	/* an interval has at most three lines */
	c->lines = calloc(nr + 1, 3 * sizeof(*c->lines));
	c->sleeps = calloc(nr + 1, sizeof(*c->sleeps));
	if (!p || !c->lines || !c->sleeps) {
		free(p);
		pb_clock_free(c);
		return -ENOMEM;
	}
	snprintf(c->name, sizeof(c->name), "%s", *name ? name : "x86-tsc");
	c->none = !strcmp(c->name, "none");
	if (nr)
		memcpy(p, pairs, nr * sizeof(*p));
	qsort(p, nr, sizeof(*p), by_tsc);
	c->start_realtime = nr ? p[0].realtime : 0;
	/* the clock x86-tsc counts from the start of the recording */
	origin = nr && !strcmp(c->name, "x86-tsc") ? p[0].monotonic_raw : 0;
	nr = keep_usable(c->name, p, nr);
	if (nr < 2) {
		clock_identity(c, nr ? p : NULL);
	} else {
		set_mean(c, p, nr, origin);
		set_lines(c, p, nr, origin);
		measure_deviation(c, p, nr);
	}
	free(p);
	return 0;
}

void pb_clock_free(struct pb_clock *c)
{
	free(c->lines);
	free(c->sleeps);
	c->lines = NULL;
	c->sleeps = NULL;
	c->nr = c->nr_sleeps = 0;
}

static const struct pb_clock_line *find_line(const struct pb_clock *c, uint64_t tsc)
{
	return &c->lines[pb_bisect(i, 1, c->nr, c->lines[i].tsc <= tsc) - 1];
}

uint64_t pb_clock_ns(const struct pb_clock *c, uint64_t tsc)
{
	const struct pb_clock_line *l = find_line(c, tsc);
	uint64_t back;

	if (tsc >= l->tsc)
		return l->ns + line_mul(l, tsc - l->tsc);
	back = line_mul(l, l->tsc - tsc);
	return back < l->ns ? l->ns - back : 0;
}

uint64_t pb_clock_ticks(const struct pb_clock *c, uint64_t ns)
{
	uint64_t low = 0, high = UINT64_MAX;

	/* A binary search works, because pb_clock_ns() doesn't decrease until its value wraps. It
	 * can wrap only long after the end of a trace. `huge`: line_mul()'s value may wrap. */
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		const struct pb_clock_line *l = find_line(c, mid);
		bool huge = mid > l->tsc && (u128)(mid - l->tsc) * (l->whole + 1) >> 64;

		if (huge || pb_clock_ns(c, mid) >= ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

uint64_t pb_clock_awake(const struct pb_clock *c, uint64_t start, uint64_t end)
{
	uint64_t ticks = end - start;

	for (size_t k = pb_bisect(i, 0, c->nr_sleeps, c->sleeps[i].to <= start);
	     k < c->nr_sleeps && c->sleeps[k].from < end; k++) {
		const struct pb_clock_sleep *s = &c->sleeps[k];

		ticks -= (s->to < end ? s->to : end) - (s->from > start ? s->from : start);
	}
	return ticks;
}

uint64_t pb_clock_span(const struct pb_clock *c, uint64_t ticks)
{
	return line_mul(&c->mean, ticks);
}
