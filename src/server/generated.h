/* generated.h - files of this folder as bytes in the program, made by tools/embed when it is built.
 */
#ifndef SERVER_GENERATED_H
#define SERVER_GENERATED_H

#include <stddef.h>

/* page.html, and the content-security-policy that lets its own script and style run and nothing
 * else. */
extern const unsigned char page_html[];
extern const size_t page_html_len;
extern const char page_csp[];

/* openapi.json. */
extern const unsigned char openapi_json[];
extern const size_t openapi_json_len;

#endif
