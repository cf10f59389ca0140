/* driver.c: runs a fuzzer without a fuzzing engine, the same inputs each time.
 *
 *     fuzz_NAME FOLDER COUNT     every file of the folder, then COUNT mutations of them
 *     fuzz_NAME FILE             that input
 *
 * A mutation takes a file and changes a few of its tokens (words, numbers, strings, marks): drops,
 * doubles, swaps them, puts another file's or a nasty number in their place; now and then it
 * changes bytes. A fuzzer with a mutator of its own is asked for it instead. The n-th input is a
 * function of n and the folder. What kills the process, or takes more than HANG_S seconds of CPU
 * time, is left in a file whose name is printed.
 */
#include "core/base/prng.h"
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#define MAX_FILES  512
#define MAX_TOKENS 65536
#define MAX_BYTES  (1 << 20)
#define HANG_S     20

typedef struct slice {
    const char *text;
    size_t length;
} slice;

typedef struct corpus {
    slice files[MAX_FILES];
    size_t num_files;
    slice tokens[MAX_TOKENS]; /* of all files */
    size_t num_tokens;
} corpus;

static corpus all;
static char input[MAX_BYTES];
static size_t input_bytes;
static char last_words[128];

#pragma weak LLVMFuzzerCustomMutator
#pragma weak LLVMFuzzerCustomCrossOver

/* AddressSanitizer calls this before it ends the process. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void keep_input(void)
{
    int file = open(last_words, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    static const char said[] = "\nthe input is in ";
    if (file < 0 || write(file, input, input_bytes) < 0 || write(2, said, sizeof said - 1) < 0 ||
        write(2, last_words, strlen(last_words)) < 0 || write(2, "\n", 1) < 0)
        return;
    (void)close(file);
}

static void die(int number)
{
    static const char hang[] = "\nan input takes too long\n";
    if (number == SIGPROF && write(2, hang, sizeof hang - 1) < 0)
        _exit(3);
    keep_input();
    signal(number == SIGPROF ? SIGABRT : number, SIG_DFL);
    raise(number == SIGPROF ? SIGABRT : number);
}

static void watch(const char *name)
{
    snprintf(last_words, sizeof last_words, "/tmp/dbo-bad-%.60s-%ld", name, (long)getpid());
    signal(SIGABRT, die);
    signal(SIGPROF, die);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(keep_input);
        return;
    }
    signal(SIGSEGV, die);
    signal(SIGBUS, die);
    signal(SIGFPE, die);
}

static void try_input(void)
{
    const struct itimerval limit = {.it_value = {.tv_sec = HANG_S}};
    setitimer(ITIMER_PROF, &limit, NULL);
    /* A copy of just this size, so that a reader that goes too far is caught. */
    uint8_t *copy = malloc(input_bytes + 1);
    MUST(copy);
    memcpy(copy, input, input_bytes);
    LLVMFuzzerTestOneInput(copy, input_bytes);
    free(copy);
}

/* ---- tokens ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
}

/* The token at the head of a text of at least one byte. */
static size_t token_length(const char *text, size_t length)
{
    size_t i = 1;
    if (text[0] == '"' || text[0] == '\'') {
        while (i < length && text[i] != text[0] && text[i] != '\n')
            i++;
        return i < length ? i + 1 : i;
    }
    while (is_word(text[0]) && i < length && is_word(text[i]))
        i++;
    return i;
}

static size_t cut(const char *text, size_t length, slice *tokens, size_t room)
{
    size_t count = 0;
    while (length > 0 && count < room) {
        size_t bytes = token_length(text, length);
        tokens[count++] = (slice){text, bytes};
        text += bytes;
        length -= bytes;
    }
    return count;
}

static slice pick(dbo_prng *prng)
{
    static const char *const nasty[] = {
        "0",
        "-1",
        "1",
        "2",
        "1e9",
        "0.5",
        "2147483647",
        "2147483648",
        "-2147483648",
        "nil",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "{}",
        "4294967296",
        "1e308",
        "1e-9",
        "nan",
        "=",
        ",",
        "\n",
        "(0/0)",
        "65536",
        "256",
        "-9223372036854775808",
        "16",
        "\\u0000",
        "}",
        "]",
        "9223372036854775807",
        "1e400",
        "{{{{{{{{{{{{{{{{",
    };
    if (all.num_tokens > 0 && dbo_prng_below(prng, 3) > 0)
        return all.tokens[dbo_prng_below(prng, all.num_tokens)];
    const char *text = nasty[dbo_prng_below(prng, sizeof nasty / sizeof nasty[0])];
    return (slice){text, strlen(text)};
}

static void append(slice token)
{
    if (token.length > sizeof input - input_bytes)
        return;
    memcpy(input + input_bytes, token.text, token.length);
    input_bytes += token.length;
}

