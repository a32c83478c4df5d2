// SPDX-License-Identifier: MIT
#ifndef STN_CONFORMANCE_STEPS_H
#define STN_CONFORMANCE_STEPS_H

#include "script.h"

// Runs one step; a broken promise prints one FAILED line and ends the process with code 1.
void steps_run(struct step* step);

#endif
