/*
 * Files of src/render/assets/, part of the program: scripts and style sheets of pictures and
 * pages. Real files, so that editors, linters and tests see them as what they are.
 */
#ifndef ASSAY_RENDER_ASSETS_H
#define ASSAY_RENDER_ASSETS_H

#include "base/sv.h"

struct sv asset_unpack_js(void);
struct sv asset_flame_js(void);
struct sv asset_flame_css(void);
struct sv asset_chart_js(void);
struct sv asset_chart_css(void);

#endif
