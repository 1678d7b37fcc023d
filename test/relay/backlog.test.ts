import { Backlog, type OutputChunk, chunkBytes } from '@platform/relay/backlog'
import { Output } from '@platform/relay/output'
import { expect, test } from 'vitest'

const kibibyte = 1024

function drain(backlog: Backlog): OutputChunk[] {
  const pieces: OutputChunk[] = []
  for (let piece = backlog.take(); piece; piece = backlog.take()) pieces.push(piece)
  return pieces
}

function textOf(pieces: OutputChunk[]): string {
  return pieces.map(({ data }) => data).join('')
}

test('no piece is larger than one call carries, and no character is cut', () => {
  const backlog = new Backlog()
  const text = 'a€😀'.repeat(20_000)
  backlog.append('node', 'stdout', text)
  const pieces = drain(backlog)
  expect(textOf(pieces)).toBe(text)
  expect(Math.max(...pieces.map(({ data }) => Buffer.byteLength(data)))).toBeLessThanOrEqual(chunkBytes)
})

test('single characters join pieces', () => {
  const backlog = new Backlog()
  for (let count = 0; count < 1000; count++) {
    backlog.append('node', 'stdout', 'o')
    backlog.append('node', 'stderr', 'e')
  }
  expect(drain(backlog).map(({ stream, data }) => [stream, data.length])).toEqual([
    ['stdout', 1000],
    ['stderr', 1000],
  ])
})

test('text that comes after a piece was taken does not overtake what waits', () => {
  const backlog = new Backlog()
  backlog.append('node', 'stdout', '1')
  backlog.append('node', 'stderr', '2')
  const first = backlog.take()
  backlog.append('node', 'stdout', '3')
  expect(textOf([first!, ...drain(backlog)])).toBe('123')
})

test('of too much, the first 256 KiB and the newest 768 KiB are kept, and the gap is told', () => {
  const backlog = new Backlog()
  const blocks = Array.from({ length: 4096 }, (_, index) => `${index}`.padStart(kibibyte, '.'))
  for (const block of blocks) backlog.append('node', 'stdout', block)
  expect(backlog.sizeBytes).toBe(1024 * kibibyte)
  const text = textOf(drain(backlog))
  const gap = `\n[… ${3072 * kibibyte} bytes dropped …]\n`
  expect(text).toBe(`${blocks.slice(0, 256).join('')}${gap}${blocks.slice(-768).join('')}`)
})

test('a gap never leaves half a character behind', () => {
  const backlog = new Backlog()
  for (let count = 0; count < 100; count++) backlog.append('node', 'stdout', `x${'😀'.repeat(5000)}`)
  expect(textOf(drain(backlog))).not.toContain('\uFFFD')
})

test('undelivered output is numbered as it will be sent', () => {
  const output = new Output()
  output.append('node', 'stdout', 'first')
  expect(output.next()?.seq).toBe(0)
  output.acknowledge()
  output.append('node', 'stdout', 'second')
  const sending = output.next()
  output.append('node', 'stdout', 'third')
  expect(output.freeze()).toEqual([sending, { seq: 2, nodeId: 'node', stream: 'stdout', data: 'third' }])
  expect(output.next()).toBe(sending)
})
