/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the output of attached eBPF programs: texts in the format of trace_pipe, and records in
 * the format of bpftool. */
#include <signal.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/progs.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "base/sys.h"
#include "bpf/map/map_names.h"
#include "bpf/map/map_ringbuf.h"
#include "bpf/map/map_sys.h"
#include "cli/bpf/bpf_attach.h"
#include "reader/data.h"
#include "reader/site_names.h"
#include "recorder/proc.h"

#define RENEW_NS	250000000	/* after this time, the namer looks up processes again */
#define IDLE_NS		5000000	/* pause after a pass that has found no record */
#define MAX_TEXT	1024	/* longer texts are cut off */
#define MAX_EVENT	65536	/* larger records are left out */
#define BUFFER		(4 * MAX_EVENT)	/* bytes of the stream's buffer */

static void show_hex(FILE *to, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		fprintf(to, "%02x%c", p[i], i % 16 == 15 || i == n - 1 ? '\n' : ' ');
}

void bpf_attach_ring(struct bpf_attach *a, struct record_ring *ring)
{
	__atomic_store_n(&a->namer.ring, ring, __ATOMIC_RELEASE);
}

static void forget_names(struct bpf_namer *n)
{
	if (n->further)
		record_names_end(&n->names);
	n->further = false;
	memset(n->seen, 0, sizeof(n->seen));
}

/* Returns whether a traced process has this PID in this command's PID namespace. */
static bool is_here(struct bpf_namer *n, struct record_ring *ring, pid_t pid)
{
	unsigned i = (unsigned)pid % BPF_SEEN;

	if (n->seen[i].pid != pid) {
		n->seen[i].pid = pid;
		n->seen[i].here = n->is_ours && record_proc_maps(ring, pid) == RECORD_MAPS;
	}
	return n->seen[i].here;
}

/* Reads the thread's name. If the thread is gone, or can't be found, the name is "<...>", as in the
 * kernel's output. Other PID namespaces are searched only if the process isn't in this command's
 * namespace, because the search takes long. */
static void read_comm(struct bpf_namer *n, const struct pb_progs_output *r, char *comm)
{
	struct record_ring *ring = __atomic_load_n(&n->ring, __ATOMIC_ACQUIRE);
	uint64_t now = pb_now_ns();

	*comm = 0;
	if (now >= n->until) {
		forget_names(n);
		n->is_ours = record_proc_is_ours();
		n->until = now + RENEW_NS;
	}
	if (ring && is_here(n, ring, (pid_t)r->pid)) {
		record_read_comm((pid_t)r->pid, (pid_t)r->tid, comm);
	} else if (ring) {
		if (!n->further)
			record_names_begin(&n->names, ring, true);
		n->further = true;
		record_names_get(&n->names, r->pid, r->tid, NULL, comm);
	}
	if (!*comm)
		strcpy(comm, "<...>");
}

static void show_text(struct bpf_attach *a, const struct pb_progs_output *r, uint64_t size)
{
	char comm[RECORD_COMM], text[MAX_TEXT + 1];
	uint64_t n = size < MAX_TEXT ? size : MAX_TEXT;

	memcpy(text, r + 1, n);
	text[n] = 0;
	n = strlen(text);
	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	pb_text_clean(text, ' ', 0);
	read_comm(&a->namer, r, comm);
	fprintf(a->to, "%16s-%-7u [%03u] ..... %5lu.%06lu: bpf_trace_printk: %s\n", comm, r->tid,
		r->cpu, r->ns / 1000000000, r->ns / 1000 % 1000000, text);
}

static void show_event(struct bpf_attach *a, const struct pb_progs_output *r, uint64_t size)
{
	const char *name = r->map < a->session.object->nr_maps ?
			   a->session.object->maps[r->map].name : "?";
	char comm[RECORD_COMM];

	read_comm(&a->namer, r, comm);
	fprintf(a->to, "== @%lu.%09lu CPU: %u map: %s %s-%u =====\n", r->ns / 1000000000,
		r->ns % 1000000000, r->cpu, name, comm, r->tid);
	show_hex(a->to, (const uint8_t *)(r + 1), size);
}

