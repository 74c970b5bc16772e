/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a file is analysed: bits of struct pb_module_options.flags (module.h), struct pb_an.flags. */
#ifndef PB_MODULE_FLAGS_H
#define PB_MODULE_FLAGS_H

#define PB_MODULE_ALL_SITES	1	/* make sites of functions that the compiler did not
					 * instrument, too */
#define PB_MODULE_NO_CACHE	2	/* neither look for a cached analysis nor leave one */
#define PB_MODULE_RETURNS	4	/* look for functions' exits */
#endif
