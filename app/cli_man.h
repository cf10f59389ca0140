/* cli_man.h: argp's tables in other forms than --help: a manual page's roff, words to complete. */
#ifndef DBO_APP_CLI_MAN_H
#define DBO_APP_CLI_MAN_H

#include <argp.h>

/* Prints the section of a command: usage, text, options, examples. Its children are left out. */
void dbo_man_command(const char *name, const struct argp *argp);
/* Prints the options of a table as paragraphs. */
void dbo_man_options(const struct argp_option *options);
/* Prints "--set --executor ..." of a table. */
void dbo_man_words(const struct argp_option *options);

#endif
