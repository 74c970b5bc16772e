# SPDX-License-Identifier: LGPL-2.1-or-later
"""Finds the instructions at which a handler's calls are excluded from the recording by -N."""

HIDING = "t_unseen"     # calls t_hidden, which the option -N of some modes excludes
# the functions that handlers call
HANDLERS = ["t_root", "t_hand", "t_far", "t_leaf", "t_out"]


def hidden_steps(out, mode):
    """Returns the instructions at which t_hidden is open and excluded by -N, each as (function,
    state, number of the instruction). If a handler interrupts such an instruction, its calls are
    below t_hidden, so they are excluded, too. The result includes the instructions of t_hidden's
    exit stub, where the handler's calls may be recorded or not. It doesn't include the instructions
    of the entry stub."""
    hidden = set()
    for key, steps in out.steps.items():
        if "-N" not in mode.options or key[0] != HIDING:
            continue
        slot, began, last, numbers = steps[0].rsp - 16, False, None, []
        for n, s in enumerate(steps, 1):
            # When t_hidden begins, its return slot is two words below its caller's return slot
            began = began or (s.rsp == slot and s.pc[0] not in "+?")
            if not began:
                continue
            # In the exit's stub, handlers see the state after the return: rsp is above the slot,
            # and the PC is the return address. So these steps end when the PC changes
            inside = s.rsp <= slot
            if not inside and last not in (None, s.pc):
                break
            last = None if inside else s.pc
            numbers.append(n)
        hidden.update((*key, n) for n in numbers[:-1])      # at the last one, t_hidden has returned
    return hidden
