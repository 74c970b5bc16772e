# SPDX-License-Identifier: LGPL-2.1-or-later
# A thin front end for meson. Sanitizer builds have their own build directories:
#   make asan check-asan   build and test everything except the agent, with ASan and UBSan
#   make tsan check-tsan   the same, with TSan instead
BUILD ?= build
MESON ?= meson
NINJA ?= ninja
PREFIX ?= /usr/local
Q ?= @
# makes a path absolute; abspath would split a path with a blank
absolute = $(if $(filter /%,$(firstword $(1))),$(1),$(CURDIR)/$(1))
RUN_BUILT = PATCHBAY="$(call absolute,$(BUILD))/patchbay"

all: $(BUILD)/build.ninja
	$(Q)$(NINJA) -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	$(Q)scripts/setup --build
	$(Q)mkdir -p $(BUILD)
	$(Q)$(MESON) setup $(BUILD) --prefix="$(PREFIX)" $(MESON_ARGS) >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	$(Q)mv $(BUILD).log $(BUILD)/setup.log

# installs the packages for tests, too. A build directory that was set up without cmocka or libbpf lacks
# the tests that need them, so it is set up again
setup:
	$(Q)scripts/setup
	$(Q)[ ! -f $(BUILD)/build.ninja ] || for p in cmocka libbpf; do \
		grep -q "\"name\": \"$$p\"" $(BUILD)/meson-info/intro-dependencies.json || \
		! pkg-config --exists $$p || { $(MESON) setup --reconfigure $(BUILD) >$(BUILD)/setup.log; break; }; \
	done

# the tests that must pass before a commit; they take a few minutes
check: setup all
	$(Q)BUILD=$(BUILD) scripts/check quick
# all tests, including the tests of real programs and the long runs
check-all: setup all
	$(Q)BUILD=$(BUILD) scripts/check all

# interrupts traced calls at each instruction of their fast paths; takes about two hours
check-steps: setup all
	$(Q)$(RUN_BUILT) tests/e2e/run_steps --whole $(ARGS)

# compares the eBPF machine with this kernel (as root), and runs the kernel's own tests
check-bpf: setup all
	$(Q)BUILD=$(BUILD) scripts/check all unit verifier conformance exec helpers objects attach

# the longest tests, which take some hours: all of them, or those that ARGS names
torture: setup all
	$(Q)BUILD=$(BUILD) scripts/check torture $(ARGS)

bench: setup all
	$(Q)$(RUN_BUILT) bench/run $(ARGS)

# installs and builds only what the demo needs
demo:
	$(Q)scripts/setup --demo
	$(Q)[ -f $(BUILD)/build.ninja ] || $(MAKE) --no-print-directory $(BUILD)/build.ninja
	$(Q)$(NINJA) -C $(BUILD) --quiet patchbay libpatchbay.so.0
	$(Q)BUILD=$(BUILD) scripts/demo

# asan and tsan build the observer with a sanitizer. check-asan and check-tsan also run its tests
asan tsan: setup
	$(Q)tests/sanitize/run_sanitize --build $@
check-asan: setup
	$(Q)tests/sanitize/run_sanitize asan
check-tsan: setup
	$(Q)tests/sanitize/run_sanitize tsan

# the same as `meson install`; a PREFIX on the command line or in the environment replaces the build
# directory's prefix
install: all
ifneq ($(origin PREFIX),file)
	$(Q)$(MESON) configure $(BUILD) -Dprefix="$(PREFIX)"
	$(Q)$(NINJA) -C $(BUILD) --quiet
endif
	$(Q)DESTDIR="$(if $(DESTDIR),$(call absolute,$(DESTDIR)))" $(MESON) install -C $(BUILD) --no-rebuild --quiet
# removes the files that the last `make install` from this build directory installed. Meson's list of these
# files has only those directories that this install has made, so this removes Patchbay's own directories
uninstall:
	$(Q)log=$(BUILD)/meson-logs/install-log.txt; [ -f $$log ] || exit 0; \
	own=$$(sed -n 's,^\(/.*/patchbay\)/[^/]*$$,\1,p' $$log | sort -u); \
	$(NINJA) -C $(BUILD) --quiet uninstall && printf '%s\n' "$$own" | while IFS= read -r dir; do \
		[ ! -d "$$dir" ] || rmdir --ignore-fail-on-non-empty "$$dir"; \
	done

clean:
	$(Q)rm -rf $(BUILD) build-asan build-tsan build-fuzz

# `make -j check` must not build before the packages are there
.NOTPARALLEL:
.PHONY: all setup check check-all check-steps check-bpf torture bench demo asan check-asan tsan check-tsan install uninstall clean
