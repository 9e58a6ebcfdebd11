# names.js makes the same short forms of names as base/text/shortname.c: both are compared with one file
# (the other by the unit test names_lose_what_says_least_first).
set -u
top=$LIB/../..
command -v node > /dev/null || { echo "node is not installed"; exit 77; }
cat "$top/src/render/assets/names.js" - > forms.js << 'EOF'
var lines = require('fs').readFileSync(process.argv[2], 'utf8').split('\n').slice(0, -1);
lines.filter(function (line) { return line[0] !== '\t'; }).forEach(function (name) {
	process.stdout.write(nameForms(name).join('\n\t') + '\n');
});
EOF
node forms.js "$top/tests/fixtures/text/names.forms" > forms
diff "$top/tests/fixtures/text/names.forms" forms || { echo "FAIL: the forms differ"; exit 1; }
