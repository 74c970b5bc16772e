/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints folded stacks, the input of flamegraph.pl and speedscope. In a line "a;b;c NS", a calls b
 * and b calls c. NS is the self time of these calls of c. Calls whose time isn't known add nothing,
 * so their number is reported on stderr. */
#include "base/base.h"
#include "reader/say.h"
#include "view/tree.h"

static void print_name(struct pb_out *o, const char *name)
{
	for (; *name; name++)
		pb_out_char(o, *name == ';' ? ':' : *name);
}

static void print_stack(const struct pb_view *v, const struct pb_tree *t, uint32_t node)
{
	uint32_t path[PB_TREE_DEPTH + 2];
	unsigned nr = 0;

	for (uint32_t n = node; n != PB_TREE_ROOT && nr < PB_TREE_DEPTH + 2; n = t->nodes[n].parent)
		path[nr++] = n;
	while (nr) {
		print_name(v->out, pb_tree_name(t, t->nodes[path[--nr]].number));
		if (nr)
			pb_out_char(v->out, ';');
	}
}

int pb_view_flame(const struct pb_view *v)
{
	bool has_times = pb_data_has_times(v->data);
	uint64_t untimed = 0;
	struct pb_tree t;
	int ret = pb_tree_make(&t, v);

	if (ret)
		return ret;
	for (uint32_t i = 1; i < t.nr && !v->out->error; i++) {
		uint64_t ns = pb_clock_span(&v->data->clock, t.nodes[i].self);

		/* if the data has no times, print the number of calls */
		if (!has_times)
			ns = t.nodes[i].calls;
		untimed += t.nodes[i].calls - t.nodes[i].timed;
		if (!ns)
			continue;
		print_stack(v, &t, i);
		pb_out_fmt(v->out, " %llu\n", (unsigned long long)ns);
	}
	pb_tree_free(&t);
	/* only commands print warnings; a fuzzer has no command */
	if (has_times && untimed && v->out->command)
		pb_say(v->out->command, "warning: the time of %llu call%s isn't known, so the "
		       "output has no self time of %s", (unsigned long long)untimed,
		       pb_plural(untimed), untimed == 1 ? "this call" : "these calls");
	return 0;
}
