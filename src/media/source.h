/* source.h - the bytes of a picture from what a request names: a data URL, base64 text, a file. */
#ifndef MEDIA_SOURCE_H
#define MEDIA_SOURCE_H

#include "base/buf.h"
#include "media/media.h"

/* Gives the encoded bytes of `ref`, which is not MEDIA_FRAMES. They are `ref`'s own or those of
 * `storage`, an empty buffer that the caller frees in any case. `max_bytes` bounds them before they
 * are read or decoded; `allow_paths` lets MEDIA_PATH and file: URLs through. Nothing is ever
 * fetched: other URLs are CLEF_ERR_UNSUPPORTED. Base64 is taken strictly, as base64.h
 * says, and errors begin with `where`. */
clef_status source_bytes(str *out, buf *storage, const media_ref *ref, size_t max_bytes,
                         bool allow_paths, const char *where, clef_error *err);

#endif