/* Flushes the buffer if it is more than half full. To be called after a whole line. If the buffer
 * became full within a line, stdio would write the line in two parts. Output of the traced program
 * to the same terminal or pipe could come between the parts. */
static void flush_whole(FILE *to)
{
	if (__fpending(to) > BUFFER / 2)
		fflush(to);
}

/* Prints one record. Works on a copy, since the traced program may change the record at any
 * time. */
static int show_output(void *arg, const void *data, uint64_t size)
{
	struct bpf_attach *a = arg;
	struct {
		struct pb_progs_output head;
		uint8_t data[MAX_EVENT];
	} *r = a->copy;

	if (size < sizeof(r->head) || size > sizeof(*r))
		return 0;
	memcpy(r, data, size);
	size -= sizeof(r->head);
	if (r->head.size > size)
		return 0;
	if (r->head.kind == PB_PROGS_TEXT)
		show_text(a, &r->head, r->head.size);
	else
		show_event(a, &r->head, r->head.size);
	flush_whole(a->to);
	return 0;
}

struct named {
	FILE *to;
	const char *name;
};

/* Prints one record of a ring buffer that the object declares. */
static int show_record(void *arg, const void *data, uint64_t size)
{
	struct named *n = arg;

	fprintf(n->to, "== map: %s %lu byte%s =====\n", n->name, size, pb_plural(size));
	show_hex(n->to, data, size);
	flush_whole(n->to);
	return 0;
}

/* Prints the records of the ring buffer with the number `ring`. Returns whether there were any. The
 * traced program can write to the ring buffer, and may damage it. Then the function reports the
 * damage once, and never reads the ring buffer again. */
static bool print_ring(struct bpf_attach *a, uint32_t ring, const char *name,
		       struct pb_bpf_map *map, pb_bpf_ringbuf_fn *fn, void *arg)
{
	int64_t nr = a->damaged[ring] ? 0 : pb_bpf_ringbuf_consume(map, fn, arg);

	if (nr < 0) {
		a->damaged[ring] = true;
		pb_error(a->command, "map %s: the program damaged this ring buffer; its other "
				     "records are not printed", name);
	}
	return nr;
}

static bool print(struct bpf_attach *a)
{
	uint32_t nr_maps = a->session.object->nr_maps;
	bool any = false;

	for (uint32_t i = 0; i < nr_maps; i++) {
		struct pb_bpf_map *map = a->session.made->maps[i].map;
		struct named n = { a->to, a->session.object->maps[i].name };

		pb_bpf_map_release_dead(map);
		if (map->attr.type == BPF_MAP_TYPE_RINGBUF)
			any |= print_ring(a, i, n.name, map, show_record, &n);
	}
	any |= print_ring(a, nr_maps, a->output.name, &a->output, show_output, a);
	if (any)
		fflush(a->to);
	return any;
}

static void *loop(void *arg)
{
	struct timespec idle = { .tv_nsec = IDLE_NS };
	struct bpf_attach *a = arg;

	while (!__atomic_load_n(&a->stop, __ATOMIC_ACQUIRE))
		if (!print(a))
			nanosleep(&idle, NULL);
	print(a);
	return NULL;
}

int bpf_output_start(struct bpf_attach *a)
{
	static char buffer[BUFFER];	/* static, since the stream outlives the session */
	sigset_t all, old;
	int err;

	a->copy = malloc(sizeof(struct pb_progs_output) + MAX_EVENT);
	if (!a->copy)
		return pb_error(a->command, "out of memory");
	setvbuf(a->to, buffer, _IOFBF, BUFFER);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&a->thread, NULL, loop, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	a->printing = !err;
	return err ? pb_error(a->command, "a thread for the output: %s", strerror(err)) : 0;
}

