/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A SIGPROF handler calls backtrace() at 1 kHz. The backtrace must always reach main. The signal
 * may interrupt any instruction of an entry, body, or return.
 * @slow
 * @libs -rdynamic
 * @markers 200 main/some_work
 * @timeout 60
 */
#include <execinfo.h>
#include <signal.h>
#include "../hostile.h"

#define SAMPLES 1500

extern char __start_text_main[], __stop_text_main[];
static volatile int samples, bad, shallow;
static void *first_bad[32];
static int first_bad_depth;

static KEEP void on_prof(int sig)
{
	void *pc[256];
	int i, n = backtrace(pc, 256), found = 0, saved = errno;

	for (i = 0; i < n; i++)
		if ((char *)pc[i] >= __start_text_main && (char *)pc[i] <= __stop_text_main)
			found = i;
	samples++;
	if (!found) {
		if (!bad) {
			first_bad_depth = n;
			memcpy(first_bad, pc, sizeof(first_bad));
		}
		bad++;
	}
	errno = saved;
}

static KEEP long tiny(long x) { return opaque(x) + 1; }
static KEEP long twice(long x) { return opaque(tiny(x)) + opaque(tiny(x)); }
static KEEP long fib(long n) { return n < 2 ? n : opaque(fib(n - 1)) + opaque(fib(n - 2)); }
static KEEP long tail(long n) { return n ? tail(n - 1) : tiny(n); }

static KEEP int compare(const void *a, const void *b)
{
	int x = *(const int *)a;

	return opaque(x) - *(const int *)b;
}

static KEEP long some_work(int i)
{
	int v[64], k;
	long x = 0;

	for (k = 0; k < 64; k++)
		v[k] = (k * 37 + i) % 64;
	qsort(v, 64, sizeof(v[0]), compare);
	for (k = 0; k < 64; k++)
		check_eq(v[k], k);
	for (k = 0; k < 300; k++)
		x += opaque(twice(k));
	x += fib(12) + tail(50);
	if (i < 200)
		marker_begin(i);
	return x;
}

__attribute__((section("text_main"))) int main(void)
{
	/* this timer ticks at 1 kHz; ITIMER_PROF would tick at the kernel's rate */
	struct sigevent se = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
	struct itimerspec it = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t timer;
	void *warm[8];
	uint64_t end = now_ns() + 50000000000ull;
	int i;

	backtrace(warm, 8);
	signal(SIGPROF, on_prof);
	check(!timer_create(CLOCK_MONOTONIC, &se, &timer));
	check(!timer_settime(timer, 0, &it, NULL));
	for (i = 0; (samples < SAMPLES || i < 200) && now_ns() < end; i++)
		some_work(i);
	check(!timer_delete(timer));
	if (bad) {
		fprintf(stderr, "%d of %d samples do not reach main; the first:\n", bad, samples);
		backtrace_symbols_fd(first_bad, first_bad_depth < 32 ? first_bad_depth : 32, 2);
	}
	check_eq(bad, 0);
	check(samples >= SAMPLES);
	puts("all samples reach main");
	return 0;
}