/* ---- mutations ---- */

static void change_tokens(dbo_prng *prng, slice *tokens, size_t count)
{
    uint32_t changes = 1 + (uint32_t)dbo_prng_below(prng, 5);
    for (uint32_t c = 0; c < changes && count > 0; c++) {
        size_t at = (size_t)dbo_prng_below(prng, count), other;
        switch (dbo_prng_below(prng, 5)) {
        case 0: tokens[at].length = 0; break;
        case 1:
            other = (size_t)dbo_prng_below(prng, count);
            tokens[at] = tokens[other];
            break;
        case 2: /* a stretch is dropped */
            other = at + (size_t)dbo_prng_below(prng, 20);
            for (size_t i = at; i < other && i < count; i++)
                tokens[i].length = 0;
            break;
        default: tokens[at] = pick(prng);
        }
    }
}

static void change_bytes(dbo_prng *prng)
{
    uint32_t changes = 1 + (uint32_t)dbo_prng_below(prng, 4);
    for (uint32_t c = 0; c < changes && input_bytes > 0; c++) {
        size_t at = (size_t)dbo_prng_below(prng, input_bytes);
        if (dbo_prng_below(prng, 4) == 0)
            input_bytes = at;
        else
            input[at] = (char)dbo_prng_below(prng, 256);
    }
}

/* By the fuzzer's own mutator: often one change, sometimes many; half of two files. */
static void mutate_by_own(dbo_prng *prng, slice file)
{
    slice other = all.files[dbo_prng_below(prng, all.num_files)];
    memcpy(input, file.text, file.length);
    input_bytes = file.length;
    if (dbo_prng_below(prng, 2))
        input_bytes = LLVMFuzzerCustomCrossOver(
            (const uint8_t *)file.text, file.length, (const uint8_t *)other.text, other.length,
            (uint8_t *)input, sizeof input, (unsigned)dbo_prng_below(prng, 1u << 31));
    for (uint64_t times = 1 + dbo_prng_below(prng, 4); times > 0; times--)
        input_bytes = LLVMFuzzerCustomMutator((uint8_t *)input, input_bytes, sizeof input,
                                              (unsigned)dbo_prng_below(prng, 1u << 31));
}

static void mutate(uint64_t number)
{
    static slice tokens[MAX_TOKENS];
    dbo_prng prng;
    dbo_prng_init(&prng, number, 1);
    slice file = all.files[dbo_prng_below(&prng, all.num_files)];
    if (LLVMFuzzerCustomMutator) {
        mutate_by_own(&prng, file);
        return;
    }
    size_t count = cut(file.text, file.length, tokens, MAX_TOKENS);
    change_tokens(&prng, tokens, count);
    input_bytes = 0;
    bool doubles = dbo_prng_below(&prng, 20) == 0; /* a token again and again */
    size_t which = count > 0 ? (size_t)dbo_prng_below(&prng, count) : 0;
    for (size_t i = 0; i < count; i++)
        for (uint32_t times = doubles && i == which ? 300 : 1; times > 0; times--)
            append(tokens[i]);
    if (dbo_prng_below(&prng, 4) == 0)
        change_bytes(&prng);
}

/* ---- files ---- */

static bool read_input(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    input_bytes = fread(input, 1, sizeof input, file);
    return fclose(file) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* in no locale */
}

static void read_folder(const char *folder)
{
    struct dirent **entries = NULL;
    char path[512];
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && all.num_files < MAX_FILES && read_input(path)) {
            char *text = malloc(input_bytes + 1);
            MUST(text);
            memcpy(text, input, input_bytes);
            all.files[all.num_files++] = (slice){text, input_bytes};
            all.num_tokens +=
                cut(text, input_bytes, all.tokens + all.num_tokens, MAX_TOKENS - all.num_tokens);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    watch(slash ? slash + 1 : argv[0]);
    if (argc == 2 && read_input(argv[1])) {
        try_input();
        return 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: %s FOLDER COUNT, or %s FILE\n", argv[0], argv[0]);
        return 2;
    }
    read_folder(argv[1]);
    MUST(all.num_files > 0);
    for (size_t i = 0; i < all.num_files; i++) {
        input_bytes = all.files[i].length;
        memcpy(input, all.files[i].text, input_bytes);
        try_input();
    }
    unsigned long count = strtoul(argv[2], NULL, 10);
    for (unsigned long n = 0; n < count; n++) {
        mutate(n);
        try_input();
    }
    for (size_t i = 0; i < all.num_files; i++)
        free((char *)(uintptr_t)all.files[i].text);
    printf("%s: %zu files, %lu mutations\n", slash ? slash + 1 : argv[0], all.num_files, count);
    return 0;
}
