/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_MAP_TYPE_LPM_TRIE: a binary tree of prefixes. A node's prefix begins with the prefix of its
 * parent. An intermediate node (IM) has two children and no value.
 *
 *   head | struct lpm_top | nodes
 *
 * A lock serialises writers. A slot is a word that refers to a node: `root`, or a `child` of a
 * node. A change takes effect by one store, into a slot or into a node's flags. So the tree is
 * consistent at every instruction. If a writer dies, the thread that takes the lock from it frees
 * the nodes that aren't in the tree, and counts the entries (mend()). Readers take no lock. If a
 * reader sees a reused node, it must restart. So a writer that removes a node changes `gone` before
 * the node can be reused, and a reader restarts if `gone` has changed during its walk, or before it
 * has copied the value.
 *
 * A program gets a pointer to a value, and may use it after another writer has freed the node. So a
 * freed node is reused as late as possible: after all fresh nodes, and after all nodes that were
 * freed earlier.
 */
#include "bpf/map/map_priv.h"

#define IM	1u
#define FREE	2u
#define MAX_WALKS 1000
#define MAX_KEY	260

struct node {
	uint32_t child[2];	/* 1 + a node's number; 0: none. In a free node, child[0] is the
				 * next free node */
	uint32_t len;		/* number of bits of the prefix */
	uint32_t flags;
	uint8_t data[];		/* the prefix in key_size - 4 bytes, rounded up to 8; then the
				 * value */
};

/* guard: the writers' lock. root: 1 + the number of the tree's root. free: 1 + the number of the
 * first free node. root and free are 0 if there is no such node. fresh: number of nodes that were
 * ever used. entries: number of nodes with a value. last: 1 + the number of the last free node, if
 * there is a free node. gone: rises when a node is freed. */
struct lpm_top {
	uint32_t guard, root, free, fresh, entries, last, pad[10];
	uint32_t gone, pad1[15];
};

static struct lpm_top *top(const struct pb_bpf_map *m)
{
	return (struct lpm_top *)(m->head + 1);
}

static uint32_t most_bits(const struct pb_bpf_map *m)
{
	return (m->attr.key_size - 4) * 8;
}

/* NULL: there is no such node. */
static struct node *node(const struct pb_bpf_map *m, uint32_t link)
{
	return link - 1u < m->nr_elems ?
	       (struct node *)(m->elems + (uint64_t)(link - 1) * m->elem_size) : NULL;
}

static void *value_of(const struct pb_bpf_map *m, struct node *n)
{
	return n->data + m->key_room;
}

static uint64_t lpm_size(const struct pb_bpf_map_spec *s, int *err)
{
	const struct pb_bpf_map_attr *a = &s->attr;
	uint64_t elem_size;

	*err = !a->max_entries || !(a->flags & BPF_F_NO_PREALLOC) ||
	       a->flags & ~(uint32_t)(BPF_F_NO_PREALLOC | PB_BPF_ACCESS_FLAGS) ||
	       !pb_bpf_access_ok(a->flags) || a->key_size < 5 || a->key_size > MAX_KEY ||
	       !a->value_size || a->value_size > PB_BPF_MAX_VALUE - 256 - 40 ? -EINVAL :
	       a->max_entries > 1u << 30 ? -ENOMEM : 0;
	if (*err)
		return 0;
	elem_size = sizeof(struct node) + pb_align_up(a->key_size - 4,
						      8u) + pb_align_up(a->value_size, 8u);
	return sizeof(struct pb_bpf_map_head) + sizeof(struct lpm_top) + 2 *
	       (a->max_entries + 1ull) * elem_size;
}

static void lpm_format(void *block)
{
}

static bool lpm_open(struct pb_bpf_map *m)
{
	m->key_room = pb_align_up(m->attr.key_size - 4, 8u);
	m->elem_size = sizeof(struct node) + m->key_room + m->value_room;
	m->elems = (char *)(top(m) + 1);
	m->nr_elems = 2 * (m->attr.max_entries + 1);
	return true;
}

/* ---- prefixes ------------------------------------------------------------------- */

struct key {
	uint32_t len;
	const uint8_t *data;
};

static struct key key_of(const void *key)
{
	struct key k = { .data = (const uint8_t *)key + 4 };

	__builtin_memcpy(&k.len, key, 4);
	return k;
}

static uint32_t bit(const uint8_t *data, uint32_t i)
{
	return data[i / 8] >> (7 - i % 8) & 1;
}

