/*
 * Short forms of function names, by the rules of base/text/shortname.h. Part of the script of SVG
 * files and of that of the HTML page.
 */

/* Index after the bracket that closes the one at i; 0 if it is not closed. */
function skipGroup(s, i) {
	var open = s[i], close = {'<': '>', '(': ')', '[': ']', '{': '}'}[open], depth = 0;
	for (var k = i; k < s.length; k++)
		if (s[k] === open)
			depth++;
		else if (s[k] === close && !(close === '>' && /[-=]/.test(s[k - 1])) && !--depth)
			return k + 1;
	return 0;
}

function isWord(c) {
	return c !== undefined && /[\w$\x80-\uffff]/.test(c);
}

/* Length of "operator<<" at i; 0: another word is there. */
function operatorLength(s, i) {
	if (s[i] !== 'o' || isWord(s[i - 1]))
		return 0;
	var m = /^operator(?![\w$\x80-\uffff])(\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|[<>=!+\-*\/%^&|]=|&&|\|\||\+\+|--|[<>+\-*\/%^&|~!=,])?/
		.exec(s.slice(i, i + 12));
	return m ? m[0].length : 0;
}

/* Index after a hash or a compiler's suffix at i; i if there is none. */
function skipHash(s, i) {
	if (s.substr(i, 9) === ' [clone .')
		return skipGroup(s, i + 1) || i;
	if (s[i] !== ':' && s[i] !== '[' && s[i] !== '.')
		return i;
	var m = /^(?:::h[\da-f]{16}(?=$|\.)|\.(?:llvm|isra|constprop|part|lto_priv)\.\d*|\.cold\d*)/.exec(s.slice(i, i + 40));
	if (!m && isWord(s[i - 1]))
		m = /^\[[\da-f]{16}\]/.exec(s.slice(i, i + 18));
	return m ? i + m[0].length : i;
}

/* "<A as B>": length of "A"; 0 if nothing follows the type. */
function typeLength(s, i, end) {
	var n = i + 1;
	while (n + 1 < end && s.substr(n, 4) !== ' as ')
		n = ('<(['.indexOf(s[n]) >= 0 && skipGroup(s, n)) || n + 1;
	return s.substr(end, 2) === '::' ? n - i - 1 : 0;
}

/* "void ns::f<int>": a return type ends at the last space outside brackets. */
function dropReturnType(s) {
	var at = 0;
	for (var i = 0; i < s.length; i++) {
		if (operatorLength(s, i))
			break;
		if (s[i] === ' ')
			at = i + 1;
		if ('<([{'.indexOf(s[i]) >= 0)
			i = (skipGroup(s, i) || i + 1) - 1;
	}
	return at < s.length ? s.slice(at) : s;
}

var STRIP_ARGUMENTS = 1, STRIP_TEMPLATES = 2, STRIP_TRAIT = 4, STRIP_HASHES = 8;

function strippedName(s, what) {
	var out = '';
	for (var i = 0; i < s.length;) {
		var before = s[i - 1], op = operatorLength(s, i);
		var end = s[i] === '<' || s[i] === '(' ? skipGroup(s, i) : 0;
		var afterHash = what & STRIP_HASHES ? skipHash(s, i) : i;
		var isCall = s[i] === '(' && (isWord(before) || (i && '>)]}'.indexOf(before) >= 0));
		var isGeneric = s[i] === '<' && (isWord(before) || (i && ':]})'.indexOf(before) >= 0));
		var type = end && s[i] === '<' && !isGeneric ? typeLength(s, i, end) : 0;
		if (op) {
			out += s.substr(i, op);
			i += op;
		} else if (afterHash > i) {
			i = afterHash;
		} else if (end && isCall && what & STRIP_ARGUMENTS) {
			out = dropReturnType(out);
			i = end + /^(?: const| volatile| noexcept| &&| &|&)*/.exec(s.slice(end, end + 40))[0].length;
		} else if (end && isGeneric && what & STRIP_TEMPLATES) {
			out = out.replace(/::$/, '');
			i = end;
		} else if (type && what & STRIP_TRAIT) {
			out += strippedName(s.substr(i + 1, type), what);
			i = end;
		} else {
			out += s[i++];
		}
	}
	return out || s;
}

/* The forms of a path without its middle: "a::..::c::d", then its end alone. */
function pathForms(s) {
	var parts = [[0, 0]], forms = [], space = s.indexOf(' /');
	if (space > 0) /* JIT code: a name and a place */
		return [s.slice(0, space + 1) + s.slice(s.lastIndexOf('/') + 1), s.slice(0, space)];
	var isPath = /^\/|\/.*\//.test(s); /* "kworker/1:1H" is none */
	for (var i = 0; i < s.length && parts.length < 64; i++) {
		var op = operatorLength(s, i);
		var after = op ? i + op : '<([{'.indexOf(s[i]) >= 0 ? skipGroup(s, i) : 0;
		var sep = after ? 0 : s.substr(i, 2) === '::' ? 2 : isPath && s[i] === '/' ? 1 : 0;
		if (sep && i && i + sep < s.length) {
			parts.push([i, i + sep]);
			i += sep - 1;
		}
		if (after)
			i = after - 1;
	}
	var n = parts.length, least = n > 1 && s[parts[n - 1][1]] === '{' ? 2 : 1;
	var dots = s.indexOf('/') < 0 ? '..' : '...'; /* in a path ".." is a folder */
	for (var kept = n - 1; kept >= least; kept--) {
		var head = kept > 2 ? Math.floor((kept - 1) / 2) : 0, tail = parts[n - (kept - head)];
		forms.push(head ? s.slice(0, parts[head][0]) + s.slice(tail[0], tail[1]) + dots +
			s.slice(tail[0]) : s.slice(tail[1]));
	}
	return forms;
}

/* All forms of a name, from whole to shortest. */
function nameForms(name) {
	if (!name || name.length > 4096)
		return [name];
	var what = 0, forms = [name];
	[STRIP_ARGUMENTS, STRIP_TEMPLATES, STRIP_TRAIT, STRIP_HASHES].forEach(function (bit) {
		what |= bit;
		forms.push(strippedName(name, what));
	});
	return forms.concat(pathForms(forms[4])).filter(function (f, i, all) {
		return !i || f !== all[i - 1];
	});
}
