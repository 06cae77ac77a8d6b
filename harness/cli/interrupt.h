/* interrupt.h -- whether the user asked to stop. */
#ifndef MPL_INTERRUPT_H
#define MPL_INTERRUPT_H

/* Catches SIGINT and SIGTERM from now on. Workers receive neither. */
void mpl_interrupt_catch(void);
int mpl_interrupted(void); /* the signal's number; 0: none */

#endif