/* Returns the number of leading bits that the two prefixes have in common. */
static uint32_t common(const struct node *n, uint32_t n_len, struct key k)
{
	uint32_t most = n_len < k.len ? n_len : k.len, i = 0;

	for (; i + 8 <= most && n->data[i / 8] == k.data[i / 8]; i += 8)
		;
	if (i < most) {
		uint32_t same = (uint32_t)__builtin_clz(
				((uint32_t)(n->data[i / 8] ^ k.data[i / 8]) << 24) | 1u << 23);

		i += same;
	}
	return i < most ? i : most;
}

static uint32_t len_of(const struct pb_bpf_map *m, const struct node *n)
{
	uint32_t len = pb_load32(&n->len);

	return len <= most_bits(m) ? len : most_bits(m);
}

/* ---- readers ---------------------------------------------------------------------- */

static void *find(struct pb_bpf_map *m, struct key k)
{
	uint32_t link = pb_load32(&top(m)->root);
	void *found = NULL;
	struct node *n;

	for (uint32_t steps = 0; (n = node(m, link)) && steps <= most_bits(m); steps++) {
		uint32_t len = len_of(m, n);

		if (common(n, len, k) < len)
			break;
		if (!(pb_load32(&n->flags) & IM))
			found = value_of(m, n);
		if (len >= k.len)
			break;
		link = pb_load32(&n->child[bit(k.data, len)]);
	}
	return found;
}

static void *lpm_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	struct key k = key_of(key);
	void *found = NULL;

	if (k.len > most_bits(m))
		return NULL;
	for (int walks = 0; walks < MAX_WALKS; walks++) {
		uint32_t gone = pb_load32(&top(m)->gone);

		found = find(m, k);
		if (pb_load32(&top(m)->gone) == gone)
			break;
	}
	return found;
}

/* A node may be freed and reused for another prefix at any time. Then the copy of its value is
 * wrong, and `gone` has changed. */
static int lpm_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	struct key k = key_of(key);

	if (k.len > most_bits(m))
		return -ENOENT;
	for (int walks = 0; walks < MAX_WALKS; walks++) {
		uint32_t gone = pb_load32(&top(m)->gone);
		void *found = find(m, k);

		if (found)
			pb_bpf_value_out(m, value, found);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (pb_load32(&top(m)->gone) == gone)
			return found ? 0 : -ENOENT;
	}
	return -EBUSY;
}

/* Returns the first node with a value in the subtree of `link`. The order is that of next_key(): a
 * node's descendants come before the node. */
static struct node *leftmost(const struct pb_bpf_map *m, uint32_t link)
{
	struct node *n, *last = NULL;

	for (uint32_t steps = 0; (n = node(m, link)) && steps <= most_bits(m); steps++) {
		uint32_t left = pb_load32(&n->child[0]);

		last = n;
		link = left || pb_load32(&n->flags) & IM ? left : pb_load32(&n->child[1]);
	}
	return last;
}

/* Returns the node after k in the order of leftmost(). If k isn't in the tree, returns the first
 * node. NULL: k is the last node. */
static struct node *node_after(const struct pb_bpf_map *m, struct key k)
{
	uint32_t root = pb_load32(&top(m)->root), link = root;
	struct node *n, *next = NULL;

	for (uint32_t steps = 0; (n = node(m, link)) && steps <= most_bits(m); steps++) {
		uint32_t len = len_of(m, n), same = common(n, len, k), right;

		if (same < len)
			break;
		if (len == k.len) {
			if (pb_load32(&n->flags) & IM)
				break;
			return next;
		}
		link = pb_load32(&n->child[bit(k.data, len)]);
		right = pb_load32(&n->child[1]);
		if (!bit(k.data, len) && right)
			next = leftmost(m, right);
		else if (!(pb_load32(&n->flags) & IM))
			next = n;
	}
	return leftmost(m, root);
}

/* key and next may be the same buffer. So each walk begins at a copy of the key. */
static int lpm_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	uint8_t from[MAX_KEY];
	struct node *n = NULL;

	if (key)
		memcpy(from, key, m->attr.key_size);
	for (int walks = 0; walks < MAX_WALKS; walks++) {
		uint32_t gone = pb_load32(&top(m)->gone), len;

		n = key && key_of(from).len <= most_bits(m) ? node_after(m, key_of(from)) :
		    leftmost(m, pb_load32(&top(m)->root));
		if (n) {
			len = len_of(m, n);
			__builtin_memcpy(next, &len, 4);
			memcpy((char *)next + 4, n->data, m->attr.key_size - 4);
		}
		if (pb_load32(&top(m)->gone) == gone)
			break;
	}
	return n ? 0 : -ENOENT;
}

