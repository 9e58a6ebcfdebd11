/*
 * The files of src/render/assets/, embedded in the executable: scripts and style sheets of SVG
 * files and HTML pages. They are real files so that editors, linters and tests can process them.
 */
#ifndef ASSAY_RENDER_ASSETS_H
#define ASSAY_RENDER_ASSETS_H

#include "base/sv.h"

struct sv asset_unpack_js(void);
struct sv asset_names_js(void);
struct sv asset_flame_js(void);
struct sv asset_flame_css(void);
struct sv asset_chart_js(void);
struct sv asset_chart_css(void);
struct sv asset_page_js(void); /* of assets/page/, joined */
struct sv asset_page_css(void);
struct sv asset_diff_js(void); /* flame graph and tables of a comparison, joined */
struct sv asset_diff_css(void);

#endif
