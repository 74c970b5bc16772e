/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Twenty threads make their first traced call on a foreign stack, because their start routine is
 * libc's setcontext(). Each of these threads also has a stack of its own, with its struct pthread
 * at the end. After this stack comes memory that can't be read.
 * @markers 20 body
 * @calls body 20
 */
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "../hostile.h"

#define SIZE (256 << 10)

static sem_t hold;
static int over;

static KEEP void body(int n)
{
	marker_begin(n);
	__atomic_add_fetch(&over, 1, __ATOMIC_RELEASE);
	/* the thread ends when the process ends */
	for (;;)
		pause();
}

int main(void)
{
	static ucontext_t contexts[20];

	check(!sem_init(&hold, 0, 0));
	for (int n = 0; n < 20; n++) {
		ucontext_t *c = &contexts[n];
		pthread_t above, t;

		check(!getcontext(c));
		c->uc_stack.ss_sp = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		check(c->uc_stack.ss_sp != MAP_FAILED);
		c->uc_stack.ss_size = SIZE;
		makecontext(c, (void (*)(void))body, 1, n);
		/* The kernel maps each new stack directly below the one before. So the guard of
		 * `above`, its lowest page, comes right after the end of the stack of `t`. */
		check(!pthread_create(&above, NULL, (void *(*)(void *))sem_wait, &hold));
		check(!pthread_create(&t, NULL, (void *(*)(void *))setcontext, c));
		while (__atomic_load_n(&over, __ATOMIC_ACQUIRE) <= n)
			sched_yield();
	}
	puts("done");
	fflush(stdout);
	_exit(0);
}
