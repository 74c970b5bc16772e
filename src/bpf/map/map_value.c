/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies values, and takes the spin locks in them. The functions pb_bpf_no_*() are for operations
 * that a map type doesn't support. */
#include "base/sys.h"
#include "bpf/core/host.h"
#include "bpf/map/map_priv.h"
#include "bpf/map/map_sys.h"

/* ---- copies --------------------------------------------------------------- */

struct special {
	uint32_t off, size;
};

/* Stores the special fields (lock, timer, kptrs) in s[], in ascending order of offset. Returns the
 * number of fields. */
static int specials(const struct pb_bpf_map *m, struct special *s)
{
	const struct pb_bpf_map_types *t = &m->types;
	int n = 0;

	if (t->spin_lock_off >= 0)
		s[n++] = (struct special){ (uint32_t)t->spin_lock_off,
					   sizeof(struct bpf_spin_lock) };
	if (t->timer_off >= 0)
		s[n++] = (struct special){ (uint32_t)t->timer_off, sizeof(struct bpf_timer) };
	for (uint32_t i = 0; i < t->nr_kptrs && i < PB_BPF_MAX_KPTRS; i++)
		s[n++] = (struct special){ t->kptrs[i].off, 8 };
	for (int i = 1; i < n; i++)
		for (int j = i; j && s[j].off < s[j - 1].off; j--) {
			struct special other = s[j];

			s[j] = s[j - 1];
			s[j - 1] = other;
		}
	return n;
}

void pb_bpf_value_copy_special(const struct pb_bpf_map *m, void *dst, const void *src)
{
	struct special s[PB_BPF_MAX_KPTRS + 2];
	int n = specials(m, s);
	uint32_t at = 0;

	for (int i = 0; i <= n; i++) {
		uint32_t to = i < n ? s[i].off : m->attr.value_size;

		if (to > at)
			memcpy((char *)dst + at, (const char *)src + at, to - at);
		if (i < n && to + s[i].size > at)
			at = to + s[i].size;
	}
}

/* Doesn't change the lock, because a program may hold it. The program may have got its pointer to
 * the value before the element was deleted and reused. */
void pb_bpf_value_clear(const struct pb_bpf_map *m, void *value)
{
	int32_t lock = m->types.spin_lock_off;

	if (lock < 0) {
		memset(value, 0, m->value_room);
		return;
	}
	memset(value, 0, (size_t)lock);
	lock += (int32_t)sizeof(struct bpf_spin_lock);
	memset((char *)value + lock, 0, m->value_room - (size_t)lock);
}

static void clear_special(const struct pb_bpf_map *m, char *value)
{
	struct special s[PB_BPF_MAX_KPTRS + 2];

	for (int i = specials(m, s) - 1; i >= 0; i--)
		memset(value + s[i].off, 0, s[i].size);
}

void pb_bpf_value_out(const struct pb_bpf_map *m, void *dst, const void *src)
{
	pb_bpf_value_copy(m, dst, src);
	if (pb_unlikely(m->special))
		clear_special(m, dst);
}

void pb_bpf_cpu_slots_out(const struct pb_bpf_map *m, void *out, const char *slot0)
{
	for (uint32_t l = 0; l < m->cpu_slots; l++) {
		char *dst = (char *)out + (uint64_t)l * m->value_room;

		memcpy(dst, slot0 + l * m->cpu_slot_size, m->value_room);
		if (pb_unlikely(m->special))
			clear_special(m, dst);
	}
}

void pb_bpf_cpu_slots_in(const struct pb_bpf_map *m, char *slot0, const void *in)
{
	for (uint32_t l = 0; l < m->cpu_slots; l++) {
		char *dst = slot0 + l * m->cpu_slot_size;
		const char *src = (const char *)in + (uint64_t)l * m->value_room;

		if (pb_unlikely(m->special))
			pb_bpf_value_copy_special(m, dst, src);
		else
			memcpy(dst, src, m->value_room);
	}
}

/* ---- locks ---------------------------------------------------------------- */

/* A lock's word is 0 if the lock is free. Otherwise it is the holder's (pb_bpf_taken_by()). */
#define SPINS		(1 << 10)	/* number of attempts between two checks whether the holder
					 * lives */