/* ---- free nodes: under the lock ------------------------------------------------- */

static void put_node(struct pb_bpf_map *m, uint32_t link)
{
	struct lpm_top *t = top(m);
	struct node *n = node(m, link), *last = node(m, pb_load32(&t->last));

	if (!n)
		return;
	__atomic_add_fetch(&t->gone, 1, __ATOMIC_ACQ_REL);
	n->flags = FREE;
	n->child[0] = 0;
	if (pb_load32(&t->free) && last && last != n && last->flags & FREE && !last->child[0]) {
		last->child[0] = link;
		t->last = link;
		return;
	}
	n->child[0] = t->free;
	t->free = link;
	if (!n->child[0])
		t->last = link;
}

/* Reads each word that it checks only once, because another process may change the word after the
 * check. */
static uint32_t get_node(struct pb_bpf_map *m)
{
	struct lpm_top *t = top(m);
	uint32_t link = pb_load32(&t->free), fresh = pb_load32(&t->fresh);
	struct node *n = node(m, link);

	if (fresh < m->nr_elems) {
		link = fresh + 1;
		t->fresh = link;
		n = node(m, link);
	} else if (n && n->flags & FREE) {
		t->free = n->child[0];
	} else {
		t->free = 0;
		return 0;
	}
	n->child[0] = n->child[1] = 0;
	n->flags = 0;
	return link;
}

/* Returns whether a lookup of the node's own prefix leads to the node. */
static bool in_tree(struct pb_bpf_map *m, uint32_t wanted)
{
	struct node *n = node(m, wanted), *at;
	struct key k = { len_of(m, n), n->data };
	uint32_t link = pb_load32(&top(m)->root);

	for (uint32_t steps = 0; (at = node(m, link)) && steps <= most_bits(m); steps++) {
		uint32_t len = len_of(m, at);

		if (link == wanted)
			return true;
		if (len >= k.len || common(at, len, k) < len)
			return false;
		link = pb_load32(&at->child[bit(k.data, len)]);
	}
	return false;
}

/* Called after a writer has died, or was abandoned. Frees the nodes that aren't in the tree, and
 * counts the entries. Reads `fresh` only once, because another process may change `fresh` after the
 * check. */
static void mend(struct pb_bpf_map *m)
{
	struct lpm_top *t = top(m);
	uint32_t entries = 0, fresh = pb_load32(&t->fresh);

	if (fresh > m->nr_elems)
		fresh = m->nr_elems;
	t->fresh = fresh;
	t->free = t->last = 0;
	for (uint32_t link = 1; link <= fresh; link++) {
		if (!in_tree(m, link))
			put_node(m, link);
		else
			entries += !(node(m, link)->flags & IM);
	}
	t->entries = entries;
}

static int begin(struct pb_bpf_map *m, struct pb_bpf_run *run)
{
	int err = pb_bpf_guard_take(m, &top(m)->guard, run);

	if (err > 0)
		mend(m);
	return err < 0 ? err : 0;
}

/* ---- writers ------------------------------------------------------------------------- */

/* The place of a prefix in the tree, or the place that it would have. */
struct place {
	uint32_t *slot, *parent_slot;
	uint32_t link, parent;	/* link: the node in the slot; parent: the node that has the slot */
	uint32_t same;		/* number of leading bits that the prefix and node `link` have in
				 * common */
};

static struct place place_of(struct pb_bpf_map *m, struct key k)
{
	struct place p = { .slot = &top(m)->root, .link = pb_load32(&top(m)->root) };
	struct node *n;

	for (uint32_t steps = 0; (n = node(m, p.link)) && steps <= most_bits(m); steps++) {
		uint32_t len = len_of(m, n);

		p.same = common(n, len, k);
		if (p.same < len || len >= k.len)
			break;
		p.parent_slot = p.slot;
		p.parent = p.link;
		p.slot = &n->child[bit(k.data, len)];
		p.link = pb_load32(p.slot);
	}
	return p;
}

static void set(uint32_t *slot, uint32_t link)
{
	__atomic_store_n(slot, link, __ATOMIC_RELEASE);
}

static int may_add(struct pb_bpf_map *m, uint64_t flags)
{
	return flags == BPF_EXIST ? -ENOENT : top(m)->entries >= m->attr.max_entries ? -ENOSPC : 0;
}