/* Prints how often and how long eBPF programs ran, as bpftool does. */
static void show_stats(struct bpf_attach *a, const struct pb_progs_counts *counts)
{
	const struct pb_bpf_object_prog *p = a->session.object->progs;

	for (uint32_t i = 0; i < a->session.object->nr_progs; i++)
		if (counts->progs[i].runs)
			fprintf(a->to, "%s  name %s  run_time_ns %lu run_cnt %lu\n", p[i].section,
				p[i].name, counts->progs[i].ns, counts->progs[i].runs);
}

void bpf_output_end(struct bpf_attach *a)
{
	struct pb_progs_counts counts = { 0 };
	uint32_t zero = 0;

	if (!a->printing)
		return;
	__atomic_store_n(&a->stop, true, __ATOMIC_RELEASE);
	pthread_join(a->thread, NULL);
	free(a->copy);
	forget_names(&a->namer);
	a->printing = false;
	pb_bpf_map_lookup_elem(&a->counts, &zero, &counts, 0);
	if (counts.outputs)
		pb_error(a->command, "%lu output%s of programs lost: they came faster than they "
				     "were printed", counts.outputs, pb_plural(counts.outputs));
	if (counts.functions)
		pb_error(a->command,
			 "%lu function%s without a program: the table of functions is full, or 8 "
			 "other programs are attached there", counts.functions,
			 pb_plural(counts.functions));
	if (counts.no_return)
		pb_error(a->command,
			 "%lu function%s without a program: returns can't be hooked there",
			 counts.no_return, pb_plural(counts.no_return));
	if (counts.runs)
		pb_error(a->command, "programs missed %lu call%s or return%s: too little stack, "
				     "too many open calls, or a tail call of an unknown function "
				     "or of one whose return isn't hooked", counts.runs,
			 pb_plural(counts.runs), pb_plural(counts.runs));
	show_stats(a, &counts);
}

/* Returns whether the elements of such a map are worth printing at the end. */
static bool has_something(const struct pb_bpf_object_map *m)
{
	switch (m->attr.type) {
	case BPF_MAP_TYPE_RINGBUF:
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
	case BPF_MAP_TYPE_PROG_ARRAY:
	case BPF_MAP_TYPE_CGROUP_ARRAY:
		return false;
	}
	return m->kind != PB_BPF_MAP_RODATA && m->kind != PB_BPF_MAP_KCONFIG &&
	       m->kind != PB_BPF_MAP_INNER;
}

/* Writes the name of an address. If several images had the address mapped, uses the last of these
 * images. */
static void name_address(void *arg, uint64_t address, char *to, size_t size)
{
	const struct pb_data *d = arg;

	*to = 0;
	for (size_t i = d->nr_images; i-- > 0 && (!*to || !strncmp(to, "0x", 2));)
		pb_symbols_address(d->symbols, i, 0, UINT64_MAX, address, to, size);
	if (!strncmp(to, "0x", 2))
		*to = 0;
}

void bpf_output_maps(struct bpf_attach *a, const char *dir)
{
	struct bpf_words words = { .btf = a->session.object->btf };
	struct pb_data *data;
	char why[256];

	data = a->bytes ? NULL : pb_data_open(dir, 0, why, sizeof(why));
	if (data) {
		words.name = name_address;
		words.arg = data;
	}
	for (uint32_t i = 0; i < a->session.object->nr_maps; i++) {
		const struct pb_bpf_object_map *m = &a->session.object->maps[i];

		if (has_something(m)) {
			printf("\n%s (%s)\n", m->name, pb_bpf_map_type_name(m->attr.type));
			bpf_map_show(a->session.made->maps[i].map, a->bytes ? NULL : &words);
		}
	}
	if (data)
		pb_data_close(data);
}
