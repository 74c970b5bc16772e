/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads everything in an analysis, and emits its stubs, as the code that uses analyses does. */
#ifndef FUZZ_USE_ANALYSIS_H
#define FUZZ_USE_ANALYSIS_H
#include "abi/analysis_access.h"
#include "abi/analysis_check.h"

void use_analysis(const struct pb_analysis *a);
#endif
