/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/sandbox.h"

bool pb_sandboxed, pb_filtered;
