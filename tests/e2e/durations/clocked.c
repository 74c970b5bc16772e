/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For each call, reads the clock four times: before the call, at its beginning, at its end, and
 * after the call. The recorded beginning must lie between the first two readings, the recorded end
 * between the last two. argv[1] is the number of rounds, argv[2] the number of threads. For each
 * thread in turn, the program prints a line for each call, in the order in which the calls began:
 *
 *   thread name how before first last after
 *
 * `how` is "returned", "tail" or "left" (by longjmp). For "tail", `last` is read before the jump,
 * and `after` is the first reading in the jump's target function.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, used))
#define MAX_CALLS 200000

struct call {
	const char *name, *how;
	uint64_t before, first, last, after;
};

static __thread struct call *calls;
static __thread unsigned nr_calls;

/* Neither the compiler nor the processor moves code across this reading. */
static inline __attribute__((always_inline)) uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

/* When a function begins, its own call is the last element of calls[]. */
#define BEGIN	struct call *self = &calls[nr_calls - 1]; self->first = now()
#define END	self->last = now()
#define CALL(f, ...) ({							\
	struct call *c_ = &calls[nr_calls++];				\
	c_->name = #f;							\
	c_->how = "returned";						\
	c_->before = now();						\
	__typeof__(f(__VA_ARGS__)) r_ = f(__VA_ARGS__);			\
	c_->after = now();						\
	r_; })

static volatile long sink;
static __thread jmp_buf jump;

KEEP long leaf(long n)
{
	BEGIN;
	sink = n * 3;
	END;
	return n + 1;
}

KEEP long plain(long n)
{
	BEGIN;
	n += CALL(leaf, n) + CALL(leaf, n + 1);
	END;
	return n;
}

KEEP long factorial(long n)
{
	BEGIN;
	long r = n > 1 ? n * CALL(factorial, n - 1) : 1;
	END;
	return r;
}

/* several returns */
KEEP long branchy(long n)
{
	BEGIN;
	if (n % 3 == 0) {
		END;
		return n;
	}
	if (n % 3 == 1) {
		sink = CALL(leaf, n);
		END;
		return -n;
	}
	for (int i = 0; i < 20; i++)
		sink += i;
	END;
	return 7;
}

/* has more arguments than fit into registers, a big frame, and a result in memory */
struct big { long v[12]; };
KEEP struct big many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	BEGIN;
	struct big r;
	volatile char room[3000];

	room[0] = room[2999] = (char)a;
	for (int i = 0; i < 12; i++)
		r.v[i] = a + b + c + d + e + f + g + h + i + room[2999];
	END;
	return r;
}

KEEP long nap(long us)
{
	BEGIN;
	struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
	END;
	return us;
}

/* calls leaf() before it sleeps */
KEEP long nap_after(long us)
{
	BEGIN;
	long r = CALL(leaf, us);

	r += CALL(nap, us);
	END;
	return r;
}

/* Makes a tail call to landed(). The first reading in landed() is also the `after` of this call. */
KEEP long tail_of(long n)
{
	struct call *from = &calls[nr_calls - 1];

	from->first = now();
	from->how = "tail";
	calls[nr_calls] = (struct call){ .name = "landed", .how = "returned" };
	calls[nr_calls++].before = from->last = now();
	__asm__ volatile("" ::: "memory");
	extern long landed(long n);
	return landed(n + 1);
}

KEEP long landed(long n)
{
	BEGIN;
	self[-1].after = self->first;
	sink = n;
	END;
	return n;
}

KEEP long out(long n)
{
	BEGIN;
	self->how = "left";
	END;
	longjmp(jump, 1);
}

KEEP long jumps(long n)
{
	volatile unsigned me = nr_calls - 1;
	BEGIN;

	if (!setjmp(jump))
		sink = CALL(out, n);
	calls[me].last = now();
	return n;
}

/* Called in a signal handler. In calls[], this call follows the call that the signal
 * interrupted. */
KEEP long handled(long n)
{
	BEGIN;
	sink = n;
	END;
	return n;
}

static void on_signal(int sig)
{
	sink = CALL(handled, sig);
}

KEEP long raises(long n)
{
	BEGIN;
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	END;
	return n;
}

static void *thread(void *arg)
{
	long rounds = *(long *)arg;
	long (*volatile by_pointer)(long) = leaf;

	calls = calloc(MAX_CALLS, sizeof(*calls));
	for (long i = 0; i < rounds && nr_calls < MAX_CALLS - 200; i++) {
		CALL(leaf, i);
		CALL(plain, i);
		CALL(factorial, i % 12);
		CALL(branchy, i);
		CALL(many, 1, 2, 3, 4, 5, 6, 7, i);
		{
			struct call *c = &calls[nr_calls++];

			c->name = "leaf", c->how = "returned";
			c->before = now();
			sink = by_pointer(i);
			c->after = now();
		}
		/* landed() sets `after` of tail_of()'s call. c[1] is the call of landed(), which
		 * returns to here. */
		{
			struct call *c = &calls[nr_calls++];

			c->name = "tail_of";
			c->before = now();
			sink = tail_of(i);
			c[1].after = now();
		}
		CALL(jumps, i);
		/* longjmp() ended the call of out(), so CALL() didn't set its `after`. The tracer
		 * ends this call when it notices the jump, at the latest when jumps() returns. So
		 * `after` is set here. */
		for (unsigned k = nr_calls; k--;) {
			if (calls[k].name[0] == 'o') {
				calls[k].after = now();
				break;
			}
		}
		CALL(raises, i);
		if (i % 50 == 0)
			CALL(nap_after, i % 100 ? 3000 : 20000);
	}
	return NULL;
}

struct done {
	struct call *calls;
	unsigned nr;
	long rounds, tid;
};

static void *run(void *arg)
{
	struct done *d = arg;

	d->tid = syscall(SYS_gettid);
	thread(&d->rounds);
	d->calls = calls;
	d->nr = nr_calls;
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	struct done done[16] = { 0 };
	pthread_t id[16];

	signal(SIGUSR1, on_signal);
	for (int i = 0; i < threads; i++) {
		done[i].rounds = argc > 1 ? atol(argv[1]) : 10;
		pthread_create(&id[i], NULL, run, &done[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < threads; i++)
		for (unsigned k = 0; k < done[i].nr; k++) {
			const struct call *c = &done[i].calls[k];

			printf("%ld %s %s %lu %lu %lu %lu\n", done[i].tid, c->name, c->how,
			       c->before, c->first, c->last, c->after);
		}
	return 0;
}
