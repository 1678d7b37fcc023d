import { expect, test } from 'vitest'
import { retain, outputReader } from '../../packages/portal/src/pages/jobs/retained-output.ts'
import { fileParts, rowsOf } from '../../packages/portal/src/pages/jobs/output-row.ts'
import { plainText } from '../../packages/portal/src/pages/jobs/plain-text.ts'

const chunk = (offset: number, data: string, nodeId = 'node_a') => ({
  offset,
  nodeId,
  stream: 'stdout' as const,
  data,
})

const kib = 1024

test.for<[string, string, string]>([
  ['\u001b[3', '1mred\u001b[0m\n', 'red\n'],
  ['plain \u001b', '[1mbold', 'plain bold'],
  ['\u001b]0;tit', 'le\u0007text', 'text'],
  ['first\r', '\nsecond', 'first\nsecond'],
  ['whole\u001b[0m', '\n', 'whole\n'],
])('removes escape sequences that are split across chunks: %j and %j', ([one, two, expected]) => {
  const read = outputReader()
  const parts = [...read([chunk(0, one)]), ...read([chunk(one.length, two)])]
  expect(parts.map(({ data }) => plainText(data)).join('')).toBe(expected)
})

test('keeps the escape sequences of nodes apart', () => {
  const parts = outputReader()([chunk(0, 'a\u001b['), chunk(3, '31m is text', 'node_b'), chunk(14, '0mb')])
  expect(parts.map(({ data }) => plainText(data))).toEqual(['a', '31m is text', 'b'])
})

test('keeps the beginning and end of long output and counts the lost bytes', () => {
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

test('counts output that the platform truncated in bytes, not letters', () => {
  const parts = outputReader()([chunk(0, 'äö'), chunk(4, 'ü'), chunk(1000, 'end')])
  expect(rowsOf(parts, '').map(({ lostBytes }) => lostBytes)).toEqual([0, 0, 994])
})

test('shows the output of one node alone', () => {
  const parts = outputReader()([chunk(0, 'a'), chunk(1, 'b', 'node_b'), chunk(2, 'c')])
  expect(rowsOf(parts, 'node_b').map(({ part, lostBytes }) => [part.data, lostBytes])).toEqual([['b', 0]])
})
