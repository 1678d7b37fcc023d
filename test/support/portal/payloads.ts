import { isLong } from '../long.ts'

/** Texts that set `__xss` (watched by page-errors.ts) and open a dialog when a page executes them. Each fits a cluster's name. */
const all: [kind: string, text: string][] = [
  ['script', '<script>alert(__xss=1)</script>'],
  ['image', '<img src=x onerror=alert(__xss=2)>'],
  ['svg', '<svg/onload=alert(__xss=3)>'],
  ['attribute', '"><b autofocus tabindex=1 onfocus=alert(__xss=4),remove()>'],
  ['attribute without a tag', `' autofocus onfocus='alert(__xss=5),remove()' x='`],
  ['URL', 'javascript:alert(__xss=6)'],
  ['obfuscated URL', ' java\tscript:alert(__xss=7)//https://example.com'],
  ['frame', '<iframe srcdoc="<script>parent.__xss=8;alert(8)</script>">'],
  ['raw text elements', '</textarea></title></style><script>alert(__xss=9)</script>'],
  ['script and comment', `--></script>'"/*<svg/onload=alert(__xss=10)>*/`],
  ['polyglot', '"></textarea><svg/onload=alert(__xss=0)>'],
  ['data URL', 'data:text/html,<script>alert(__xss=11)</script>'],
  ['template', '{{constructor.constructor("alert(__xss=12)")()}}${7*7}#{7*7}'],
  ['unicode', '\uFF1Cscript\uFF1Ealert(__xss=13)\uFF1C/script\uFF1E\u202E\u2028<\u0130mg>'],
  ['entities', '&lt;img src=x onerror=alert(__xss=14)&gt;&#60;b&#62;'],
  ['style', "';x:expression(alert(__xss=15));y:url(javascript:alert(1))"],
]

const shortRun = new Set(['image', 'polyglot'])

const payloads = all.filter(([kind]) => isLong || shortRun.has(kind)).map(([, text]) => text)

/** The payloads that are typed into fields; short runs try one. */
export const typedPayloads = isLong ? payloads : payloads.slice(-1)

/** The payloads as single-line fields store them. */
export const storedPayloads = payloads.map((text) => text.trim().replaceAll(/[\t\u2028\u202E]/g, ''))
