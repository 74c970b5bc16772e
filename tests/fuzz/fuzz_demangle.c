/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes the demangler with any bytes as a symbol's name. The demangler must end quickly. It must
 * return nothing, or text that is safe for a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean_text.h"
#include "driver.h"
#include "module/demangle.h"

#define TEXT_MAX	65536

/* If the demangler gives up in the middle of a name, it may leak a few kilobytes. This is
 * allowed. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 3), *texts[PB_DEMANGLE_NO];

	memcpy(name, size && data[0] % 2 ? "_R" : "_Z", 2);
	memcpy(name + 2, data + (size != 0), size - (size != 0));
	name[2 + size - (size != 0)] = 0;
	if (__lsan_disable)
		__lsan_disable();
	for (unsigned how = 0; how < PB_DEMANGLE_NO; how++)
		texts[how] = pb_demangle(name, (enum pb_demangle)how);
	if (__lsan_enable)
		__lsan_enable();
	for (unsigned how = 0; how < PB_DEMANGLE_NO; how++) {
		if (texts[how])
			FUZZ_CHECK(pb_text_printable(texts[how]) &&
				   strlen(texts[how]) < 2 * TEXT_MAX);
		free(texts[how]);
	}
	free(name);
	return 0;
}

static void seed_name(const char *name)
{
	char input[512];
	int n = snprintf(input, sizeof(input), "%c%s", name[1] == 'R' ? 1 : 2, name + 2);

	fuzz_seed(input, (size_t)n);
}

void fuzz_seeds(void)
{
	static const char *const names[] = {
		"_ZNSt6vectorISt6threadSaIS0_EE17_M_realloc_insertIJRFviEiEEEvN9__gnu_cxx17__"
		"normal_iteratorIPS0_S2_EEDpOT_",
		"_ZlsI1AI1BI1CI1DI1EI1FI1GI1HIiEEEEEEEEERSoS8_RKT_",
		"_Z3foov.isra.0.cold",
		"_ZN1AI1BI1CI1DI1EI1FI1GI1HI1IiEEEEEEEEptEv",
		"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt"
		"17h0123456789abcdefE",
		"_RINvCskwGfYPst2Cb_3foo3barNtNtNtCskwGfYPst2Cb_4abcd4efgh4ijkl4mnopNtNtB2_1a1bE",
		"_RNvMs0_NtCs5l0EXMQXRMU_21rustc_data_structures17obligation_forestINtB5_16"
		"ObligationForestu30____7hkackfecea1cbdathfdh9hlq6yE",
		"_RNvNtCs1234_7mycrateu8gdel_5qa4test",
		"_Z1fSt4pairIiiES_IS0_S0_ES_IS1_S1_ES_IS2_S2_E",
		"_ZZN1AIiE1fEvENKUlT_E_clIdEEDaS1_",
		"_ZNK3xxxclIJiEEEDTclptfpT_spclsr3stdE7forwardIT_Efp0_EEDpOS3_",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		seed_name(names[i]);
}
