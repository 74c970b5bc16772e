/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * C++ exceptions pass through hooked frames. Tests the order of destructors, rethrow, nested
 * exceptions, catch by type, and exception_ptr.
 * @markers 6000 main/round_of_throws
 * @calls thrower 3000
 */
#include <exception>
#include <stdexcept>
#include <string>
#include "../hostile.h"

static int alive, destroyed;
struct guard {
	int id;
	KEEP explicit guard(int i) : id(i) { alive++; }
	KEEP ~guard() { alive--; destroyed = destroyed * 31 + id; }
};

static KEEP int thrower(int n)
{
	switch (opaque(n) % 3) {
	case 0: throw n;
	case 1: throw std::runtime_error("n=" + std::to_string(n));
	default: throw std::string("s");
	}
}

static KEEP int descend(int depth, int n)
{
	guard g(depth);

	if (!depth)
		return thrower(n);
	return descend(depth - 1, n) + opaque(1);
}

static KEEP int rethrower(int n)
{
	try {
		return descend(10, n);
	} catch (const std::string &) {
		throw;
	} catch (const std::runtime_error &e) {
		std::throw_with_nested(std::logic_error("outer"));
	}
}

static KEEP void round_of_throws(int n)
{
	int caught = 0;
	std::exception_ptr kept;

	destroyed = 0;
	try {
		rethrower(n);
	} catch (int v) {
		check_eq(v, n);
		caught = 1;
	} catch (const std::exception &e) {
		check(std::string(e.what()) == "outer");
		try {
			std::rethrow_if_nested(e);
		} catch (const std::runtime_error &in) {
			check(in.what() == "n=" + std::to_string(n));
			caught = 2;
		}
	} catch (...) {
		kept = std::current_exception();
		caught = 3;
	}
	marker_begin(n);
	check_eq(caught, n % 3 + 1);
	if (kept) {
		try {
			std::rethrow_exception(kept);
		} catch (const std::string &s) {
			check(s == "s");
		}
	}
	int want = 0;
	for (int i = 0; i <= 10; i++)
		want = want * 31 + i;
	check_eq(destroyed, want);
	check_eq(alive, 0);
	marker_begin(n + 1);
}

int main()
{
	for (int n = 0; n < 3000; n++)
		round_of_throws(n);
	puts("3000 exceptions");
	return 0;
}
