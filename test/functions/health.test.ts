import { expect, test } from 'vitest'
import { handler as bootstrap } from '../../functions/bootstrap.ts'
import { handler } from '../../functions/health.ts'
import { send } from '../support/request.ts'

const probe = (name: string) => send(handler, { target: `/health/${name}` })

test('is live before bootstrap, and ready only afterwards', async () => {
  expect(await probe('live')).toMatchObject({ status: 200, json: { status: 'ok' } })
  for (const name of ['ready', 'startup']) {
    expect(await probe(name)).toMatchObject({
      status: 503,
      json: { status: 'unavailable' },
      headers: { 'retry-after': '2' },
    })
  }
  await bootstrap()
  for (const name of ['ready', 'startup']) {
    expect(await probe(name)).toMatchObject({ status: 200, json: { status: 'ok' } })
  }
})
