/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A growable array. If memory runs out, the array's `failed` is set and further items are dropped.
 * Users check `failed` once at the end of a stage, not at every push.
 */
#ifndef PB_MODULE_VEC_H
#define PB_MODULE_VEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PB_VEC(type) struct { type *v; size_t n, cap; bool failed; }

/* Returns an array with room for n more items, or NULL. The array may have moved. */
static inline void *pb_vec_room(void *v, size_t used, size_t n, size_t *cap, size_t item)
{
	size_t want = *cap ? *cap : 64;

	if (used > SIZE_MAX / 4 / item || n > SIZE_MAX / 4 / item)
		return NULL;
	while (want < used + n)
		want *= 2;
	if (want == *cap)
		return v;
	v = realloc(v, want * item);
	if (v)
		*cap = want;
	return v;
}

/* Makes room for k more items. False if there is no memory. */
#define pb_vec_reserve(vec, k) ({						\
	size_t k_ = (k);							\
	if (!(vec)->failed && k_ > (vec)->cap - (vec)->n) {			\
		void *v_ = pb_vec_room((vec)->v, (vec)->n, k_, &(vec)->cap,	\
				       sizeof(*(vec)->v));			\
		if (v_)								\
			(vec)->v = v_;						\
		else								\
			(vec)->failed = true;					\
	}									\
	!(vec)->failed; })

#define pb_vec_push(vec, ...) do {						\
	if (pb_vec_reserve(vec, 1))						\
		(vec)->v[(vec)->n++] = __VA_ARGS__;				\
} while (0)

#define pb_vec_append(vec, items, k) do {					\
	size_t n_ = (k);							\
	if (n_ && pb_vec_reserve(vec, n_)) {					\
		memcpy((vec)->v + (vec)->n, items, n_ * sizeof(*(vec)->v));	\
		(vec)->n += n_;							\
	}									\
} while (0)

#define pb_vec_sort(vec, compare) do {						\
	if ((vec)->n > 1)							\
		qsort((vec)->v, (vec)->n, sizeof(*(vec)->v), compare);		\
} while (0)

#define pb_vec_free(vec) do { free((vec)->v); memset((vec), 0, sizeof(*(vec))); } while (0)
#endif
