import { TransactionCanceledException } from '@aws-sdk/client-dynamodb'
import { afterAll, expect, test, vi } from 'vitest'
import { range } from '../bench/support/statistics.ts'
import { advanceClock } from '../support/clock.ts'
import { isLong } from '../support/long.ts'
import { countStoreCalls, onStoreCall } from '../support/store-calls.ts'
import { call, type RequestParts, validRequest } from './fixtures.ts'
import { moduleWorld } from './module-world.ts'
import { isProtected, type Operation, operationNamed, operations } from './operations.ts'
import { requirements } from './requirements.ts'
import { newUser, type SignedInUser } from './users.ts'
import { writes } from './writes.ts'

await vi.hoisted(() => import('../support/without-rate-limits.ts'))
await vi.hoisted(() => import('./module-world.ts'))
afterAll(() => moduleWorld[Symbol.asyncDispose]())

const administrator = await newUser('PlatformAdmin')

const byAdministrator = (name: string, body?: object) => (user: SignedInUser) =>
  call(operationNamed(name), { params: { id: user.userId }, ...(body && { body }) }, administrator.headers)
const signOut = ({ headers }: SignedInUser) => call(operationNamed('POST /api/v1/auth/logout'), {}, headers)

const changes: Record<string, (user: SignedInUser) => Promise<{ status: number }>> = {
  removed: byAdministrator('DELETE /api/v1/users/{id}'),
  demoted: byAdministrator('PATCH /api/v1/users/{id}', { roles: ['Viewer'] }),
  'whose sessions were ended': byAdministrator('DELETE /api/v1/users/{id}/sessions'),
  'whose password was reset': byAdministrator('PATCH /api/v1/users/{id}', { password: 'another long password' }),
  'who has signed out': signOut,
}
const changeNames = Object.keys(changes)

async function changedUser(change: string, prepare: (user: SignedInUser) => RequestParts | Promise<RequestParts>) {
  const user = await newUser('PlatformAdmin')
  const parts = await prepare(user)
  expect((await call(operationNamed('GET /api/v1/roles'), {}, user.headers)).status).toBe(200)
  expect((await changes[change]!(user)).status).toBeLessThan(300)
  return { ...user, parts }
}

const isChanging = ({ name, method, endpoint }: Operation) =>
  method !== 'GET' && !endpoint.readsOnly && endpoint.access !== 'relay' && name !== 'POST /api/v1/auth/logout'
/** By default, one change per operation, but all changes for the submission of a job. */
const cells = operations
  .filter((operation) => isProtected(operation) && isChanging(operation))
  .flatMap((operation, index) =>
    changeNames
      .filter(
        (_, position) => isLong || /\/jobs(\/batch)?$/.test(operation.name) || index % changeNames.length === position,
      )
      .map((change) => [change, operation.name] as const),
  )

test.each(cells)('a user %s cannot %s with the access token', async (change, name) => {
  const { headers, parts } = await changedUser(change, (user) => validRequest(operationNamed(name), user))
  const writesBefore = writes()
  const { status, json } = await call(operationNamed(name), parts, headers)
  if (change === 'demoted' && !requirements[name]?.includes(':')) return expect(status).toBeLessThan(300)
  const refusal = change === 'demoted' ? [403, 'forbidden', requirements[name]] : [401, 'unauthenticated', undefined]
  expect([status, json.error, json.requiredPermission, writes()]).toEqual([...refusal, writesBefore])
})

test.each(changeNames)('reads of a user %s stop within a minute, except after a sign-out', async (change) => {
  const { headers } = await changedUser(change, () => ({}))
  const statusOf = async (name: string) => (await call(operationNamed(name), {}, headers)).status
  const [audit, sites] = ['GET /api/v1/platform/audit', 'GET /api/v1/sites']
  expect(await statusOf(audit)).toBe(200)
  // A clock that is set back does not extend the time.
  for (const stepMs of [60_000, -60_000]) {
    advanceClock(stepMs)
    const expected = { demoted: [403, 200], 'who has signed out': [200, 200] }[change] ?? [401, 401]
    expect([await statusOf(audit), await statusOf(sites)]).toEqual(expected)
  }
})

test('reads of one session take one more store call a minute', async () => {
  const { headers } = await newUser('Viewer')
  const listSites = () => call(operationNamed('GET /api/v1/sites'), {}, headers)
  const countOf = () => countStoreCalls(() => Promise.all(range(5).map(listSites)))
  expect([await countOf(), await countOf()]).toEqual([6, 5])
  advanceClock(60_000)
  expect([await countOf(), await countOf()]).toEqual([6, 5])
})

/** Cancels a transaction if another one that checks the same item is in progress, as DynamoDB does. */
function rejectConcurrentChecks(): Disposable {
  const inProgress = new Set<string>()
  const checkedKeys = ({ command, input }: { command: string; input: any }): string[] =>
    command.startsWith('TransactWrite')
      ? input.TransactItems.map(({ ConditionCheck }: any) => JSON.stringify(ConditionCheck?.Key) ?? '')
      : []
  return onStoreCall({
    before: async (sent) => {
      const keys = checkedKeys(sent)
      const CancellationReasons = keys.map((key) => ({ Code: inProgress.has(key) ? 'TransactionConflict' : 'None' }))
      if (CancellationReasons.some(({ Code }) => Code !== 'None'))
        throw new TransactionCanceledException({
          message: 'cancelled',
          $metadata: { attempts: 1 },
          CancellationReasons,
        })
      for (const key of keys) if (key !== '') inProgress.add(key)
    },
    after: async (sent) => checkedKeys(sent).forEach((key) => inProgress.delete(key)),
  })
}

test('one session can submit many jobs at once', async () => {
  const user = await newUser('Operator')
  const submit = operationNamed('POST /api/v1/jobs')
  const requests = await Promise.all(range(30).map(async () => validRequest(submit, user)))
  using _ = rejectConcurrentChecks()
  const responses = await Promise.all(requests.map((parts) => call(submit, parts, user.headers)))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([202]))
})

test('a change that keeps the permission does not reject a request', async () => {
  const user = await newUser('OrgAdmin')
  const submit = operationNamed('POST /api/v1/jobs')
  const parts = await validRequest(submit, user)
  const update = { params: { id: user.userId }, body: { roles: ['OrgAdmin', 'Operator'] } }
  const colleague = await newUser('OrgAdmin', user.organisationId)
  expect((await call(operationNamed('PATCH /api/v1/users/{id}'), update, colleague.headers)).status).toBe(200)
  expect((await call(submit, parts, user.headers)).status).toBe(202)
})
