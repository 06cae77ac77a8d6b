/* interrupt.h -- whether the user has asked to stop. */
#ifndef MPL_INTERRUPT_H
#define MPL_INTERRUPT_H

/* Set by SIGINT and SIGTERM once mpl_interrupt_catch was called; workers see neither. */
void mpl_interrupt_catch(void);
int mpl_interrupted(void); /* the signal's number; 0: none */

#endif
