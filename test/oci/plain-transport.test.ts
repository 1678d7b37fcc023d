import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { plainTransport } from '@platform/oci/plain-transport'
import { expect, test } from 'vitest'
import { startServer } from '../support/http-server.ts'
import { missingPrograms, outputOf } from '../support/installed-programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const limits = { timeoutMs: 5000, maxBytes: 10 }

test('returns a response unchanged, without following redirects, and limits its body', async () => {
  await using server = await startServer(({ body }) => ({
    status: 307,
    headers: { location: '/x', 'X-Upper': 'a' },
    body,
  }))
  const send = (body: Uint8Array) => plainTransport(`${server.url}/path?x=1`, { method: 'PUT', body, ...limits })
  expect(await send(Buffer.from('0123456789'))).toMatchObject({
    status: 307,
    headers: { location: '/x', 'x-upper': 'a' },
    body: Buffer.from('0123456789'),
    isCutShort: false,
  })
  expect(await send(Buffer.from('0123456789+'))).toMatchObject({ body: Buffer.from('0123456789'), isCutShort: true })
  expect(server.requests[0]).toMatchObject({ method: 'PUT', headers: { 'content-length': '10' } })
})

const skipReason = missingPrograms('openssl')
test.skipIf(skipReason !== '')(`rejects a server with an untrusted certificate${skipReason}`, async () => {
  await using folder = await temporaryFolder()
  const [keyFile, certificateFile] = [join(folder.path, 'key.pem'), join(folder.path, 'certificate.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', ...subject]
  await outputOf('openssl', 'req', '-x509', ...newKey, '-keyout', keyFile, '-out', certificateFile)
  let requests = 0
  const options = { key: await readFile(keyFile), cert: await readFile(certificateFile) }
  const server = createServer(options, (_incoming, outgoing) => {
    requests += 1
    outgoing.end()
  }).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const work = plainTransport(`https://localhost:${port}/`, { method: 'GET', ...limits })
    await expect(work).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    expect(requests).toBe(0)
  } finally {
    server.close()
  }
})
