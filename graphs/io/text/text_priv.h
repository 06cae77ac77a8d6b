/* text_priv.h -- words and numbers of the .graph format, shared by its reader and writer. */
#pragma once

#include "graphs/graph.h"

enum {
    MPL_TEXT_NUMBER = 64,   /* enough for any number and its zero */
    MPL_TEXT_MAX_DATA = 64, /* larger constants are written as bytes */
};

/* Characters of words: names, operators, attributes, numbers. */
bool mpl_text_word_char(char c);

/* Words with a meaning at the start of a line, now or in future; quoted when they name a value. */
bool mpl_text_reserved(const char *word, size_t n);

/* Whether elements of the type can be written as numbers; else they are bytes. */
bool mpl_text_has_words(mpl_type type);

/* Formats one element so that reading gives the same bits: integers in decimal, floating numbers as
 * the shortest decimal that reads back, other NaNs than the usual one with their bits
 * ("nan.7fc00001"). text[MPL_TEXT_NUMBER]. */
const char *mpl_text_format(mpl_type type, const void *data, int64_t i, char *text);

/* Reads a word of n characters as element i of data: the output of mpl_text_format, any decimal or
 * C hexadecimal number (rounded to the nearest), inf and nan. False: no number, or out of range. */
bool mpl_text_parse(mpl_type type, const char *word, size_t n, void *data, int64_t i);

/* A whole number in decimal. */
bool mpl_text_parse_int(const char *word, size_t n, int64_t *out);

/* Value of a hexadecimal digit of either case, or -1. */
int mpl_text_hex(char c);
