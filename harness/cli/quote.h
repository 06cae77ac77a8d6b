/* quote.h -- quotes text from files and names for other languages, one function each. The result is
 * one piece of plain text there, whatever the input holds. Invisible characters
 * (graphs/core/text.h) become '?'. For JSON see mpl_json_quote. */
#pragma once

#include "graphs/core/text.h"

/* A gnuplot string in single quotes, where gnuplot neither executes nor substitutes anything. */
void mpl_put_gnuplot(FILE *to, const char *text);
/* A cell of gnuplot data in double quotes, where nothing is executed. */
void mpl_put_gnuplot_cell(FILE *to, const char *text);
/* Text between tags of HTML and XML, or an attribute in quotes. */
void mpl_put_markup(FILE *to, const char *text);
/* A string of JavaScript within an HTML page. */
void mpl_put_script(FILE *to, const char *text);
/* Text between the double quotes of a Graphviz string. Escapes of labels are disabled. */
void mpl_put_dot(FILE *to, const char *text);
/* A cell of a markdown table. */
void mpl_put_markdown(FILE *to, const char *text);
/* Number of characters that mpl_put_markdown writes. */
uint32_t mpl_markdown_width(const char *text);
/* A cell of a tab-separated table. An apostrophe precedes text that a spreadsheet would read as a
 * formula. */
void mpl_put_tsv(FILE *to, const char *text);
/* One word of a POSIX shell's command line, byte for byte: invisible characters stay. */
void mpl_put_shell(FILE *to, const char *text);
/* A file name for the id-th of several texts; different texts get different names. Any byte except
 * letters, digits, '_', '-' and '.' becomes "%XX", as in URLs, and so does a leading '.'. A result
 * longer than 200 bytes is cut and ends in "%" and the id. */
enum { MPL_FILE_NAME = 224 };
const char *mpl_file_name(const char *text, uint32_t id, char name[MPL_FILE_NAME]);
/* Whether a spreadsheet computes a cell with this text: it begins with = or @, or with a sign and
 * is no number. */
bool mpl_is_formula(const char *text);
