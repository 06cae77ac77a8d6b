/* interrupt.h -- whether the user asked to stop. */
#pragma once

/* Catches SIGINT and SIGTERM from now on. Workers receive neither. */
void mpl_interrupt_catch(void);
int mpl_interrupted(void); /* the signal's number; 0: none */

/* For one search: the first SIGINT sets the flag that this returns, the second ends the program. */
const _Atomic int *mpl_interrupt_soften(void);
/* Undoes mpl_interrupt_soften. */
void mpl_interrupt_restore(void);
