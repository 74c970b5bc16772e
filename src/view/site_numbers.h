/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gives each function of the session one number. Views use the numbers as indices of arrays of
 * sums. A function has the same number in every program image that maps its module. Unknown sites
 * have the numbers below PB_MAX_SITES.
 *
 * Context: the observer, one thread.
 */
#ifndef PB_VIEW_SITE_NUMBERS_H
#define PB_VIEW_SITE_NUMBERS_H
#include "abi/record.h"
#include "reader/data.h"
#include "reader/site_names.h"

#define PB_SITES_BLOCK	64

struct pb_sites_range {
	uint32_t first, nr;	/* sites */
	uint32_t delta;		/* number - site */
};

struct pb_sites_image {
	const struct pb_sites_range *last;	/* the range that the last successful search found;
						 * never NULL */
	struct pb_sites_range *ranges;
	size_t nr;
};

struct pb_sites {
	struct pb_data *data;
	struct pb_sites_image *images;
	struct pb_sites_range *ranges;
	struct pb_sites_module { uint32_t module, base, nr; size_t map; } *modules;
	size_t nr_modules;
	uint32_t total;		/* all numbers are lower than this */
	/* a bit for each block of PB_SITES_BLOCK unknown sites; it is set if a site of the block
	 * was looked up */
	uint64_t unknown[PB_MAX_SITES / PB_SITES_BLOCK / 64];
};

int pb_sites_init(struct pb_sites *s, struct pb_data *d);
void pb_sites_free(struct pb_sites *s);
/* Does what pb_sites_number() does, for a site outside of im->last. */
uint32_t pb_sites_search(struct pb_sites *s, struct pb_sites_image *im, uint32_t site);
/* Returns the first number >= i that may be in use. Skips a block of unknown sites if no site of
 * the block was looked up, so that the caller doesn't touch the block's elements. */
static inline uint32_t pb_sites_next(const struct pb_sites *s, uint32_t i)
{
	while (i < PB_MAX_SITES &&
	       !(s->unknown[i / PB_SITES_BLOCK / 64] >> (i / PB_SITES_BLOCK % 64) & 1))
		i = (i / PB_SITES_BLOCK + 1) * PB_SITES_BLOCK;
	return i;
}

struct pb_function pb_sites_function(const struct pb_sites *s, uint32_t number);

/* Returns the number of the function that has this site in this image. */
static inline uint32_t pb_sites_number(struct pb_sites *s, size_t image, uint32_t site)
{
	struct pb_sites_image *im = &s->images[image];

	if (__builtin_expect(site - im->last->first < im->last->nr, 1))
		return site + im->last->delta;
	return pb_sites_search(s, im, site);
}
#endif
