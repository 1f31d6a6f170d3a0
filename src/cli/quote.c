/* quote.c - see quote.h. What is no UTF-8 (the name of a folder may hold any byte) becomes U+FFFD,
 * so that the line stays JSON. */
#include "cli/quote.h"

#include "base/utf8.h"

void quote_json(buf *out, str text) {
    buf_add_char(out, '"');
    for (size_t i = 0; i < text.n;) {
        uint32_t point = 0;
        const size_t width = utf8_decode(&point, text.p + i, text.n - i);
        if (width == 0) {
            buf_add_text(out, "\xEF\xBF\xBD");
        } else if (point < 0x20) {
            buf_printf(out, "\\u%04x", (unsigned)point);
        } else {
            if (point == '"' || point == '\\') buf_add_char(out, '\\');
            buf_add(out, text.p + i, width);
        }
        i += width == 0 ? 1 : width;
    }
    buf_add_char(out, '"');
}
