/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adds calls to the tree. A node's children form a list. A hash table finds a child by its parent
 * and number. */
#include "view/tree.h"
#include "view/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reader/call_walk.h"

static uint32_t hash_of(uint32_t parent, uint32_t number)
{
	uint64_t h = ((uint64_t)parent << 32 | number) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32);
}

int pb_tree_init(struct pb_tree *t)
{
	memset(t, 0, sizeof(*t));
	t->room = 64;
	t->hash_size = 256;
	t->nodes = calloc(t->room, sizeof(*t->nodes));
	t->hash = calloc(t->hash_size, sizeof(*t->hash));
	t->nr = 1;
	return t->nodes && t->hash ? 0 : -ENOMEM;
}

void pb_tree_free(struct pb_tree *t)
{
	free(t->nodes);
	free(t->hash);
	free(t->numbers);
	free(t->functions);
	pb_distinct_free(&t->distinct);
	pb_sites_free(&t->sites);
}

static bool enlarge(struct pb_tree *t)
{
	struct pb_tree_node *nodes = realloc(t->nodes, (size_t)t->room * 2 * sizeof(*nodes));
	uint32_t *hash;

	if (!nodes)
		return false;
	t->nodes = nodes;
	hash = calloc((size_t)t->hash_size * 2, sizeof(*hash));
	if (!hash)
		return false;
	free(t->hash);
	t->hash = hash;
	t->hash_size *= 2;
	t->room *= 2;
	for (uint32_t i = 1; i < t->nr; i++) {
		uint32_t at = hash_of(nodes[i].parent, nodes[i].number) & (t->hash_size - 1);

		while (hash[at])
			at = (at + 1) & (t->hash_size - 1);
		hash[at] = i;
	}
	return true;
}

/* Beyond the limits of depth and nodes, the child is a node "[deeper]". The node "[deeper]" is its
 * own child. If no node "[deeper]" can be made, the child is the parent itself. */
uint32_t pb_tree_child(struct pb_tree *t, uint32_t parent, uint32_t number)
{
	struct pb_tree_node *p = &t->nodes[parent];
	uint32_t at, i;

	if (p->number == PB_TREE_DEEPER && parent != PB_TREE_ROOT)
		return parent;
	if (p->depth >= PB_TREE_DEPTH)
		number = PB_TREE_DEEPER;
	for (;;) {
		at = hash_of(parent, number) & (t->hash_size - 1);
		for (; (i = t->hash[at]); at = (at + 1) & (t->hash_size - 1))
			if (t->nodes[i].parent == parent && t->nodes[i].number == number)
				return i;
		if (t->nr < PB_TREE_NODES || number == PB_TREE_DEEPER)
			break;
		number = PB_TREE_DEEPER;
	}
	if (t->nr >= 2 * PB_TREE_NODES)
		return parent;
	if (t->nr == t->room) {
		if (!enlarge(t)) {
			t->nomem = true;
			return parent;
		}
		at = hash_of(parent, number) & (t->hash_size - 1);
		while (t->hash[at])
			at = (at + 1) & (t->hash_size - 1);
	}
	i = t->hash[at] = t->nr++;
	t->nodes[i] = (struct pb_tree_node){
		.number = number, .parent = parent, .next = t->nodes[parent].child,
		.depth = t->nodes[parent].depth + 1,
	};
	t->nodes[parent].child = i;
	return i;
}

