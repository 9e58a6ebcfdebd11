/*
 * Turns calls that this project does not use into compile errors: unbounded copies, parsers that
 * cannot report an error, functions with hidden static state, shells. base/ has a safe replacement
 * for each.
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
