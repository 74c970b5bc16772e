/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Defines the functions of arch/machine.h for x86-64. The contracts are in that header. */
#ifndef PB_ARCH_X86_64_CPU_H
#define PB_ARCH_X86_64_CPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline long pb_cpu_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline uint64_t pb_cpu_counter(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static inline void pb_cpu_pause(void)
{
	__builtin_ia32_pause();
}

static inline void pb_cpu_no_speculation(void)
{
	__asm__ volatile("lfence" ::: "memory");
}

static inline uint64_t pb_cpu_thread_pointer(void)
{
	uint64_t tcb;

	__asm__("mov %%fs:0, %0" : "=r"(tcb));
	return tcb;
}

static inline bool pb_cpu_replace16(uint64_t *p, uint64_t *old0, uint64_t *old1,
				    uint64_t new0, uint64_t new1)
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1" : "=@ccz"(done),
			 "+m"(*(struct { uint64_t v[2]; } *)p), "+a"(*old0),
			 "+d"(*old1) : "b"(new0), "c"(new1) : "memory");
	return done;
}

static inline void pb_cpu_copy(void *dst, const void *src, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

static inline void pb_cpu_fill(void *dst, int byte, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(byte) : "memory");
}

static inline void pb_cpu_zero_words(void *dst, size_t n)
{
	__asm__ volatile("rep stosq" : "+D"(dst), "+c"(n) : "a"(0ul) : "memory");
}
#endif
