/*
 * Text of numbers and names. The page has one number format: at most four significant digits, one
 * unit, a thin space between thousands of counts.
 */
const NBSP = '\u00a0';

function grouped(v) {
	return String(Math.round(v)).replace(/\B(?=(\d{3})+$)/g, ',');
}

function scaled(v, steps, smallest) {
	for (const [from, unit] of steps) {
		if (v < from)
			continue;
		const x = v / from;
		return (x < 1000 ? x.toFixed(x < 10 ? 2 : x < 100 ? 1 : 0) : grouped(x)) + NBSP + unit;
	}
	return grouped(v) + smallest;
}

/* "1 sample", "2 samples" */
function countText(n, noun) {
	return grouped(n) + ' ' + (Math.round(n) === 1 ? noun.replace(/s$/, '') : noun);
}

function timeText(ns) {
	return scaled(ns, [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']], NBSP + 'ns');
}

/* Of a duration; -1: not known. The scheduler's clock does not divide a microsecond. */
function quantileText(ns) {
	return ns < 0 ? '-' : ns < 1000 ? '<1' + NBSP + 'µs' : timeText(ns);
}

function bytesText(n) {
	return scaled(n, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB']],
		NBSP + 'B');
}

function amountText(v, unit) {
	return unit === 'ns' ? timeText(v) : unit === 'bytes' ? bytesText(v) : grouped(v);
}

/* A time on the axis: as many decimals as a step of @step ms needs. */
function axisText(ms, step) {
	return (ms / 1000).toFixed(step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3) + NBSP + 's';
}

function percentText(part, whole) {
	const v = whole > 0 ? 100 * part / whole : 0;
	return (v > 0 && v < 0.05 ? '<0.1' : v.toFixed(1)) + NBSP + '%';
}

/* Half width of the 95 % interval of a share of @n of @all samples, in percentage points. */
function errorText(n, all) {
	if (!all)
		return '';
	const p = Math.min(n / all, 1);
	return '±' + (196 * Math.sqrt(Math.max(p * (1 - p), 1 / all * (1 - 1 / all)) / all)).toFixed(1);
}

/* The longest form of a name that fits, or the start of the shortest. */
function shortName(name, nrChars) {
	const forms = nameForms(name), last = forms[forms.length - 1];
	return forms.find((f) => f.length <= nrChars) ?? last.slice(0, nrChars - 1) + '…';
}

/* A path without its first folders if it is long. */
function shortPath(text, nrChars) {
	const parts = text.split('/');
	return text.length <= nrChars || parts.length < 4 ? text : '…/' + parts.slice(-2).join('/');
}

function escapeRegex(text) {
	return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/* A regex; text that is none (yet) is searched as it is, and .problem says why. */
function compileSearch(text) {
	const flags = /[A-Z]/.test(text) ? '' : 'i';
	try {
		return new RegExp(text, flags);
	} catch (e) {
		return Object.assign(new RegExp(escapeRegex(text), flags), {problem: e.message.split(': ').pop()});
	}
}

/* A word for a shell. */
function shellWord(text) {
	return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'";
}
