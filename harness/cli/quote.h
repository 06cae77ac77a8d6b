/* quote.h -- text that comes from files and names, put where another program reads it: one function
 * a language. What is written is text there, whatever it holds, and stays in one piece; what cannot
 * be seen (graphs/core/text.h) becomes '?'. JSON is mpl_json_quote's. */
#ifndef MPL_QUOTE_H
#define MPL_QUOTE_H

#include "graphs/core/text.h"

/* A string of gnuplot in single quotes, in which it runs and replaces nothing. */
void mpl_put_gnuplot(FILE *to, const char *text);
/* A cell of gnuplot's data, in the double quotes that those have; nothing is run there. */
void mpl_put_gnuplot_cell(FILE *to, const char *text);
/* Text between tags of HTML and XML, or an attribute in quotes. */
void mpl_put_markup(FILE *to, const char *text);
/* A string of JavaScript within an HTML page. */
void mpl_put_script(FILE *to, const char *text);
/* Text between the double quotes of a Graphviz string, to be read as it stands: what looks like an
 * escape of a label is none. */
void mpl_put_dot(FILE *to, const char *text);
/* A cell of a markdown table. */
void mpl_put_markdown(FILE *to, const char *text);
/* How many characters that writes. */
uint32_t mpl_markdown_width(const char *text);
/* A cell of a tab-separated table: what a spreadsheet would take for a formula gets an apostrophe
 * before it. */
void mpl_put_tsv(FILE *to, const char *text);
/* A name of a file for the id-th of several texts, different ones for different texts: what is no
 * letter, digit, '_', '-' or '.' is "%XX", as in addresses of the web, and so is a '.' in front;
 * what is longer than 200 bytes then ends in "%" and the id. */
enum { MPL_FILE_NAME = 224 };
const char *mpl_file_name(const char *text, uint32_t id, char name[MPL_FILE_NAME]);
/* Whether a spreadsheet computes a cell that holds this: it begins with = or @, or with a sign and
 * is no number. */
bool mpl_is_formula(const char *text);

#endif
