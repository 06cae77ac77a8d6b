/* text_priv.h -- what the reader and the writer of the .graph format share: words and numbers. */
#ifndef MPL_TEXT_PRIV_H
#define MPL_TEXT_PRIV_H

#include "graphs/graph.h"

enum {
    MPL_TEXT_NUMBER = 64,   /* characters that hold any number, zero included */
    MPL_TEXT_MAX_DATA = 64, /* constants of more elements are written as bytes */
};

/* Characters of words: names, operators, attributes, numbers. */
bool mpl_text_word_char(char c);

/* Words that begin a line of their own kind, or will; as a value's name they stand in quotes. */
bool mpl_text_reserved(const char *word, size_t n);

/* One element as text, so that reading gives the same bits: integers in decimal, floating numbers
 * as the shortest decimal that reads back, NaNs other than the usual one with their bits
 * ("nan.7fc00001"). text[MPL_TEXT_NUMBER]. */
const char *mpl_text_format(mpl_type type, const void *data, int64_t i, char *text);

/* Reads a word of n characters as element i of data: what mpl_text_format writes, any decimal or C
 * hexadecimal number (rounded to the nearest), inf and nan. False: no number, or outside of the
 * type's range. */
bool mpl_text_parse(mpl_type type, const char *word, size_t n, void *data, int64_t i);

/* A whole number in decimal. */
bool mpl_text_parse_int(const char *word, size_t n, int64_t *out);

/* Value of a hexadecimal digit of either case, or -1. */
int mpl_text_hex(char c);

#endif
