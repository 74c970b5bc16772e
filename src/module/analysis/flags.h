/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Bits of pb_module_options.flags (module.h) and pb_an.flags. They say how a file is analysed. */
#ifndef PB_MODULE_FLAGS_H
#define PB_MODULE_FLAGS_H

#define PB_MODULE_ALL_SITES	1	/* also make sites of functions that the compiler did not
					 * instrument */
#define PB_MODULE_NO_CACHE	2	/* neither look for a cached analysis nor store one */
#define PB_MODULE_RETURNS	4	/* look for functions' exits */
#endif
