/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a tool's object in the kernel, which is the reference implementation. Loads the object with
 * libbpf, starts a process, and attaches the object's eBPF programs to the process as uprobes.
 * Prints each record when it arrives, and the maps at the end.
 *
 *   oracle [--map=NAME:max_entries=N,value_size=N]... [--global=NAME=NUMBER]... [--btf=FILE]
 *          OBJECT -- PROGRAM [ARGS]
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST	64

static const char *sizes[MOST], *globals[MOST], *btf;
static int nr_sizes, nr_globals, nr_cpus;
static struct ring_buffer *ring;
static struct perf_buffer *perf[MOST];
static int nr_perf;

static void fail(const char *what, const char *on)
{
	fprintf(stderr, "oracle: %s: %s: %s\n", what, on, strerror(errno));
	exit(9);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static void show_hex(const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", ((const unsigned char *)data)[i]);
}

static void show_record(const char *map, const void *data, size_t n)
{
	printf("record %s ", map);
	show_hex(data, n);
	putchar('\n');
}

static int on_ring(void *arg, void *data, size_t n)
{
	show_record(arg, data, n);
	return 0;
}

static void on_perf(void *arg, int cpu, void *data, __u32 n)
{
	show_record(arg, data, n);
}

static void on_lost(void *arg, int cpu, __u64 n)
{
	fprintf(stderr, "oracle: %llu records of %s are lost\n", n, (char *)arg);
	exit(9);
}

/* Sets the sizes of a map. `text` is "NAME:max_entries=N,value_size=N"; either size may be
 * missing. */
static void resize(struct bpf_object *o, const char *text)
{
	char name[64];
	const char *at = strchr(text, ':');
	struct bpf_map *m;

	snprintf(name, sizeof(name), "%.*s", (int)(at - text), text);
	m = bpf_object__find_map_by_name(o, name);
	if (!m)
		fail("no map", text);
	while (at && *++at) {
		unsigned n = strchr(at, '=') ? (unsigned)atoi(strchr(at, '=') + 1) : 0;

		if (!strncmp(at, "max_entries=", 12) ? bpf_map__set_max_entries(m, n) :
		    bpf_map__set_value_size(m, n))
			fail("a map's size", text);
		at = strchr(at, ',');
	}
}

static bool set_in(const struct btf *b, struct bpf_map *m, const char *section, const char *text)
{
	const struct btf_type *t =
		btf__type_by_id(b, (__u32)btf__find_by_name_kind(b, section, BTF_KIND_DATASEC));
	long value = strtol(strchr(text, '=') + 1, NULL, 0);
	size_t length = (size_t)(strchr(text, '=') - text), size;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_var_secinfo *s = btf_var_secinfos(t) + i;
		const char *name = btf__name_by_offset(b, btf__type_by_id(b, s->type)->name_off);

		if (strlen(name) != length || strncmp(name, text, length))
			continue;
		memcpy((char *)bpf_map__initial_value(m, &size) + s->offset, &value,
		       s->size < 8 ? s->size : 8);
		return true;
	}
	return false;
}

/* Sets a constant of the object. `text` is "NAME=NUMBER". */
static void set(struct bpf_object *o, const char *text)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o)
		if (strstr(bpf_map__name(m), ".rodata") &&
		    set_in(bpf_object__btf(o), m, ".rodata", text))
			return;
	fail("no constant", text);
}

static void listen_to(struct bpf_object *o)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o) {
		char *name = (char *)bpf_map__name(m);

		if (bpf_map__type(m) == BPF_MAP_TYPE_RINGBUF) {
			if (!ring)
				ring = ring_buffer__new(bpf_map__fd(m), on_ring, name, NULL);
			else
				ring_buffer__add(ring, bpf_map__fd(m), on_ring, name);
		} else if (bpf_map__type(m) == BPF_MAP_TYPE_PERF_EVENT_ARRAY) {
			perf[nr_perf++] = perf_buffer__new(bpf_map__fd(m), 64, on_perf, on_lost,
							   name, NULL);
		}
	}
}

/* Attaches the program of a section "uprobe/PATH:FUNCTION" or "uretprobe/PATH:FUNCTION". Programs
 * of other sections aren't attached, because they run only by tail calls. */
