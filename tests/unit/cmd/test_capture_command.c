/* Tests of what the capture commands have in common. */
#include "base/base.h"
#include "cmd/capture/capture_command.h"
#include "tap.h"

#include "base/clock.h"

TEST(capture_rate_depends_on_the_length)
{
	static const struct {
		uint64_t ns;
		uint64_t given_hz;
		uint32_t hz;
	} cases[] = {
		{0, 0, 999}, /* until the command ends */
		{NS_PER_SEC / 2, 0, 999},
		{15 * NS_PER_SEC, 0, 999},
		{15 * NS_PER_SEC + 1, 0, 499},
		{30 * NS_PER_SEC, 0, 499},
		{CAPTURE_SECONDS_DEFAULT * NS_PER_SEC, 0, 249},
		{61 * NS_PER_SEC, 0, 99},
		{UINT64_MAX, 0, 99},
		{3600 * NS_PER_SEC, 1777, 1777},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct capture_opts o = {.freq_hz = cases[i].given_hz};
		CHECK(capture_freq_hz(&o, cases[i].ns) == cases[i].hz);
	}
}
