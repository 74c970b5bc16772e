/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints the call tree of the whole program, or of some functions. For functions, prints the paths
 * that led to them, then one tree for each function. That tree has the function's callees on all
 * paths.
 *
 *   # TOTAL TIME : (CALLS) FUNCTION
 *       3.012 ms : (1) main
 *       2.900 ms :  +-(2) work
 *       1.200 ms :  | +-(40) helper
 *       0.100 ms :  +-(1) done
 *
 * If the time of no call of a node is known, the time is shown as "-".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "view/filter.h"
#include "view/tree.h"

typedef unsigned long long ull;

/* Returns the text of a node's time. */
static const char *time_of(const struct pb_view *v, const struct pb_tree_node *n, char *buf,
			   size_t len)
{
	/* the time of a part of a call may be known */
	if (!pb_data_has_times(v->data) || (!n->timed && !n->total))
		return "-";
	return pb_view_time(buf, len, pb_clock_span(&v->data->clock, n->total));
}

static void print_node(const struct pb_view *v, const struct pb_tree *t, uint32_t node,
		       uint32_t top_depth, const bool *more)
{
	const struct pb_tree_node *n = &t->nodes[node];
	struct pb_out *o = v->out;
	char time[40];

	pb_out_fmt(o, "  %10s : ", time_of(v, n, time, sizeof(time)));
	for (uint32_t level = top_depth + 1; level < n->depth; level++)
		pb_out_str(o, more[level] ? " |" : "  ");
	if (n->depth > top_depth)
		pb_out_str(o, " +-");
	pb_out_fmt(o, "(%llu) %s\n", (ull)n->calls, pb_tree_name(t, n->number));
}

/* Prints the tree below `top`. Each node has a link to its parent, so no recursion is needed. */
static void print_below(const struct pb_view *v, const struct pb_tree *t, uint32_t top)
{
	bool more[PB_TREE_DEPTH + 2] = { false };
	uint32_t node = top, top_depth = t->nodes[top].depth;

	while (!v->out->error) {
		more[t->nodes[node].depth] = node != top && t->nodes[node].next;
		print_node(v, t, node, top_depth, more);
		if (t->nodes[node].child) {
			node = t->nodes[node].child;
			continue;
		}
		while (node != top && !t->nodes[node].next)
			node = t->nodes[node].parent;
		if (node == top)
			return;
		node = t->nodes[node].next;
	}
}

static void print_header(const struct pb_view *v)
{
	pb_out_str(v->out, "# TOTAL TIME : (CALLS) FUNCTION\n");
}

static int print_whole(const struct pb_view *v, struct pb_tree *t)
{
	pb_tree_sort(t);
	print_header(v);
	for (uint32_t c = t->nodes[PB_TREE_ROOT].child; c; c = t->nodes[c].next)
		print_below(v, t, c);
	return 0;
}

static void print_path(const struct pb_view *v, const struct pb_tree *t, uint32_t node, unsigned nr)
{
	const struct pb_tree_node *n = &t->nodes[node];
	char time[40];
	unsigned i = 0;

	pb_out_fmt(v->out, " backtrace #%u: hit %llu, time %s\n", nr, (ull)n->calls,
		   time_of(v, n, time, sizeof(time)));
	for (; node != PB_TREE_ROOT; node = t->nodes[node].parent)
		pb_out_fmt(v->out, "   [%u] %s\n", i++, pb_tree_name(t, t->nodes[node].number));
	pb_out_char(v->out, '\n');
}

/* True if the node lies below another node of its function. */
static bool is_inner(const struct pb_tree *t, uint32_t node)
{
	uint32_t number = t->nodes[node].number;

	while ((node = t->nodes[node].parent) != PB_TREE_ROOT)
		if (t->nodes[node].number == number)
			return true;
	return false;
}

/* Adds a node to its copy in the merged tree, which is below the copy `up`. Returns the index of
 * the copy. */
static uint32_t merge_node(struct pb_tree *merged, const struct pb_tree_node *n, uint32_t up)
{
	uint32_t copy = pb_tree_child(merged, up, n->number);

	merged->nodes[copy].calls += n->calls;
	merged->nodes[copy].timed += n->timed;
	/* below a node "[deeper]" (tree.h), the copy is the caller's copy, too, and the caller's
	 * time includes this node's time */
	if (copy != up)
		merged->nodes[copy].total += n->total;
	return copy;
}

/* Adds `top`, a node of a selected function, and the tree below it to the merged tree. A node's
 * `mark` is the index of the node's copy. -D counts levels from the function; deeper nodes are left
 * out. */
static void merge_below(const struct pb_view *v, struct pb_tree *t, struct pb_tree *merged,
			uint32_t top)
{
	uint32_t node = top;

	while (!merged->nomem) {
		struct pb_tree_node *n = &t->nodes[node];

		n->mark = merge_node(merged, n, node == top ? PB_TREE_ROOT :
				     t->nodes[n->parent].mark);
		if (n->child && (!v->max_depth || merged->nodes[n->mark].depth < v->max_depth)) {
			node = n->child;
			continue;
		}
		while (node != top && !t->nodes[node].next)
			node = t->nodes[node].parent;
		if (node == top)
			return;
		node = t->nodes[node].next;
	}
}

/* Merges the trees of all nodes of the functions. If a node lies below another node of the same
 * function, it is only a part of the upper node's tree. If it lies below a node of another selected
 * function, it is a part of that function's tree, and has a tree of its own, too. */
static int merge_all(const struct pb_view *v, struct pb_tree *t, struct pb_tree *merged)
{
	unsigned nr = 0;

	for (uint32_t i = 1; i < t->nr && !merged->nomem; i++) {
		const struct pb_tree_node *n = &t->nodes[i];
		bool focus = pb_filters_number(v->filters, n->number) & PB_FILTER_FOCUS;

		if (n->pruned || !focus || is_inner(t, i))
			continue;
		print_path(v, t, i, nr++);
		merge_below(v, t, merged, i);
	}
	return merged->nomem ? -ENOMEM : 0;
}

/* Returns whether an option may hide calls of the function. */
static bool chooses(const struct pb_view *v)
{
	return v->nr_tids || v->min_ns || v->from || v->to != UINT64_MAX ||
	       pb_filters_chooses(v->filters);
}

static int print_focus(const struct pb_view *v, struct pb_tree *t)
{
	struct pb_tree merged;
	int ret = pb_tree_init(&merged);

	if (!ret) {
		merged.sites = t->sites;
		merged.numbers = t->numbers;
		merged.functions = t->functions;
		merged.nr_functions = t->nr_functions;
		pb_out_str(v->out, "# backtraces\n");
		ret = merge_all(v, t, &merged);
	}
	if (!ret && merged.nr == 1)
		pb_out_fmt(v->out, "# no such call was recorded%s\n", chooses(v) ?
			   ", or the options exclude all of them" : "");
	else if (!ret)
		print_whole(v, &merged);
	memset(&merged.sites, 0, sizeof(merged.sites));
	merged.numbers = NULL;
	merged.functions = NULL;
	pb_tree_free(&merged);
	return ret;
}

int pb_view_graph(const struct pb_view *v, bool focus)
{
	struct pb_view all = *v;
	struct pb_tree t;
	int ret;

	/* -D counts levels from the function. So the tree must have calls of the function at any
	 * depth. */
	if (focus)
		all.max_depth = 0;
	ret = pb_tree_make(&t, &all);

	if (ret)
		return ret;
	ret = focus ? print_focus(v, &t) : print_whole(v, &t);
	pb_view_losses(v, &t.totals, "# ");
	pb_tree_free(&t);
	return ret;
}
