import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { options, PlatformProcess } from '../support/platform.ts'

const kibibyte = 1024

async function readResidentBytes(processId: number, kind: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${processId}/status`, 'utf8')
  return Number(new RegExp(`${kind}:\\s+(\\d+) kB`).exec(status)?.[1]) * kibibyte
}

const chunk = (size: number, count: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`.repeat(count)

/** Unfinished requests. The gateway rejects only the first by its declared length, which exceeds 4 MiB. */
const uploads = [
  ['POST /api/v1/jobs', `Content-Length: ${10 * 1024 * kibibyte}`, 'x'.repeat(64 * kibibyte)],
  ['POST /api/v1/auth/login', `Content-Length: ${64 * kibibyte}`, 'x'.repeat(63 * kibibyte)],
  ['POST /api/v1/relay/enroll', `Content-Length: ${380 * kibibyte}`, 'x'.repeat(370 * kibibyte)],
  ['POST /api/v1/auth/login', 'Transfer-Encoding: chunked', chunk(kibibyte, 63)],
  ['POST /nowhere', 'Transfer-Encoding: chunked', chunk(1, 20 * kibibyte)],
] as const

test('the memory does not grow with the number of slow uploads, and others are served', async () => {
  await using platform = await PlatformProcess.start()
  const { anonymous } = await platform.setUp()
  const { processId } = await readRuntimeFile(platform.dataDir)
  const { hostname, port } = new URL(platform.url)
  const sockets: Socket[] = []
  const start = async (index: number) => {
    const socket = connect(Number(port), hostname)
    sockets.push(socket)
    socket.on('error', () => undefined).resume()
    const [line, length, body] = uploads[index % uploads.length] ?? uploads[0]
    socket.write(`${line} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${length}\r\n\r\n`)
    await Promise.race([new Promise((written) => socket.write(body, written)), once(socket, 'close')])
  }
  const usedBytesAfter = async (count: number) => {
    await Promise.all(Array.from({ length: count }, (_, index) => start(index)))
    expectStatus(await anonymous.post('/api/v1/auth/login', options), 200)
    return readResidentBytes(processId, 'VmRSS')
  }
  const firstBytes = await usedBytesAfter(1000)
  const usedBytes = await usedBytesAfter(5000)
  for (const socket of sockets) socket.destroy()
  // The 5,000 further bodies have 580 MB.
  expect(usedBytes).toBeLessThan(1.3 * firstBytes)
})
