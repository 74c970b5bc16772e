/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to attach to: sixteen threads that allocate, throw, load and unload a library, start
 * threads, wait in system calls and get signals. It checks all results. A system call may fail with
 * EINTR only if a handler has interrupted it. On SIGTERM the program prints what it has done.
 *
 *   attach_storm LIBRARY
 */
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

static std::atomic<bool> stop;
static std::atomic<unsigned long> rounds, signals, errors;
static const char *library;

#define CHECK(what) do { \
	if (!(what)) { \
		errors++; \
		fprintf(stderr, "%s failed: errno %d\n", #what, errno); \
	} \
} while (0)

__attribute__((noinline)) static unsigned deep(unsigned n, unsigned at)
{
	if (n == at)
		throw std::runtime_error(std::to_string(n));
	return n > 20 ? n : deep(n + 1, at) + 1;
}

static void throws()
{
	for (unsigned at = 0; at < 24 && !stop; at++) {
		bool caught = false;

		try {
			deep(0, at);
		} catch (const std::runtime_error &e) {
			caught = atoi(e.what()) == (int)at;
		}
		CHECK(caught == (at <= 21));
	}
}

static void allocates()
{
	std::map<unsigned, std::string> m;

	for (unsigned i = 0; i < 200; i++)
		m[i * 2654435761u % 1000] = std::string(i % 97, 'a');
	size_t sum = 0;
	for (auto &e : m)
		sum += e.second.size();
	CHECK(sum > 0);
}

static void loads()
{
	void *h = dlopen(library, RTLD_NOW);

	CHECK(h);
	auto f = h ? reinterpret_cast<int (*)(int)>(dlsym(h, "from_library")) : nullptr;
	CHECK(f && f(20) == 41);
	CHECK(!h || !dlclose(h));
}

static void starts()
{
	unsigned result = 0;
	std::thread t([&] { result = deep(0, 99); });

	t.join();
	CHECK(result == 42);
}

static struct timespec soon()
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 2000000;
	if (t.tv_nsec >= 1000000000)
		t.tv_sec++, t.tv_nsec -= 1000000000;
	return t;
}

/* The threads that run this function get no signals that have a handler, so no call may fail with
 * EINTR. */
static void waits()
{
	int e = epoll_create1(0), p[2], n;
	struct epoll_event ev;
	struct timespec ms = { 0, 1000000 }, until;
	struct pollfd fd;
	sem_t sem;

	CHECK(!pipe(p));
	CHECK((n = epoll_wait(e, &ev, 1, 2)) == 0);
	fd = { p[0], POLLIN, 0 };
	CHECK((n = poll(&fd, 1, 2)) == 0);
	CHECK(!nanosleep(&ms, nullptr));
	sem_init(&sem, 0, 0);
	until = soon();
	CHECK(sem_timedwait(&sem, &until) == -1 && errno == ETIMEDOUT);
	CHECK(write(p[1], "x", 1) == 1);
	char c;
	CHECK(read(p[0], &c, 1) == 1 && c == 'x');
	close(p[0]);
	close(p[1]);
	close(e);
}

static void on_signal(int)
{
	signals++;
}

static void sends()
{
	unsigned long before = signals;

	for (int i = 0; i < 10; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	CHECK(signals >= before + 10);
}

static void loop(void (*work)())
{
	while (!stop) {
		work();
		rounds++;
	}
}

int main(int argc, char **argv)
{
	static void (*const works[])() = {
		throws, allocates, loads, starts, waits, sends, throws, waits,
	};
	std::vector<std::thread> threads;
	sigset_t term;
	int sig;

	library = argc > 1 ? argv[1] : "libm.so.6";
	signal(SIGUSR1, on_signal);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, nullptr);
	for (int i = 0; i < 16; i++)
		threads.emplace_back(loop, works[i % 8]);
	puts("ready");
	fflush(stdout);
	sigwait(&term, &sig);
	stop = true;
	for (auto &t : threads)
		t.join();
	printf("errors %lu\n", (unsigned long)errors);
	fprintf(stderr, "rounds %lu signals %lu\n", (unsigned long)rounds, (unsigned long)signals);
	return errors != 0;
}
