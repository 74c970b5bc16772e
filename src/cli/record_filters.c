/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Patterns are looked up before the program starts: one that matches nothing
 * is a typing error, and is said while nothing has happened yet. For libraries
 * the loader is asked which ones it would take (ld.so --list), which is what
 * ldd does.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/analysis_access.h"
#include "cli/record.h"
#include "control/resolve.h"

#define MAX_LIBRARIES 512

struct known {
	const struct pb_analysis *list[MAX_LIBRARIES + 1];
	unsigned nr;
	const char *exe;
};

/* --- which modules there will be ----------------------------------------- */

static struct record_module *analyse(struct record_modules *m, const char *path, char *err,
				     size_t errlen)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct record_module *mod = NULL;

	if (fd < 0) {
		snprintf(err, errlen, "%s", strerror(errno));
	} else {
		mod = record_module_get(m, fd, path, err, errlen);
		close(fd);
	}
	return mod;
}

/* "\tlibc.so.6 => /lib/libc.so.6 (0x...)" or "\t/lib64/ld.so (0x...)" */
static char *path_in_line(char *line)
{
	char *p = strstr(line, "=> "), *end;

	p = p ? p + 3 : line + strspn(line, " \t");
	end = strstr(p, " (0x");
	if (*p != '/' || !end)
		return NULL;
	*end = 0;
	return p;
}

static FILE *list_libraries(const struct record_target *t, const char *exe, pid_t *pid)
{
	char *argv[] = { (char *)t->loader, "--list", (char *)exe, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], ret;

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	ret = posix_spawn(pid, t->loader, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (ret) {
		close(fds[0]);
		return NULL;
	}
	return fdopen(fds[0], "r");
}

static void add_libraries(struct known *k, const struct record_options *o,
			  const struct record_target *t, const char *exe, struct record_modules *m)
{
	char *line = NULL, *path, err[256];
	size_t cap = 0;
	pid_t pid;
	FILE *f = list_libraries(t, exe, &pid);

	if (!f)
		return;
	while (getline(&line, &cap, f) > 0 && k->nr < MAX_LIBRARIES) {
		struct record_module *mod = NULL;

		path = path_in_line(line);
		if (path)
			mod = analyse(m, path, err, sizeof(err));
		if (mod && record_module_traced(o, mod, false))
			k->list[k->nr++] = mod->map;
	}
	free(line);
	fclose(f);
	waitpid(pid, NULL, 0);
}

/* --- patterns ------------------------------------------------------------ */

static int add(struct record_options *o, enum pb_control_file file, const char *value)
{
	if (!pb_control_writes_add(&o->writes, file, value))
		return 0;
	return record_error("the patterns name more functions than a message holds; "
			    "a glob (--match=glob) is sent as it is");
}

static enum pb_control_file file_of(const struct record_options *o, char option)
{
	bool graph = !strcmp(o->tracer, "function_graph");

	switch (option) {
	case 'F':
		return graph ? PB_CF_SET_GRAPH_FUNCTION : PB_CF_SET_FTRACE_FILTER;
	case 'N':
		return graph ? PB_CF_SET_GRAPH_NOTRACE : PB_CF_SET_FTRACE_NOTRACE;
	case 'C':
		return PB_CF_GRAPH_CALLERS;
	case 'P':
		return PB_CF_SET_FTRACE_FILTER;
	default:
		return PB_CF_SET_FTRACE_NOTRACE;
	}
}

static int nothing_matches(const struct record_pattern *p, const struct known *k)
{
	char near[4 * PB_EDIT_MAX], where[PATH_MAX];

	pb_control_nearest_function(k->list, k->nr, p->text, near, sizeof(near));
	snprintf(where, sizeof(where), k->nr > 1 ? "%s and its libraries" : "%s", k->exe);
	if (*near)
		return record_error("-%c %s: no function in %s matches; did you mean %s?", p->option,
				    p->text, where, near);
	return record_error("-%c %s: no function in %s matches (see patchbay list%s)", p->option,
			    p->text, where, k->nr > 1 ? "" : "; libraries need --module or --all");
}

static const char *refused_text(int reason)
{
	static const char *const texts[] = {
#define X(name, text) text,
		PB_REFUSED_LIST(X)
#undef X
	};

	return reason > 0 && reason < PB_NR_REFUSED ? texts[reason] : "unknown";
}

static int resolve_pattern(struct record_options *o, const struct record_pattern *p,
			   const struct known *k)
{
	bool includes = strchr("FCP", p->option) && *p->text != '!';
	struct pb_resolved r;
	char err[256];
	int ret = pb_control_resolve(k->list, k->nr, o->match, p->text, &r, err,
				     sizeof(err));

	if (ret)
		return record_error("-%c %s: %s", p->option, p->text, err);
	if (!r.matched && r.module_known)
		ret = nothing_matches(p, k);
	else if (!r.matched && o->match != PB_MATCH_GLOB)
		ret = record_error("-%c %s: the module isn't loaded at start, so its names aren't known; "
				   "use a glob", p->option, p->text);
	else if (!r.usable && r.matched && includes)
		ret = record_error("-%c %s: can't be traced: %s", p->option, p->text,
				   refused_text(r.refused));
	else
		ret = add(o, file_of(o, p->option), r.value);
	free(r.value);
	return ret;
}

static int resolve_patterns(struct record_options *o, const struct record_target *t,
			    struct record_modules *m)
{
	struct known k = { .exe = t->exe };
	char exe[PATH_MAX], err[256];
	bool libraries = o->all || o->nr_modules;
	struct record_module *mod;
	int ret = 0;

	if (!o->nr_patterns)
		return 0;
	mod = realpath(t->exe, exe) ? analyse(m, exe, err, sizeof(err)) : NULL;
	if (!mod)
		return record_error("%s: can't be analysed: %s", t->exe, err);
	k.list[k.nr++] = mod->map;
	if (libraries)
		add_libraries(&k, o, t, exe, m);
	for (unsigned i = 0; i < o->nr_patterns && !ret; i++)
		ret = resolve_pattern(o, &o->patterns[i], &k);
	return ret;
}

/* The agent applies them in this order: the tracer starts with all set. */
int record_filters_resolve(struct record_options *o, const struct record_target *t,
			   struct record_modules *m)
{
	int ret = 0;

	if (o->clock)
		ret = add(o, PB_CF_TRACE_CLOCK, o->clock);
	if (!ret)
		ret = resolve_patterns(o, t, m);
	if (o->size && !ret)
		ret = add(o, PB_CF_SET_FTRACE_SIZE, o->size);
	if (o->depth && !ret)
		ret = add(o, PB_CF_MAX_GRAPH_DEPTH, o->depth);
	if (o->thresh[0] && !ret)
		ret = add(o, PB_CF_TRACING_THRESH, o->thresh);
	if (!ret)
		ret = add(o, PB_CF_CURRENT_TRACER, o->tracer);
	return ret;
}
