/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For exits_oracle.h: reads the trace that `valgrind --tool=lackey --trace-mem=yes -v -v` prints of
 * a program. Lackey reports no stack pointers, so exits_lackey simulates them. A call moves the
 * stack pointer down by one word, and a return moves it up. If a return doesn't lead to the place
 * after the innermost call instruction, put_right() corrects the stack pointer.
 */
#include "exits_oracle.h"

static struct {
	char path[256];
	uint64_t bias, end;
} maps[MAX_MODULES];
static size_t nr_maps;
static uint64_t returns[MAX_DEPTH];	/* for each slot in slots[]: the address of the call
					 * instruction */
static uint64_t sp = 1ull << 40;

static struct module *find_other(uint64_t ip)
{
	for (size_t i = 0; i < nr_maps; i++) {
		size_t was = nr_modules;
		struct module *m;

		if (!maps[i].path[0])
			continue;
		m = load(maps[i].path, 0, 0, 0);
		maps[i].path[0] = 0;
		if (!m) {
			nr_modules = was;
			continue;
		}
		m->bias = maps[i].bias;
		m->from = m->bias + m->low;
		m->to = m->from + m->size;
		if (ip - m->from < m->size)
			return m;
	}
	return NULL;
}

static void map_line(const char *line)
{
	static char path[256];
	const char *at = strstr(line, "Reading syms from ");
	unsigned long svma, avma;

	if (at) {
		snprintf(path, sizeof(path), "%s", at + 18);
		path[strcspn(path, "\n")] = 0;
	} else if ((at = strstr(line, "   svma 0x")) &&
		   sscanf(at, "   svma 0x%lx, avma 0x%lx", &svma, &avma) == 2 &&
		   nr_maps < MAX_MODULES && !strstr(path, "valgrind/lackey")) {
		snprintf(maps[nr_maps].path, sizeof(maps[0].path), "%s", path);
		maps[nr_maps++].bias = avma - svma;
	}
}

/* Is called if a return doesn't lead to the place after the innermost call instruction, because a
 * longjmp or an exception has skipped calls. Finds the call instruction after which the return
 * goes on, and sets sp to the stack pointer before that call. */
static void put_right(uint64_t to)
{
	for (size_t i = nr_slots; i-- > 0 && i + 1000 > nr_slots;)
		if (to - returns[i] <= 15) {
			sp = slots[i] + 8;
			return;
		}
}

static void one(uint64_t ip, uint64_t to, uint64_t from)
{
	struct module *m = find(ip);
	struct at *a = at(m, ip);
	uint64_t was = sp;

	drop(sp, ip);
	if (!a)
		return;
	before(m, a, ip, sp, from);
	if (is_call(a)) {
		sp -= 8;
		if (nr_slots < MAX_DEPTH)
			returns[nr_slots] = ip;
	} else if (is_ret(a)) {
		sp += 8;
		if (nr_slots && (to - returns[nr_slots - 1] > 15))
			put_right(to);
	}
	after(m, a, ip, was, to, sp);
}

int main(int argc, char **argv)
{
	static char line[4096];
	uint64_t steps = 0, ip = 0, from = 0;

	quiet = argc > 1 && !strcmp(argv[1], "-q");
	calls = calloc(MAX_DEPTH, sizeof(*calls));
	slots = calloc(MAX_DEPTH, sizeof(*slots));
	while (calls && slots && fgets(line, sizeof(line), stdin)) {
		uint64_t to;

		if (line[0] != 'I') {
			if (line[0] == '-' || line[0] == '=')
				map_line(line);
			continue;
		}
		to = strtoull(line + 1, NULL, 16);
		if (ip)
			one(ip, to, from);
		from = ip;
		ip = to;
		steps++;
	}
	return result(steps);
}
