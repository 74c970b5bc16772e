/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay info`: prints facts about the recording in a data directory, in lines or as JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "view/view.h"

typedef unsigned long long ull;

static void status_text(char *buf, size_t len, int status)
{
	if (WIFSIGNALED(status))
		snprintf(buf, len, "killed by signal %d (%s)%s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else if (WIFEXITED(status))
		snprintf(buf, len, "exit status %d", WEXITSTATUS(status));
	else
		snprintf(buf, len, "wait status %#x", (unsigned)status);
}

/* Returns how the recorded program ended, or NULL if this isn't known. The recorded program is the
 * process of the first image. If no exit has this process's PID, returns the first exit: in another
 * pid namespace, the process has another PID. */
static const struct pb_exit *main_exit(const struct pb_data *d)
{
	uint32_t pid = d->nr_images > 1 ? d->images[1].pid : 0;

	for (size_t i = 0; i < d->nr_exits; i++)
		if (d->exits[i].pid == pid || !pid)
			return &d->exits[i];
	return d->nr_exits ? &d->exits[0] : NULL;
}

static void text_value(const struct pb_view *v, const char *label, const char *key)
{
	char value[4096];

	if (pb_data_session(v->data, key, value, sizeof(value)))
		pb_out_fmt(v->out, "%-15s: %s\n", label, value);
}

static void text_start(const struct pb_view *v)
{
	const struct pb_data *d = v->data;
	char value[64];
	time_t start = (time_t)(d->clock.start_realtime / 1000000000);
	struct tm tm;

	if (pb_data_session(d, "started", value, sizeof(value)))
		pb_out_fmt(v->out, "%-15s: %s\n", "started", value);
	else if (start && gmtime_r(&start, &tm) && strftime(value, sizeof(value), "%FT%TZ", &tm))
		pb_out_fmt(v->out, "%-15s: %s\n", "started", value);
}

/* Prints the writes to control files, for example "set_graph_function > work". */
static void text_options(const struct pb_view *v)
{
	static const char key[] = "option=";
	const char *label = "options";

	for (const char *p = v->data->session, *end; p && *p; p = *end ? end + 1 : end) {
		end = p + strcspn(p, "\n");
		if (strncmp(p, key, sizeof(key) - 1))
			continue;
		p += sizeof(key) - 1;
		pb_out_fmt(v->out, "%-15s: %.*s\n", label, (int)(end - p), p);
		label = "";
	}
}

static void text_clock(const struct pb_view *v)
{
	const struct pb_clock *c = &v->data->clock;
	char span[40];

	pb_out_fmt(v->out, "%-15s: %s", "clock", c->name);
	if (c->khz && !c->none)
		pb_out_fmt(v->out, ", %llu.%06llu GHz by %zu readings in %s, %llu ns off at most",
			   (ull)(c->khz / 1000000), (ull)(c->khz % 1000000), c->readings,
			   pb_view_time_left(span, sizeof(span), c->span_ns), (ull)c->off_ns);
	pb_out_char(v->out, '\n');
}

struct module_line {
	const struct pb_module_map *map;	/* the module's first mapping */
	uint32_t images;
	bool traced;
};

static int by_number(const void *a, const void *b)
{
	const struct pb_module_map *const *x = a, *const *y = b;

	if ((*x)->module != (*y)->module)
		return (*x)->module < (*y)->module ? -1 : 1;
	return (*x)->image < (*y)->image ? -1 : (*x)->image > (*y)->image;
}

static int traced_first(const void *a, const void *b)
{
	const struct module_line *x = a, *y = b;

	if (x->traced != y->traced)
		return x->traced ? -1 : 1;
	return x->map->module < y->map->module ? -1 : x->map->module > y->map->module;
}

/* Writes one element to `lines` for each module, and returns the number of modules. `lines` has
 * room for all maps. */
static size_t collect_modules(const struct pb_data *d, const struct pb_module_map **maps,
			      struct module_line *lines)
{
	uint32_t image = 0;
	size_t nr = 0;

	for (size_t i = 0; i < d->nr_maps; i++)
		maps[i] = &d->maps[i];
	qsort(maps, d->nr_maps, sizeof(*maps), by_number);
	for (size_t i = 0; i < d->nr_maps; i++) {
		if (!nr || lines[nr - 1].map->module != maps[i]->module) {
			lines[nr++] = (struct module_line){ .map = maps[i] };
			image = 0;
		}
		lines[nr - 1].images += maps[i]->image != image;
		lines[nr - 1].traced |= maps[i]->first_site != 0;
		image = maps[i]->image;
	}
	qsort(lines, nr, sizeof(*lines), traced_first);
	return nr;
}

static void text_modules(const struct pb_view *v)
{
	const struct pb_data *d = v->data;
	const struct pb_module_map **maps = calloc(d->nr_maps + 1, sizeof(*maps));
	struct module_line *lines = calloc(d->nr_maps + 1, sizeof(*lines));
	size_t nr = maps && lines ? collect_modules(d, maps, lines) : 0;

	pb_out_fmt(v->out, "%-15s: %zu\n", "modules", nr);
	for (size_t i = 0; i < nr; i++) {
		const struct pb_module_map *m = lines[i].map;

		pb_out_fmt(v->out, "  %-40s %u function%s%s", m->path ? m->path : "?",
			   m->nr_funcs, pb_plural(m->nr_funcs),
			   lines[i].traced ? "" : ", not traced");
		if (d->nr_images > 2)
			pb_out_fmt(v->out, ", in %u image%s", lines[i].images,
				   pb_plural(lines[i].images));
		pb_out_char(v->out, '\n');
	}
	free(maps);
	free(lines);
}

static void text_sites(const struct pb_view *v)
{
	const struct pb_msg_ready *r = &v->data->ready;
	char took[40], stop[40];

	pb_out_fmt(v->out, "%-15s: %u (%u patched", "sites", r->sites, r->patched);
	if (r->patch_ns)
		pb_out_fmt(v->out, " in %s", pb_view_time_left(took, sizeof(took), r->patch_ns));
	pb_out_fmt(v->out, ", %u refused)\n", r->refused);
	if (v->data->end.max_stop_ns)
		pb_out_fmt(v->out, "%-15s: %s\n", "longest stop",
			   pb_view_time_left(stop, sizeof(stop), v->data->end.max_stop_ns));
}

static void info_text(const struct pb_view *v, const struct pb_report *r)
{
	const struct pb_data *d = v->data;
	const struct pb_exit *e = main_exit(d);
	struct pb_out *o = v->out;
	char status[128];

	text_value(v, "program", "exe");
	text_value(v, "command line", "cmdline");
	text_value(v, "directory", "cwd");
	text_value(v, "host", "host");
	text_value(v, "kernel", "kernel");
	text_value(v, "user", "user");
	text_value(v, "tracer", "tracer");
	text_value(v, "mode", "mode");
	text_value(v, "snapshot", "snapshot");
	text_options(v);
	text_value(v, "recorded with", "version");
	text_start(v);
	text_clock(v);
	if (e) {
		status_text(status, sizeof(status), e->status);
		pb_out_fmt(o, "%-15s: %s\n", "ended", status);
	}
	pb_out_fmt(o, "%-15s: %llu\n%-15s: %llu\n", "calls", (ull)r->calls, "records",
		   (ull)r->totals.records);
	pb_out_fmt(o, "%-15s: %llu\n%-15s: %llu\n", "lost", (ull)r->totals.lost, "no return",
		   (ull)r->totals.no_return);
	pb_out_fmt(o, "%-15s: %llu", "bytes", (ull)r->totals.bytes);
	if (r->calls)
		pb_out_fmt(o, " (%llu.%02llu a call)", (ull)(r->totals.bytes / r->calls),
			   (ull)(r->totals.bytes % r->calls * 100 / r->calls));
	pb_out_fmt(o, "\n%-15s: %zu\n", "threads", d->nr_threads);
	if (d->nr_images > 2)
		pb_out_fmt(o, "%-15s: %zu\n", "images", d->nr_images - 1);
	text_sites(v);
	if (r->open)
		pb_out_fmt(o, "%-15s: %llu (see --open)\n", "open at the end", (ull)r->open);
	text_modules(v);
	pb_view_losses(v, &r->totals, "# ");
}

static void json_value(const struct pb_view *v, const char *name, const char *key)
{
	char value[4096];

	pb_data_session(v->data, key, value, sizeof(value));
	pb_out_fmt(v->out, ",\n \"%s\": ", name);
	pb_out_json(v->out, value);
}

static unsigned long session_number(const struct pb_view *v, const char *key)
{
	char value[32];

	pb_data_session(v->data, key, value, sizeof(value));
	return strtoul(value, NULL, 10);
}

static void json_modules(const struct pb_view *v)
{
	const struct pb_data *d = v->data;

	pb_out_str(v->out, ",\n \"modules\": [");
	for (size_t i = 0; i < d->nr_maps; i++) {
		const struct pb_module_map *m = &d->maps[i];

		pb_out_str(v->out, i ? ",\n  {\"path\": " : "\n  {\"path\": ");
		pb_out_json(v->out, m->path ? m->path : "");
		pb_out_fmt(v->out, ", \"image\": %u, \"module\": %u, \"functions\": %u, "
			   "\"first_site\": %u, \"bias\": %llu}", m->image, m->module, m->nr_funcs,
			   m->first_site, (ull)m->bias);
	}
	pb_out_str(v->out, "]");
}

static void json_status(const struct pb_view *v)
{
	const struct pb_exit *e = main_exit(v->data);

	if (!e)
		pb_out_str(v->out, ",\n \"exit_status\": null, \"signal\": null");
	else if (WIFSIGNALED(e->status))
		pb_out_fmt(v->out, ",\n \"exit_status\": null, \"signal\": %d",
			   WTERMSIG(e->status));
	else
		pb_out_fmt(v->out, ",\n \"exit_status\": %d, \"signal\": null",
			   WEXITSTATUS(e->status));
}

static void json_open(const struct pb_view *v, struct pb_stream *s)
{
	struct pb_call_stack *c;
	bool any = false;

	pb_out_str(v->out, ",\n \"open\": [");
	for (size_t i = 0; (c = pb_stacks_nth(s->stacks, i)); i++) {
		if (!c->depth && !c->leaf_site)
			continue;
		pb_out_fmt(v->out, "%s{\"tid\": %u, \"stack\": %llu, \"calls\": [", any ? ",\n  " :
			   "\n  ", c->tid, (ull)c->id);
		any = true;
		for (uint32_t n = 0; n < c->depth; n++) {
			if (n)
				pb_out_str(v->out, ", ");
			pb_out_json(v->out, pb_symbols_site(v->data->symbols, c->image,
							    c->calls[n].site).name);
		}
		if (c->leaf_site) {
			if (c->depth)
				pb_out_str(v->out, ", ");
			pb_out_json(v->out, pb_symbols_site(v->data->symbols, c->image,
							    c->leaf_site).name);
		}
		pb_out_str(v->out, "]}");
	}
	pb_out_str(v->out, "]");
}

static void json_notes(const struct pb_view *v)
{
	pb_out_str(v->out, ",\n \"notes\": [");
	for (size_t i = 0; i < v->data->nr_notes; i++) {
		pb_out_str(v->out, i ? ", " : "");
		pb_out_json(v->out, v->data->notes[i]);
	}
	pb_out_str(v->out, "]");
}

static void info_json(const struct pb_view *v, const struct pb_report *r, struct pb_stream *s)
{
	char why[8];

	pb_out_str(v->out, "{");
	pb_view_json_totals(v, r->calls, &r->totals);
	json_value(v, "program", "exe");
	json_value(v, "cmdline", "cmdline");
	json_value(v, "started", "started");
	json_value(v, "tracer", "tracer");
	json_value(v, "mode", "mode");
	if (pb_data_session(v->data, "snapshot", why, sizeof(why)))
		json_value(v, "snapshot", "snapshot");
	pb_out_fmt(v->out, ",\n \"cpus\": %lu, \"tsc_khz\": %llu, \"clock_readings\": %zu, "
		   "\"clock_off_ns\": %llu", session_number(v, "cpus"), (ull)v->data->clock.khz,
		   v->data->clock.readings, (ull)v->data->clock.off_ns);
	json_status(v);
	if (r->calls)
		pb_out_fmt(v->out, ",\n \"bytes_per_call\": %.3f",
			   (double)r->totals.bytes / (double)r->calls);
	pb_out_fmt(v->out, ",\n \"open_calls\": %llu", (ull)r->open);
	json_modules(v);
	json_notes(v);
	if (s)
		json_open(v, s);
	pb_out_str(v->out, "}\n");
}

int pb_view_info(const struct pb_view *v, bool json, bool open)
{
	struct pb_report r;
	struct pb_stream s;
	struct pb_event ev;
	int ret = pb_report_make(v, &r);

	if (ret)
		return ret;
	if (open) {
		ret = pb_stream_open(&s, v->data, r.by_time, v->tids, v->nr_tids);
		while (!ret && pb_stream_next(&s, &ev))
			;
	}
	if (!ret && json)
		info_json(v, &r, open ? &s : NULL);
	else if (!ret && open)
		pb_view_open_calls(v, &s, "");
	else if (!ret)
		info_text(v, &r);
	if (!ret && open)
		pb_stream_close(&s);
	pb_report_free(&r);
	return ret;
}
