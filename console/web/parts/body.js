// Bodies as text. JSON is laid out without reading its numbers, so that large ones stay exact.

/**
 * The text of a member of an answer, as the server wrote it; undefined if there is none.
 * @param {string} answer @param {string} name
 */
export function rawMember(answer, name) {
  let depth = 0;
  for (let at = 0; at < answer.length; at++) {
    const sign = answer[at];
    if (sign === '"') {
      const end = endOfString(answer, at);
      if (depth === 1 && answer.slice(at, end) === `"${name}"`) {
        const colon = answer.slice(end).match(/^\s*:\s*/);
        const from = end + (colon?.[0].length ?? 0);
        if (colon) return answer.slice(from, endOfValue(answer, from)).trim();
      }
      at = end - 1;
    } else if (sign === '{' || sign === '[') depth++;
    else if (sign === '}' || sign === ']') depth--;
  }
  return undefined;
}

/** @param {string} text @param {number} from where its quotation mark stands */
function endOfString(text, from) {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** The items of an array, each as the server wrote it. @param {string} array */
export function rawItems(array) {
  const items = [];
  for (let [from, end] = [1, 0]; end < array.length && array[end] !== ']'; from = end + 1) {
    end = endOfValue(array, from);
    const item = array.slice(from, end).trim();
    if (item) items.push(item);
  }
  return items;
}

/** @param {string} text @param {number} from */
function endOfValue(text, from) {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') {
      at = endOfString(text, at) - 1;
    } else if (sign === '{' || sign === '[') depth++;
    else if (sign === '}' || sign === ']' || sign === ',') {
      if (depth === 0) return at;
      if (sign !== ',') depth--;
    }
  }
  return text.length;
}

/** JSON over several lines, its strings and numbers untouched. @param {string} json */
export function pretty(json) {
  let out = '';
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  for (let at = 0; at < json.length; at++) {
    const sign = json[at];
    if (sign === '"') {
      const end = endOfString(json, at);
      out += json.slice(at, end);
      at = end - 1;
    } else if (sign === '{' || sign === '[') {
      const empty = json.slice(at + 1).match(/^\s*[}\]]/);
      if (empty) {
        out += sign + (sign === '{' ? '}' : ']');
        at += empty[0].length;
      } else {
        depth++;
        out += sign + line();
      }
    } else if (sign === '}' || sign === ']') {
      depth--;
      out += line() + sign;
    } else if (sign === ',') out += ',' + line();
    else if (sign === ':') out += ': ';
    else if (!/\s/.test(sign)) out += sign;
  }
  return out;
}

/** Bytes in hexadecimal, sixteen to a line, the first of them. @param {string} base64 @param {number} most */
export function hex(base64, most) {
  const bytes = Uint8Array.from(atob(base64.slice(0, Math.ceil(most / 3) * 4)), (sign) => sign.charCodeAt(0));
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const text = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
    lines.push(at.toString(16).padStart(6, '0') + '  ' + part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ').padEnd(48) + ' ' + text);
  }
  return lines.join('\n');
}