/* Inserts node `new` at a slot that already has a node. If the old node's prefix begins with the
 * new prefix, `new` becomes the old node's parent. Otherwise both nodes become children of a new
 * intermediate node. */
static int split(struct pb_bpf_map *m, struct place p, struct key k, uint32_t new)
{
	struct node *old = node(m, p.link), *n = node(m, new), *im;
	uint32_t link;

	if (p.same == k.len) {
		n->child[bit(old->data, p.same)] = p.link;
		set(p.slot, new);
		return 0;
	}
	link = get_node(m);
	im = node(m, link);
	if (!im)
		return -ENOMEM;
	im->flags = IM;
	im->len = p.same;
	memcpy(im->data, old->data, m->attr.key_size - 4);
	im->child[bit(k.data, p.same)] = new;
	im->child[!bit(k.data, p.same)] = p.link;
	set(p.slot, link);
	return 0;
}

static int insert(struct pb_bpf_map *m, struct key k, const void *value, uint64_t flags)
{
	struct place p = place_of(m, k);
	struct node *old = node(m, p.link), *n;
	bool exact = old && len_of(m, old) == k.len && p.same == k.len, there = exact &&
		     !(old->flags & IM);
	int err = there ? (flags == BPF_NOEXIST ? -EEXIST : 0) : may_add(m, flags);
	uint32_t new;

	if (err)
		return err;
	new = get_node(m);
	n = node(m, new);
	if (!n)
		return -ENOMEM;
	n->len = k.len;
	memcpy(n->data, k.data, m->attr.key_size - 4);
	pb_bpf_value_copy(m, value_of(m, n), value);
	if (!old) {
		set(p.slot, new);
	} else if (exact) {
		n->child[0] = old->child[0];
		n->child[1] = old->child[1];
		set(p.slot, new);
		put_node(m, p.link);
	} else {
		err = split(m, p, k, new);
	}
	if (err)
		put_node(m, new);
	else if (!there)
		top(m)->entries++;
	return err;
}

static int lpm_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
		      struct pb_bpf_run *run)
{
	struct key k = key_of(key);
	int err;

	if (flags > BPF_EXIST || k.len > most_bits(m))
		return -EINVAL;
	err = begin(m, run);
	if (err)
		return err;
	err = insert(m, k, value, flags);
	pb_bpf_guard_give(&top(m)->guard, run);
	return err;
}

static int erase(struct pb_bpf_map *m, struct key k)
{
	struct place p = place_of(m, k);
	struct node *n = node(m, p.link), *parent = node(m, p.parent);
	uint32_t child;

	if (!n || len_of(m, n) != k.len || p.same != k.len || n->flags & IM)
		return -ENOENT;
	child = n->child[0] ? n->child[0] : n->child[1];
	top(m)->entries--;
	if (n->child[0] && n->child[1]) {
		__atomic_store_n(&n->flags, IM, __ATOMIC_RELEASE);
		return 0;
	}
	if (!child && parent && parent->flags & IM) {
		/* an intermediate node needs two children, so the parent's other child takes the
		 * parent's place */
		set(p.parent_slot, parent->child[p.slot == &parent->child[0]]);
		put_node(m, p.parent);
	} else {
		set(p.slot, child);
	}
	put_node(m, p.link);
	return 0;
}

static int lpm_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	struct key k = key_of(key);
	int err;

	if (k.len > most_bits(m))
		return -EINVAL;
	err = begin(m, run);
	if (err)
		return err;
	err = erase(m, k);
	pb_bpf_guard_give(&top(m)->guard, run);
	return err;
}

static void lpm_repair(struct pb_bpf_map *m, uint32_t dead)
{
	if (!pb_bpf_guard_take_over(m, &top(m)->guard, dead))
		return;
	mend(m);
	pb_bpf_guard_give(&top(m)->guard, NULL);
}

static void lpm_release(struct pb_bpf_map *m, void *at)
{
	lpm_repair(m, 0);
}

const struct pb_bpf_map_ops pb_bpf_lpm_ops = {
	.size = lpm_size, .format = lpm_format, .open = lpm_open, .lookup = lpm_lookup,
	.update = lpm_update, .remove = lpm_remove, .next_key = lpm_next_key,
	.each = pb_bpf_no_each, PB_BPF_NO_QUEUE, .read = lpm_read,
	.write = pb_bpf_write_value, .take = pb_bpf_no_take, .repair = lpm_repair,
	.release = lpm_release, .mend = mend,
};
