/* Files of the Python interpreter; see pythonmodules.h. */
#include "base/base.h"
#include "analyze/stacks/pythonmodules.h"

#include "analyze/select/funcglob.h"

bool python_is_seen(const struct profile *p)
{
	for (size_t i = 1; i < p->functions.n; i++)
		if (p->functions.p[i].flags & FUNC_PYTHON)
			return true;
	return false;
}

bool python_is_module(const char *module)
{
	return funcglob_is_like("python3*|libpython3*|_*.cpython-3*", sv_from_str(module));
}