const char *pb_tree_name(const struct pb_tree *t, uint32_t number)
{
	size_t at = pb_bisect(i, 0, t->nr_functions, t->numbers[i] < number);

	if (number == PB_TREE_DEEPER)
		return "[deeper]";
	return at < t->nr_functions && t->numbers[at] == number ?
	       t->functions[at].name : pb_sites_function(&t->sites, number).name;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Lists each function of the tree once and makes the names distinct. If there isn't enough memory,
 * the names stay as they are. */
static void name_functions(struct pb_tree *t, struct pb_data *d)
{
	size_t nr = 0;

	t->numbers = calloc(t->nr, sizeof(*t->numbers));
	for (uint32_t i = 1; t->numbers && i < t->nr; i++)
		if (t->nodes[i].number != PB_TREE_DEEPER)
			t->numbers[nr++] = t->nodes[i].number;
	if (nr)
		qsort(t->numbers, nr, sizeof(*t->numbers), by_value);
	for (size_t i = 0; i < nr; i++)
		if (!i || t->numbers[i] != t->numbers[t->nr_functions - 1])
			t->numbers[t->nr_functions++] = t->numbers[i];
	t->functions = calloc(t->nr_functions + 1, sizeof(*t->functions));
	if (!t->functions)
		t->nr_functions = 0;
	for (size_t i = 0; i < t->nr_functions; i++)
		t->functions[i] = pb_sites_function(&t->sites, t->numbers[i]);
	pb_distinct_array(&t->distinct, d, t->functions, t->nr_functions);
}

/* Returns the node of the next outer call of the event's call. */
static uint32_t around(const struct pb_event *ev)
{
	uint32_t depth = ev->stack->depth;

	if (ev->kind == PB_EV_ENTRY || ev->kind == PB_EV_OPEN)
		depth--;
	return depth ? ev->stack->calls[depth - 1].view : PB_TREE_ROOT;
}

/* Adds the time of an event that counts for `calls` calls. */
static void add(struct pb_tree *t, const struct pb_event *ev, uint32_t node, uint64_t duration,
		uint64_t child, unsigned calls)
{
	struct pb_tree_node *n = &t->nodes[node];

	n->timed += calls;
	/* if the caller is in the same node "[deeper]", the caller's time includes this call's
	 * time */
	if (around(ev) != node)
		n->total += duration;
	n->self += duration > child ? duration - child : 0;
	if (ev->stack->depth)
		ev->stack->calls[ev->stack->depth - 1].child += duration;
}

static void add_child(const struct pb_event *ev, uint64_t child)
{
	if (ev->stack->depth)
		ev->stack->calls[ev->stack->depth - 1].child += child;
}

static uint32_t node_of(struct pb_tree *t, const struct pb_event *ev)
{
	return pb_tree_child(t, around(ev), pb_sites_number(&t->sites, ev->image, ev->site));
}

/* An invisible call has the node of the next outer call. */
static void on_end(struct pb_tree *t, const struct pb_view *v, const struct pb_event *ev,
		   bool visible, unsigned calls)
{
	const struct pb_open_call *call = ev->call;
	uint64_t start = call->aux ? call->aux : ev->start, end = ev->time;
	bool known = ev->kind == PB_EV_EXIT && start && end >= start;

	if (t->selects && (!visible || (v->min_ns && !known) || !pb_select_long(v, start, end) ||
			   !pb_select_clip(v, &start, &end))) {
		add_child(ev, call->child);
		return;
	}
	t->nodes[call->view].calls += calls;
	if (known)
		add(t, ev, call->view, pb_clock_ticks_between(&v->data->clock, start, end),
		    call->child, calls);
	else
		add_child(ev, call->child);
}

static void on_event(struct pb_tree *t, const struct pb_view *v, const struct pb_event *ev,
		     unsigned calls)
{
	bool visible = !t->selects || pb_select(v, ev) & PB_SEL_VISIBLE;
	uint64_t start = ev->start ? ev->start : ev->time, end = ev->time;
	uint32_t node;

	switch (ev->kind) {
	case PB_EV_ENTRY: case PB_EV_OPEN:
		if (!ev->call)
			return;
		ev->call->view = visible ? node_of(t, ev) : around(ev);
		return;
	case PB_EV_EXIT: case PB_EV_END:
		if (ev->call) {
			on_end(t, v, ev, visible, calls);
			return;
		}
		break;
	case PB_EV_LEAF:
		if (t->selects && (!visible || !pb_select_long(v, start, end) ||
				   !pb_select_clip(v, &start, &end)))
			return;
		node = node_of(t, ev);
		t->nodes[node].calls += calls;
		add(t, ev, node, pb_clock_ticks_between(&v->data->clock, start, end), 0, calls);
		return;
	case PB_EV_LEAF_OPEN:
		ev->stack->user = visible ? node_of(t, ev) : PB_TREE_ROOT;
		return;
	case PB_EV_LOST: case PB_EV_NONE:
		return;
	default:
		break;
	}
	if (visible && !v->min_ns && calls && pb_select_clip(v, &start, &end)) {
		node = node_of(t, ev);		/* may move the array t->nodes */
		t->nodes[node].calls += calls;
	}
}

struct maker {
	struct pb_tree *tree;
	const struct pb_view *view;
	uint64_t latest;	/* time of the latest event */
};

static bool add_event(void *arg, const struct pb_event *ev, unsigned calls)
{
	struct maker *m = arg;

	on_event(m->tree, m->view, ev, calls);
	m->latest = ev->time > m->latest ? ev->time : m->latest;
	return !m->tree->nomem;
}

static void add_open(void *arg, struct pb_call_stack *s, const struct pb_open_call *call,
		     unsigned calls)
{
	struct maker *m = arg;
	uint32_t select = call ? call->select : s->leaf_select;
	uint64_t start = call ? call->start : s->leaf_start;

	if (!m->tree->selects || pb_select_open(m->view, select, start, m->latest))
		m->tree->nodes[call ? call->view : s->user].calls += calls;
}

/* Removes each node for which no call was counted, neither in the node nor in any node below it.
 * All calls of such a node were too short, or outside of --range. */
static void prune(struct pb_tree *t)
{
	for (uint32_t i = 1; i < t->nr; i++)
		t->nodes[i].pruned = !t->nodes[i].calls;
	for (uint32_t i = t->nr - 1; i; i--)
		if (!t->nodes[i].pruned)
			t->nodes[t->nodes[i].parent].pruned = false;
	for (uint32_t i = 0; i < t->nr; i++) {
		uint32_t *link = &t->nodes[i].child;

		while (*link)
			if (t->nodes[*link].pruned)
				*link = t->nodes[*link].next;
			else
				link = &t->nodes[*link].next;
	}
}

static int read_all(struct pb_tree *t, const struct pb_view *v, bool by_time)
{
	struct maker m = { .tree = t, .view = v };
	struct pb_call_walk w = { .data = v->data, .tids = v->tids, .nr_tids = v->nr_tids,
				  .by_time = by_time, .arg = &m, .event = add_event,
				  .open = add_open };
	int ret;

	t->selects = pb_view_selects(v);
	ret = pb_call_walk(&w);
	if (!ret && t->selects)
		prune(t);
	t->totals = w.totals;
	return t->nomem ? -ENOMEM : ret;
}

int pb_tree_make(struct pb_tree *t, const struct pb_view *v)
{
	int ret = -ENOMEM;

	for (int by_time = 0; by_time < 2; by_time++) {
		ret = pb_tree_init(t);
		if (!ret)
			ret = pb_sites_init(&t->sites, v->data);
		if (!ret)
			ret = read_all(t, v, by_time);
		if (!ret) {
			name_functions(t, v->data);
			return 0;
		}
		pb_tree_free(t);
		if (ret != -EAGAIN)
			break;
	}
	return ret;
}

static int by_total(const void *a, const void *b, void *arg)
{
	const struct pb_tree *t = arg;
	const struct pb_tree_node *x = &t->nodes[*(const uint32_t *)a];
	const struct pb_tree_node *y = &t->nodes[*(const uint32_t *)b];

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void pb_tree_sort(struct pb_tree *t)
{
	uint32_t *list = calloc(t->nr, sizeof(*list));

	if (!list)
		return;
	for (uint32_t i = 0; i < t->nr; i++) {
		uint32_t nr = 0;

		for (uint32_t c = t->nodes[i].child; c; c = t->nodes[c].next)
			list[nr++] = c;
		if (nr < 2)
			continue;
		qsort_r(list, nr, sizeof(*list), by_total, t);
		t->nodes[i].child = list[0];
		for (uint32_t n = 0; n < nr; n++)
			t->nodes[list[n]].next = n + 1 < nr ? list[n + 1] : 0;
	}
	free(list);
}
