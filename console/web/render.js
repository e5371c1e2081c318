// The rendering core: a description of what is to be seen becomes real nodes, and a new description changes only what
// differs. Text is only ever set as text, and what is not on the lists of tags and attributes is refused, so no
// string becomes markup or a script.

/**
 * @typedef {{ tag: string, key: string | number | undefined, props: Record<string, any>, children: Node_[] }} Element_
 * @typedef {Element_ | string} Node_
 * @typedef {Node_ | number | null | undefined | boolean | any[]} Child
 */

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set(['svg', 'g', 'path', 'rect', 'line', 'circle', 'text', 'title', 'polyline']);
const TAGS = new Set(('a abbr article aside b br button caption code col colgroup dd details dialog div dl dt em ' +
  'fieldset footer form h1 h2 h3 header hr i input kbd label legend li main meter nav ol optgroup option p pre ' +
  'progress s section select small span strong summary table tbody td textarea tfoot th thead time tr u ul').split(' '));

/** What is set as an attribute. Everything that begins with `aria-` or `data-` is allowed, too. */
const ATTRIBUTES = new Set(('id class title role lang dir for type name placeholder autocomplete inputmode spellcheck ' +
  'maxlength min max step rows cols colspan rowspan scope datetime tabindex href open download pattern required ' +
  'viewBox width height x y x1 y1 x2 y2 cx cy r rx d points fill stroke preserveAspectRatio focusable ' +
  'text-anchor enterkeyhint list label').split(' '));

/** What lives in the node, not in its attributes: people change it. */
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'selected', 'indeterminate', 'hidden', 'readOnly']);

/**
 * Describes an element.
 * @param {string} tag
 * @param {Record<string, any> | null} [props] attributes, `key`, `onclick` and the like, `style` as an object, `created`
 * @param {...Child} children
 * @returns {Element_}
 */
export function h(tag, props, ...children) {
  if (!TAGS.has(tag) && !SVG_TAGS.has(tag)) throw new Error(`no such element: ${tag}`);
  const { key, ...rest } = props ?? {};
  return { tag, key, props: rest, children: flat(children, []) };
}

/**
 * Children without what is not shown; texts that stand side by side become one, as a browser would read them.
 * @param {Child[]} children
 * @param {Node_[]} into
 */
function flat(children, into) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) flat(child, into);
    else if (typeof child === 'object') into.push(child);
    else if (typeof into.at(-1) === 'string') into[into.length - 1] += String(child);
    else if (String(child) !== '') into.push(String(child));
  }
  return into;
}

/** What a node was made from. @type {WeakMap<Node, Element_>} */
const made = new WeakMap();
/** Who listens to a node's events. @type {WeakMap<Node, Record<string, (event: any) => void>>} */
const listening = new WeakMap();

/**
 * Makes what is in `root` look like this.
 * @param {Element} root
 * @param {Child} tree
 */
export function patch(root, tree) {
  /** @type {(() => void)[]} */
  const later = [];
  patchChildren(root, flat([tree], []), later);
  for (const act of later) act();
}

/** @param {Node_} from @param {boolean} inSvg @param {(() => void)[]} later */
function create(from, inSvg, later) {
  if (typeof from === 'string') return document.createTextNode(from);
  const svg = from.tag === 'svg' || inSvg;
  const node = svg ? document.createElementNS(SVG, from.tag) : document.createElement(from.tag);
  update(node, from, later);
  if (from.props.created) later.push(() => from.props.created(node));
  return node;
}

/** @param {Element} node @param {Element_} to @param {(() => void)[]} later */
function update(node, to, later) {
  const before = made.get(node)?.props ?? {};
  made.set(node, to);
  patchChildren(node, to.children, later);
  for (const name in before) if (!(name in to.props)) set(node, name, undefined, before[name]);
  // The value of a choice is set when its options are there.
  for (const name in to.props) set(node, name, to.props[name], before[name]);
}

