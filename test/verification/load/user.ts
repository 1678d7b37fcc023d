import { randomUUID } from 'node:crypto'
import { expectStatus } from '../../conformance/support/answer.ts'
import { jobFor } from '../../conformance/support/batch.ts'
import { newUserBody } from '../../conformance/support/person.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import { waitFor } from '../../support/wait-for.ts'
import type { Acknowledged } from './records.ts'
import type { RetryingClient } from './retrying-client.ts'

export interface Targets {
  connectedId: string
  disconnectedId: string
  ledger: string
}

interface Options {
  anonymous: RetryingClient
  tokens: { accessToken: string; refreshToken: string }
  relay: Relay
  targets: Targets
  acknowledged: Acknowledged
}

const jobs = '/api/v1/jobs'
/** No change of the clock expires these jobs. */
const longDelivery = { deliverWithinSeconds: 3 * 86_400 }
const notifications = '/api/v1/notifications'

/** Returns the actions of a simulated user, in any order. Actions throw if the platform rejects their requests. */
export function userActions({ anonymous, tokens, relay, targets, acknowledged }: Options): (() => Promise<void>)[] {
  let current = tokens
  async function refresh(): Promise<void> {
    const { refreshToken } = current
    current = expectStatus(await anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
  }
  const client = anonymous.renewedBy(() => `Bearer ${current.accessToken}`, refresh)
  const get = async (path: string) => expectStatus(await client.get(path), 200)
  const script = (line: string): string => `echo '${line}' >>'${targets.ledger}'; echo '${line}'`
  const submit = async (clusterId: string, text: string, options: object = {}): Promise<string> =>
    expectStatus(await client.post(jobs, { ...jobFor(clusterId, text), ...options }), 202).id

  return [
    async function registerCluster() {
      const body = { name: `loaded ${randomUUID()}`, type: 'Hypervisor' }
      acknowledged.clusters.push(expectStatus(await client.post('/api/v1/clusters', body), 201))
    },
    async function runScript() {
      const line = `line ${randomUUID()}`
      acknowledged.executed.set(line, await submit(targets.connectedId, script(line), longDelivery))
    },
    async function submitUndeliverable() {
      const isCancelled = acknowledged.undelivered.size % 2 === 0
      const id = await submit(targets.disconnectedId, 'true', isCancelled ? {} : { deliverWithinSeconds: 2 })
      acknowledged.undelivered.add(id)
      if (!isCancelled) return
      expectStatus(await client.post(`${jobs}/${id}/cancel`), 202)
      acknowledged.cancelled.add(id)
    },
    async function submitBatch() {
      const lines = Array.from({ length: 3 }, () => `line ${randomUUID()}`)
      const body = {
        jobs: lines.map((line) => ({ ...jobFor(targets.connectedId, script(line)), ...longDelivery })),
        maxConcurrency: 2,
      }
      const { batchId: id, jobIds } = expectStatus(await client.post(`${jobs}/batch`, body), 202)
      acknowledged.batches.push({ id, jobIds, lines, read: (path) => client.get(path) })
    },
    async function completeAsRelay() {
      const id = await submit(relay.clusterId, 'true')
      await waitFor(`the relay receives ${id}`, async () =>
        expectStatus(await relay.heartbeat(), 200).jobs.includes(id),
      )
      const { leaseId } = await relay.claim(id)
      expectStatus(await relay.output(id, { leaseId, seq: 0, data: 'done\n' }), 200)
      expectStatus(await relay.complete(id, leaseId, 0), 200)
      acknowledged.completed.add(id)
    },
    async function refreshTokens() {
      await refresh()
      await get('/api/v1/auth/me')
    },
    async function manageUsers() {
      const { id } = expectStatus(await client.post('/api/v1/users', newUserBody(['Viewer'])), 201)
      expectStatus(await client.patch(`/api/v1/users/${id}`, { roles: ['Operator'] }), 200)
      acknowledged.users.add(id)
      if (acknowledged.users.size % 2 === 0) return
      expectStatus(await client.delete(`/api/v1/users/${id}`), 204)
      acknowledged.removedUsers.add(id)
    },
    async function manageSites() {
      const { id } = expectStatus(await client.post('/api/v1/sites', { name: `site ${randomUUID()}` }), 201)
      expectStatus(await client.delete(`/api/v1/sites/${id}`), 204)
    },
    async function savePreferences() {
      const me = '/api/v1/users/me'
      const layout = [{ widgetId: randomUUID(), x: 0, y: 1, w: 4, h: 3 }]
      expectStatus(await client.patch(`${me}/dashboard-layout`, { layout }), 204)
      const filter = { name: randomUUID(), context: 'clusters', filter: { status: 'Offline' } }
      const { id } = expectStatus(await client.post(`${me}/saved-filters`, filter), 201)
      expectStatus(await client.delete(`${me}/saved-filters/${id}`), 204)
    },
    async function readLists() {
      for (const path of ['/api/v1/clusters', jobs, `${jobs}/batch`, '/api/v1/portal/summary', '/api/v1/sites'])
        await get(path)
      const { items } = await get(`${notifications}?unreadOnly=true`)
      const ids = items.slice(0, 5).map(({ id }: any) => id)
      expectStatus(await client.patch(notifications, { ids }), 204)
    },
  ]
}
