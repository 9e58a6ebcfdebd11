/* Embedded files; see assets.h. Paths are relative to the top folder, where make runs. */
#include "base/base.h"
#include "render/assets.h"

#define ASSET(name, file)                                  \
	__asm__(".section .rodata\n"                       \
		".balign 16\n"                             \
		"asset_" #name ":\n"                       \
		".incbin \"src/render/assets/" file "\"\n" \
		"asset_" #name "_end:\n"                   \
		".byte 0\n"                                \
		".previous\n");                            \
	extern const char asset_##name[];                  \
	extern const char asset_##name##_end[]

ASSET(unpack_js_text, "unpack.js");
ASSET(flame_js_text, "flame.js");
ASSET(flame_css_text, "flame.css");
ASSET(chart_js_text, "chart.js");
ASSET(chart_css_text, "chart.css");

struct sv asset_unpack_js(void)
{
	return sv_from(asset_unpack_js_text,
		       (size_t)(asset_unpack_js_text_end - asset_unpack_js_text));
}

struct sv asset_flame_js(void)
{
	return sv_from(asset_flame_js_text,
		       (size_t)(asset_flame_js_text_end - asset_flame_js_text));
}

struct sv asset_flame_css(void)
{
	return sv_from(asset_flame_css_text,
		       (size_t)(asset_flame_css_text_end - asset_flame_css_text));
}

struct sv asset_chart_js(void)
{
	return sv_from(asset_chart_js_text,
		       (size_t)(asset_chart_js_text_end - asset_chart_js_text));
}

struct sv asset_chart_css(void)
{
	return sv_from(asset_chart_css_text,
		       (size_t)(asset_chart_css_text_end - asset_chart_css_text));
}
