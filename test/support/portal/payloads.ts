import { isLong } from '../long.ts'

/**
 * Hostile texts, each with what it is. Each would set `__xss`, which faults.ts watches, and open a dialog. Each fits where the
 * name of a cluster does.
 */

/** Those that run as soon as a page takes them for markup or for an address. */
const allLive = [
  ['a script', '<script>alert(__xss=1)</script>'],
  ['an image', '<img src=x onerror=alert(__xss=2)>'],
  ['a drawing', '<svg/onload=alert(__xss=3)>'],
  ['out of an attribute', '"><b autofocus tabindex=1 onfocus=alert(__xss=4),remove()>'],
  ['out of an attribute, without a tag', `' autofocus onfocus='alert(__xss=5),remove()' x='`],
  ['an address', 'javascript:alert(__xss=6)'],
  ['an address that hides', ' java\tscript:alert(__xss=7)//https://example.com'],
  ['a frame', '<iframe srcdoc="<script>parent.__xss=8;alert(8)</script>">'],
  ['out of a text area', '</textarea></title></style><script>alert(__xss=9)</script>'],
  ['out of script and comment', `--></script>'"/*<svg/onload=alert(__xss=10)>*/`],
  ['out of most at once', '"></textarea><svg/onload=alert(__xss=0)>'],
  ['a page as an address', 'data:text/html,<script>alert(__xss=11)</script>'],
] as const

/** Those that run only where a page first evaluates, decodes or converts them, or where a browser is old. */
const sleepingPayloads = [
  ['templates', '{{constructor.constructor("alert(__xss=12)")()}}${7*7}#{7*7}'],
  ['other letters', '\uFF1Cscript\uFF1Ealert(__xss=13)\uFF1C/script\uFF1E\u202E\u2028<\u0130mg>'],
  ['written as entities', '&lt;img src=x onerror=alert(__xss=14)&gt;&#60;b&#62;'],
  ['a style', "';x:expression(alert(__xss=15));y:url(javascript:alert(1))"],
] as const

/** One that gets in nearly everywhere, and one that gets out of most places: what is tried where not all is, see long.ts. */
const nastiest = new Set<string>(['an image', 'out of most at once'])

const isTried = ([what]: readonly [string, string]) => isLong || nastiest.has(what)

export const livePayloads = allLive.filter(isTried)

export const payloads = [...allLive, ...sleepingPayloads].filter(isTried)

/** What is typed into fields: where not all is tried, the one that gets out of most places. */
export const typedPayloads = isLong ? payloads : payloads.slice(-1)
