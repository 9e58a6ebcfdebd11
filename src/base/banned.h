/*
 * Calls that this project does not use, as compile errors: unbounded copies, parsers that cannot
 * report an error, functions with hidden static state, shells. Each has a safe sibling in base/.
 */
#ifndef ASSAY_BASE_BANNED_H
#define ASSAY_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat strtok sprintf vsprintf gets
#pragma GCC poison atoi atol atoll atof mktemp tmpnam popen
#pragma GCC poison gmtime localtime ctime asctime

#endif
