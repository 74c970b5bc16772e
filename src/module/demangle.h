/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of C++ and Rust functions as people write them. What isn't mangled is
 * left as it is. Context: an ordinary thread; any input.
 */
#ifndef PB_MODULE_DEMANGLE_H
#define PB_MODULE_DEMANGLE_H
#include <stdbool.h>

/* Of _ZN2ns3BoxISt6vectorIiSaIiEES1_IdSaIdEEE3getEv: */
enum pb_demangle {
	PB_DEMANGLE_SIMPLE,	/* ns::Box<...>::get: no parameters, long lists of template
				 * arguments left out */
	PB_DEMANGLE_SHORT,	/* ns::Box<std::vector<int, ...> >::get: no parameters */
	PB_DEMANGLE_FULL,	/* ns::Box<std::vector<int, ...> >::get() */
	PB_DEMANGLE_NO,
};

/* "simple", "full" or "no"; false: none of them. */
bool pb_demangle_style(const char *text, enum pb_demangle *how);

/* To be freed; NULL: the name is to be used as it is. */
char *pb_demangle(const char *name, enum pb_demangle how);
/* SHORT or FULL, but long lists of template arguments are left out where `depth` such
 * lists are open around them: 0 is as short as SIMPLE. */
char *pb_demangle_depth(const char *name, enum pb_demangle how, unsigned depth);
#endif
