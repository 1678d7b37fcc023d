import { expect, test } from 'vitest'
import { retain, outputReader } from '../../packages/portal/src/pages/jobs/retained-output.ts'
import { fileParts, rowsOf } from '../../packages/portal/src/pages/jobs/output-row.ts'
import { plainText } from '../../packages/portal/src/pages/jobs/plain-text.ts'

/** How the portal puts together what jobs write: cut anywhere, from several nodes, and perhaps without an end. */

const chunk = (offset: number, data: string, source: { nodeId?: string; stream?: 'stdout' | 'stderr' } = {}) => ({
  offset,
  nodeId: 'node_a',
  stream: 'stdout' as const,
  data,
  ...source,
})

const kib = 1024

test.for<[string, string, string]>([
  ['\u001b[3', '1mred\u001b[0m\n', 'red\n'],
  ['plain \u001b', '[1mbold', 'plain bold'],
  ['\u001b]0;tit', 'le\u0007text', 'text'],
  ['first\r', '\nsecond', 'first\nsecond'],
  ['whole\u001b[0m', '\n', 'whole\n'],
])('a sequence that is cut in two shows nothing of itself: %j and %j', ([one, two, shown]) => {
  const read = outputReader()
  const parts = [...read([chunk(0, one)]), ...read([chunk(one.length, two)])]
  expect(parts.map(({ data }) => plainText(data)).join('')).toBe(shown)
})

test('what one node has begun is not ended by what another writes meanwhile', () => {
  const read = outputReader()
  const other = { nodeId: 'node_b' }
  const parts = read([chunk(0, 'a\u001b['), chunk(3, '31m is text', other), chunk(14, '0mb')])
  expect(parts.map(({ data }) => plainText(data))).toEqual(['a', '31m is text', 'b'])
})

test('of an output without an end the beginning and the end are kept, and it is said how much is missing', () => {
  const read = outputReader()
  const data = 'x'.repeat(64 * kib)
  let parts: ReturnType<typeof retain> = []
  for (let at = 0; at < 100; at++) parts = retain([...parts, ...read([chunk(at * data.length, data)])])
  expect(parts.length).toBeLessThanOrEqual(17)
  const rows = rowsOf(parts, '')
  const lost = rows.filter(({ lostBytes }) => lostBytes > 0)
  expect(lost.map(({ lostBytes }) => lostBytes)).toEqual([(100 - parts.length) * data.length])
  expect(lost[0]?.part.offset).toBeGreaterThan(256 * kib)
  expect(rows.at(-1)?.part.offset).toBe(99 * data.length)
  expect(fileParts(rows).join('')).toContain('were not kept')
})

test('an output that the platform has cut says so as well, in bytes and not in letters', () => {
  const [first, second, third] = outputReader()([chunk(0, 'äö'), chunk(4, 'ü'), chunk(1000, 'end')])
  expect(rowsOf([first!, second!, third!], '').map(({ lostBytes }) => lostBytes)).toEqual([0, 0, 994])
})

test('the parts of one node are shown alone, with what is missing before them', () => {
  const parts = outputReader()([chunk(0, 'a'), chunk(1, 'b', { nodeId: 'node_b' }), chunk(2, 'c')])
  expect(rowsOf(parts, 'node_b').map(({ part, lostBytes }) => [part.data, lostBytes])).toEqual([['b', 0]])
})
