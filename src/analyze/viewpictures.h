/*
 * The flame graphs that a capture writes for each view: implementations of view.pictures (views.h),
 * used by the registry in views.c.
 */
#ifndef ASSAY_ANALYZE_VIEWPICTURES_H
#define ASSAY_ANALYZE_VIEWPICTURES_H

#include "analyze/views.h"
#include "base/base.h"

#define VIEWPICTURES(of)                                                                 \
	struct view_pictures viewpictures_of_##of(struct arena *a, const struct view *v, \
						  const struct profile *p,               \
						  const struct select_spec *spec, unsigned flags)

VIEWPICTURES(samples);
VIEWPICTURES(waits); /* VIEW_WAITS and VIEW_THREAD_TIME */
VIEWPICTURES(heap);
VIEWPICTURES(tables); /* one for each bit of view.drawn */
VIEWPICTURES(events);

#endif
