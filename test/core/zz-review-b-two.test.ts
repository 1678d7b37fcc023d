import * as keys from '@platform/core/db/keys'
import { putAll } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { createSteps } from '@platform/core/user'
import { transact } from '@platform/core/db/table'
import * as Webhook from '@platform/core/webhook'
import { expect, test } from 'vitest'
import { handler as consumeEvents } from '../../functions/queue/events.ts'
import { callerOf, started } from '../support/world.ts'
import { done, prepare, statusChanged, tellAll, waitingRecords } from './support/books.ts'

const sqsEvent = (bodies: readonly string[]) => ({
  Records: bodies.map((body, index) => ({ messageId: String(index), body })),
})

test('P56 slots', async () => {
  const noisy = callerOf()
  const body = JSON.stringify({ organisationId: noisy.organisationId })
  await tellAll(noisy, Array.from({ length: 3000 }, (_, i) => done('x', `r${i}`)))
  const t0 = performance.now()
  const first = consumeEvents(sqsEvent([body])).then(() => console.log('first', performance.now() - t0))
  await new Promise((r) => setTimeout(r, 20))
  const others = [1, 2, 3].map((n) =>
    consumeEvents(sqsEvent([body])).then(() => console.log('joiner', n, performance.now() - t0)),
  )
  const quiet = callerOf()
  await tellAll(quiet, [done('x', 'y')])
  const q0 = performance.now()
  await consumeEvents(sqsEvent([JSON.stringify({ organisationId: quiet.organisationId })]))
  console.log('quiet, with a slot of its own', performance.now() - q0)
  await Promise.all([first, ...others])
})

test('P7 20 status events, many users', async () => {
  const { organisationId } = callerOf()
  const users = 1000
  for (let i = 0; i < users; i += 25) {
    await Promise.all(
      Array.from({ length: 25 }, () => {
        const id = newId('user')
        const row = { id, organisationId, username: id, email: 'u@example.com', roles: ['Viewer'] }
        return transact(createSteps({ ...row, authProvider: 'local', createdAtMs: 0 }, 'no hash'))
      }),
    )
  }
  await tellAll({ kind: 'system', organisationId }, Array.from({ length: 20 }, () => statusChanged(newId('clus'), 'Healthy', 'Offline')))
  const records = await waitingRecords(organisationId)
  const t0 = performance.now()
  await prepare(organisationId, records)
  console.log(`P7 ${users} users x ${records.length} events: ${performance.now() - t0} ms`)
})

test('P79 20 records of 32 events, 50 webhooks', async () => {
  await started()
  const caller = callerOf()
  for (let i = 0; i < 50; i++) await Webhook.create(caller, { url: 'https://a.example.com/', events: ['platform.job.*'] })
  await tellAll(
    caller,
    Array.from({ length: 20 }, () => ({
      events: Array.from({ length: 32 }, () => ({
        name: 'job.queued' as const,
        subject: newId('job'),
        data: { jobId: newId('job'), clusterId: newId('clus'), type: 'InvokeScript' as const, createdBy: caller.userId },
      })),
    })),
  )
  const records = (await waitingRecords(caller.organisationId)).filter(({ events }) => events.length > 0)
  let t0 = performance.now()
  await prepare(caller.organisationId, records)
  console.log(`P79 ${records.length} records: first ${performance.now() - t0} ms`)
  t0 = performance.now()
  await prepare(caller.organisationId, records)
  console.log(`P79 again ${performance.now() - t0} ms`)
}, 200_000)
