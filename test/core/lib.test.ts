import { isId, newId } from '@platform/core/id'
import { forEachLimit, singleFlight } from '@platform/core/lib/async'
import { ipNetworkOf } from '@platform/core/lib/ip-network'
import { traceIdOf } from '@platform/core/lib/trace'
import { maxDetails, parseBody } from '@platform/core/lib/validate'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { errorOf } from '../support/fixtures.ts'

function controlledWork() {
  const runs = new Map<string, PromiseWithResolvers<void>>()
  const work = (name: string) => {
    const run = Promise.withResolvers<void>()
    runs.set(name, run)
    return run.promise
  }
  return { work, started: () => [...runs.keys()].join(''), run: (name: string) => runs.get(name)! }
}

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe('forEachLimit', () => {
  test('starts the next item when a running one ends', async () => {
    const { work, started, run } = controlledWork()
    const all = forEachLimit(2, ['a', 'b', 'c'], work)
    expect(started()).toBe('ab')
    run('b').resolve()
    await nextTick()
    expect(started()).toBe('abc')
    run('a').resolve()
    run('c').resolve()
    await all
  })

  test('starts nothing after an error, and throws when running items have ended', async () => {
    const { work, started, run } = controlledWork()
    let error: unknown
    const all = forEachLimit(2, ['a', 'b', 'c', 'd'], work).catch((cause: unknown) => (error = cause))
    run('a').reject(new Error('a failed'))
    await nextTick()
    expect([started(), error]).toEqual(['ab', undefined])
    run('b').resolve()
    await all
    expect([started(), String(error)]).toEqual(['ab', 'Error: a failed'])
  })
})

describe('singleFlight', () => {
  test('reruns work that was requested during a run, once; names are independent', async () => {
    const { work, started, run } = controlledWork()
    const reruns: string[] = []
    const call = singleFlight(work, async (name) => void reruns.push(name))
    const firstCall = call('a')
    await Promise.all([call('a'), call('a')])
    const otherCall = call('b')
    expect(started()).toBe('ab')
    run('b').resolve()
    await otherCall
    expect(reruns).toEqual([])
    run('a').resolve()
    await firstCall
    expect(reruns).toEqual(['a'])
  })

  test('reruns after an error', async () => {
    const reruns: string[] = []
    const call = singleFlight(
      () => Promise.reject(new Error('broken')),
      async (name) => void reruns.push(name),
    )
    const [first, second] = await Promise.allSettled([call('a'), call('a')])
    expect([first.status, second.status, reruns]).toEqual(['rejected', 'fulfilled', ['a']])
  })
})

describe('ids', () => {
  test('are valid only with their prefix', () => {
    const id = newId('job')
    expect(isId('job', id)).toBe(true)
    expect(isId('clus', id)).toBe(false)
    expect(isId('clus', id.replace('job', 'clus'))).toBe(true)
  })

  test.each([
    '',
    'job_',
    newId('job').replace('_', ''),
    newId('job').slice(0, -1),
    `${newId('job')}0`,
    `${newId('job').slice(0, -1)}u`,
    newId('job').replace(/.$/, 'Z'),
    `${newId('job')}\n`,
    ` ${newId('job')}`,
    newId('job').replace('job', 'jobs'),
    `job_${newId('job')}`,
  ])('%j is not an id', (text) => {
    expect(isId('job', text)).toBe(false)
  })
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['2001:db8:0:1::1', '2001:db8:0:1::/64'],
  ['2001:DB8:0:1:ffff:ffff:ffff:ffff', '2001:db8:0:1::/64'],
  ['2001:db8:0:2::1', '2001:db8:0:2::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['::1', '::/64'],
  ['', ''],
  ['not an address', 'not an address'],
])('the network of address %j is %j', (address, network) => {
  expect(ipNetworkOf(address)).toBe(network)
})

describe('trace ids', () => {
  test('continue a valid traceparent', () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    expect(traceIdOf(`00-${traceId}-b7ad6b7169203331-01`)).toBe(traceId)
  })

  test.each([undefined, '', 'nonsense', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`])('are new for %j', (header) => {
    expect(traceIdOf(header)).toMatch(/^(?!0{32})[0-9a-f]{32}$/)
  })
})

const Cluster = z.strictObject({
  name: z.string().optional(),
  nodes: z.array(z.strictObject({ address: z.string().optional(), port: z.number().optional() })).optional(),
  site: z.strictObject({ city: z.string().optional() }).nullable().optional(),
})

test.each([
  [{ nam: '' }, '/nam', '; the nearest one is name'],
  [{ nodes: [{}, { adress: '' }] }, '/nodes/1/adress', '; the nearest one is address'],
  [{ site: { citty: '' } }, '/site/citty', '; the nearest one is city'],
  [{ ['n'.repeat(41)]: '' }, `/${'n'.repeat(41)}`, ''],
])('an unknown field of %j is rejected with the nearest known one of the same object', async (body, path, hint) => {
  const error = await errorOf((async () => parseBody(Cluster, body))())
  const message = `is not a known field${hint}`
  expect(error.extra.details).toEqual([{ in: 'body', path, code: 'unknown_field', message }])
})

test('at most 50 problems of a body are reported', async () => {
  const body = { nodes: Array.from({ length: 60 }, () => ({ port: 'x' })) }
  const error = await errorOf((async () => parseBody(Cluster, body))())
  expect(error.extra.details).toHaveLength(maxDetails)
})
