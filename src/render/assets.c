/* Embedded files; see assets.h. Paths are relative to the top directory, where make runs. */
#include "base/base.h"
#include "render/assets.h"

#define ASSET(name, file) EMBED(name, "src/render/assets/" file)
#define EMBED(name, path)                                                        \
	__asm__(".section .rodata\n"                                             \
		".balign 16\n" #name "_text:\n"                                  \
		".incbin \"" path "\"\n" #name "_end:\n"                         \
		".byte 0\n"                                                      \
		".previous\n");                                                  \
	extern const char name##_text[];                                         \
	extern const char name##_end[];                                          \
	struct sv name(void)                                                     \
	{                                                                        \
		return sv_from(name##_text, (size_t)(name##_end - name##_text)); \
	}

ASSET(asset_unpack_js, "unpack.js")
ASSET(asset_names_js, "names.js")
ASSET(asset_flame_js, "flame.js")
ASSET(asset_flame_css, "flame.css")
ASSET(asset_chart_js, "chart.js")
ASSET(asset_chart_css, "chart.css")
EMBED(asset_page_js, PAGE_JS)
ASSET(asset_page_css, "page/page.css")
EMBED(asset_diff_js, DIFF_JS)
ASSET(asset_diff_css, "page/diff.css")
