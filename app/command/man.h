/* man.h: the tables of commands and options as a manual page.
 *
 *     dbo_print_man_page();      // what `dbo help --man` prints
 */
#ifndef DBO_APP_MAN_H
#define DBO_APP_MAN_H

void dbo_print_man_page(void);

#endif
