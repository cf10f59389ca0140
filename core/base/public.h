/* public.h: what stands around the declarations of a public header.
 *
 * Public is what core/dbo.h and sim/sim.h include: it is installed, it can be called from C++, and
 * programs and plug-ins see it. All else is hidden, because the libraries are compiled so.
 *
 *     DBO_PUBLIC_BEGIN
 *     dbo_status dbo_noun_verb(dbo_noun *noun, dbo_error *err);
 *     DBO_PUBLIC_END
 */
#ifndef DBO_PUBLIC_H
#define DBO_PUBLIC_H

#ifdef __cplusplus
#define DBO_PUBLIC_BEGIN                               \
    _Pragma("GCC visibility push(default)") extern "C" \
    {
#define DBO_PUBLIC_END \
    }                  \
    _Pragma("GCC visibility pop")
#else
#define DBO_PUBLIC_BEGIN _Pragma("GCC visibility push(default)")
#define DBO_PUBLIC_END   _Pragma("GCC visibility pop")
#endif

#endif
