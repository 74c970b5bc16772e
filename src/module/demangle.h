/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Demangles names of C++ and Rust functions. Other names are left as they are. Context: an ordinary
 * thread; any input.
 */
#ifndef PB_MODULE_DEMANGLE_H
#define PB_MODULE_DEMANGLE_H
#include <stdbool.h>

/*
 * The styles. FULL demangles _ZN2ns3BoxISt6vectorIiSaIiEES1_IdSaIdEEE3getEv to:
 *
 *   ns::Box<std::vector<int, std::allocator<int> >,
 *           std::vector<double, std::allocator<double> > >::get()
 */
enum pb_demangle {
	PB_DEMANGLE_SIMPLE,	/* like SHORT, but "<...>" replaces each long list of template
				 * arguments, of more than 32 characters: ns::Box<...>::get */
	PB_DEMANGLE_SHORT,	/* like FULL, but without the function's parameters */
	PB_DEMANGLE_FULL,
	PB_DEMANGLE_NO,
};

/* Reads "simple", "full" or "no". False if the text is something else. */
bool pb_demangle_style(const char *text, enum pb_demangle *how);

/* Returns the demangled name, which the caller frees. NULL: the name should be used as it is. */
char *pb_demangle(const char *name, enum pb_demangle how);
/* Does what pb_demangle() does with SHORT or FULL, but leaves out each long list of template
 * arguments that is nested in `depth` other long lists. SHORT with depth 0 gives the same result as
 * pb_demangle() with SIMPLE. */
char *pb_demangle_depth(const char *name, enum pb_demangle how, unsigned depth);
#endif
