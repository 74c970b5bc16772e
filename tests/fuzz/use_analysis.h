/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads all that a consumer of an analysis could, and makes its stubs. */
#ifndef FUZZ_USE_ANALYSIS_H
#define FUZZ_USE_ANALYSIS_H
#include "abi/analysis_access.h"
#include "abi/analysis_check.h"

void use_analysis(const struct pb_analysis *a);
#endif
