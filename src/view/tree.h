/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All calls of a trace as one tree. A node is a function with a path of calls that led to the
 * function. The tree is bounded by PB_TREE_DEPTH levels and PB_TREE_NODES nodes. Further calls
 * count in a node "[deeper]", below the innermost caller that has a node.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_TREE_H
#define PB_VIEW_TREE_H
#include "view/distinct.h"
#include "view/site_numbers.h"
#include "view/view.h"

#define PB_TREE_DEPTH	512
#define PB_TREE_NODES	(2u << 20)
#define PB_TREE_ROOT	0		/* the index of the root */
#define PB_TREE_DEEPER	0xffffffffu	/* the function number of "[deeper]" */

struct pb_tree_node {
	uint32_t number;		/* the function's number (view/site_numbers.h) */
	uint32_t parent;		/* the parent's index, which is lower than the node's own */
	uint32_t child, next;		/* indices of the first child and the next sibling; 0:
					 * none */
	uint32_t depth;
	uint32_t mark;			/* free for use by code that uses the tree */
	bool pruned;			/* the options exclude all calls of the node and of the
					 * nodes below; the node isn't in its parent's list of
					 * children */
	uint64_t calls;
	uint64_t timed;			/* number of the calls whose time is known */
	uint64_t total, self;		/* times in ticks of the clock */
};

struct pb_tree {
	struct pb_tree_node *nodes;
	uint32_t nr, room;
	uint32_t *hash;			/* indices of nodes, by parent and number; 0: empty */
	uint32_t hash_size;
	bool nomem, selects;
	struct pb_sites sites;
	struct pb_stream_totals totals;
	uint32_t *numbers;		/* numbers of all functions, sorted; made by
					 * pb_tree_make() */
	struct pb_function *functions;	/* [nr_functions] in the same order, with distinct names */
	size_t nr_functions;
	struct pb_distinct distinct;
};

/* Reads all of the data. Returns 0 or -ENOMEM. */
int pb_tree_make(struct pb_tree *t, const struct pb_view *v);
/* Makes an empty tree; the caller sets its sites and names. */
int pb_tree_init(struct pb_tree *t);
void pb_tree_free(struct pb_tree *t);
/* Finds or makes the child of a node. `number` is the number of the child's function. */
uint32_t pb_tree_child(struct pb_tree *t, uint32_t parent, uint32_t number);
const char *pb_tree_name(const struct pb_tree *t, uint32_t number);
/* Orders each node's children by their total time. */
void pb_tree_sort(struct pb_tree *t);
#endif
