/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * 16 threads that allocate, throw exceptions, and load and unload a library all the time. Each
 * thread checks its own results, and sleeps for a moment in every 64th round. Ends when its input
 * ends. The argument is the path of a library.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

static std::atomic<bool> done;
static std::atomic<unsigned long> rounds;

static unsigned long allocate(unsigned n)
{
	std::map<std::string, std::vector<unsigned>> m;

	for (unsigned i = 0; i < 20; i++)
		m["key " + std::to_string(i % 7)].push_back(n + i);
	unsigned long sum = 0;

	for (auto &e : m)
		for (unsigned v : e.second)
			sum += v;
	return sum;
}

static int catch_one(unsigned depth, unsigned n)
{
	if (!depth)
		throw std::runtime_error("number " + std::to_string(n));
	std::string kept(depth * 10, 'x');
	int ret = catch_one(depth - 1, n);

	return ret + (int)kept.size();
}

static void load(const char *path)
{
	void *h = dlopen(path, RTLD_NOW);

	if (!h || !dlsym(h, "patchbay_attach")) {
		printf("bad: dlopen: %s\n", dlerror());
		exit(1);
	}
	dlclose(h);
}

static void work(const char *path, unsigned seed)
{
	for (unsigned n = seed; !done; n++) {
		if (allocate(n) != 20ul * n + 190) {
			printf("bad: sum\n");
			exit(1);
		}
		try {
			catch_one(5, n);
		} catch (const std::runtime_error &e) {
			if (e.what() != "number " + std::to_string(n)) {
				printf("bad: exception\n");
				exit(1);
			}
		}
		if (n % 16 == 0)
			load(path);
		if (n % 64 == 0) {
			timespec t = { 0, 2000000 };

			if (nanosleep(&t, nullptr)) {
				printf("bad: sleep\n");
				exit(1);
			}
		}
		rounds++;
	}
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	char c;

	for (unsigned i = 0; i < 16; i++)
		threads.emplace_back(work, argv[1], i * 1000000);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	done = true;
	for (auto &t : threads)
		t.join();
	printf("%lu rounds\n", rounds.load());
	return 0;
}
