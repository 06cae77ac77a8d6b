/* text.h -- text from files, names of files and commands, where it is shown: nothing in it may
 * steer what shows it. */
#ifndef MPL_TEXT_H
#define MPL_TEXT_H

#include "graphs/core/base.h"

/* Bytes of the character that `text` begins with, 1 to 4, where that is whole UTF-8 and one to be
 * seen; 0 where it is none: bytes that are not UTF-8, control characters (C0, DEL, C1), line and
 * paragraph separators, marks that turn the direction of writing. */
uint32_t mpl_text_seen(const char *text);
bool mpl_text_is_seen(const char *text); /* all of it */
/* Bytes that are no character to be seen become '?'. */
void mpl_text_clean(char *text);
/* The text where all of it is to be seen, else so much of it as has room in `copy`, cleaned. */
const char *mpl_text_shown(const char *text, char *copy, size_t room);
/* The same with room of its own, until the block ends. */
#define mpl_shown(text) mpl_text_shown(text, (char[512]){0}, 512)

#endif
