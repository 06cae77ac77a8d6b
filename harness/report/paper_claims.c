/* paper_claims.c -- what a text says of the rows: claims that can fail, figures that nothing would
 * keep true. See paper.h. */
#include <ctype.h>
#include <stdlib.h>

#include "harness/report/paper.h"
