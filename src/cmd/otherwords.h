/*
 * What users of other tools type first (perf, samply, py-spy, heaptrack, valgrind, strace, hyperfine,
 * bpftrace, gdb, flamegraph.pl), and what to type here instead. One row for each word; a new one
 * needs nothing else. The words are only hints of errors: none of them is accepted.
 */
#ifndef ASSAY_CMD_OTHERWORDS_H
#define ASSAY_CMD_OTHERWORDS_H

#include "base/base.h"
#include "base/err.h"
#include "base/opt/opt.h"
#include "base/text/suggest.h"

/* Options of other tools, for opt_cmd.others. Ends with a NULL word. */
extern const struct opt_other other_options[];

/* Whether the word is a program that can be started: a path, or a name in PATH. */
bool word_is_program(const char *word);
/* Whether it is a word of another tool, for which there is a hint. */
bool word_is_of_other_tool(const char *word);
/* Whether processes of exactly this name are running. */
bool word_is_running(const char *word);
/*
 * Sets the hint "to start it: assay cpu OPTIONS -- ./prog ARGS" if argv[@first] is a program, else
 * returns false. @command: the command's name, which replaces argv[0].
 */
bool hint_launch(struct err *err, const char *command, int argc, char **argv, int first);
/*
 * Sets the hint for a word that is no command: what another tool's word means here, or the command
 * line for a program, a process id or a profile. False if it is none of these.
 */
bool hint_first_word(struct err *err, int argc, char **argv);

/* Offers the words of other tools that correspond to commands ("record"). */
void other_offer(struct suggest *s);

#endif