static void attach(struct bpf_program *p, pid_t pid)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts);
	const char *section = bpf_program__section_name(p), *at = strchr(section, '/');
	char path[256];

	if (!at)
		return;
	opts.func_name = strrchr(section, ':') + 1;
	opts.retprobe = !strncmp(section, "uretprobe", 9);
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(section, ':') - at - 1), at + 1);
	if (!bpf_program__attach_uprobe_opts(p, pid, path, 0, &opts))
		fail("attach", section);
}

static pid_t start(char **argv, int *go)
{
	int ends[2];
	pid_t pid;
	char c;

	if (pipe(ends))
		fail("pipe", argv[0]);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &c, 1) == 1)
			execv(argv[0], argv);
		_exit(9);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static void follow(pid_t pid)
{
	int status = 0, ended;

	do {
		ended = waitpid(pid, &status, WNOHANG);
		if (ring)
			ring_buffer__poll(ring, 5);
		for (int i = 0; i < nr_perf; i++)
			perf_buffer__poll(perf[i], 5);
		if (!ring && !nr_perf)
			usleep(5000);
	} while (!ended);
	if (ring)
		ring_buffer__consume(ring);
	for (int i = 0; i < nr_perf; i++)
		perf_buffer__consume(perf[i]);
	fprintf(stderr, "%s", WIFSIGNALED(status) ? "the program was killed\n" : "");
}

static void show_map(const struct bpf_map *m)
{
	size_t key_size = bpf_map__key_size(m), size = bpf_map__value_size(m),
		each = (size + 7) / 8 * 8;
	enum bpf_map_type type = bpf_map__type(m);
	bool cpu_slots = type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
		     type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
	char *key = calloc(2, key_size + 1), *value = calloc((size_t)nr_cpus, each + 8);
	int fd = bpf_map__fd(m);

	printf("map %s\n", bpf_map__name(m));
	for (void *last = NULL; key_size && !bpf_map_get_next_key(fd, last, key + key_size);
	     last = key) {
		memcpy(key, key + key_size, key_size);
		if (bpf_map_lookup_elem(fd, key, value))
			continue;
		printf("element ");
		show_hex(key, key_size);
		for (int i = 0; i < (cpu_slots ? nr_cpus : 1); i++) {
			putchar(' ');
			show_hex(value + (size_t)i * each, size);
		}
		putchar('\n');
	}
	free(key);
	free(value);
}

static void show_maps(struct bpf_object *o)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o)
		switch (bpf_map__type(m)) {
		case BPF_MAP_TYPE_RINGBUF:
		case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
		case BPF_MAP_TYPE_PROG_ARRAY:
		case BPF_MAP_TYPE_ARRAY_OF_MAPS:
		case BPF_MAP_TYPE_QUEUE:
		case BPF_MAP_TYPE_STACK:
			break;
		default:
			show_map(m);
		}
}

int main(int argc, char **argv)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct bpf_program *p;
	struct bpf_object *o;
	int i = 1, go;
	pid_t pid;

	for (; i < argc && !strncmp(argv[i], "--", 2); i++)
		if (!strncmp(argv[i], "--map=", 6) && nr_sizes < MOST)
			sizes[nr_sizes++] = argv[i] + 6;
		else if (!strncmp(argv[i], "--global=", 9) && nr_globals < MOST)
			globals[nr_globals++] = argv[i] + 9;
		else if (!strncmp(argv[i], "--btf=", 6))
			btf = argv[i] + 6;
	if (i + 2 >= argc)
		return 9;
	nr_cpus = libbpf_num_possible_cpus();
	libbpf_set_print(quiet);
	opts.btf_custom_path = btf;
	o = bpf_object__open_file(argv[i], &opts);
	if (!o)
		fail("open", argv[i]);
	for (int k = 0; k < nr_sizes; k++)
		resize(o, sizes[k]);
	for (int k = 0; k < nr_globals; k++)
		set(o, globals[k]);
	if (bpf_object__load(o))
		fail("load", argv[i]);
	listen_to(o);
	pid = start(argv + i + 2, &go);
	bpf_object__for_each_program(p, o)
		attach(p, pid);
	if (write(go, "", 1) != 1)
		fail("start", argv[i + 2]);
	follow(pid);
	show_maps(o);
	return 0;
}
