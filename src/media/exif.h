/* exif.h - the one thing that is read from EXIF data. */
#ifndef MEDIA_EXIF_H
#define MEDIA_EXIF_H

#include "base/str.h"

/* 1..8 as the tag of that name says; 1 (as stored) when it is absent or makes no sense. `tiff`
 * begins with "II*\0" or "MM\0*"; anything else, empty included, gives 1. */
unsigned exif_orientation(str tiff);

#endif
