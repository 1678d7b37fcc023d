import { endpoint } from '@platform/contract/endpoint'
import { shiftClock } from '@platform/core/clock'
import { register } from '@platform/core/clusters/cluster'
import { newId } from '@platform/core/id'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import { expect, onTestFinished, test, vi } from 'vitest'
import { posting, send } from '../support/event.ts'
import { logged } from '../support/output.ts'
import { bearer } from '../support/tokens.ts'
import { callerOf, started } from '../support/world.ts'
import { handler as auth } from '../../functions/auth.ts'
import { handler as sites } from '../../functions/sites.ts'
import { handler as events } from '../../functions/queue/events.ts'
import { handler as sweep } from '../../functions/schedule/sweep.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_METRICS: 'emf', PLAT_LIMIT_API_BURST: '2' }))

const measuredBy = async (work: () => Promise<unknown>) => (await logged(work)).filter((line) => '_aws' in line)

test('every answer counts as a request; refusals of limits count besides, and nobody’s id is part of the line', async () => {
  await started()
  const organisationId = newId('org')
  const headers = await bearer(['Viewer'], organisationId)
  // Else a busy machine takes so long that another request is allowed.
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const ask = () => send(sites, { target: '/api/v1/sites', headers })
  const lines = await measuredBy(async () => {
    for (let call = 0; call < 3; call++) await ask()
  })
  expect(lines).toMatchObject([
    { Requests: 1, Faults: 0, RequestDuration: expect.any(Number) },
    { Requests: 1, Faults: 0 },
    { Requests: 1, Faults: 0, Refusals: 1 },
  ])
  expect(lines[0]).not.toHaveProperty('Refusals')
  expect(JSON.stringify(lines)).not.toContain(organisationId)
})

test('an answer of ours that fails counts as a fault', async () => {
  const [path, summary] = ['/broken', 'Breaks'] as const
  const broken = endpoint({ method: 'GET', path, access: 'public', tag: 'Test', summary, responses: {} })
  const breaking = serve(route(broken, () => Promise.reject(new Error('broken'))))
  const lines = await measuredBy(() => send(breaking, { target: path }))
  expect(lines).toMatchObject([{ Requests: 1, Faults: 1 }])
})

test('a wrong password counts as a failed sign-in', async () => {
  const credentials = { username: newId('user'), password: 'not the password' }
  const lines = await measuredBy(() => send(auth, posting('/api/v1/auth/login', credentials)))
  expect(lines).toMatchObject([{ Requests: 1, SignInFailures: 1 }])
})

test('the books tell how old the oldest record is that they enter, and the sweep how overdue what it finds', async () => {
  const caller = await callerOf()
  await register(caller, { name: 'late', type: 'Hypervisor' })
  shiftClock(120_000)
  const [swept] = await measuredBy(() => sweep())
  expect(swept).toMatchObject({ Runs: 1, RunFailures: 0 })
  // What is announced again waits for 30 seconds before it counts as due.
  expect(swept?.['SweepLateness']).toBeGreaterThan(60)
  expect(swept?.['SweepLateness']).toBeLessThan(130)

  const body = JSON.stringify({ organisationId: caller.organisationId })
  const [booked] = await measuredBy(() => events({ Records: [{ messageId: 'one', body }] }))
  expect(booked).toMatchObject({ MessagesDone: 1 })
  expect(booked?.['BooksLag']).toBeGreaterThanOrEqual(120)
  expect(booked?.['BooksLag']).toBeLessThan(180)
})
