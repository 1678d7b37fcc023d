import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { captureOutput } from '@platform/worker/runtimes/output-capture'
import { afterEach, expect, test, vi } from 'vitest'

function capture() {
  const stream = new PassThrough()
  const lines: string[] = []
  const { tail } = captureOutput([stream], (line) => lines.push(line))
  return { stream, lines, tail }
}

async function linesOf(...writes: (string | Buffer)[]): Promise<{ lines: string[]; tail: string }> {
  const { stream, lines, tail } = capture()
  for (const part of writes) stream.write(part)
  stream.end()
  await once(stream, 'close')
  return { lines, tail: tail() }
}

afterEach(() => void vi.useRealTimers())

test('emits complete lines regardless of chunks, without empty ones', async () => {
  const { lines } = await linesOf('one\ntw', 'o\n\n\nthr', '', 'ee')
  expect(lines).toEqual(['one', 'two', 'three'])
})

test('joins split characters and replaces invalid bytes', async () => {
  const snowman = Buffer.from('☃\n')
  const { lines } = await linesOf(snowman.subarray(0, 1), snowman.subarray(1), Buffer.from([0xff, 10]))
  expect(lines).toEqual(['☃', '\ufffd'])
})

test('truncates a line after 8 KiB', async () => {
  const longestLine = 'x'.repeat(8192)
  expect((await linesOf(`${longestLine}\n`)).lines).toEqual([longestLine])
  expect((await linesOf(`${longestLine}y\nnext\n`)).lines).toEqual([`${longestLine}…`, 'next'])
  const parts = Array.from({ length: 100 }, () => 'x'.repeat(1000))
  expect((await linesOf(...parts, '\nnext\n')).lines).toEqual([`${longestLine}…`, 'next'])
})

const manyLines = (count: number, text: string) => `${text}\n`.repeat(count)

test('limits output to 200 lines per second and reports the number of dropped ones', async () => {
  vi.useFakeTimers()
  const { stream, lines } = capture()
  stream.write(manyLines(1000, 'x'))
  await vi.advanceTimersByTimeAsync(0)
  expect(lines).toEqual(Array.from({ length: 200 }, () => 'x'))
  await vi.advanceTimersByTimeAsync(1000)
  expect(lines.slice(200).map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ dropped: 800 })])
  stream.write('again\n')
  await vi.advanceTimersByTimeAsync(1000)
  expect(lines.slice(201)).toEqual(['again'])
})

test('limits output to 64 KiB per second for all streams together', async () => {
  const streams = [new PassThrough(), new PassThrough()]
  const lines: string[] = []
  captureOutput(streams, (line) => lines.push(line))
  for (const stream of streams) stream.end(manyLines(50, 'x'.repeat(8192)))
  await Promise.all(streams.map((stream) => once(stream, 'close')))
  expect(lines).toHaveLength(8)
})

test('drops a whole line if its beginning was dropped', async () => {
  vi.useFakeTimers()
  const { stream, lines } = capture()
  stream.write(`${manyLines(200, 'x')}begin`)
  await vi.advanceTimersByTimeAsync(1500)
  stream.write('end\nnext\n')
  await vi.advanceTimersByTimeAsync(0)
  expect(lines.slice(200)).toEqual(['next'])
  await vi.advanceTimersByTimeAsync(1000)
  expect(JSON.parse(lines[201] ?? '')).toMatchObject({ dropped: 1 })
})

test('keeps the last lines for error messages', async () => {
  const { tail } = await linesOf(manyLines(30, 'x'), 'Error: one\n', 'at two')
  expect(tail.split('\n')).toEqual([...Array.from({ length: 8 }, () => 'x'), 'Error: one', 'at two'])
  expect((await linesOf(manyLines(10, 'x'.repeat(8000)))).tail).toHaveLength(2000)
})
