/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

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

/* How the recorded program itself ended: the first image's process. */
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

static void text_modules(const struct pb_view *v)
{
	const struct pb_data *d = v->data;
	const char *last = "";

	pb_out_fmt(v->out, "%-15s: %zu\n", "modules", d->nr_maps);
	for (size_t i = 0; i < d->nr_maps && i < 1000; i++) {
		const struct pb_module_map *m = &d->maps[i];

		if (!m->path || !strcmp(m->path, last))
			continue;
		last = m->path;
		pb_out_fmt(v->out, "  %-40s %u functions%s\n", m->path, m->nr_funcs,
			   m->first_site ? "" : ", not traced");
	}
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
	text_value(v, "options", "options");
	text_value(v, "recorded with", "version");
	text_start(v);
	pb_out_fmt(o, "%-15s: %s\n", "clock", d->clock.name);
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
	pb_out_fmt(o, "\n%-15s: %zu\n%-15s: %u (%u patched, %u refused)\n", "threads", d->nr_threads,
		   "sites", d->ready.sites, d->ready.patched, d->ready.refused);
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
		pb_out_fmt(v->out, ",\n \"exit_status\": null, \"signal\": %d", WTERMSIG(e->status));
	else
		pb_out_fmt(v->out, ",\n \"exit_status\": %d, \"signal\": null", WEXITSTATUS(e->status));
}

static void json_open(const struct pb_view *v, struct pb_stream *s)
{
	struct pb_call_stack *c;
	bool any = false;

	pb_out_str(v->out, ",\n \"open\": [");
	for (size_t i = 0; (c = pb_stacks_nth(s->stacks, i)); i++) {
		if (!c->depth && !c->leaf_site)
			continue;
		pb_out_fmt(v->out, "%s{\"tid\": %u, \"stack\": %llu, \"calls\": [", any ? ",\n  " : "\n  ",
			   c->tid, (ull)c->id);
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
	pb_out_str(v->out, "{");
	pb_view_json_totals(v, r->calls, &r->totals);
	json_value(v, "program", "exe");
	json_value(v, "cmdline", "cmdline");
	json_value(v, "started", "started");
	json_value(v, "tracer", "tracer");
	json_value(v, "mode", "mode");
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
