/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the demangler: the names that it makes of symbols, and the depth of template arguments in
 * these names. No symbol may make it crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "module/demangle.h"

static void expect(const char *name, enum pb_demangle how, const char *want)
{
	char *got = pb_demangle(name, how);

	if (want)
		assert_string_equal(got ? got : name, want);
	else
		assert_null(got);
	free(got);
}

#define SIMPLE(name, want) expect(name, PB_DEMANGLE_SIMPLE, want)

static void simple(void **state)
{
	SIMPLE("main", NULL);
	SIMPLE("_start", NULL);
	SIMPLE("_ZN", NULL);
	SIMPLE("_ZN2ns4pairIiE5firstEi", "ns::pair<int>::first");
	SIMPLE("_ZNSt6vectorIiSaIiEE9push_backEOi",
	       "std::vector<int, std::allocator<int> >::push_back");
	SIMPLE("_ZNSt6vectorISt6threadSaIS0_EE17_M_realloc_insertIJRFviEiEEEvN9__gnu_cxx"
	       "17__normal_iteratorIPS0_S2_EEDpOT_",
	       "std::vector<...>::_M_realloc_insert<void (&)(int), int>");
	SIMPLE("_ZN3FooIiED1Ev", "Foo<int>::~Foo");
	SIMPLE("_Z3foov.cold", "foo.cold");
	SIMPLE("_Z3foov.isra.0.cold", "foo.isra.0.cold");
}

/* Angle brackets that belong to an operator's name don't enclose template arguments. */
static void operators(void **state)
{
	SIMPLE("_ZNK2ns3BoxIiEltERKS1_", "ns::Box<int>::operator<");
	SIMPLE("_ZlsI1AI1BI1CI1DI1EI1FI1GI1HIiEEEEEEEEERSoS8_RKT_",
	       "operator<< <...>");
	SIMPLE("_ZN1AI1BI1CI1DI1EI1FI1GI1HI1IiEEEEEEEEptEv", "A<...>::operator->");
	SIMPLE("_ZN1AI1BI1CI1DI1EI1FI1GI1HI1IiEEEEEEEEltEv", "A<...>::operator<");
	SIMPLE("_ZN1AI1BI1CI1DI1EI1FI1GI1HI1IiEEEEEEEErsEv", "A<...>::operator>>");
}

/* The depth is the number of levels of template arguments that are shown. */
static void depths(void **state)
{
	static const char name[] = "_ZN1AI1BI1CI1DI1EI1FI1GI1HI1IiEEEEEEEEltEv", *const want[] = {
		"A<...>::operator<", "A<B<C<D<E<F<G<H<I, int> > > > > > > >::operator<",
	};
	static const char deep[] = "_Z1fISt4pairISt6vectorISt4pairIilESaIS2_EES4_EEvT_";

	for (unsigned depth = 0; depth < 2; depth++) {
		char *got = pb_demangle_depth(name, PB_DEMANGLE_SHORT, depth);

		assert_string_equal(got, want[depth]);
		free(got);
	}
	static const char *const wants[] = {
		"f<...>", "f<std::pair<...> >",
		"f<std::pair<std::vector<...>, std::allocator<std::pair> > >",
	};
	for (unsigned depth = 0; depth < 40; depth++) {
		char *got = pb_demangle_depth(deep, PB_DEMANGLE_SHORT, depth);
		char *all = pb_demangle(deep, PB_DEMANGLE_SHORT);

		if (depth < 3)
			assert_string_equal(got, wants[depth]);
		else
			assert_string_equal(got, all);
		free(got);
		free(all);
	}
	assert_null(pb_demangle_depth("main", PB_DEMANGLE_FULL, 1));
}

static void rust(void **state)
{
	SIMPLE("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
	SIMPLE("_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
	       "3fmt17h0123456789abcdefE",
	       "<alloc::string::String as core::fmt::Display>::fmt");
	SIMPLE("_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar");
	SIMPLE("_RINvCskwGfYPst2Cb_3foo3barNtNtNtCskwGfYPst2Cb_4abcd4efgh4ijkl4mnopNtNtB2_1a1bE",
	       "foo::bar::<...>");
}

static void styles(void **state)
{
	enum pb_demangle how = PB_DEMANGLE_NO;

	expect("_ZN2ns4pairIiE5firstEi", PB_DEMANGLE_FULL, "ns::pair<int>::first(int)");
	expect("_ZNSt6vectorISt6threadSaIS0_EE4sizeEv", PB_DEMANGLE_SHORT,
	       "std::vector<std::thread, std::allocator<std::thread> >::size");
	expect("_ZN2ns4pairIiE5firstEi", PB_DEMANGLE_NO, NULL);
	assert_true(pb_demangle_style("full", &how));
	assert_int_equal(how, PB_DEMANGLE_FULL);
	assert_false(pb_demangle_style("fulll", &how));
}

/* f(pair<T, T>): T is a pair<U, U>, U is a pair, and so on. Each level doubles the length of the
 * text. */
static void endless(void **state)
{
	char name[600] = "_Z1fSt4pairIiiE";

	expect(name, PB_DEMANGLE_FULL, "f(std::pair<int, int>)");
	for (int i = 0; i < 35; i++)
		sprintf(name + strlen(name), "S_IS%c_S%c_E",
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	expect(name, PB_DEMANGLE_FULL, NULL);
	/* the same in a template's arguments */
	memcpy(name, "_Z1fI", 5);
	memmove(name + 5, name + 4, strlen(name + 4) + 1);
	strcat(name, "Evv");
	expect(name, PB_DEMANGLE_SIMPLE, NULL);
}

/* An identifier may have any bytes. Examples are brackets that are never closed, and control
 * characters, which must not reach a terminal. */
static void odd_identifiers(void **state)
{
	SIMPLE("_Z3a<bv", "a<b");
	SIMPLE("_ZN3a<b1cIiE1dEv", "a<b::c<int>::d");
	SIMPLE("_Z3a>bv", "a>b");
	SIMPLE("_Z3a\x1b" "bv", NULL);
	SIMPLE("_Z4a\xc2\x9b" "bv", NULL);
}

/* Random names must not crash the demangler. */
static void garbage(void **state)
{
	static const char chars[] = "_ZNRIE<>-=*: operator0123456789abSsStCsKwT_$LTGTu.,()";
	char name[64] = "_Z";

	srand(1);
	for (int i = 0; i < 200000; i++) {
		size_t len = 2 + (size_t)rand() % 60;

		name[1] = rand() % 2 ? 'Z' : 'R';
		for (size_t k = 2; k < len; k++)
			name[k] = chars[(size_t)rand() % (sizeof(chars) - 1)];
		name[len] = 0;
		free(pb_demangle(name, PB_DEMANGLE_SIMPLE));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simple), cmocka_unit_test(operators), cmocka_unit_test(depths),
		cmocka_unit_test(rust), cmocka_unit_test(styles), cmocka_unit_test(endless),
		cmocka_unit_test(odd_identifiers), cmocka_unit_test(garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
