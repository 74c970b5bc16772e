/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the call graph for graphviz. Each function is a node. Each pair of caller and callee is an
 * edge, labelled with the number of calls. */
#include <errno.h>
#include <stdlib.h>

#include "view/tree.h"

struct edge {
	uint32_t from, to;	/* function numbers */
	uint64_t calls;
};

static int by_ends(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static size_t collect(const struct pb_tree *t, struct edge *edges)
{
	size_t nr = 0, to = 0;

	for (uint32_t i = 1; i < t->nr; i++) {
		const struct pb_tree_node *n = &t->nodes[i];

		if (n->parent != PB_TREE_ROOT && n->calls)
			edges[nr++] = (struct edge){ t->nodes[n->parent].number, n->number,
						     n->calls };
	}
	qsort(edges, nr, sizeof(*edges), by_ends);
	for (size_t i = 0; i < nr; i++) {
		if (to && !by_ends(&edges[to - 1], &edges[i]))
			edges[to - 1].calls += edges[i].calls;
		else
			edges[to++] = edges[i];
	}
	return to;
}

/* Prints a quoted string; escapes the characters that dot would interpret. */
static void print_quoted(struct pb_out *o, const char *s)
{
	pb_out_char(o, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			pb_out_char(o, '\\');
		pb_out_char(o, *s);
	}
	pb_out_char(o, '"');
}

/* Prints one node for each function. Edges name their nodes by the functions' numbers. `list` has
 * room for t->nr elements. */
static void print_nodes(const struct pb_view *v, struct pb_tree *t, struct edge *list)
{
	uint32_t last = 0;
	size_t nr = 0;

	for (uint32_t i = 1; i < t->nr; i++)
		if (t->nodes[i].calls || t->nodes[i].child)
			list[nr++] = (struct edge){ .from = t->nodes[i].number };
	if (nr)
		qsort(list, nr, sizeof(*list), by_ends);
	for (size_t i = 0; i < nr; i++) {
		if (i && list[i].from == last)
			continue;
		last = list[i].from;
		pb_out_fmt(v->out, "\tn%u [label=", last);
		print_quoted(v->out, pb_tree_name(t, last));
		pb_out_str(v->out, "];\n");
	}
}

int pb_view_dot(const struct pb_view *v)
{
	struct edge *edges, *list;
	struct pb_tree t;
	int ret = pb_tree_make(&t, v);

	if (ret)
		return ret;
	edges = calloc(t.nr, sizeof(*edges));
	list = calloc(t.nr, sizeof(*list));
	if (edges && list) {
		size_t nr = collect(&t, edges);

		pb_out_str(v->out, "digraph patchbay {\n\tnode [shape=box];\n");
		print_nodes(v, &t, list);
		for (size_t i = 0; i < nr; i++)
			pb_out_fmt(v->out, "\tn%u -> n%u [label=\"%llu\"];\n", edges[i].from,
				   edges[i].to, (unsigned long long)edges[i].calls);
		pb_out_str(v->out, "}\n");
	} else {
		ret = -ENOMEM;
	}
	free(list);
	free(edges);
	pb_tree_free(&t);
	return ret;
}
