/* input.c: a list of the files that were read (input.h). A run reads a few: it is searched from its
 * head, and only ever grows. */
#include "app/io/input.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct dbo_input {
    struct dbo_input *next;
    dev_t device;
    ino_t number;
    char path[];
} dbo_input;

/* The script's thread adds while the command's waits; one that was given up may add later. */
static _Atomic(dbo_input *) inputs;

static const dbo_input *find(const struct stat *file)
{
    const dbo_input *input = atomic_load(&inputs);
    while (input && (input->device != file->st_dev || input->number != file->st_ino))
        input = input->next;
    return input;
}

static dbo_status remember(const struct stat *file, const char *name, dbo_error *err)
{
    if (!S_ISREG(file->st_mode) || find(file))
        return DBO_OK;
    size_t bytes = strlen(name) + 1;
    dbo_input *input = malloc(sizeof *input + bytes);
    DBO_TRY(dbo_need_memory(input, "the names of the files read", err));
    input->device = file->st_dev;
    input->number = file->st_ino;
    memcpy(input->path, name, bytes);
    input->next = atomic_load(&inputs);
    while (!atomic_compare_exchange_weak(&inputs, &input->next, input))
        continue;
    return DBO_OK;
}

dbo_status dbo_input_remember_open(int fd, const char *path, dbo_error *err)
{
    struct stat file;
    return fstat(fd, &file) == 0 ? remember(&file, path, err) : DBO_OK;
}

dbo_status dbo_input_remember(const char *path, dbo_error *err)
{
    struct stat file;
    if (strcmp(path, "-") == 0)
        return dbo_input_remember_open(STDIN_FILENO, "the standard input", err);
    return stat(path, &file) == 0 ? remember(&file, path, err) : DBO_OK;
}

const char *dbo_input_replaced_by(const char *path)
{
    struct stat file;
    const dbo_input *input = stat(path, &file) == 0 ? find(&file) : NULL;
    return input ? input->path : NULL;
}
