# assay bench --profile: of a program with one function made slower, that function is named first.
. "$LIB/share.sh"
cat > planted.c <<'P'
#define F(name, share) __attribute__((noinline)) unsigned name(unsigned x) { \
	for (long i = 0; i < (share) * 100000L; i++) { \
		x ^= x << 13; x ^= x >> 17; x ^= x << 5; __asm__ volatile("" : "+r"(x)); } \
	return x; }
F(parse_input, 40) F(hash_rows, 30 * SLOW) F(write_out, 20) F(check_all, 10)
int main(void)
{
	unsigned x = 7;
	for (int i = 0; i < 10; i++) x = check_all(write_out(hash_rows(parse_input(x))));
	return x == 1;
}
P
gcc -O1 -g -DSLOW=1 -o old planted.c && gcc -O1 -g -DSLOW=1.3 -o new planted.c || fail "cannot build"
"$ASSAY" bench -r 2 --profile both --profile-phase 'hash=^hash_rows$' --profile-phase 'main=^main$' --vs ./new -- ./old \
	> out 2> err
says err 'profiles of both and their comparison: both/diff.html, both/diff.md' || fail "$(cat out err)"
# the stacks of builds with different file names are compared, without these names
grep -q '>main ([^<]*; before [1-9]' both/diff.html || fail "main: $(grep -o '>[^>]*; before [^<]*' both/diff.html | head)"
first=$(awk '/functions by change/ { getline; getline; print }' out)
case $first in *hash_rows*) ;; *) fail "first is: $first" ;; esac
grep -q 'hash_rows' both/diff.md && grep -q 'hash_rows' both/diff.html || fail "not in the pages"
# below main is nearly all, and the rule nearest to the root wins
awk '/^phases by change/ { on = 1 } on' out > phases
grep -q 'main' both/phases.md && grep -q 'main' both/phases.html || fail "no pages of phases: $(ls both)"
grep -q 'main$' phases && ! grep -q 'hash$' phases || fail "phases: $(cat phases)"
"$ASSAY" diff -q --absolute --by phase --phase 'hash=^hash_rows$' --runs both/a*.assay -- both/b*.assay > out 2> err ||
	fail "$(cat err)"
awk '/^phases by change/ { getline; getline; print }' out | grep -q 'hash$' || fail "phases: $(cat out)"
"$ASSAY" diff --by phase both/a1.assay both/b1.assay > out 2> err
[ $? = 2 ] && says err 'by phase needs --phase' || fail "$(cat err)"
"$ASSAY" bench --profile-phase x=y 'true' 'false' > out 2> err
[ $? = 2 ] && says err 'needs --profile DIR' || fail "$(cat err)"
[ "$(ls both/*.assay | wc -l)" = 12 ] || fail "$(ls both)"
"$ASSAY" bench --profile both 'true' > out 2> err
[ $? = 2 ] && says err 'compares two commands' || fail "$(cat err)"