#define MAX_ROUNDS	(1 << 10)	/* number of checks (about 50 ms) after which taking the
					 * lock fails */
#define REPORT_AFTER	(1 << 6)	/* number of checks (about 3 ms) after which a process that
					 * can't find out whether the holder lives asks other
					 * processes (pb_bpf_map_report()) */

static bool holder_died(const struct pb_bpf_map *m, uint32_t word)
{
	uint32_t owner = word >> PB_BPF_THREAD_BITS;

	return m->alive && owner && !m->alive(m, owner);
}

/* Takes a lock. Returns 0 if the lock was free. Returns 1 if the lock was taken from a dead holder.
 * -EBUSY: the lock can't be taken. */
static int take_word(const struct pb_bpf_map *m, uint32_t *word, uint32_t me, int rounds)
{
	uint32_t was;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < SPINS; i++) {
			was = 0;
			if (pb_replace32(word, &was, me))
				return 0;
			if (was == me)
				return -EBUSY;
			while (pb_load32(word) && i++ < SPINS)
				pb_cpu_pause();
		}
		if (holder_died(m, was) && pb_replace32(word, &was, me))
			return 1;
		if (round >= REPORT_AFTER)
			pb_bpf_map_report(m, word);
	}
	return -EBUSY;
}

uint32_t pb_bpf_thread(const struct pb_bpf_run *run)
{
	return run && run->thread ? run->thread : (uint32_t)pb_sys(SYS_gettid);
}

static uint32_t *lock_of(const struct pb_bpf_map *m, void *value)
{
	return (uint32_t *)((char *)value + m->types.spin_lock_off);
}

int pb_bpf_map_lock(const struct pb_bpf_map *m, void *value, uint32_t me)
{
	if (m->types.spin_lock_off < 0)
		return -EINVAL;
	return take_word(m, lock_of(m, value), pb_bpf_taken_by(m, me), MAX_ROUNDS) < 0 ? -EBUSY :
	       0;
}

void pb_bpf_map_unlock(const struct pb_bpf_map *m, void *value)
{
	if (m->types.spin_lock_off >= 0)
		__atomic_store_n(lock_of(m, value), 0, __ATOMIC_RELEASE);
}

int pb_bpf_value_out_locked(const struct pb_bpf_map *m, void *dst, void *src)
{
	int err = pb_bpf_map_lock(m, src, pb_bpf_thread(NULL));

	if (err)
		return err;
	pb_bpf_value_out(m, dst, src);
	pb_bpf_map_unlock(m, src);
	return 0;
}

void pb_bpf_takes(struct pb_bpf_map *m, void *what, uint64_t word, struct pb_bpf_run *run)
{
	if (run && run->host && run->host->takes)
		run->host->takes(run, m, what, word);
}

void pb_bpf_gives(void *what, struct pb_bpf_run *run)
{
	if (run && run->host && run->host->gives)
		run->host->gives(run, what);
}

int pb_bpf_value_lock(struct pb_bpf_map *m, void *value, struct pb_bpf_run *run)
{
	uint32_t me = pb_bpf_thread(run);
	int err;

	pb_bpf_takes(m, value, pb_bpf_taken_by(m, me), run);
	err = pb_bpf_map_lock(m, value, me);
	if (err)
		pb_bpf_gives(value, run);
	return err;
}

void pb_bpf_value_unlock(struct pb_bpf_map *m, void *value, struct pb_bpf_run *run)
{
	pb_bpf_map_unlock(m, value);
	pb_bpf_gives(value, run);
}

int pb_bpf_value_in_locked(struct pb_bpf_map *m, void *dst, const void *src, struct pb_bpf_run *run)
{
	int err = pb_bpf_value_lock(m, dst, run);

	if (err)
		return err;
	pb_bpf_value_copy(m, dst, src);
	pb_bpf_value_unlock(m, dst, run);
	return 0;
}

