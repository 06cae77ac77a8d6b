/* text.h -- safe display of text from files, file names and commands: it must not control the
 * terminal or document that shows it. */
#pragma once

#include "graphs/core/base.h"

/* Length of the first character, 1 to 4 bytes, if it is valid UTF-8 and printable, else 0. Not
 * printable: control characters (C0, DEL, C1), line and paragraph separators, marks that change the
 * writing direction. */
uint32_t mpl_text_seen(const char *text);
bool mpl_text_is_seen(const char *text); /* all characters are printable */
/* Replaces bytes of no printable character by '?'. */
void mpl_text_clean(char *text);
/* Returns the text if all of it is printable, else a cleaned copy, cut to `room`. */
const char *mpl_text_shown(const char *text, char *copy, size_t room);
/* The same with its own buffer, valid until the block ends. */
#define mpl_shown(text) mpl_text_shown(text, (char[512]){0}, 512)
