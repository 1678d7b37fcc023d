import * as fc from 'fast-check'
import { rawTexts } from './request.ts'

/** Texts that parsers, stores and terminals treat differently. */
export const oddTexts: readonly string[] = [
  ...['', ' ', '\0', 'a\0b', '\uFFFF', '\uFFFE', '\uD800', 'a\uDC00\uD800b', '\u202E\u2066', '\u2028', '\u0085'],
  ...['\u001B[2J', '\r\nX-Injected: 1', '\uFEFF', '🎉'.repeat(33), 'ﬃ'.repeat(20), 'Å'.normalize('NFD')],
  ...['__proto__', 'constructor', 'toString', 'null', 'NaN', '0x10', '1e3', '-1', '*', "' OR 1=1 --", '${7*7}'],
  ...['{{7*7}}', '../../etc/passwd', '%00', '%2e%2e%2f', '<script>alert(1)</script>', '*)(uid=*', 'a#b', 'ORG#x'],
  ...['(a+)+$', '9'.repeat(40), '2026-02-30T00:00:00Z', '2026-01-01T00:00:00+99:99', 'javascript:alert(1)'],
  ...['//evil.example', 'https://user:password@example.com/', 'PlatformAdmin'],
  ...[65, 300, 2000, 70_000].map((length) => 'x'.repeat(length)),
]

export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...oddTexts) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
)

const nestedValue = (levels: number): unknown =>
  levels === 0 ? 1 : levels % 2 === 0 ? [nestedValue(levels - 1)] : { a: nestedValue(levels - 1) }

const pollutingObjects: readonly unknown[] = [
  Object.fromEntries([['__proto__', { polluted: true }]]),
  { constructor: { prototype: { polluted: true } } },
  { toString: 1, valueOf: null },
  { toJSON: 'x', __defineGetter__: 1 },
  { length: 1 },
]

export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1.5, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e200, 5e-324),
  fc.constantFrom<unknown>([], {}, [[]], [null], ...pollutingObjects),
  fc.constantFrom(3, 17, 40).map(nestedValue),
  fc.constantFrom(2, 101, 3000).map((length) => Array.from({ length }, (_, index) => index)),
  fc.constantFrom(3, 300).map((size) => Object.fromEntries(Array.from({ length: size }, (_, i) => [`k${i}`, i]))),
  fc.nat(rawTexts.length - 1).map((index) => `raw-json:${index}`),
  oddText,
  fc.jsonValue(),
)
