/* version.h: which dbo a program is compiled against. The build takes its version from here.
 *
 *     #if DBO_VERSION_MAJOR == 0 && DBO_VERSION_MINOR < 3
 *     dbo_sim_seam(sim, 0, &seam);
 *     #endif
 *
 * Before 1.0 another MINOR may change what is public, and the shared library's name with it.
 */
#ifndef DBO_VERSION_H
#define DBO_VERSION_H

#define DBO_VERSION_MAJOR 0
#define DBO_VERSION_MINOR 2
#define DBO_VERSION_PATCH 0

#endif
