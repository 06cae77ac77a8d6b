/* text.c -- safe display of text. See text.h. */
#include "graphs/core/text.h"

/* The character of n bytes at `text`; UINT32_MAX if it is not valid UTF-8. */
static uint32_t decode(const unsigned char *text, uint32_t n)
{
    /* smaller values are overlong encodings */
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = n == 1 ? text[0] : text[0] & (0x7fu >> n);

    for (uint32_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        c = c << 6 | (text[i] & 0x3f);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? UINT32_MAX : c;
}

static bool is_seen(uint32_t c)
{
    static const uint32_t hidden[][2] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfffe, 0xffff},
    };

    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (hidden[i][0] <= c && c <= hidden[i][1])
            return false;
    return c != UINT32_MAX;
}

uint32_t mpl_text_seen(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t n = *at < 0x80 ? 1 : *at >= 0xc0 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3 : 4;

    return *at >= 0x80 && (*at < 0xc0 || *at >= 0xf8) ? 0 : is_seen(decode(at, n)) ? n : 0;
}

bool mpl_text_is_seen(const char *text)
{
    for (uint32_t n; *text != '\0'; text += n)
        if ((n = mpl_text_seen(text)) == 0)
            return false;
    return true;
}

void mpl_text_clean(char *text)
{
    uint32_t n;

    for (char *at = text; *at != '\0'; at += n > 0 ? n : 1)
        if ((n = mpl_text_seen(at)) == 0)
            *at = '?';
}

const char *mpl_text_shown(const char *text, char *copy, size_t room)
{
    if (mpl_text_is_seen(text))
        return text;
    snprintf(copy, room, "%s", text);
    mpl_text_clean(copy);
    return copy;
}
