import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'

async function startSilence() {
  const silence = createServer((socket) => socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1')
  await once(silence, 'listening')
  const address = silence.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { url: `http://127.0.0.1:${address.port}`, [Symbol.dispose]: () => silence.close() }
}

test('reports a store that accepts a request and never responds as unavailable', async () => {
  using silence = await startSilence()
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: silence.url,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: silence.url,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'none',
    AWS_SECRET_ACCESS_KEY: 'none',
  })
  const { get } = await import('@platform/core/db/table')
  const secret = await import('@platform/core/aws/secrets')

  const asked = {
    get: get({ pk: 'A', sk: 'B' }),
    read: secret.readSecret('a-secret'),
    write: secret.writeSecret('a-secret', 'value'),
    begin: secret.createSecretOnce('a-secret', 'value'),
    create: secret.createSecret('a-secret', 'value'),
    delete: secret.deleteSecret('a-secret'),
  }
  const outcomes = await Promise.allSettled(Object.values(asked))

  const unreachable = { status: 'rejected', reason: { code: 'database_unavailable' } }
  expect(outcomes).toMatchObject(outcomes.map(() => unreachable))
})
