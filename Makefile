# SPDX-License-Identifier: LGPL-2.1-or-later
# A thin front for meson. Variants have build directories of their own:
#   make asan check-asan   everything but the agent under ASan and UBSan
#   make tsan check-tsan   the same under TSan
BUILD ?= build
MESON ?= meson
NINJA ?= ninja
PREFIX ?= /usr/local
Q ?= @

all: $(BUILD)/build.ninja
	$(Q)$(NINJA) -C $(BUILD) --quiet

$(BUILD)/build.ninja:
	$(Q)scripts/setup
	$(Q)$(MESON) setup $(BUILD) --prefix=$(PREFIX) $(MESON_ARGS) >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	$(Q)mv $(BUILD).log $(BUILD)/setup.log

setup:
	$(Q)scripts/setup

# what must pass before a commit: a few minutes
check: setup all
	$(Q)BUILD=$(BUILD) scripts/check quick
# all of it, with real programs and long runs
check-all: setup all
	$(Q)BUILD=$(BUILD) scripts/check all

# the eBPF machine against this kernel (as root) and the kernel's own tests
check-bpf: setup all
	$(Q)BUILD=$(BUILD) scripts/check all unit verifier conformance exec helpers objects attach

torture: setup all
	$(Q)PATCHBAY=$(CURDIR)/$(BUILD)/patchbay tests/torture/run_torture $(ARGS)

bench: setup all
	$(Q)PATCHBAY=$(CURDIR)/$(BUILD)/patchbay bench/run $(ARGS)

demo: setup all
	$(Q)BUILD=$(BUILD) scripts/demo

# the observer's side in sanitizers' builds, and its tests
asan tsan: setup
	$(Q)tests/sanitize/run_sanitize --build $@
check-asan: setup
	$(Q)tests/sanitize/run_sanitize asan
check-tsan: setup
	$(Q)tests/sanitize/run_sanitize tsan

install: all
	$(Q)$(MESON) install -C $(BUILD) --no-rebuild
	$(Q)install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
		$(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)install -m 644 doc/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)scripts/completion $(BUILD)/patchbay \
		>$(DESTDIR)$(PREFIX)/share/bash-completion/completions/patchbay

clean:
	$(Q)rm -rf $(BUILD) build-asan build-tsan build-fuzz

.PHONY: all setup check check-all check-bpf torture bench demo asan check-asan tsan check-tsan install clean
