import type { Random } from '../random.ts'

/** Values that no field expects, and texts that parsers, stores and terminals treat differently. */

const letters = (count: number): string => 'x'.repeat(count)

/** Texts that come again and again. */
export const oddTexts: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\uFFFF',
  '\uFFFE',
  '\uD800',
  'a\uDC00\uD800b',
  '\u202E\u2066',
  '\u2028',
  '\u0085',
  '\u001B[2J',
  '\r\nX-Injected: 1',
  '\uFEFF',
  '🎉'.repeat(33),
  'ﬃ'.repeat(20),
  'Å'.normalize('NFD'),
  '__proto__',
  'constructor',
  'toString',
  'null',
  'NaN',
  '0x10',
  '1e3',
  '-1',
  '*',
  "' OR 1=1 --",
  '${7*7}',
  '{{7*7}}',
  '../../etc/passwd',
  '%00',
  '%2e%2e%2f',
  '<script>alert(1)</script>',
  '*)(uid=*',
  'a#b',
  'ORG#x',
  '(a+)+$',
  '9'.repeat(40),
  '2026-02-30T00:00:00Z',
  '2026-01-01T00:00:00+99:99',
  'javascript:alert(1)',
  '//evil.example',
  'https://user:password@example.com/',
  'PlatformAdmin',
  letters(65),
  letters(300),
  letters(2000),
  letters(70_000),
]

export const oddText = (random: Random): string => random.pick(oddTexts)

/** JSON text that is the form of no value of this language; `textOf` writes it as it is. */
const rawTexts = ['1e400', '-1e400', '9007199254740993', '12345678901234567890', '1E-400', '-0', '1.0', '0.1e1']
const rawMark = 'raw-json:'

/** Something that stands for a piece of JSON text. */
const rawValue = (random: Random): string => `${rawMark}${random.below(rawTexts.length)}`

/** The JSON text of a value. */
export const textOf = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"raw-json:(\d)"/g, (_, index: string) => rawTexts[Number(index)] ?? '0')

const nested = (levels: number, leaf: unknown): unknown => {
  let value = leaf
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

/** A member that would become the prototype of a careless copy. */
const withProto = (): object => Object.fromEntries([['__proto__', { polluted: true }]])

const makers: readonly ((random: Random) => unknown)[] = [
  () => null,
  () => true,
  () => false,
  () => 0,
  () => -1,
  () => 1.5,
  () => 2 ** 31,
  () => -(2 ** 31) - 1,
  () => 2 ** 53,
  () => 1e200,
  () => 5e-324,
  () => [],
  () => ({}),
  () => [[]],
  () => [null],
  () => ({ length: 1 }),
  () => ({ toString: 1, valueOf: null }),
  () => ({ toJSON: 'x', __defineGetter__: 1 }),
  () => withProto(),
  () => ({ constructor: { prototype: { polluted: true } } }),
  ({ pick }) => nested(pick([3, 17, 40]), 1),
  ({ pick }) => Array.from({ length: pick([2, 101, 3000]) }, (_, index) => index),
  ({ pick }) => Object.fromEntries(Array.from({ length: pick([3, 300]) }, (_, index) => [`k${index}`, index])),
  rawValue,
  oddText,
  oddText,
]

/** Anything that JSON can say. */
export const oddValue = (random: Random): unknown => random.pick(makers)(random)