/** @param {any} node @param {string} name @param {any} value @param {any} before */
function set(node, name, value, before) {
  if (name === 'created') return;
  if (name.startsWith('on')) return listen(node, name.slice(2), value);
  if (name === 'style') return restyle(node, value ?? {}, before ?? {});
  if (PROPERTIES.has(name)) {
    const wanted = value ?? (typeof node[name] === 'boolean' ? false : '');
    if (node[name] !== wanted) node[name] = wanted;
    return;
  }
  if (value === before) return;
  if (!ATTRIBUTES.has(name) && !/^(aria|data)-[a-z-]+$/.test(name)) throw new Error(`no such attribute: ${name}`);
  if (value === undefined || value === null || value === false) return node.removeAttribute(name);
  if (name === 'href' && !isOwn(String(value))) return node.removeAttribute(name);
  node.setAttribute(name, value === true ? '' : String(value));
}

/** Whether a link leads to this server; others are not followed. @param {string} href */
export function isOwn(href) {
  return /^\/(?![/\\])/.test(href) || href.startsWith('#') || href.startsWith('blob:');
}

/** @param {HTMLElement} node @param {Record<string, any>} to @param {Record<string, any>} before */
function restyle(node, to, before) {
  for (const name in before) if (!(name in to)) node.style.removeProperty(name);
  for (const name in to) if (to[name] !== before[name]) node.style.setProperty(name, String(to[name]));
}

/** @param {Node} node @param {string} event @param {((event: any) => void) | undefined | false} act */
function listen(node, event, act) {
  let acts = listening.get(node);
  if (!acts) listening.set(node, (acts = {}));
  if (!(event in acts)) node.addEventListener(event, dispatch);
  acts[event] = act || (() => {});
}

/** @this {Node} @param {Event} event */
function dispatch(event) {
  listening.get(this)?.[event.type]?.(event);
}

/** @param {ChildNode} node @param {Node_} to */
function fits(node, to) {
  if (typeof to === 'string') return node.nodeType === 3;
  const from = made.get(node);
  return from !== undefined && from.tag === to.tag && from.key === to.key;
}

/**
 * Nodes with a key go where it stands now; others are changed in place, in their order.
 * @param {Element} parent @param {Node_[]} wanted @param {(() => void)[]} later
 */
function patchChildren(parent, wanted, later) {
  const inSvg = parent.namespaceURI === SVG;
  /** @type {Map<string | number, ChildNode>} */
  const keyed = new Map();
  for (const node of parent.childNodes) {
    const key = made.get(node)?.key;
    if (key !== undefined) keyed.set(key, node);
  }
  /** @type {Set<string | number>} */
  const keys = new Set();
  for (const to of wanted) if (typeof to !== 'string' && to.key !== undefined) keys.add(to.key);
  let at = parent.firstChild;
  for (const to of wanted) {
    const key = typeof to === 'string' ? undefined : to.key;
    // What was here and is not wanted any more makes room.
    while (at && !fits(at, to) && isGone(at, keys)) at = removed(at);
    const moved = key === undefined ? undefined : keyed.get(key);
    if (at && fits(at, to)) {
      adapt(at, to, later);
      at = at.nextSibling;
    } else if (moved && fits(moved, to)) {
      parent.insertBefore(moved, at);
      adapt(moved, to, later);
    } else {
      parent.insertBefore(create(to, inSvg, later), at);
    }
  }
  while (at) at = removed(at);
}

/** @param {ChildNode} node @param {Set<string | number>} keys */
function isGone(node, keys) {
  const key = made.get(node)?.key;
  return key === undefined || !keys.has(key);
}

/** @param {ChildNode} node */
function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

/** @param {ChildNode} node @param {Node_} to @param {(() => void)[]} later */
function adapt(node, to, later) {
  if (typeof to !== 'string') update(/** @type {Element} */ (node), to, later);
  else if (node.nodeValue !== to) node.nodeValue = to;
}
