/*
 * Short forms of function names, as flame_label() in flame.c makes them. Part of the script of SVG files
 * and of that of the HTML page.
 */

/* Without template and call arguments. */
function bareName(name) {
	if (name.indexOf('operator') >= 0 || name[0] === '[')
		return name;
	var out = '', depth = 0;
	for (var i = 0; i < name.length; i++) {
		var c = name[i];
		if (c === '<' || c === '(')
			depth++;
		else if ((c === '>' && i && name[i - 1] !== '-') || c === ')')
			depth -= depth > 0 ? 1 : 0;
		else if (!depth)
			out += c;
	}
	return out.replace(/:::+/g, '::').replace(/^:+/, '') || name;
}

function lastPart(bare) {
	var parts = bare.split('::');
	var last = parts[parts.length - 1];
	if (!last)
		return bare;
	return parts.length > 1 && last[0] === '{' ? parts.slice(-2).join('::') : last;
}