int pb_bpf_guard_take(struct pb_bpf_map *m, uint32_t *word, struct pb_bpf_run *run)
{
	uint32_t me = pb_bpf_taken_by(m, pb_bpf_thread(run));
	int err;

	pb_bpf_takes(m, word, me, run);
	err = take_word(m, word, me, MAX_ROUNDS);
	if (err < 0)
		pb_bpf_gives(word, run);
	return err;
}

void pb_bpf_guard_give(uint32_t *word, struct pb_bpf_run *run)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	pb_bpf_gives(word, run);
}

static bool has_guard(const struct pb_bpf_map *m)
{
	switch (m->attr.type) {
	case BPF_MAP_TYPE_QUEUE:
	case BPF_MAP_TYPE_STACK:
	case BPF_MAP_TYPE_LPM_TRIE:
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		return true;
	default:
		return false;
	}
}

void pb_bpf_map_abandon(struct pb_bpf_map *m, void *what, uint64_t word)
{
	uint32_t *lock;

	if (m->ops->abandon && m->ops->abandon(m, what, word))
		return;
	lock = has_guard(m) ? what : lock_of(m, what);
	if (pb_load32(lock) != word)
		return;
	if (has_guard(m) && m->ops->mend)
		m->ops->mend(m);
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

bool pb_bpf_guard_take_over(const struct pb_bpf_map *m, uint32_t *word, uint32_t dead)
{
	uint32_t was = pb_load32(word), owner = was >> PB_BPF_THREAD_BITS;

	return owner && (owner == dead || holder_died(m, was)) &&
	       pb_replace32(word, &was, pb_bpf_taken_by(m, pb_bpf_thread(NULL)));
}

/* Another process may have written any offset to `stuck`. This does no harm, because the offset and
 * the word at this offset are checked before the word is changed. Besides, that process can change
 * every word of the block itself. */
void pb_bpf_map_release_dead(struct pb_bpf_map *m)
{
	uint64_t at = pb_load(&m->head->stuck);
	uint32_t *word = (uint32_t *)((char *)m->head + at);

	if (pb_likely(!at))
		return;
	__atomic_store_n(&m->head->stuck, 0, __ATOMIC_RELAXED);
	if (at < sizeof(*m->head) || at > m->size - 8 || at % sizeof(*word))
		return;
	if (m->ops->release)
		m->ops->release(m, word);
	else if (pb_bpf_guard_take_over(m, word, 0))
		pb_bpf_guard_give(word, NULL);
}

/* ---- unsupported operations ----------------------------------------------- */

int pb_bpf_no_push(struct pb_bpf_map *m, const void *value, uint64_t flags, struct pb_bpf_run *run)
{
	return -PB_BPF_ENOTSUPP;
}

int pb_bpf_no_pop(struct pb_bpf_map *m, void *value, struct pb_bpf_run *run)
{
	return -PB_BPF_ENOTSUPP;
}

int pb_bpf_no_remove(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	return -EINVAL;
}

void *pb_bpf_no_lookup(struct pb_bpf_map *m, const void *key, struct pb_bpf_run *run)
{
	return NULL;
}

int pb_bpf_no_update(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags,
		     struct pb_bpf_run *run)
{
	return -EINVAL;
}

int pb_bpf_no_next_key(struct pb_bpf_map *m, const void *key, void *next)
{
	return -EINVAL;
}

int pb_bpf_no_read(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	return -PB_BPF_ENOTSUPP;
}

int pb_bpf_no_write(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	return -EINVAL;
}

int pb_bpf_no_take(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	return -PB_BPF_ENOTSUPP;
}

int64_t pb_bpf_no_each(struct pb_bpf_map *m, pb_bpf_map_fn *fn, void *arg, struct pb_bpf_run *run)
{
	return -EINVAL;
}

int pb_bpf_read_value(struct pb_bpf_map *m, const void *key, void *value, uint64_t flags)
{
	void *at = m->ops->lookup(m, key, NULL);

	if (!at)
		return -ENOENT;
	if (flags & BPF_F_LOCK)
		return pb_bpf_value_out_locked(m, value, at);
	pb_bpf_value_out(m, value, at);
	return 0;
}

int pb_bpf_write_value(struct pb_bpf_map *m, const void *key, const void *value, uint64_t flags)
{
	return m->ops->update(m, key, value, flags, NULL);
}
