import { expect, test } from 'vitest'
import { startServer } from '../support/http-server.ts'

test('reports a store that accepts a request and never responds as unavailable', async () => {
  await using server = await startServer(() => undefined)
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_DYNAMODB: server.url,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: server.url,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'none',
    AWS_SECRET_ACCESS_KEY: 'none',
  })
  const { get } = await import('@platform/core/db/table')
  const secret = await import('@platform/core/aws/secrets')

  const calls = {
    get: get({ pk: 'A', sk: 'B' }),
    read: secret.readSecret('a-secret'),
    write: secret.writeSecret('a-secret', 'value'),
    begin: secret.createSecretOnce('a-secret', 'value'),
    create: secret.createSecret('a-secret', 'value'),
    delete: secret.deleteSecret('a-secret'),
  }
  const outcomes = await Promise.allSettled(Object.values(calls))

  const unavailableResult = { status: 'rejected', reason: { code: 'database_unavailable' } }
  expect(outcomes).toMatchObject(outcomes.map(() => unavailableResult))
})
