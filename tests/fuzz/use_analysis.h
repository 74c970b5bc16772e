/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses an analysis as its users do: reads everything in it, and emits its stubs. */
#ifndef FUZZ_USE_ANALYSIS_H
#define FUZZ_USE_ANALYSIS_H
#include "abi/analysis_access.h"
#include "abi/analysis_check.h"

void use_analysis(const struct pb_analysis *a);
#endif
