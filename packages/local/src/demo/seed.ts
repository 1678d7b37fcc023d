import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'
import { readAdminToken } from '../admin-token.ts'
import { readRuntimeFile } from '../runtime-file.ts'
import type { Demo } from './folder.ts'
import { type DemoRelays, isEnrolled, stopLeftoverRelays } from './relays.ts'

const fleet = [
  { name: 'berlin-web', labels: { env: 'prod', site: 'berlin' }, facts: 'rack=b4' },
  { name: 'lisbon-web', labels: { env: 'prod', site: 'lisbon' }, facts: 'rack=l1' },
  { name: 'lab', labels: { env: 'test', site: 'lab' }, facts: 'rack=desk' },
] as const

const batch = {
  name: 'Check the certificate (simulated)',
  reason: 'Two kinds of results for the demo',
  type: 'InvokeScript',
  payload: {
    script: [
      '#!/bin/sh',
      '# The demo runs three relays on this machine, so the results are simulated.',
      'case "$PLAT_NODE_NAME" in',
      '  lab) echo "The certificate expires in 3 days." >&2; exit 1 ;;',
      '  *) echo "The certificate is valid for 62 days." ;;',
      'esac',
      '',
    ].join('\n'),
  },
}

const waitLimitMs = 120_000

/** Calls the API, after `signIn` as the administrator of the demo. */
class Client {
  readonly #url: string
  #token = ''

  constructor(url: string) {
    this.#url = url
  }

  async signIn({ username, password }: Demo): Promise<void> {
    const credentials = { username, password }
    const { accessToken } = await this.call(z.object({ accessToken: z.string() }), 'POST', '/auth/login', credentials)
    this.#token = accessToken
  }

  async call<Body>(schema: z.ZodType<Body>, method: string, path: string, body?: unknown): Promise<Body> {
    const response = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(this.#token && { authorization: `Bearer ${this.#token}` }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const responseBody: unknown = await response.json()
    if (!response.ok) throw new ApiFailure(`${method} ${path}`, response.status, responseBody)
    return schema.parse(responseBody)
  }
}

class ApiFailure extends Error {
  readonly code: string

  constructor(request: string, status: number, body: unknown) {
    const { error = '', message = '' } = z
      .object({ error: z.string(), message: z.string() })
      .partial()
      .parse(body ?? {})
    super(`${request} returned ${status}: ${message}`)
    this.code = error
  }
}

async function waitUntil(task: string, isReached: () => Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + waitLimitMs; performance.now() < endMs;) {
    if (await isReached()) return
    await delay(200)
  }
  throw new Error(`${task} took longer than ${waitLimitMs / 1000} seconds`)
}

async function completeSetup(client: Client, { dataDir, username, password }: Demo): Promise<void> {
  const token = await readAdminToken(await readRuntimeFile(dataDir))
  await client.call(z.unknown(), 'POST', '/setup/complete', {
    platformName: 'Demo',
    publicUrl: 'https://localhost',
    timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    adminUsername: username,
    adminEmail: 'demo@example.com',
    adminPassword: password,
    initialAdminToken: token,
  })
}

const Clusters = z.object({ items: z.array(z.object({ id: z.string(), name: z.string(), status: z.string() })) })
const listClusters = async (client: Client) => (await client.call(Clusters, 'GET', '/clusters?pageSize=100')).items

/** Registers missing clusters, starts a relay for every cluster, and returns the ids once all clusters are healthy. */
async function startFleet(client: Client, demo: Demo, relays: DemoRelays): Promise<string[]> {
  const idByName = new Map((await listClusters(client)).map(({ name, id }) => [name, id]))
  for (const { name, labels, facts } of fleet) {
    const clusterId = idByName.get(name) ?? (await register(client, name, labels))
    const relay = { clusterId, name, facts }
    const path = `/clusters/${clusterId}/enrollment-token`
    const token = isEnrolled(demo, relay)
      ? undefined
      : await client.call(z.object({ enrollmentToken: z.string() }), 'POST', path)
    relays.start(relay, token?.enrollmentToken)
  }
  const names = new Set<string>(fleet.map(({ name }) => name))
  const listConnected = async () =>
    (await listClusters(client)).filter(({ name, status }) => names.has(name) && status === 'Healthy')
  await waitUntil('The enrollment of the relays', async () => (await listConnected()).length === fleet.length)
  return (await listConnected()).map(({ id }) => id)
}

const register = async (client: Client, name: string, labels: Record<string, string>): Promise<string> =>
  (await client.call(z.object({ id: z.string() }), 'POST', '/clusters', { name, type: 'Hypervisor', labels })).id

const Batches = z.object({
  items: z.array(
    z.object({
      name: z.string().optional(),
      status: z.string(),
      counts: z.object({ completed: z.number() }),
    }),
  ),
})

async function runBatch(client: Client, clusterIds: readonly string[]): Promise<void> {
  // A finished batch without a completed job was interrupted by a kill of the demo.
  const findBatch = async () =>
    (await client.call(Batches, 'GET', '/jobs/batch?pageSize=100')).items.find(
      ({ name, status, counts }) => name === batch.name && (status !== 'Finished' || counts.completed > 0),
    )
  if ((await findBatch()) === undefined)
    await client.call(z.unknown(), 'POST', '/jobs/batch', { ...batch, target: { clusterIds } })
  await waitUntil('The batch', async () => (await findBatch())?.status === 'Finished')
}

async function installHello(client: Client): Promise<void> {
  const Modules = z.object({ items: z.array(z.object({ id: z.string(), state: z.string() })) })
  const findHello = async () => (await client.call(Modules, 'GET', '/modules')).items.find(({ id }) => id === 'hello')
  if ((await findHello()) === undefined) {
    await client.call(z.unknown(), 'POST', '/modules/hello/install', {}).catch((error: unknown) => {
      // An earlier start was stopped during the installation, which continues.
      if (!(error instanceof ApiFailure) || error.code !== 'module_operation_in_progress') throw error
    })
  }
  await waitUntil('The installation of the module', async () => {
    const state = (await findHello())?.state
    if (state === 'Failed') throw new Error('the module hello could not be installed; the page Modules shows why')
    return state === 'Running'
  })
}

/**
 * Sets up the platform of the demo and starts its relays. Does only what is missing, so it continues after an
 * interrupted start.
 */
export async function seedDemo(demo: Demo, url: string, relays: DemoRelays): Promise<void> {
  await stopLeftoverRelays(demo)
  const client = new Client(url)
  const { setupComplete } = await client.call(z.object({ setupComplete: z.boolean() }), 'GET', '/portal/configuration')
  if (!setupComplete) await completeSetup(client, demo)
  await client.signIn(demo)
  const results = await Promise.allSettled([
    startFleet(client, demo, relays).then((clusterIds) => runBatch(client, clusterIds)),
    installHello(client),
  ])
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
